package batch

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// signature is what a batcher knows of a program.
type signature struct {
	inputs, outputs []port
	symbols         []string
	batch           map[string]bool // symbols that are the number of rows
	pad             int             // number of the symbol that is padded, -1
	buckets         []int
}

// port is an input or output and what its axes mean.
type port struct {
	Port
	rows    int   // axis of the batch dim, -1 for a shared input
	padded  []int // axes of the padded dim
	symbol  []int // per axis the number of its symbol, -1
	padding []byte
}

// PortError says which input or output cannot be batched, and why.
type PortError struct {
	Name     string
	Type     ir.Type
	Expected string
}

func (e *PortError) Error() string {
	return fmt.Sprintf("batch: %s: got %s, expected %s", e.Name, e.Type, e.Expected)
}

// OutputError says what is wrong with an output of a run.
type OutputError struct {
	Name, Expected, Got string
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("batch: output %s: got %s, expected %s", e.Name, e.Got, e.Expected)
}

func newSignature(inputs, outputs []Port, opt *Options) (*signature, error) {
	s := &signature{pad: -1}
	if err := checkNames(inputs, outputs, opt); err != nil {
		return nil, err
	}
	if err := s.findBatch(inputs, opt.Axes); err != nil {
		return nil, err
	}
	for _, p := range inputs {
		q, err := s.port(p, opt.Axes)
		if err != nil {
			return nil, err
		}
		if _, chosen := opt.Axes[p.Name]; q.rows < 0 && !chosen && len(p.Type.Shape) > 0 && !p.Type.Shape[0].IsStatic() {
			return nil, &PortError{p.Name, p.Type, "the batch dim " + s.batchText() + ", or its axis in Options.Axes (-1: shared)"}
		}
		s.inputs = append(s.inputs, q)
	}
	for _, p := range outputs {
		q, err := s.port(p, opt.Axes)
		if err != nil {
			return nil, err
		}
		if q.rows < 0 {
			return nil, &PortError{p.Name, p.Type, "the batch dim " + s.batchText() + ", or its axis in Options.Axes"}
		}
		s.outputs = append(s.outputs, q)
	}
	return s, s.usePadding(opt.Pad)
}

// checkNames finds options for names that nothing has.
func checkNames(inputs, outputs []Port, opt *Options) error {
	has := func(list []Port, name string) bool {
		return slices.ContainsFunc(list, func(p Port) bool { return p.Name == name })
	}
	for name := range opt.Axes {
		if !has(inputs, name) && !has(outputs, name) {
			return &rlx.OptionError{Option: "batch.Axes", Got: name, Want: "the name of an input or output"}
		}
	}
	if opt.Pad != nil {
		for name := range opt.Pad.Values {
			if !has(inputs, name) {
				return &rlx.OptionError{Option: "batch.Pad.Values", Got: name, Want: "the name of an input"}
			}
		}
	}
	return nil
}

// findBatch finds the symbols that are the number of rows: those at the chosen axes, else the first dim of the first input that begins
// with a symbol.
func (s *signature) findBatch(inputs []Port, axes map[string]int) error {
	s.batch = map[string]bool{}
	for _, p := range inputs {
		axis, ok := axes[p.Name]
		if !ok || axis == -1 {
			continue
		}
		if axis < 0 || axis >= len(p.Type.Shape) {
			return &PortError{p.Name, p.Type, fmt.Sprintf("an axis %d, which Options.Axes names", axis)}
		}
		name, ok := p.Type.Shape[axis].Symbol()
		if !ok {
			return &PortError{p.Name, p.Type, fmt.Sprintf("a symbol at axis %d, which Options.Axes names", axis)}
		}
		s.batch[name] = true
	}
	for _, p := range inputs {
		if len(s.batch) > 0 {
			return nil
		}
		if _, chosen := axes[p.Name]; !chosen && len(p.Type.Shape) > 0 {
			if name, ok := p.Type.Shape[0].Symbol(); ok {
				s.batch[name] = true
			}
		}
	}
	if len(s.batch) == 0 {
		return &rlx.OptionError{Option: "batch.Axes", Got: "no batch dim", Want: "an input whose first dim is a symbol, or the axis of one"}
	}
	return nil
}

func (s *signature) batchText() string {
	return strings.Join(slices.Sorted(maps.Keys(s.batch)), " or ")
}

func (s *signature) port(p Port, axes map[string]int) (port, error) {
	q := port{Port: p, rows: -1}
	axis, chosen := axes[p.Name]
	for i, d := range p.Type.Shape {
		name, ok := d.Symbol()
		k := -1
		if ok {
			if k = slices.Index(s.symbols, name); k < 0 {
				k, s.symbols = len(s.symbols), append(s.symbols, name)
			}
		}
		q.symbol = append(q.symbol, k)
		mentioned := map[string]bool{}
		d.Symbols(mentioned)
		for m := range mentioned {
			if s.batch[m] && (!ok || q.rows >= 0 || chosen && axis != i) {
				return q, &PortError{p.Name, p.Type, fmt.Sprintf("the batch dim %s as one whole dim", m)}
			}
			if s.batch[m] {
				q.rows = i
			}
		}
	}
	if chosen && axis >= 0 {
		if axis >= len(p.Type.Shape) {
			return q, &PortError{p.Name, p.Type, fmt.Sprintf("an axis %d, which Options.Axes names", axis)}
		}
		q.rows = axis
	}
	return q, nil
}

// usePadding finds the axes of the padded dim and the bytes that inputs are padded with.
func (s *signature) usePadding(pad *Padding) error {
	if pad == nil {
		return nil
	}
	if !slices.IsSorted(pad.Buckets) || len(pad.Buckets) == 0 || pad.Buckets[0] < 1 {
		return &rlx.OptionError{Option: "batch.Pad.Buckets", Got: fmt.Sprint(pad.Buckets), Want: "positive lengths, ascending"}
	}
	s.buckets, s.pad = pad.Buckets, slices.Index(s.symbols, pad.Dim)
	if s.pad < 0 || s.batch[pad.Dim] {
		return &rlx.OptionError{Option: "batch.Pad.Dim", Got: pad.Dim, Want: "a symbol of the inputs that is not the batch dim"}
	}
	found := false
	for _, list := range [][]port{s.inputs, s.outputs} {
		for i := range list {
			if err := list[i].findPadded(s.pad, pad.Dim); err != nil {
				return err
			}
		}
	}
	for i := range s.inputs {
		p := &s.inputs[i]
		if len(p.padded) == 0 {
			continue
		}
		found = true
		v := pad.Values[p.Name]
		if v.Err() != nil || v.DType() != p.Type.DType || v.Len() != 1 {
			got := "no value"
			if v.Err() == nil {
				got = fmt.Sprintf("%s%v", v.DType(), v.Shape())
			}
			return &rlx.OptionError{Option: "batch.Pad.Values[" + p.Name + "]", Got: got, Want: "one element of dtype " + p.Type.DType.String()}
		}
		p.padding = slices.Clone(v.Bytes())
	}
	if !found {
		return &rlx.OptionError{Option: "batch.Pad.Dim", Got: pad.Dim, Want: "a symbol of the inputs"}
	}
	return nil
}

func (p *port) findPadded(number int, name string) error {
	for i, d := range p.Type.Shape {
		mentioned := map[string]bool{}
		d.Symbols(mentioned)
		switch {
		case p.symbol[i] == number:
			p.padded = append(p.padded, i)
		case mentioned[name]:
			return &PortError{p.Name, p.Type, fmt.Sprintf("the padded dim %s as a whole dim", name)}
		}
	}
	if len(p.padded) > 0 && p.rows < 0 {
		return &PortError{p.Name, p.Type, fmt.Sprintf("a batch dim beside the padded dim %s", name)}
	}
	return nil
}

// request checks a feed as a program does, and finds its group.
func (s *signature) request(feed rlx.Feed, maxRows int) (*request, error) {
	r := &request{feed: maps.Clone(feed), rows: -1, done: make(chan outcome, 1), values: make([]int64, len(s.symbols))}
	for i := range r.values {
		r.values[i] = -1
	}
	for i := range s.inputs {
		p := &s.inputs[i]
		x := feed[p.Name]
		if err := p.check(x, s.symbols, r.values); err != nil {
			return nil, err
		}
		if p.rows < 0 {
			continue
		}
		if n := x.Shape()[p.rows]; r.rows < 0 {
			r.rows = n
		} else if n != r.rows {
			return nil, &rlx.FeedError{Name: p.Name, What: "rows", Expected: fmt.Sprintf("%d rows at axis %d", r.rows, p.rows), Got: typeOf(x)}
		}
	}
	if err := s.checkExpressions(feed, r.values); err != nil {
		return nil, err
	}
	if r.rows > int64(maxRows) {
		return nil, &rlx.FeedError{Name: s.inputs[0].Name, What: "rows", Expected: fmt.Sprintf("at most %d rows", maxRows), Got: fmt.Sprint(r.rows)}
	}
	for name := range feed {
		if !slices.ContainsFunc(s.inputs, func(p port) bool { return p.Name == name }) {
			return nil, &rlx.FeedError{Name: name, What: "unknown name", Expected: "one of " + s.inputNames(), Got: "a tensor"}
		}
	}
	r.key = s.key(r)
	return r, nil
}

func (s *signature) inputNames() string {
	names := make([]string, len(s.inputs))
	for i, p := range s.inputs {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

func typeOf(t *rlx.Tensor) string { return fmt.Sprintf("%s%v", t.DType(), t.Shape()) }

// check compares a tensor with an input and binds symbols.
func (p *port) check(t *rlx.Tensor, symbols []string, values []int64) error {
	fail := func(what, got string) error {
		return &rlx.FeedError{Name: p.Name, What: what, Expected: p.Type.String(), Got: got}
	}
	switch {
	case t == nil:
		return fail("missing", "no tensor")
	case t.Err() != nil:
		return fail("tensor", t.Err().Error())
	case t.DType() != p.Type.DType:
		return fail("dtype", typeOf(t))
	case t.Rank() != len(p.Type.Shape):
		return fail("rank", typeOf(t))
	}
	for i, n := range t.Shape() {
		if want, ok := p.Type.Shape[i].Static(); ok && want != n {
			return fail(fmt.Sprintf("dim %d", i), typeOf(t))
		}
		k := p.symbol[i]
		if k < 0 {
			continue
		}
		if old := values[k]; old >= 0 && old != n {
			return &rlx.FeedError{Name: p.Name, What: "symbol " + symbols[k], Expected: fmt.Sprintf("%s with %s = %d", p.Type, symbols[k], old), Got: typeOf(t)}
		}
		values[k] = n
	}
	return nil
}

// checkExpressions compares the dims of inputs that are expressions over symbols.
func (s *signature) checkExpressions(feed rlx.Feed, values []int64) error {
	var named map[string]int64
	for i := range s.inputs {
		p := &s.inputs[i]
		for k, d := range p.Type.Shape {
			if p.symbol[k] >= 0 || d.IsStatic() {
				continue
			}
			if named == nil {
				named = map[string]int64{}
				for j, v := range values {
					if v >= 0 {
						named[s.symbols[j]] = v
					}
				}
			}
			if n, ok := d.Bind(named).Static(); !ok || n != feed[p.Name].Shape()[k] {
				return &rlx.FeedError{Name: p.Name, What: fmt.Sprintf("dim %d", k), Expected: fmt.Sprintf("%s = %s", d, d.Bind(named)), Got: typeOf(feed[p.Name])}
			}
		}
	}
	return nil
}

// bucket is the length that a length is padded to.
func (s *signature) bucket(n int64) int64 {
	i, _ := slices.BinarySearch(s.buckets, int(n))
	if i == len(s.buckets) {
		return n
	}
	return int64(s.buckets[i])
}

// key is equal for requests that may share a batch: the dims beside the rows, after padding, and the bytes of shared inputs.
func (s *signature) key(r *request) string {
	var b []byte
	for k, v := range r.values {
		switch {
		case s.batch[s.symbols[k]]:
			continue
		case k == s.pad:
			v = s.bucket(v)
		}
		b = binary.AppendVarint(b, v)
	}
	for i := range s.inputs {
		if p := &s.inputs[i]; p.rows < 0 {
			x := r.feed[p.Name].Bytes()
			b = append(binary.AppendVarint(b, int64(len(x))), x...)
		}
	}
	return string(b)
}
