package conform

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

const testdata = "../../testdata"

// missingKinds are the kinds that case files use and the op table lacks so far. The list only shrinks.
func missingKinds(t *testing.T) map[string]bool {
	f, err := os.Open(filepath.Join(testdata, "conform_skips.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kinds := map[string]bool{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		kind := strings.TrimSpace(sc.Text())
		if kind == "" || strings.HasPrefix(kind, "#") {
			continue
		}
		if _, err := ir.RowByName(kind); err == nil {
			t.Errorf("testdata/conform_skips.txt lists %s, which is in the op table: remove the line", kind)
		}
		kinds[kind] = true
	}
	return kinds
}

// Every case file on every backend. A skip is allowed only for a kind that the table lacks.
func TestCases(t *testing.T) {
	missing := missingKinds(t)
	files, err := filepath.Glob(filepath.Join(testdata, "cases", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	used, whole := map[string]bool{}, false // whole: some backend ran every case, whatever -run and -short leave
	for _, b := range poisonable(t) {
		t.Run(b, func(t *testing.T) {
			defer Hold(t.Context(), rlx.On(b))()
			passed, skipped, left := 0, 0, 0
			for _, path := range files {
				f, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				err = Read(f, func(line int, c *Case) error {
					if testing.Short() && Slow(b) && line%8 != 0 {
						left++
						return nil
					}
					err := c.Run(t.Context(), rlx.On(b))
					var skip *Skip
					switch {
					case err == nil:
						passed++
					case errors.As(err, &skip) && missing[skip.Kind]:
						used[skip.Kind] = true
						skipped++
					default:
						t.Errorf("%s:%d %s: %v", filepath.Base(path), line, c, err)
					}
					return nil
				})
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			whole = whole || left == 0
			t.Logf("%d passed, %d skipped for kinds of testdata/conform_skips.txt, %d left out (-short)", passed, skipped, left)
		})
	}
	for kind := range missing {
		if whole && !used[kind] {
			t.Errorf("testdata/conform_skips.txt lists %s, which no case needs: remove the line", kind)
		}
	}
}
