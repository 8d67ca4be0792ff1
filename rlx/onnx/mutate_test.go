package onnx_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
	"google.golang.org/protobuf/encoding/protowire"
)

var (
	mutations    = flag.Int("mutations", 3000, "how many mutated models TestMutations reads")
	mutationSeed = flag.Uint64("mutation-seed", 1, "seed of TestMutations")
	mutationItem = flag.Int("mutation-item", 0, "the first of them")
)

const (
	mutationCap  = 64 << 20        // of Compile
	mutationTime = 2 * time.Second // to read one file
	runTime      = time.Second     // after which Compile and Run are cancelled
	stopTime     = 5 * time.Second // by when all of it has stopped
	smallFile    = 16 << 10        // larger ones of the corpus are left out
)

// ---- the wire format as a tree ----

// wire is one field of a message. Its body is kids where the format says that it is a message.
type wire struct {
	num  protowire.Number
	typ  protowire.Type
	v    uint64
	body []byte
	of   string // the message it is: "" for none
	kids []*wire
}

// submessages names the message behind a field of another.
var submessages = map[string]map[protowire.Number]string{
	"model":     {7: "graph", 8: "opset", 14: "pair", 25: "function"},
	"graph":     {1: "node", 5: "tensor", 11: "value", 12: "value", 13: "value"},
	"node":      {5: "attribute"},
	"attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
	"value":     {2: "type"},
	"type":      {1: "array"},
	"array":     {2: "shape"},
	"shape":     {1: "dim"},
	"tensor":    {13: "pair"},
	"function":  {7: "node", 9: "opset", 11: "attribute"},
}

// packedInts are the fields of a message that may hold varints in a row.
var packedInts = map[string][]protowire.Number{"tensor": {1, 5, 7, 11}, "attribute": {8}}

func parseWire(of string, b []byte) []*wire {
	var list []*wire
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return list
		}
		b = b[n:]
		f := &wire{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			f.v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.body, n = protowire.ConsumeBytes(b)
		default:
			if n = protowire.ConsumeFieldValue(num, typ, b); n > 0 {
				f.body = b[:n]
			}
		}
		if n < 0 {
			return list
		}
		if f.of = submessages[of][num]; f.of != "" && typ == protowire.BytesType {
			f.kids = parseWire(f.of, f.body)
		}
		b, list = b[n:], append(list, f)
	}
	return list
}

func appendWire(b []byte, list []*wire) []byte {
	for _, f := range list {
		b = protowire.AppendTag(b, f.num, f.typ)
		switch {
		case f.typ == protowire.VarintType:
			b = protowire.AppendVarint(b, f.v)
		case f.typ == protowire.BytesType && f.of != "":
			b = protowire.AppendBytes(b, appendWire(nil, f.kids))
		case f.typ == protowire.BytesType:
			b = protowire.AppendBytes(b, f.body)
		default:
			b = append(b, f.body...)
		}
	}
	return b
}

// message is a list of fields that can be changed in place.
type message struct {
	of   string
	list *[]*wire
}

func messages(of string, list *[]*wire, out []message) []message {
	out = append(out, message{of, list})
	for _, f := range *list {
		if f.of != "" {
			out = messages(f.of, &f.kids, out)
		}
	}
	return out
}

// ---- mutations ----

var extremes = []int64{0, 1, 2, 3, 7, 16, 255, 256, 1000, 65536, 1 << 20, 1 << 24, math.MaxInt32, 1 << 31, 1 << 32, 1 << 40, 1 << 53, 1 << 62, math.MaxInt64,
	-1, -2, -3, -128, math.MinInt32, -1 << 40, math.MinInt64}

var strange = []string{"", "x", "\x00", "a\x00b", "\xff\xfe", "../w.bin", "/etc/passwd", "If", "Loop", "ConstantOfShape", "Reshape", "MatMul", "Conv", "Identity",
	"ai.onnx", "com.microsoft", "n", "-1", "9223372036854775807", strings.Repeat("n", 300), "linear", "nearest", "cubic", "ij,jk->ik", "...", "i->"}

var floats = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1e-30, 1e30, math.Inf(1), math.Inf(-1), math.NaN(), 65536, 1e-6}

// mutator makes files of other files.
type mutator struct {
	*rand.Rand
	corpus [][]byte
}

func one[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// next is a mutated file: three in four are well-formed messages with strange contents, the others damaged bytes.
func (m *mutator) next() []byte {
	data := one(m.Rand, m.corpus)
	if m.IntN(4) == 0 {
		data = bytes.Clone(data)
		for range 1 + m.IntN(4) {
			data = m.damage(data)
		}
		return data
	}
	root := parseWire("model", data)
	for range 1 + m.IntN(3) {
		all := messages("model", &root, nil)
		at := one(m.Rand, all)
		for range 20 { // the larger messages are few
			if at = one(m.Rand, all); len(*at.list) > 0 {
				break
			}
		}
		m.change(at, all)
	}
	return appendWire(nil, root)
}

// damage changes bytes.
func (m *mutator) damage(b []byte) []byte {
	if len(b) == 0 {
		return []byte{byte(m.Uint32())}
	}
	from := m.IntN(len(b))
	to := min(len(b), from+1+m.IntN(16))
	switch m.IntN(8) {
	case 0:
		b[from] ^= 1 << m.IntN(8)
	case 1:
		b[from] = byte(m.Uint32())
	case 2:
		return append(b[:from:from], b[to:]...)
	case 3:
		return slices.Concat(b[:to], b[from:])
	case 4: // the end of another file
		other := one(m.Rand, m.corpus)
		return slices.Concat(b[:from], other[m.IntN(len(other)):])
	case 5:
		return b[:from]
	case 6: // a varint that goes on, or one of ten bytes
		b[from] |= 0x80
	case 7:
		return slices.Concat(b[:from], protowire.AppendVarint(nil, uint64(one(m.Rand, extremes))), b[from:])
	}
	return b
}

// change alters one message.
func (m *mutator) change(at message, all []message) {
	if len(*at.list) == 0 {
		return
	}
	list := *at.list
	i := m.IntN(len(list))
	switch m.IntN(10) {
	case 0:
		*at.list = slices.Delete(slices.Clone(list), i, i+1)
	case 1:
		*at.list = slices.Insert(slices.Clone(list), m.IntN(len(list)), list[i])
	case 2:
		k := m.IntN(len(list))
		list[i], list[k] = list[k], list[i]
	case 3: // a field of the same kind of message elsewhere in the file, or of another file
		from := all
		if m.IntN(2) == 0 {
			root := parseWire("model", one(m.Rand, m.corpus))
			from = messages("model", &root, nil)
		}
		from = slices.DeleteFunc(slices.Clone(from), func(o message) bool { return o.of != at.of || len(*o.list) == 0 })
		if len(from) > 0 {
			taken := one(m.Rand, *one(m.Rand, from).list)
			*at.list = append(slices.Clone(list), parseWire(at.of, appendWire(nil, []*wire{taken}))...) // a copy: it may hold at
		}
	default:
		f := *list[i]
		m.value(at.of, &f, all)
		list[i] = &f
	}
}

// value alters what a field holds.
func (m *mutator) value(of string, f *wire, all []message) {
	switch {
	case f.typ == protowire.VarintType && m.IntN(2) == 0:
		f.v += uint64(m.IntN(5) - 2)
	case f.typ == protowire.VarintType:
		f.v = uint64(one(m.Rand, extremes))
	case f.typ == protowire.Fixed32Type && len(f.body) == 4:
		f.body = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(one(m.Rand, floats))))
	case f.typ != protowire.BytesType || f.of != "":
	case slices.Contains(packedInts[of], f.num):
		f.body = m.ints(f.body)
	case of == "tensor" && f.num == 9:
		f.body = m.raw(f.body)
	case m.IntN(2) == 0:
		f.body = []byte(one(m.Rand, strange))
	default: // another text of the file
		if o := m.text(all); o != nil && o.typ == protowire.BytesType && o.of == "" {
			f.body = o.body
		}
	}
}

// text is some field of the file.
func (m *mutator) text(all []message) *wire {
	list := *one(m.Rand, all).list
	if len(list) == 0 {
		return nil
	}
	return one(m.Rand, list)
}

func (m *mutator) ints(b []byte) []byte {
	var v []uint64
	for len(b) > 0 {
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			break
		}
		b, v = b[n:], append(v, x)
	}
	switch k := m.IntN(4); {
	case len(v) == 0 || k == 0:
		v = append(v, uint64(one(m.Rand, extremes)))
	case k == 1:
		v = v[1:]
	default:
		v[m.IntN(len(v))] = uint64(one(m.Rand, extremes))
	}
	var out []byte
	for _, x := range v {
		out = protowire.AppendVarint(out, x)
	}
	return out
}

// raw puts an extreme number into the data of a tensor, or cuts them.
func (m *mutator) raw(b []byte) []byte {
	b = bytes.Clone(b)
	switch k := m.IntN(4); {
	case len(b) == 0 || k == 0:
		return append(b, byte(m.Uint32()))
	case k == 1:
		return b[:m.IntN(len(b))]
	case k == 2 && len(b) >= 8:
		binary.LittleEndian.PutUint64(b[m.IntN(len(b)/8)*8:], uint64(one(m.Rand, extremes)))
	case len(b) >= 4:
		binary.LittleEndian.PutUint32(b[m.IntN(len(b)/4)*4:], math.Float32bits(float32(one(m.Rand, floats))))
	}
	return b
}

// ---- the test ----

// mutationCorpus are the models written by hand and, where the models folder is there, those of ONNX's backend tests.
func mutationCorpus(t *testing.T) [][]byte {
	corpus := onnx.MutationCorpus()
	root, skip := golden.ModelPath("onnx-node-tests")
	if skip != "" {
		t.Logf("models written by hand alone: %s", skip)
		return corpus
	}
	paths, err := filepath.Glob(filepath.Join(root, "*", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		if i%4 != 0 && *mutations < 20000 { // reading all takes longer than the short run
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 0 && len(data) <= smallFile {
			corpus = append(corpus, data)
		}
	}
	return corpus
}

// tally counts what became of the files.
type tally map[string]int

func (c tally) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, c[k]))
	}
	return strings.Join(parts, ", ")
}

// TestMutations reads damaged models: each gives a typed error or loads, in bounded time and memory, and what loads compiles under a cap or
// gives a typed error, and runs where it is small. Item i of seed s is mutated with the generator (s, i).
func TestMutations(t *testing.T) {
	corpus := mutationCorpus(t)
	t.Logf("%d mutations of %d models, seed %d", *mutations, len(corpus), *mutationSeed)
	counts := tally{}
	watch := watchdog(t)
	defer watch.stop()
	for i := *mutationItem; i < *mutationItem+*mutations; i++ {
		m := &mutator{rand.New(rand.NewPCG(*mutationSeed, uint64(i))), corpus}
		data := m.next()
		watch.begin(i, data)
		start := onnx.CPUTime()
		if err := tryMutation(t.Context(), data, counts); err != nil {
			t.Errorf("item %d: %v\n%s", i, err, saved(data))
		}
		if took := onnx.CPUTime() - start; took > stopTime*time.Duration(len(conform.Backends())) {
			t.Errorf("item %d: computed for %v\n%s", i, took, saved(data))
		}
	}
	t.Log(counts)
}

// saved writes a file that fails where it can be looked at.
func saved(data []byte) string {
	f, err := os.CreateTemp("", "mutated-*.onnx")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err.Error()
	}
	return f.Name()
}

// watching ends the test with a file that hangs, where the test itself cannot.
type watching struct {
	started atomic.Int64
	done    chan struct{}
	item    atomic.Int64
	data    atomic.Pointer[[]byte]
}

func watchdog(t *testing.T) *watching {
	w := &watching{done: make(chan struct{})}
	w.begin(-1, nil)
	go func() {
		for {
			select {
			case <-w.done:
				return
			case <-time.After(time.Second):
			}
			if w.took() > time.Minute {
				stacks := make([]byte, 1<<16)
				stacks = stacks[:runtime.Stack(stacks, true)]
				panic(fmt.Sprintf("%s: item %d hangs: %s\n%s", t.Name(), w.item.Load(), saved(*w.data.Load()), stacks))
			}
		}
	}()
	return w
}

func (w *watching) begin(item int, data []byte) {
	w.item.Store(int64(item))
	w.data.Store(&data)
	w.started.Store(time.Now().UnixNano())
}
func (w *watching) took() time.Duration {
	return time.Duration(time.Now().UnixNano() - w.started.Load())
}
func (w *watching) stop() { close(w.done) }

func allocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

// tryMutation reads one file and goes on with it as far as it goes.
func tryMutation(ctx context.Context, data []byte, counts tally) error {
	most := uint64(3*len(data) + 1<<20) // with the file itself four times the file
	before := allocated()
	_, err := onnx.Decode(data)
	if got := allocated() - before; got > most {
		return fmt.Errorf("Decode allocates %d bytes for a file of %d", got, len(data))
	}
	if err != nil {
		counts["no model"]++
		if e := (*onnx.DecodeError)(nil); !errors.As(err, &e) || e.Err == nil || e.Field == "" || e.Offset < 0 || e.Offset > int64(len(data)) {
			return fmt.Errorf("an error without a place or a reason: %w", err)
		}
		return nil
	}
	before = allocated()
	model, took, err := timedOpen(data)
	if took > mutationTime {
		return fmt.Errorf("Open computed for %v, expected at most %v", took, mutationTime)
	}
	counts["slowest open ms"] = max(counts["slowest open ms"], int(took.Milliseconds()))
	if got := allocated() - before; got > most {
		counts["open above four times the file + 1 MiB"]++
		if got > 4*mutationCap {
			return fmt.Errorf("Open allocates %d bytes for a file of %d", got, len(data))
		}
	}
	if err != nil {
		counts["not opened"]++
		return typedOpen(err)
	}
	counts["opened"]++
	for _, b := range conform.Backends() {
		if err := compileAndRun(ctx, model, b, counts); err != nil {
			return fmt.Errorf("on %s: %w", b, err)
		}
	}
	return nil
}

func timedOpen(data []byte) (*rlx.Model, time.Duration, error) {
	start := onnx.CPUTime()
	model, err := rlx.OpenReader("mutated.onnx", bytes.NewReader(data), int64(len(data)), rlx.MemoryLimit(mutationCap))
	return model, onnx.CPUTime() - start, err
}

func typedOpen(err error) error {
	var model *rlx.ModelError
	var file *rlx.FileError
	if !errors.As(err, &model) && !errors.As(err, &file) {
		return fmt.Errorf("Open gives an error of no type: %T %w", err, err)
	}
	return nil
}

func compileAndRun(ctx context.Context, model *rlx.Model, b string, counts tally) error {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	prog, err := model.Compile(ctx, rlx.On(b), rlx.MemoryLimit(mutationCap))
	if err != nil {
		var over *rlx.MemoryError
		if errors.As(err, &over) {
			counts[b+" over the cap"]++
		} else {
			counts[b+" not compiled"]++
		}
		return typedProgram(err)
	}
	defer prog.Close()
	counts[b+" compiled"]++
	feed, ok := smallFeed(model.Graph())
	if !ok {
		return nil
	}
	if _, err := prog.Run(ctx, feed); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			counts[b+" stopped"]++
		}
		counts[b+" not run"]++
		return typedProgram(err)
	}
	counts[b+" run"]++
	return nil
}

func typedProgram(err error) error {
	var unsupported *rlx.UnsupportedError
	var shape *rlx.ShapeError
	var feed *rlx.FeedError
	var exec *rlx.ExecError
	var memory *rlx.MemoryError
	var device *backend.Error
	if errors.As(err, &unsupported) || errors.As(err, &shape) || errors.As(err, &feed) || errors.As(err, &exec) || errors.As(err, &memory) ||
		errors.As(err, &device) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("an error of no type: %T %w", err, err)
}

// smallFeed is a feed of small numbers with all symbols 2; not ok where it would be large.
func smallFeed(g *ir.Graph) (rlx.Feed, bool) {
	symbols := map[string]bool{}
	for _, n := range g.Inputs {
		for _, d := range n.Types[0].Shape {
			d.Symbols(symbols)
		}
	}
	values := map[string]int64{}
	for s := range symbols {
		values[s] = 2
	}
	feed := rlx.Feed{}
	for _, n := range g.Inputs {
		name, _ := n.InputName()
		bound := make([]ir.Dim, len(n.Types[0].Shape))
		for i, d := range n.Types[0].Shape {
			bound[i] = d.Bind(values)
		}
		shape, ok := ir.StaticShape(bound)
		bytes, err := ir.ByteSize(n.Types[0].DType, shape)
		if !ok || err != nil || bytes > 1<<20 {
			return nil, false
		}
		t, err := ir.Zeros(n.Types[0].DType, shape...)
		if err != nil {
			return nil, false
		}
		for i := range t.Len() {
			ir.PutFloat(t.DType(), t.Bytes(), i, float64(i%3))
		}
		feed[name] = t
	}
	return feed, true
}
