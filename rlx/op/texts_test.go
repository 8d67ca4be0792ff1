package op

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every constraint says what it expects, since that is a field of the error that breaks it. Texts that an error fills in are its to word.
func TestConstraintTexts(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"*.go", "../ir/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 3 {
					return true
				}
				f, ok := call.Fun.(*ast.SelectorExpr)
				text, isText := call.Args[2].(*ast.BasicLit)
				if !ok || f.Sel.Name != "Need" || !isText {
					return true
				}
				seen++
				s, err := strconv.Unquote(text.Value)
				if err != nil || !strings.Contains(s, ", expected ") && s != "%v" {
					t.Errorf("%s: %s lacks ', expected '", set.Position(text.Pos()), text.Value)
				}
				return true
			})
		}
	}
	if seen < 200 {
		t.Errorf("%d constraints found, expected at least 200", seen)
	}
}
