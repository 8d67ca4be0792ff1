// Command rlxgen writes the files that derive from the op table; with -check it exits 1 when one on disk differs.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/rlx-ml/rlx-go/rlx/internal/gen"
)

func main() {
	check := flag.Bool("check", false, "write nothing; exit 1 when a file on disk differs")
	dir := flag.String("C", ".", "a folder in the repository")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "rlxgen:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	root, err := gen.Root(dir)
	if err != nil {
		return err
	}
	files, err := gen.Files(root)
	if err != nil {
		return err
	}
	if !check {
		changed, err := gen.Write(root, files)
		for _, path := range changed {
			fmt.Println(path)
		}
		return err
	}
	stale := gen.Stale(root, files)
	for _, f := range stale {
		fmt.Println(f.Path)
	}
	if len(stale) > 0 {
		return fmt.Errorf("%d generated files are not up to date: run make generate", len(stale))
	}
	return nil
}
