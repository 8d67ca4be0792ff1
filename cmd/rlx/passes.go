package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
)

// passLog keeps what the passes of one compilation did: the last one, where several were tried.
type passLog struct{ once, sized []rlx.PassStep }

func (l *passLog) add(s rlx.PassStep) {
	list := &l.once
	if s.Sizes != nil {
		list = &l.sized
	} else {
		l.sized = nil
	}
	if n := len(*list); n > 0 && s.Index <= (*list)[n-1].Index {
		*list = nil
	}
	*list = append(*list, s)
}

// print shows what each pass did; only names the one whose graphs are shown whole, "all" shows what changed for each.
func (l *passLog) print(w io.Writer, only string) error {
	for _, stage := range []struct {
		title string
		steps []rlx.PassStep
	}{{"once, before any size is known", l.once}, {"for the sizes of the run", l.sized}} {
		if len(stage.steps) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\n", stage.title)
		for _, s := range stage.steps {
			if only != "all" && s.Pass != only {
				continue
			}
			fmt.Fprintf(w, "  %-12s %5d nodes -> %5d  %8s%s\n", s.Pass, len(s.Before.Nodes), len(s.After.Nodes), s.Took.Round(time.Microsecond), ruleText(s.Rules))
			if s.Before == s.After {
				continue
			}
			if only != "all" {
				fmt.Fprintf(w, "before\n%s\nafter\n%s\n", strings.Join(lines(s.Before), "\n"), strings.Join(lines(s.After), "\n"))
			} else if err := printChanges(w, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func ruleText(rules map[string]int) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		text += fmt.Sprintf("  %s %d", name, rules[name])
	}
	return text
}

// printChanges lists the lines of the graph's text that a pass took away and those that it added.
func printChanges(w io.Writer, s rlx.PassStep) error {
	before, after := lineCounts(s.Before), lineCounts(s.After)
	for _, side := range []struct {
		mark string
		of   *rlx.Graph
		not  map[string]int
	}{{"-", s.Before, after}, {"+", s.After, before}} {
		left := maps.Clone(side.not)
		for _, line := range lines(side.of) {
			if left[line] > 0 {
				left[line]--
				continue
			}
			if _, err := fmt.Fprintf(w, "    %s %s\n", side.mark, strings.TrimSpace(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

func lineCounts(g *rlx.Graph) map[string]int {
	count := map[string]int{}
	for _, line := range lines(g) {
		count[line]++
	}
	return count
}

// longLine is where the data of constants is cut off.
const longLine = 240

func lines(g *rlx.Graph) []string {
	list := strings.Split(g.String(), "\n")
	for i, line := range list {
		if len(line) > longLine {
			list[i] = strings.ToValidUTF8(line[:longLine], "") + " ..."
		}
	}
	return list
}
