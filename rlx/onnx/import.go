package onnx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Option changes how a model is imported.
type Option func(*options)

type options struct {
	bytes  int // of the file
	limit  int64
	dims   map[string]int64
	inputs map[string]*ir.Tensor
	shapes map[string][]int64 // of inputs, which win over what the model declares
	fixed  map[string]int64   // dims of inputs, by their symbols
	places map[string]place   // of the symbols that are dims of inputs
	eval   Eval
	store
}

// Limit sets how many bytes the decoded structures may take, instead of the limit of [Decode].
func Limit(bytes int64) Option { return func(o *options) { o.limit = bytes } }

// MemoryLimit caps the memory that the import takes for tensors whose data are not in the model's own bytes: those in other files, and
// computed ones. What would exceed it is a [*MemoryError].
func MemoryLimit(bytes int64) Option {
	return func(o *options) { o.capped, o.limitBytes = true, max(bytes, 0) }
}

// BindDim fixes a dim of the model's inputs, by the name that the file gives it.
func BindDim(name string, size int64) Option { return func(o *options) { o.dims[name] = size } }

// BindInput makes an input of the model a constant. Inputs that decide the rank or the axes of something must be bound.
func BindInput(name string, value *ir.Tensor) Option {
	return func(o *options) { o.inputs[name] = value }
}

// Eval computes the outputs of a graph without inputs.
type Eval func(*ir.Graph) ([]*ir.Tensor, error)

// FoldWith gives the importer a way to compute constants, so that axes, sizes and conditions may be computed by nodes.
func FoldWith(eval Eval) Option { return func(o *options) { o.eval = eval } }

// Import reads a model into a graph. Graph inputs keep their names, outputs too; a named dim becomes a symbol of that name, a dim
// without one a symbol called after the input and the axis. Weights refer to data, which must not change while the graph is in use.
//
// Small integer tensors that come from shapes, constants and integer inputs are followed as dims, so that the shapes which a model
// computes are known before it runs.
//
// Errors: [*DecodeError] for bytes that are no model, [*UnsupportedError] with every operator and attribute that cannot be read,
// [*ImportError] for a model that contradicts itself.
func Import(data []byte, opts ...Option) (*ir.Graph, error) {
	m, o, err := start(data, opts)
	if err != nil {
		return nil, err
	}
	return importModel(m, o)
}

func start(data []byte, opts []Option) (*ModelProto, *options, error) {
	o := &options{dims: map[string]int64{}, inputs: map[string]*ir.Tensor{}, shapes: map[string][]int64{}, fixed: map[string]int64{}, places: map[string]place{}, store: store{kept: map[*TensorProto]*ir.Tensor{}}}
	for _, f := range opts {
		f(o)
	}
	if eval := o.eval; eval != nil {
		o.eval = func(g *ir.Graph) ([]*ir.Tensor, error) {
			if err := o.store.compute("a folded constant", outputBytes(g)); err != nil {
				return nil, err
			}
			return eval(g)
		}
	}
	decode := Decode
	if o.limit > 0 {
		decode = func(b []byte) (*ModelProto, error) { return DecodeLimit(b, o.limit) }
	}
	o.bytes = len(data)
	m, err := decode(data)
	if err == nil {
		orderNodes(m.Graph.Nodes)
		for i := range m.Functions {
			orderNodes(m.Functions[i].Nodes)
		}
	}
	return m, o, err
}

// outputBytes is the size of the outputs of a graph of known shapes.
func outputBytes(g *ir.Graph) int64 {
	total := int64(0)
	for _, o := range g.Outputs {
		shape, _ := ir.StaticShape(o.Value.Shape())
		n, err := ir.ByteSize(o.Value.Type().DType, shape)
		if err != nil {
			return 1<<63 - 1
		}
		total = saturated(total, n)
	}
	return total
}

// ImportFor reads a model for runs with inputs like those of feed. Inputs whose values the model cannot be read without, such as axes
// or the condition of an If, become constants: integers, booleans and float vectors of at most 64 elements. Where that is not enough
// the lengths that it depends on are fixed to those of feed, or if that is not enough either the shapes of all inputs. The names of the
// inputs that became constants are returned.
func ImportFor(data []byte, feed map[string]*ir.Tensor, opts ...Option) (g *ir.Graph, bound []string, err error) {
	m, o, err := start(data, opts)
	if err != nil {
		return nil, nil, err
	}
	for {
		g, err = importModel(m, o)
		var u *UnsupportedError
		if !errors.As(err, &u) || !o.bindMore(m, u, feed, &bound) {
			return g, bound, err
		}
	}
}

// bindMore fixes what the import asked for, and says whether that was anything new.
func (o *options) bindMore(m *ModelProto, u *UnsupportedError, feed map[string]*ir.Tensor, bound *[]string) bool {
	more := false
	for _, item := range u.Items {
		for _, name := range item.Needs {
			t := feed[name]
			if t == nil || o.inputs[name] != nil || !canBind(t) {
				continue
			}
			o.inputs[name] = t
			*bound = append(*bound, name)
			more = true
		}
	}
	if more || o.fixLengths(u, feed) {
		return true
	}
	for i := range m.Graph.Inputs {
		in := &m.Graph.Inputs[i]
		if t := feed[in.Name]; t != nil && o.shapes[in.Name] == nil && t.Rank() == len(in.Shape) && !staticShape(in) {
			o.shapes[in.Name] = t.Shape()
			more = true
		}
	}
	return more
}

func staticShape(in *ValueInfoProto) bool {
	return !slices.ContainsFunc(in.Shape, func(d Dim) bool { return d.Kind != DimValue })
}

func canBind(t *ir.Tensor) bool {
	if t.Len() > maxTracked {
		return false
	}
	return (ir.Int | ir.Set(ir.Bool)).Has(t.DType()) || t.Rank() <= 1
}

// ImportReader is [Import] from size bytes of r.
func ImportReader(r io.ReaderAt, size int64, opts ...Option) (*ir.Graph, error) {
	data, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != size {
		return nil, fmt.Errorf("onnx: read %d bytes, expected %d: %w", len(data), size, io.ErrUnexpectedEOF)
	}
	return Import(data, opts...)
}

// ImportFS is [Import] of a file of fsys.
func ImportFS(fsys fs.FS, name string, opts ...Option) (*ir.Graph, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return Import(data, append([]Option{WithFS(fsys, name)}, opts...)...)
}

// importer is one import. Once err is set nothing more is built, but operators and attributes are still checked.
type importer struct {
	*options
	m           *ModelProto
	g           *ir.Graph // that nodes go to: the model's, or that of a region in it
	whole       *ir.Graph // the model's
	sc          *scope
	root        *scope
	leaves      map[string]bool   // names of inputs and initializers, which no node may take
	symbols     map[string]string // symbol of a dim name
	taken       map[string]bool   // symbols in use
	named       map[string]int    // how many nodes bear a name
	labelled    map[*ir.Node]bool // nodes that bear the name of the model's node they came from
	functions   map[string]*FunctionProto
	bodies      map[*GraphProto]map[string]*value // initializers of sub-graphs, which are read once
	count       int                               // of nodes in functions and sub-graphs, see spend
	unsupported []Unsupported
	lengths     lengths
	listed      map[string]bool // complaints in unsupported, which a loop would repeat
	err         error
}

func importModel(m *ModelProto, o *options) (*ir.Graph, error) {
	o.begin()
	im := &importer{
		options: o, m: m, g: ir.NewGraph(m.Graph.Name), leaves: map[string]bool{}, symbols: map[string]string{}, taken: map[string]bool{},
		functions: map[string]*FunctionProto{}, labelled: map[*ir.Node]bool{}, named: map[string]int{},
		bodies: map[*GraphProto]map[string]*value{}, listed: map[string]bool{}, lengths: lengths{},
	}
	im.whole = im.g
	im.root = &scope{values: map[string]*value{}, opsets: m.Opset}
	im.sc = im.root
	im.version()
	for i := range m.Functions {
		f := &m.Functions[i]
		key := functionKey(f.Domain, f.Name, f.Overload)
		if im.functions[key] != nil {
			im.fail(f.Name, "function", fmt.Errorf("function %q of domain %q is defined twice, expected no duplicate", f.Name, f.Domain))
		}
		im.functions[key] = f
	}
	if n := m.Graph.SparseInitializers; n > 0 {
		im.refuse(Unsupported{Node: m.Graph.Name, Reason: fmt.Sprintf("%d sparse initializers are not supported", n)})
	}
	if im.headers(); im.err == nil {
		im.initializers(m.Graph.Initializers)
	}
	im.inputs()
	im.bindings()
	for i := range m.Graph.Nodes {
		im.node(&m.Graph.Nodes[i])
	}
	im.outputs()
	switch {
	case len(im.unsupported) > 0:
		return nil, &UnsupportedError{im.unsupported}
	case im.err != nil:
		return nil, im.err
	}
	return im.g, nil
}

// headers checks the tensors that lie in other files before any is read.
func (im *importer) headers() {
	for i := range im.m.Graph.Initializers {
		t := &im.m.Graph.Initializers[i]
		if err := checkOutside(t, im.files); err != nil {
			im.fail(t.Name, "initializer", err)
			return
		}
	}
}

// fail keeps the first defect.
func (im *importer) fail(node, op string, err error) {
	if im.err == nil {
		im.err = &ImportError{Node: node, Op: op, Err: err}
	}
}

func (im *importer) refuse(u Unsupported) {
	if key := u.Node + "\x00" + u.String(); !im.listed[key] {
		im.listed[key] = true
		im.unsupported = append(im.unsupported, u)
	}
}

// maxIRVersion is far beyond those there are: a larger number is damage.
const maxIRVersion = 999

func (im *importer) version() {
	v, ok := im.m.OpsetVersion("")
	if n := im.m.IRVersion; n > maxIRVersion {
		im.fail(im.m.Graph.Name, "", fmt.Errorf("ir_version is %d, expected 1 to %d", n, maxIRVersion))
	}
	versions := map[string]int64{}
	for _, o := range im.m.Opset {
		domain := o.Domain
		if domain == "ai.onnx" {
			domain = ""
		}
		if w, ok := versions[domain]; ok && w != o.Version {
			im.fail(im.m.Graph.Name, "", fmt.Errorf("operator set %q is imported in versions %d and %d, expected one", domain, w, o.Version))
		}
		versions[domain] = o.Version
	}
	switch {
	case ok && v < 1:
		im.fail(im.m.Graph.Name, "", fmt.Errorf("operator set version %d, expected at least 1", v))
	case v > newestOpset:
		im.refuse(Unsupported{Node: im.m.Graph.Name, Reason: fmt.Sprintf("operator set %d, supported up to %d", v, newestOpset)})
	}
}

// dtypes maps the element types of onnx.proto. Integers of 2 and 4 bits are held in those of 8.
var dtypes = map[int32]ir.DType{
	DataFloat: ir.F32, DataUint8: ir.U8, DataInt8: ir.I8, DataUint16: ir.U16, DataInt16: ir.I16, DataInt32: ir.I32, DataInt64: ir.I64,
	DataBool: ir.Bool, DataFloat16: ir.F16, DataDouble: ir.F64, DataUint32: ir.U32, DataUint64: ir.U64, DataComplex64: ir.C64,
	DataBfloat16: ir.BF16, DataFloat8E4M3FN: ir.F8E4M3, DataFloat8E5M2: ir.F8E5M2, DataFloat8E8M0: ir.E8M0, DataFloat4E2M1: ir.F4E2M1,
	DataInt4: ir.I8, DataUint4: ir.U8, DataInt2: ir.I8, DataUint2: ir.U8,
}

// dtype returns the dtype of an element type, or a reason to refuse it.
func dtype(elem int32) (ir.DType, string) {
	if d, ok := dtypes[elem]; ok {
		return d, ""
	}
	return ir.Invalid, "element type " + DataTypeName(elem) + " is not supported"
}

// ReadTensor reads one serialized TensorProto, such as the files of ONNX's backend tests. Errors are [*DecodeError],
// [*UnsupportedError] for an element type that has no dtype, or wrap [ErrTensor].
func ReadTensor(data []byte) (name string, t *ir.Tensor, err error) {
	limit := 3*int64(len(data)) + 1<<16
	d := &decoder{data: data, left: limit, limit: limit}
	var p TensorProto
	if err := d.tensor(span{0, len(data)}, &p); err != nil {
		return "", nil, err
	}
	t, reason, err := readTensor(&p, &store{})
	if reason != "" {
		err = &UnsupportedError{[]Unsupported{{Node: p.Name, Reason: reason}}}
	}
	return p.Name, t, err
}

// readTensor makes a tensor of a constant: unsupported is a reason, err a defect.
func readTensor(t *TensorProto, s *store) (out *ir.Tensor, unsupported string, err error) {
	if out := s.kept[t]; out != nil {
		return out, "", nil
	}
	d, unsupported := dtype(t.DataType)
	if unsupported != "" {
		return nil, unsupported, nil
	}
	_, data, err := t.within()
	outside := errors.Is(err, ErrExternal)
	if outside {
		data, err = externalBytes(t, s)
	}
	if err != nil {
		return nil, "", err
	}
	switch width := dataTypes[t.DataType].bits; {
	case width < 8:
		n, _ := t.NumElements()
		if err := s.take(fmt.Sprintf("tensor %q", t.Name), n); err != nil {
			return nil, "", err
		}
		data = spread(data, n, width, dataTypes[t.DataType].signed)
	case d == ir.Bool: // any byte but 0 is true in a file, 1 alone in a tensor
		data = normalBools(data)
	}
	if out, err = ir.FromBytes(d, t.Dims, data); err == nil && outside {
		s.kept[t] = out
	}
	return out, "", err
}

// spread gives each of n elements of 2 or 4 bits a byte of its own.
func spread(data []byte, n int64, width int, signed bool) []byte {
	out := make([]byte, n)
	for i := range out {
		at := i * width
		b := data[at/8] >> (at % 8) << (8 - width)
		if signed {
			out[i] = byte(int8(b) >> (8 - width))
		} else {
			out[i] = b >> (8 - width)
		}
	}
	return out
}

func normalBools(data []byte) []byte {
	for i, b := range data {
		if b > 1 {
			data = append([]byte(nil), data...)
			for k := i; k < len(data); k++ {
				data[k] = min(data[k], 1)
			}
			return data
		}
	}
	return data
}

// define binds a name; each may be bound once in its scope.
func (im *importer) define(name, node, op string, v *value) {
	if im.sc.values[name] != nil {
		im.fail(node, op, fmt.Errorf("value %q is defined twice, expected no duplicate", name))
		return
	}
	im.sc.values[name] = v
}

// initializers defines the constants of a graph in the present scope.
func (im *importer) initializers(list []TensorProto) {
	for i := range list {
		p := &list[i]
		t, reason, err := readTensor(p, &im.store)
		v := &value{broken: true}
		switch {
		case p.Name == "":
			im.fail("", "initializer", errors.New("initializer without a name"))
		case reason != "":
			im.refuse(Unsupported{Node: p.Name, Reason: "initializer: " + reason})
		case err != nil:
			im.fail(p.Name, "initializer", err)
		default:
			v = im.initializer(im.leafName(p.Name), t)
			v.elem = p.DataType
		}
		im.define(p.Name, p.Name, "initializer", v)
	}
}

// leafName is a name for a weight that no other input or weight has: sub-graphs may use a name again.
func (im *importer) leafName(want string) string {
	name := want
	for k := 1; im.sc != im.root && im.leaves[name]; k++ {
		name = fmt.Sprintf("%s.%d", want, k)
	}
	im.leaves[name] = true
	return name
}

// initializer is a weight, or a constant where it is a small integer tensor. Neither gets a node before it is used as data.
func (im *importer) initializer(name string, t *ir.Tensor) *value {
	v := im.constant(t)
	if whole := ir.Int | ir.Set(ir.Bool); whole.Has(t.DType()) && t.Len() <= maxTracked {
		return v
	}
	if im.g == im.whole { // sub-graphs hold constants only
		v.make = func() (ir.Value, error) { return im.g.Param(name, t), im.g.Err() }
	}
	return v
}

// constant is a literal tensor, without a node so far.
func (im *importer) constant(t *ir.Tensor) *value {
	return &value{typ: t.Type(), konst: t, dims: trackTensor(t), make: func() (ir.Value, error) { return im.g.Constant(t), im.g.Err() }}
}

func (im *importer) inputs() {
	// Symbols of named dims first, so that the names made up for unnamed ones keep clear of them.
	for _, in := range im.m.Graph.Inputs {
		for _, d := range in.Shape {
			if d.Kind == DimParam && d.Param != "?" {
				im.symbol(d.Param)
			}
		}
	}
	names := map[string]bool{}
	for i := range im.m.Graph.Inputs {
		in := &im.m.Graph.Inputs[i]
		if names[in.Name] {
			im.fail(in.Name, "input", fmt.Errorf("input %q is defined twice, expected no duplicate", in.Name))
			continue
		}
		names[in.Name] = true
		if im.leaves[in.Name] && im.sc.values[in.Name] != nil {
			continue // an initializer that may be overridden is taken as it is
		}
		im.leaves[in.Name] = true
		v := &value{broken: true}
		switch d, reason := dtype(in.ElemType); {
		case in.Name == "":
			im.fail("", "input", errors.New("input without a name"))
		case in.Kind == KindUnknown || in.Kind == KindTensor && in.ElemType == DataUndefined:
			im.fail(in.Name, "input", errors.New("no type given"))
		case in.Kind != KindTensor:
			im.refuse(Unsupported{Node: in.Name, Reason: "input: type " + in.Kind.String() + " is not supported"})
		case reason != "":
			im.refuse(Unsupported{Node: in.Name, Reason: "input: " + reason})
		case !in.HasShape:
			im.fail(in.Name, "input", errors.New("no shape given, expected at least the rank"))
		case im.err == nil:
			v = im.input(in, d)
		}
		im.define(in.Name, in.Name, "input", v)
	}
}

// bindings wants every option to name something of the model.
func (im *importer) bindings() {
	names := map[string]bool{}
	for _, in := range im.m.Graph.Inputs {
		names[in.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(im.options.inputs)) {
		if !names[name] {
			im.fail(name, "input", errors.New("bound, but the model has no such input"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(im.dims)) {
		if im.symbols[name] == "" {
			im.fail(name, "dim", errors.New("bound, but no input has such a dim"))
		}
	}
}

func (im *importer) input(in *ValueInfoProto, d ir.DType) *value {
	if t := im.options.inputs[in.Name]; t != nil {
		want := ir.Type{DType: d, Shape: im.shape(in)}
		if err := t.Err(); err != nil || t.DType() != d || !ir.SameShape(t.Type().Shape, want.Shape) {
			im.fail(in.Name, "input", fmt.Errorf("bound to %s, expected %s", t, want))
		}
		v := im.constant(t)
		v.elem = in.ElemType
		return v
	}
	x := im.g.Input(in.Name, d, im.shape(in))
	if err := im.g.Err(); err != nil {
		im.fail(in.Name, "input", cause(err))
		return &value{broken: true}
	}
	v := &value{typ: x.Type(), node: x, elem: in.ElemType, deps: &deps{names: []string{in.Name}}}
	if elem, err := x.InputDims(); err == nil {
		shape, _ := ir.StaticShape(x.Shape())
		v.dims = &dimTensor{d, shape, elem}
	}
	return v
}

// shape is the declared shape of an input.
func (im *importer) shape(in *ValueInfoProto) []ir.Dim {
	shape := make([]ir.Dim, len(in.Shape))
	if fixed := im.shapes[in.Name]; fixed != nil {
		return ir.Dims(fixed...)
	}
	for i, d := range in.Shape {
		switch n, bound := im.dims[d.Param]; {
		case d.Kind == DimParam && d.Param == "?": // how an exporter writes that it knows nothing
			shape[i] = im.dim(im.fresh(in.Name+"."+strconv.Itoa(i)), place{in.Name, i})
		case d.Kind == DimParam && bound:
			shape[i] = ir.D(n)
		case d.Kind == DimParam:
			shape[i] = im.dim(im.symbol(d.Param), place{in.Name, i})
		case d.Kind == DimValue && d.Value >= 0:
			shape[i] = ir.D(d.Value)
		default: // unknown, which some exporters write as a negative length
			shape[i] = im.dim(im.fresh(in.Name+"."+strconv.Itoa(i)), place{in.Name, i})
		}
	}
	return shape
}

// symbol is the symbol of a dim name: the name itself where it can be one.
func (im *importer) symbol(name string) string {
	if im.symbols[name] == "" {
		im.symbols[name] = im.fresh(name)
	}
	return im.symbols[name]
}

// fresh is a new symbol like name. A # is left to the elements of inputs.
func (im *importer) fresh(name string) string {
	s := strings.ReplaceAll(ir.SymbolName(name), "#", "_")
	for im.taken[s] {
		s += "_"
	}
	im.taken[s] = true
	return s
}

// cause is the error of a builder without the place that it was about, which the importer names better.
func cause(err error) error {
	var ne *ir.NodeError
	if errors.As(err, &ne) {
		c := *ne
		c.Node, c.Pos = "", ""
		return &c
	}
	return err
}

func (im *importer) outputs() {
	if len(im.m.Graph.Outputs) == 0 {
		im.fail(im.m.Graph.Name, "", errors.New("the graph has no outputs, expected at least one"))
	}
	for _, out := range im.m.Graph.Outputs {
		v := im.sc.values[out.Name]
		switch {
		case v == nil:
			im.fail(out.Name, "output", errors.New("no node computes it"))
		case v.broken || im.err != nil:
		case !v.isTensor():
			im.refuse(Unsupported{Node: out.Name, Reason: "output: a sequence or an optional without a value is no tensor"})
		default:
			x, err := v.get()
			if err == nil {
				im.g.Output(out.Name, x)
				err = im.g.Err()
			}
			if err != nil {
				im.fail(out.Name, "output", cause(err))
			}
		}
	}
}
