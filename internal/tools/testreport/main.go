// Command testreport reads `go test -json` on standard input, prints what failed and every skip with its reason, and counts. With
// -allowed FILE a skip whose reason is not in the file (one line each, # comments) fails the run.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

type key struct{ pkg, test string }

func main() {
	allowed := flag.String("allowed", "", "file with the skip reasons that do not fail the run")
	flag.Parse()
	ok, err := run(*allowed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(allowed string) (bool, error) {
	reasons, err := readAllowed(allowed)
	if err != nil {
		return false, err
	}
	output := map[key][]string{}
	passed, failed, skipped, refused := 0, 0, 0, 0
	sc := bufio.NewScanner(os.Stdin)
	sc.Buffer(nil, 1<<26)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) != nil { // build output
			fmt.Println(sc.Text())
			continue
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "output", "build-output":
			output[k] = append(output[k], e.Output)
		case "pass":
			if e.Test != "" {
				passed++
			} else {
				fmt.Printf("ok    %s %.1fs\n", e.Package, e.Elapsed)
			}
			delete(output, k)
		case "fail", "build-fail":
			failed++
			fmt.Printf("FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(output[k], ""))
		case "skip":
			if e.Test == "" {
				continue // a package without tests
			}
			skipped++
			reason := skipReason(output[k])
			mark := ""
			if allowed != "" && !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(reason, r) }) {
				refused++
				mark = " (not in the list of allowed skips)"
			}
			fmt.Printf("skip  %s %s: %s%s\n", e.Package, e.Test, reason, mark)
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if refused > 0 {
		fmt.Printf("%d skips are not allowed by %s\n", refused, allowed)
	}
	return failed == 0 && refused == 0, sc.Err()
}

func readAllowed(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var l []string
	for _, line := range strings.Split(string(b), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			l = append(l, line)
		}
	}
	return l, nil
}

// skipReason is the text of t.Skip: the last line of output with a source position.
func skipReason(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if l := strings.TrimSpace(lines[i]); l != "" && !strings.HasPrefix(l, "---") && !strings.HasPrefix(l, "===") {
			if _, text, ok := strings.Cut(l, ": "); ok {
				return text
			}
			return l
		}
	}
	return "no reason"
}
