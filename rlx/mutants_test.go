package rlx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// mutant is a bug planted in the compiler: texts of a file that are others where the mutant is on. The places are found by what stands there,
// so that the compiler itself holds no trace of them; where one is gone the test says which mutant to plant anew.
type mutant struct {
	name, file string
	edits      []edit
	by         []string // what may notice it: see fuzz.Failure
	emphasis   string   // the kind of step that graphs take more often, where the bug is rare
}

// edit replaces a text that occurs once. ON in the new one is the condition that the mutant is on.
type edit struct{ old, new string }

var mutants = []mutant{
	{"cse merges nodes whose attributes differ", "rlx/internal/pass/pass.go", []edit{{
		`if words, err := n.Row.AppendAttrs(nil, n.Attrs); err == nil {`,
		`if words, err := n.Row.AppendAttrs(nil, n.Attrs); ON {
	} else if err == nil {`}}, []string{"verify", "compile", "bits", "values"}, ""},
	{"folded constants have another dtype of the same size", "rlx/internal/pass/fold.go", []edit{{
		`to.Constant(values[k])`, `to.Constant(mutant.Other(values[k], ON))`}}, []string{"verify", "compile", "bits", "values"}, ""},
	{"a region takes the first element of a constant for all", "rlx/internal/pass/region.go", []edit{
		{`t != nil && t.Len() == 1 && !keep {`, `t != nil && (t.Len() == 1 || ON && t.Len() > 0) && !keep {`},
		{`ir.FromBytes(t.DType(), nil, t.Bytes())`, `ir.FromBytes(t.DType(), nil, t.Bytes()[:t.DType().Size()])`}}, []string{"bits"}, ""},
	{"a region's results change places", "rlx/internal/pass/region.go", []edit{{
		`values[v] = out[i]`, `values[v] = out[map[bool]int{false: i, true: len(out) - 1 - i}[ON && gr != nil]]`}}, []string{"verify", "compile", "bits"}, ""},
	{"an epilogue adds the residual before the activation", "rlx/internal/pass/epilogue.go", []edit{{
		`if !ok || !in[3].IsZero() || a.Activation != "none" ||`, `if !ok || !in[3].IsZero() || a.Activation != "none" && !ON ||`}}, []string{"values"}, "convolution"},
	{"algebra drops the addition of a zero of either sign", "rlx/internal/pass/algebra.go", []edit{{
		`return v == 0 && math.Signbit(v)`, `return v == 0 && (ON || math.Signbit(v))`}}, []string{"bits"}, "bait"},
	{"GELU with any number in front of x", "rlx/internal/pass/activation.go", []edit{{
		`!ok || !close(x.DType(), k, math.Sqrt2/2)`, `!ok || !ON && !close(x.DType(), k, math.Sqrt2/2)`}}, []string{"values"}, "pattern"},
	{"attention forgets the mask", "rlx/internal/pass/attention.go", []edit{{
		`r.biases = append(r.biases, b)`, `r.biases = append(r.biases, b)[:map[bool]int{false: len(r.biases) + 1, true: 0}[ON]]`}}, []string{"values"}, "pattern"},
	{"results go in place of what is read later", "rlx/internal/plan/plan.go", []edit{{
		`return s.buf.lastRead <= p.at`, `return ON || s.buf.lastRead <= p.at`}}, []string{"plan"}, ""},
	{"buffers live a step too short", "rlx/internal/plan/arena.go", []edit{{
		`if o.end < b.first || b.end < o.first || o.bytes == 0 {`,
		`if o.end < b.first || b.end < o.first || o.bytes == 0 || ON && (o.end == b.first || b.end == o.first) {`}}, []string{"plan"}, ""},
	{"offsets of views count elements", "rlx/internal/plan/plan.go", []edit{{
		`Offset: s.offset * int64(s.dtype.Size())}`, `Offset: s.offset * int64(map[bool]int{false: s.dtype.Size(), true: 1}[ON])}`}}, []string{"plan"}, ""},
	{"an output that is an input is not copied", "rlx/internal/plan/plan.go", []edit{{
		`if s.buf.slot == prog.Output && s.buf.index == i || side != host {`,
		`if s.buf.slot == prog.Output && s.buf.index == i || side != host || ON && s.buf.slot == prog.Input {`}}, []string{"plan"}, ""},
	{"words: a broadcast axis has a stride", "rlx/internal/prog/words.go", []edit{{
		`return put(put(w, o.Dims), o.Strides)`, `strides := append([]int64{}, o.Strides...)
	for i, s := range strides {
		if ON && s == 0 {
			strides[i] = 1
		}
	}
	return put(put(w, o.Dims), strides)`}}, []string{"plan"}, ""},
	{"words: attributes in the other order", "rlx/ir/attrwords.go", []edit{{`for _, a := range r.Schema {
		var err error
		if a.Kind == AttrGraph {`, `for i, a := range r.Schema {
		if ON {
			a = r.Schema[len(r.Schema)-1-i]
		}
		var err error
		if a.Kind == AttrGraph {`}}, []string{"plan"}, ""},
	{"words: operands have no offset", "rlx/internal/prog/words.go", []edit{{
		`uint32(o.Index), uint32(o.Offset), uint32(uint64(o.Offset)>>32))`,
		`uint32(o.Index), uint32(o.Offset)*map[bool]uint32{false: 1, true: 0}[ON], uint32(uint64(o.Offset)>>32))`}}, []string{"plan"}, ""},
	{"words: a result has the dtype of its operand", "rlx/internal/prog/words.go", []edit{{`for _, o := range c.Out {
			w = o.encode(w)`, `for _, o := range c.Out {
			if ON && len(c.In) > 0 && c.In[0].DType.Size() == o.DType.Size() && o.Slot == Arena {
				o.DType = c.In[0].DType
			}
			w = o.encode(w)`}}, []string{"plan"}, ""},
}

// TestMutants plants the mutants into a build of the fuzzer for the interpreter, switches on one at a time and looks whether and by what its
// random graphs find it. Without one they must find nothing.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the compiler anew (-short)")
	}
	began := time.Now()
	binary := filepath.Join(t.TempDir(), "fuzz.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay(t), "-o", binary, "./rlx/internal/fuzz")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("built in %s", time.Since(began).Round(time.Millisecond))
	var wait sync.WaitGroup
	slots := make(chan bool, 2)
	for k := range len(mutants) + 1 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			slots <- true
			defer func() { <-slots }()
			hunt(t, binary, k)
		}()
	}
	wait.Wait()
}

// mutantGraphs is how many graphs the fuzzer has to find a mutant.
const mutantGraphs = 150

const switchFile = `package mutant

import (
	"os"
	"strconv"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

var On, _ = strconv.Atoi(os.Getenv("RLX_MUTANT"))

func Other(t *ir.Tensor, on bool) *ir.Tensor {
	if to := map[ir.DType]ir.DType{ir.F32: ir.I32, ir.F64: ir.I64, ir.F16: ir.BF16, ir.BF16: ir.F16}[t.DType()]; on && to != 0 {
		t, _ = ir.FromBytes(to, t.Shape(), t.Bytes())
	}
	return t
}
`

const irSwitchFile = `package ir

import (
	"os"
	"strconv"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("RLX_MUTANT"))
`

var condition = regexp.MustCompile(`\bON\b`)

var caught = regexp.MustCompile(`seed (\d+): (\w+): (on ref with .*)`)

// hunt runs the fuzzer with mutant k on, counted from 1; 0 is none.
func hunt(t *testing.T, binary string, k int) {
	cmd := exec.Command(binary, "-test.run", "^TestGraphs$", "-test.v", "-on", "ref", "-graphs", fmt.Sprint(mutantGraphs), "-failures", "1", "-shrink=false", "-light")
	if k > 0 {
		cmd.Args = append(cmd.Args, "-emphasis", mutants[k-1].emphasis)
	}
	cmd.Dir, cmd.Env = "internal/fuzz", append(os.Environ(), fmt.Sprint("RLX_MUTANT=", k))
	out, _ := cmd.CombinedOutput()
	m := caught.FindSubmatch(out)
	switch {
	case k == 0 && (m != nil || !bytes.Contains(out, []byte(fmt.Sprint(mutantGraphs, " graphs from seed")))):
		t.Errorf("without a mutant:\n%s", out)
	case k == 0:
		t.Logf("no mutant: nothing reported in %d graphs", mutantGraphs)
	case m == nil:
		t.Errorf("not caught: %s\n%s", mutants[k-1].name, out)
	case !slices.Contains(mutants[k-1].by, string(m[2])):
		t.Errorf("%s: caught by %q, expected one of %v: %s", mutants[k-1].name, m[2], mutants[k-1].by, m[0])
	default:
		t.Logf("%s: caught by %s, graph %s", mutants[k-1].name, m[2], m[1])
	}
}

// overlay writes the files with the mutants and says where the go command finds them.
func overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for k, m := range mutants {
		if files[m.file] == "" {
			text, err := os.ReadFile(filepath.Join(root, m.file))
			if err != nil {
				t.Fatal(err)
			}
			name, rest, _ := strings.Cut(string(text), "\nimport (")
			files[m.file] = name + "\nimport \"github.com/rlx-ml/rlx-go/rlx/internal/mutant\"\n\nimport (" + rest
		}
		for _, e := range m.edits {
			if n := strings.Count(files[m.file], e.old); n != 1 {
				t.Fatalf("mutant %q: its place occurs %d times in %s, expected once: plant it anew\n%s", m.name, n, m.file, e.old)
			}
			files[m.file] = strings.Replace(files[m.file], e.old, condition.ReplaceAllString(e.new, fmt.Sprintf("(mutant.On == %d)", k+1)), 1)
		}
	}
	files["rlx/internal/mutant/mutant.go"] = switchFile
	// Package ir is beneath the switch, which knows tensors: it has one of its own.
	files["rlx/ir/attrwords.go"] = strings.NewReplacer("import \"github.com/rlx-ml/rlx-go/rlx/internal/mutant\"\n", "", "mutant.On", "mutantOn").Replace(files["rlx/ir/attrwords.go"])
	files["rlx/ir/mutant.go"] = irSwitchFile
	replace := map[string]string{}
	for name, text := range files {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, name)] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
