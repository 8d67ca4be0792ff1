package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// inspection is what rlx inspect knows of a model: what --json prints. Bytes everywhere; sizes are those of the dims it was compiled for.
type inspection struct {
	File        string            `json:"file"`
	Bytes       int64             `json:"bytes"`
	Producer    string            `json:"producer"`
	IRVersion   int64             `json:"ir_version"`
	Opsets      map[string]int64  `json:"opsets"`
	Inputs      []tensorInfo      `json:"inputs"`
	Outputs     []tensorInfo      `json:"outputs"`
	Dims        []dimInfo         `json:"dims,omitempty"`
	TooSmall    string            `json:"too_small,omitempty"`    // why some dims cannot be 1
	Operators   map[string]int    `json:"operators"`              // of the file, sub-graphs and functions too
	Constants   []constantInfo    `json:"constants,omitempty"`    // inputs that the graph cannot be read without
	FixedShapes []string          `json:"fixed_shapes,omitempty"` // nodes that need the shapes of inputs
	Unsupported []unsupportedInfo `json:"unsupported,omitempty"`
	Parameters  *parameterInfo    `json:"parameters,omitempty"`
	Compiled    []backendInfo     `json:"compiled,omitempty"` // the chosen backend first
}

type tensorInfo struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Sized string `json:"sized,omitempty"` // the type with the sizes that it was compiled for
}

type dimInfo struct {
	Name  string   `json:"name"`
	Where []string `json:"where"`
	Size  int64    `json:"size,omitempty"`
	Why   string   `json:"why,omitempty"`
}

// constantInfo is an input whose value decides what the graph is.
type constantInfo struct {
	Input string   `json:"input"`
	Nodes []string `json:"nodes"` // that need it
	Known []int64  `json:"known,omitempty"`
	Value string   `json:"value,omitempty"` // that it was read with
	Give  string   `json:"give"`
}

type unsupportedInfo struct {
	What  string   `json:"what"`
	Nodes []string `json:"nodes"`
}

type parameterInfo struct {
	Tensors int   `json:"tensors"`
	Values  int64 `json:"values"`
	Bytes   int64 `json:"bytes"`
}

// backendInfo is what the graph became on a backend.
type backendInfo struct {
	Backend     string            `json:"backend"`
	Device      string            `json:"device,omitempty"`
	Error       string            `json:"error,omitempty"`
	Unsupported []unsupportedInfo `json:"unsupported,omitempty"`
	Ops         []opPlacement     `json:"ops,omitempty"`
	Nodes       []nodeFate        `json:"nodes,omitempty"`
	Commands    int               `json:"commands"`
	Host        []hostSegment     `json:"host_segments,omitempty"`
	Transfers   int               `json:"transfers"`
	Transferred int64             `json:"transferred_bytes"`
	Memory      *rlx.MemoryPlan   `json:"memory,omitempty"`
	HeldBytes   int64             `json:"held_bytes,omitempty"` // by the native library for the compiled program
}

// opPlacement says what the nodes of one op became.
type opPlacement struct {
	Op       string         `json:"op"`
	Nodes    int            `json:"nodes"`
	Native   int            `json:"native"`
	Composed int            `json:"composed"`
	Host     int            `json:"host"`
	View     int            `json:"view"`   // strides of an operand: no command
	Fused    int            `json:"fused"`  // another node stands for it, or the input that it is equal to
	Folded   int            `json:"folded"` // computed when the program was made
	Unused   int            `json:"unused"` // removed: no output needs it
	Of       map[string]int `json:"composed_of,omitempty"`
	As       map[string]int `json:"native_as,omitempty"`  // by the kind of the command, where it is another one
	Into     map[string]int `json:"fused_into,omitempty"` // by the kind of the command that stands for it
}

// nodeFate says what became of one node.
type nodeFate struct {
	Node   string   `json:"node"`
	Op     string   `json:"op"`
	Became string   `json:"became"`        // native, composed, host, view, fused, constant, input, unused
	By     string   `json:"by,omitempty"`  // the node that stands for it
	Run    []string `json:"run,omitempty"` // the kinds of the commands that compute it
}

type hostSegment struct {
	Backend string   `json:"backend"`
	Nodes   []string `json:"nodes"`
	Down    int64    `json:"down_bytes"`
	Up      int64    `json:"up_bytes"` // of what runs after it
}

func inspectCommand() *cobra.Command {
	var f inputFlags
	var text, asJSON, nodes bool
	var name, passes string
	c := &cobra.Command{
		Use:   "inspect MODEL [--backend B] [--dim NAME=N]... [--in NAME=VALUE]... [--nodes] [--json | --text | --passes[=PASS]]",
		Short: "Show what a model is, and what it becomes: inputs, dims, ops and where they run, memory, all that is unsupported",
		Example: `  rlx inspect model.onnx
  rlx inspect model.onnx --backend vulkan --dim batch=4 --dim sequence=128
  rlx inspect model.onnx --in sr=16000 --json
  rlx inspect model.onnx --passes=regions`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if text && asJSON {
				return usageError{errors.New("--json and --text, expected one of them")}
			}
			if err := checkBackend(name); err != nil {
				return err
			}
			if err := checkPass(passes); err != nil {
				return err
			}
			return inspect(c, args[0], name, &f, inspectView{text, asJSON, nodes, passes})
		},
	}
	f.add(c)
	c.Flags().StringVar(&name, "backend", "", "backend to compile for; empty chooses one, and adds a line for each other")
	c.Flags().BoolVar(&text, "text", false, "print the graph as text instead")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON instead, for machines")
	c.Flags().BoolVar(&nodes, "nodes", false, "list what became of each node, too; JSON does in any case")
	c.Flags().StringVar(&passes, "passes", "", "print what each compiler pass did instead; with a name, the graph before and after that pass")
	c.Flags().Lookup("passes").NoOptDefVal = "all"
	return c
}

// checkPass refuses a name of no pass.
func checkPass(name string) error {
	if name == "" || name == "all" {
		return nil
	}
	var names []string
	for _, p := range rlx.Passes() {
		names = append(names, p.Name)
	}
	if !slices.Contains(names, name) {
		return usageError{fmt.Errorf("--passes=%s: no such pass, expected one of %s", name, strings.Join(names, ", "))}
	}
	return nil
}

// inspectView says what to show.
type inspectView struct {
	text, json, nodes bool
	passes            string
}

func inspect(c *cobra.Command, path, name string, f *inputFlags, show inspectView) error {
	sig, err := readSignature(path)
	if err != nil {
		return err
	}
	v, err := f.values(sig)
	if err != nil {
		return err
	}
	p := &preparation{sig: sig, values: v, options: backendOptions(name, 0), errOut: c.ErrOrStderr()}
	var log passLog
	if show.passes != "" {
		p.options = append(p.options, rlx.TracePasses(log.add))
	}
	r, failed := p.prepare(c.Context())
	if err := c.Context().Err(); err != nil {
		return err
	}
	if r != nil {
		defer r.prog.Close()
	}
	if show.passes != "" {
		return errors.Join(failed, log.print(c.OutOrStdout(), show.passes))
	}
	if show.text {
		if failed != nil {
			return failed
		}
		_, err := fmt.Fprint(c.OutOrStdout(), r.model.Graph())
		return err
	}
	in := describeFile(sig)
	if r != nil {
		in.describeCompiled(sig, v, r)
		if name == "" {
			in.others(c, r)
		}
	} else {
		in.describeFailure(failed)
	}
	if show.json {
		enc := json.NewEncoder(c.OutOrStdout())
		enc.SetIndent("", "  ")
		err = enc.Encode(in)
	} else {
		err = in.print(c.OutOrStdout(), show.nodes)
	}
	if failed != nil && len(in.Unsupported) > 0 {
		failed = fmt.Errorf("%s: %d operators or attributes are unsupported", path, len(in.Unsupported))
	}
	return errors.Join(failed, err)
}

// describeFile says what the file declares.
func describeFile(s *signature) *inspection {
	m := s.proto
	in := &inspection{File: s.path, Bytes: s.bytes, Producer: strings.TrimSpace(m.ProducerName + " " + m.ProducerVersion), IRVersion: m.IRVersion,
		Opsets: map[string]int64{}, Operators: map[string]int{}}
	for _, o := range m.Opset {
		in.Opsets[cmp.Or(o.Domain, "ai.onnx")] = o.Version
	}
	for _, d := range s.inputs {
		in.Inputs = append(in.Inputs, tensorInfo{Name: d.name, Type: d.typeText()})
	}
	for _, d := range s.outputs {
		in.Outputs = append(in.Outputs, tensorInfo{Name: d.name, Type: d.typeText()})
	}
	for _, name := range s.symbols() {
		in.Dims = append(in.Dims, dimInfo{Name: name, Where: s.where(name)})
	}
	countOperators(m.Graph.Nodes, in.Operators)
	for _, fn := range m.Functions {
		countOperators(fn.Nodes, in.Operators)
	}
	return in
}

func countOperators(nodes []onnx.NodeProto, count map[string]int) {
	for i := range nodes {
		count[strings.TrimPrefix(nodes[i].Domain+"."+nodes[i].OpType, ".")]++
		for _, a := range nodes[i].Attribute {
			if a.G != nil {
				countOperators(a.G.Nodes, count)
			}
		}
	}
}

// describeFailure lists what is unsupported, by complaint.
func (in *inspection) describeFailure(err error) {
	var refused *rlx.ModelError
	var lacks *rlx.UnsupportedError
	switch {
	case errors.As(err, &refused):
		for _, u := range refused.Items {
			in.Unsupported = addUnsupported(in.Unsupported, u.String(), u.Node)
		}
	case errors.As(err, &lacks):
		in.Unsupported = unsupportedNodes(lacks)
	}
}

func addUnsupported(list []unsupportedInfo, what, node string) []unsupportedInfo {
	i := slices.IndexFunc(list, func(u unsupportedInfo) bool { return u.What == what })
	if i < 0 {
		i = len(list)
		list = append(list, unsupportedInfo{What: what})
	}
	list[i].Nodes = append(list[i].Nodes, node)
	return list
}

func unsupportedNodes(e *rlx.UnsupportedError) (list []unsupportedInfo) {
	for _, n := range e.Nodes {
		list = addUnsupported(list, fmt.Sprintf("%s %s on %s: %s", n.Op, n.DType, e.Backend, n.Reason), n.Node)
	}
	return list
}

// describeCompiled says what the model became for the sizes that it was compiled for.
func (in *inspection) describeCompiled(s *signature, v *values, r *prepared) {
	for i := range in.Inputs {
		t := r.feed[in.Inputs[i].Name]
		if t == nil {
			t = r.bound[in.Inputs[i].Name]
		}
		in.Inputs[i].Sized = typeText(t)
	}
	symbols := maps.Clone(r.dims)
	for i, o := range r.model.Graph().Outputs {
		t := o.Value.Type()
		in.Outputs[i].Type = t.String()
		for k, d := range t.Shape {
			t.Shape = slices.Clone(t.Shape)
			t.Shape[k] = d.Bind(symbols)
		}
		in.Outputs[i].Sized = t.String()
	}
	for i := range in.Dims {
		d := &in.Dims[i]
		d.Size, d.Why = r.dims[d.Name], cmp.Or(v.by[d.Name], "default")
		if slices.Contains(r.grown, d.Name) {
			d.Why, in.TooSmall = "the smallest size tried that compiles", shortError(r.why)
		}
	}
	in.describeNeeds(s, r)
	in.Parameters = countParameters(r.model.Graph())
	in.Compiled = append(in.Compiled, describeBackend(r.model, r.prog, r.plan))
}

// describeNeeds tells which inputs became constants, which nodes want that, and how to choose the value.
func (in *inspection) describeNeeds(s *signature, r *prepared) {
	for _, name := range slices.Sorted(maps.Keys(r.bound)) {
		c := constantInfo{Input: name, Known: s.compared(name), Value: firstValues(r.bound[name])}
		for _, u := range r.needs {
			if slices.Contains(u.Needs, name) {
				c.Nodes = append(c.Nodes, strings.TrimSpace(u.Op+" "+u.Node))
			}
		}
		example := "VALUE"
		if len(c.Known) > 0 {
			example = fmt.Sprint(c.Known[0])
		}
		c.Give = fmt.Sprintf("rlx run %s --in %s=%s", s.path, name, example)
		for _, other := range s.inputs {
			if r.bound[other.name] == nil {
				c.Give += fmt.Sprintf(" --in %s=FILE.npy", other.name)
			}
		}
		in.Constants = append(in.Constants, c)
	}
	for _, u := range r.needs {
		if u.Needs == nil {
			in.FixedShapes = append(in.FixedShapes, strings.TrimSpace(u.Op+" "+u.Node))
		}
	}
}

func countParameters(g *ir.Graph) *parameterInfo {
	p := &parameterInfo{}
	g.EachNode(func(n *ir.Node) {
		t, ok := n.Out(0).Const()
		if name, isParam := n.ParamName(); isParam {
			t = g.ParamData(name)
			ok = t != nil
		}
		if ok {
			p.Tensors, p.Values, p.Bytes = p.Tensors+1, p.Values+int64(t.Len()), p.Bytes+int64(len(t.Bytes()))
		}
	})
	return p
}

// describeBackend counts what became of the nodes of the model's graph.
func describeBackend(m *rlx.Model, prog *rlx.Program, plan *rlx.Plan) backendInfo {
	b := backendInfo{Backend: prog.Backend(), Device: strings.TrimSpace(prog.Device().Name + " " + prog.Device().ISA), Commands: len(plan.Commands),
		Memory: &plan.Memory, HeldBytes: rlx.Stats().Native[prog.Backend()]}
	b.Nodes = nodeFates(m.Graph(), plan)
	b.Ops = placements(b.Nodes)
	for _, n := range plan.Nodes {
		b.Transfers, b.Transferred = b.Transfers+n.Transfers, b.Transferred+n.TransferBytes
	}
	for i, s := range plan.Segments {
		if s.Place != "host" {
			continue
		}
		h := hostSegment{Backend: s.Backend, Nodes: s.Nodes, Down: s.Down}
		if i+1 < len(plan.Segments) {
			h.Up = plan.Segments[i+1].Up
		}
		b.Host = append(b.Host, h)
	}
	return b
}

// nodeFates says what became of the nodes of a graph, in its order. Nodes that the importer made of one node of the file count as that one.
func nodeFates(g *ir.Graph, plan *rlx.Plan) []nodeFate {
	list, at := nodesOf(g, plan)
	fate := func(name string) *nodeFate { return &list[at[name]] }
	for _, n := range plan.Nodes {
		fate(n.Node).Became = n.Place
	}
	for _, c := range plan.Commands {
		fate(c.Node).Run = append(fate(c.Node).Run, c.Op)
	}
	for _, r := range plan.Replaced {
		i, known := at[r.Node]
		if !known || list[i].Became != "" {
			continue
		}
		list[i].Became, list[i].By = string(r.Became), r.By
		if j, ok := at[r.By]; ok && r.Became == rlx.BecameFused {
			list[i].Run = list[j].Run
		}
		if r.By == r.Node {
			list[i].By = ""
		}
	}
	for i := range list {
		list[i].Became = cmp.Or(list[i].Became, "unused")
	}
	return list
}

// nodesOf lists the nodes of a graph, and those that stand in place of an If that was decided, with the place of each name in the list.
func nodesOf(g *ir.Graph, plan *rlx.Plan) (list []nodeFate, at map[string]int) {
	at = map[string]int{}
	add := func(name, op string, whole bool) {
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name], list = i, append(list, nodeFate{Node: name, Op: op})
		}
		if whole { // the last part bears the name of the whole, and no origin
			list[i].Op = op
		}
	}
	for _, n := range g.Nodes {
		if n.Row.Has(ir.Leaf) {
			continue
		}
		o := n.Source()
		add(o.Name, o.Op, n.From.Op != "")
	}
	for _, n := range plan.Nodes { // which has those of the commands
		add(n.Node, n.Op, false)
	}
	return list, at
}

// placements sorts the nodes of a graph by op, the most frequent first.
func placements(nodes []nodeFate) []opPlacement {
	byOp := map[string]*opPlacement{}
	for i := range nodes {
		n := &nodes[i]
		o := byOp[n.Op]
		if o == nil {
			o = &opPlacement{Op: n.Op}
			byOp[n.Op] = o
		}
		o.count(n)
	}
	list := make([]opPlacement, 0, len(byOp))
	for _, o := range byOp {
		list = append(list, *o)
	}
	slices.SortFunc(list, func(a, b opPlacement) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Op, b.Op))
	})
	return list
}

// count adds a node.
func (o *opPlacement) count(n *nodeFate) {
	o.Nodes++
	switch n.Became {
	case "native":
		o.Native++
		if run := strings.Join(n.Run, "+"); run != o.Op {
			countIn(&o.As, run)
		}
	case "host":
		o.Host++
	case string(rlx.BecameView):
		o.View++
	case string(rlx.BecameFused):
		o.Fused++
		countIn(&o.Into, strings.Join(n.Run, "+"))
	case string(rlx.BecameInput):
		o.Fused++
		countIn(&o.Into, "Input")
	case string(rlx.BecameConstant):
		o.Folded++
	case "unused":
		o.Unused++
	default:
		o.Composed++
		for _, op := range n.Run {
			countIn(&o.Of, op)
		}
	}
}

func countIn(count *map[string]int, key string) {
	if *count == nil {
		*count = map[string]int{}
	}
	(*count)[key]++
}

// others compiles for the other backends of the build.
func (in *inspection) others(c *cobra.Command, r *prepared) {
	for _, name := range backend.Names() {
		if name == r.prog.Backend() {
			continue
		}
		info, err := stoppable(c.Context(), c.ErrOrStderr(), "compiling for "+name, func() (backendInfo, error) { return compileOn(c.Context(), name, r) })
		var lacks *rlx.UnsupportedError
		if errors.As(err, &lacks) {
			info.Unsupported = unsupportedNodes(lacks)
		}
		if info.Backend = name; err != nil {
			info.Error = shortError(err)
		}
		in.Compiled = append(in.Compiled, info)
	}
}

func compileOn(ctx context.Context, name string, r *prepared) (backendInfo, error) {
	prog, err := r.model.Compile(ctx, rlx.On(name))
	if err != nil {
		return backendInfo{}, err
	}
	defer prog.Close()
	plan, err := prog.Plan(ctx, r.feed)
	if err != nil {
		return backendInfo{}, err
	}
	return describeBackend(r.model, prog, plan), nil
}

// print writes the inspection for people.
func (in *inspection) print(out io.Writer, nodes bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	var opsets []string
	for _, d := range slices.Sorted(maps.Keys(in.Opsets)) {
		opsets = append(opsets, fmt.Sprintf("%s %d", d, in.Opsets[d]))
	}
	fmt.Fprintf(w, "model\t%s: %s, ONNX IR %d, opset %s, made by %s\n", in.File, size(in.Bytes), in.IRVersion, strings.Join(opsets, ", "), cmp.Or(in.Producer, "an unnamed producer"))
	for _, t := range in.Inputs {
		fmt.Fprintf(w, "input\t%s\t%s\n", t.Name, sized(t))
	}
	for _, t := range in.Outputs {
		fmt.Fprintf(w, "output\t%s\t%s\n", t.Name, sized(t))
	}
	for _, d := range in.Dims {
		fmt.Fprintf(w, "dim\t%s\t%s\n", d.Name, dimText(d))
	}
	if in.TooSmall != "" {
		fmt.Fprintf(w, "\twith 1\t%s\n", in.TooSmall)
	}
	if p := in.Parameters; p != nil {
		fmt.Fprintf(w, "weights\t%d values in %d tensors, %s\n", p.Values, p.Tensors, size(p.Bytes))
	}
	w.Flush()
	fmt.Fprintln(out, wrap("operators of the file: ", histogram(in.Operators), 120))
	for _, c := range in.Constants {
		fmt.Fprintln(out, c)
	}
	if len(in.FixedShapes) > 0 {
		fmt.Fprintln(out, wrap("needs the shapes of all inputs before the graph can be read, so that each set of shapes is a model of its own: ", in.FixedShapes, 120))
	}
	for _, u := range in.Unsupported {
		fmt.Fprintf(out, "unsupported: %s (%s)\n", u.What, nodeList(u.Nodes))
	}
	for i := range in.Compiled {
		in.Compiled[i].print(out, i == 0)
	}
	if nodes && len(in.Compiled) > 0 {
		in.Compiled[0].printNodes(out)
	}
	return nil
}

// sized is the type with that of the sizes that it was compiled for. Sizes that are long expressions are left out: JSON has them.
func sized(t tensorInfo) string {
	text := t.Type
	if len(text) > 100 {
		text = text[:strings.IndexByte(text, '[')] + "[...]"
	}
	if t.Sized == "" || t.Sized == t.Type {
		return text
	}
	return text + "\there " + t.Sized
}

func dimText(d dimInfo) string {
	text := "any size: " + strings.Join(d.Where, ", ")
	switch d.Why {
	case "":
		return text
	case "default":
		return fmt.Sprintf("%s; here %d", text, d.Size)
	}
	return fmt.Sprintf("%s; here %d, %s", text, d.Size, d.Why)
}

// String says what to give for an input that must be known.
func (c constantInfo) String() string {
	text := fmt.Sprintf("constant: %s decides %s; read here with %s", c.Input, nodeList(c.Nodes), c.Value)
	if len(c.Known) > 0 {
		text += fmt.Sprintf(" (the file compares it with %s)", strings.Trim(fmt.Sprint(c.Known), "[]"))
	}
	return text + ". For another: --in " + c.Input + "=VALUE\n  " + c.Give
}

// nodeList is a few of the names, cut where converters make them of whole sentences. JSON has all.
func nodeList(nodes []string) string {
	var list []string
	for _, name := range nodes[:min(len(nodes), 8)] {
		if len(name) > 80 {
			name = name[:77] + "..."
		}
		list = append(list, name)
	}
	text := strings.Join(list, ", ")
	if more := len(nodes) - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (b *backendInfo) print(out io.Writer, chosen bool) {
	if b.Error != "" {
		fmt.Fprintf(out, "on %s: %s\n", b.Backend, b.Error)
		return
	}
	var total opPlacement
	for i := range b.Nodes {
		total.count(&b.Nodes[i])
	}
	line := fmt.Sprintf("on %s (%s): %d nodes became %d commands: %d native, %d composed, %d host, %d views, %d fused, %d constants, %d unused", b.Backend, b.Device, total.Nodes,
		b.Commands, total.Native, total.Composed, total.Host, total.View, total.Fused, total.Folded, total.Unused)
	if total.Host > 0 {
		line += fmt.Sprintf("; host segments: %d, transfers: %d of %s", len(b.Host), b.Transfers, size(b.Transferred))
	}
	fmt.Fprintln(out, line)
	if chosen {
		b.printOps(out)
		m := b.Memory
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		held := ""
		if b.HeldBytes > 0 {
			held = fmt.Sprintf("; the native library holds %s, packed copies and programs included", size(b.HeldBytes))
		}
		fmt.Fprintf(w, "  memory\tweights %s, constants made for these sizes %s%s\n", size(m.Weights), size(m.Folded), held)
		fmt.Fprintf(w, "  each run\tarena %s (lower bound %s), %s with what kernels need; inputs %s, outputs %s\n", size(m.Arena), size(m.ArenaBound), size(m.Device), size(m.Inputs), size(m.Outputs))
		w.Flush()
	}
	for _, h := range b.Host {
		fmt.Fprintf(out, "  host segment on %s: %s; %s to the host, %s back\n", h.Backend, nodeList(h.Nodes), size(h.Down), size(h.Up))
	}
}

// printOps is the table of what each op became.
func (b *backendInfo) printOps(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "  op\tnodes\tbecame\n")
	for _, o := range b.Ops {
		var became []string
		for _, part := range []struct {
			n    int
			what string
			of   string
			how  map[string]int
		}{{o.Native, "N native", "as", o.As}, {o.Composed, "C composed", "of", o.Of}, {o.Host, "H host", "", nil}, {o.View, "V view", "", nil},
			{o.Fused, "fused", "into", o.Into}, {o.Folded, "folded to a constant", "", nil}, {o.Unused, "removed: unused", "", nil}} {
			if part.n == 0 {
				continue
			}
			text := fmt.Sprintf("%d %s", part.n, part.what)
			if len(part.how) > 0 {
				text += fmt.Sprintf(" %s %s", part.of, strings.Join(histogram(part.how), " + "))
			}
			became = append(became, text)
		}
		fmt.Fprintf(w, "  %s\t%d\t%s\n", o.Op, o.Nodes, strings.Join(became, ", "))
	}
	w.Flush()
}

// printNodes lists what became of each node.
func (b *backendInfo) printNodes(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "  node\top\tbecame\n")
	for _, n := range b.Nodes {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", n.Node, n.Op, n)
	}
	w.Flush()
}

// String says what became of the node.
func (n nodeFate) String() string {
	run := strings.Join(n.Run, "+")
	switch n.Became {
	case string(rlx.BecameFused):
		return fmt.Sprintf("fused into %s (%s)", n.By, run)
	case string(rlx.BecameInput):
		return "equal to input " + n.By
	case string(rlx.BecameConstant):
		return "folded to a constant"
	case string(rlx.BecameView):
		return strings.TrimSuffix("view, part of "+n.By, ", part of ")
	case "unused":
		return "removed: unused"
	}
	return fmt.Sprintf("%s: %s", n.Became, run)
}

// histogram is "Conv 62", "Add 3" ..., the most frequent first.
func histogram(count map[string]int) []string {
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, count[name])
	}
	return names
}

// wrap breaks a list into lines of about the given width.
func wrap(head string, list []string, width int) string {
	text, line := head, len(head)
	for i, s := range list {
		if i > 0 {
			text, line = text+", ", line+2
			if line+len(s) > width {
				text, line = strings.TrimRight(text, " ")+"\n  ", 2
			}
		}
		text, line = text+s, line+len(s)
	}
	return text
}

// size is a number of bytes in three digits.
func size(bytes int64) string {
	switch v := float64(bytes); {
	case bytes < 1000:
		return fmt.Sprintf("%d B", bytes)
	case v < 1e6:
		return fmt.Sprintf("%.3g kB", v/1e3)
	case v < 1e9:
		return fmt.Sprintf("%.3g MB", v/1e6)
	default:
		return fmt.Sprintf("%.3g GB", v/1e9)
	}
}
