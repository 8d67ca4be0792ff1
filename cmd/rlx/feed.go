package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// inputFlags are the flags that say what a model is fed with.
type inputFlags struct {
	in, dims, ranges []string
	seed             uint64
	cast             bool
}

func (f *inputFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.in, "in", nil, "NAME=FILE.npy, or NAME=NUMBERS such as sr=16000 or ids=101,7592,102; one number fills the whole input. Once for each input")
	c.Flags().StringArrayVar(&f.dims, "dim", nil, "NAME=N: the size of a symbolic dim of inputs that no file gives, such as batch=2; default: the smallest size that compiles, 1 first")
	c.Flags().StringArrayVar(&f.ranges, "range", nil, "NAME=LO:HI: random values of an input are uniform in LO <= v < HI")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of random inputs")
	c.Flags().BoolVar(&f.cast, "cast", false, "convert --in files to the dtypes that the model declares; integers must keep their values")
}

// values are the inputs as the command line gives them.
type values struct {
	feed   rlx.Feed          // of known shape
	fill   map[string]string // one number that fills an input of a shape yet unknown
	ranges map[string][2]float64
	seed   uint64
	dims   map[string]int64  // sizes of symbols that the command line or a tensor decides
	by     map[string]string // what decided it
}

// problems collects all that is wrong with the inputs, so that one try shows it.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// values reads the flags for a model.
func (f *inputFlags) values(s *signature) (*values, error) {
	v := &values{feed: rlx.Feed{}, fill: map[string]string{}, ranges: map[string][2]float64{}, seed: f.seed, dims: map[string]int64{}, by: map[string]string{}}
	var bad problems
	if err := f.readDims(s, v, &bad); err != nil {
		return nil, err
	}
	if err := f.readRanges(s, v, &bad); err != nil {
		return nil, err
	}
	for _, in := range f.in {
		name, text, ok := strings.Cut(in, "=")
		if !ok || name == "" || text == "" {
			return nil, usageError{fmt.Errorf("--in %s, expected NAME=FILE.npy or NAME=NUMBERS", in)}
		}
		d := s.input(name)
		switch {
		case d == nil && s.weights[name]:
			bad.add("%s is a weight of the model, which cannot be given", name)
		case d == nil:
			bad.add("the model has no input %q%s", name, didYouMean(name, s.inputNames()))
		case v.feed[name] != nil || v.fill[name] != "":
			return nil, usageError{fmt.Errorf("--in %s is given twice", name)}
		default:
			if err := f.read(d, text, v); err != nil {
				bad = append(bad, err)
			}
		}
	}
	v.check(s, &bad)
	return v, errors.Join(bad...)
}

func (f *inputFlags) readDims(s *signature, v *values, bad *problems) error {
	for _, text := range f.dims {
		name, size, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 0 {
			return usageError{fmt.Errorf("--dim %s, expected NAME=N with N from 0", text)}
		}
		symbol := symbolOf(name)
		if !slices.Contains(s.symbols(), symbol) {
			if len(s.symbols()) == 0 {
				bad.add("no input has a symbolic dim, so there is none called %q", name)
			} else {
				bad.add("no input has a dim %q%s", name, didYouMean(name, s.symbols()))
			}
			continue
		}
		v.dims[symbol], v.by[symbol] = n, "--dim"
	}
	return nil
}

func (f *inputFlags) readRanges(s *signature, v *values, bad *problems) error {
	for _, text := range f.ranges {
		name, limits, _ := strings.Cut(text, "=")
		lo, hi, ok := strings.Cut(limits, ":")
		a, err1 := strconv.ParseFloat(lo, 64)
		b, err2 := strconv.ParseFloat(hi, 64)
		if !ok || err1 != nil || err2 != nil || !(a < b) || math.IsInf(b-a, 0) {
			return usageError{fmt.Errorf("--range %s, expected NAME=LO:HI with LO below HI", text)}
		}
		if s.input(name) == nil {
			bad.add("--range: the model has no input %q%s", name, didYouMean(name, s.inputNames()))
			continue
		}
		v.ranges[name] = [2]float64{a, b}
	}
	return nil
}

// read takes what --in gives for an input: numbers, or a file.
func (f *inputFlags) read(d *declared, text string, v *values) error {
	if list, ok := numbers(text); ok {
		if len(list) == 1 && len(d.typ.Shape) > 0 {
			v.fill[d.name] = text
			_, err := literal(d, list, nil)
			return err
		}
		t, err := literal(d, list, d.listShape(int64(len(list)), v.dims))
		v.feed[d.name] = t
		return err
	}
	t, err := readNPY(text)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is neither a file nor a list of numbers", text)
	}
	if err != nil {
		return fmt.Errorf("input %s: %w", d.name, err)
	}
	if f.cast && t.DType() != d.typ.DType {
		if t, err = convert(t, d.typ.DType); err != nil {
			return fmt.Errorf("input %s: %s: --cast: %w", d.name, text, err)
		}
	}
	v.feed[d.name] = t
	return nil
}

// numbers splits a list of numbers; false where the text is something else, such as a file name.
func numbers(text string) ([]string, bool) {
	list := strings.Split(text, ",")
	for _, s := range list {
		if _, err := strconv.ParseFloat(s, 64); err != nil && s != "true" && s != "false" {
			return nil, false
		}
	}
	return list, true
}

// listShape is the shape of a list of n elements: symbolic dims are 1, or what dims says, and the last of them takes the rest.
func (d *declared) listShape(n int64, dims map[string]int64) []int64 {
	shape := make([]int64, len(d.typ.Shape))
	rest, last := int64(1), -1
	for i, dim := range d.typ.Shape {
		size, ok := dim.Static()
		if symbol, _ := dim.Symbol(); !ok {
			if size, ok = dims[symbol]; !ok {
				size, last = 1, i
			}
		}
		shape[i], rest = size, rest*size
	}
	if last >= 0 && rest > 0 && n%rest == 0 {
		shape[last] = n / rest
	}
	return shape
}

// literal makes a tensor of numbers; without a shape it only checks them.
func literal(d *declared, list []string, shape []int64) (*rlx.Tensor, error) {
	dtype := d.typ.DType
	floats, ints := make([]float64, len(list)), make([]int64, len(list))
	whole := !ir.Float.Has(dtype)
	for i, s := range list {
		var err error
		switch {
		case s == "true":
			ints[i], floats[i] = 1, 1
		case s == "false":
		case whole:
			ints[i], err = strconv.ParseInt(s, 10, 64)
		default:
			floats[i], err = strconv.ParseFloat(s, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("input %s: %s is no value for %s", d.name, s, dtype)
		}
	}
	n := int64(1)
	for _, size := range shape {
		n *= size
	}
	if shape == nil {
		n = int64(len(list))
	}
	if n != int64(len(list)) {
		return nil, fmt.Errorf("input %s: got %d numbers, the model takes %s, here %s: one number, or %d", d.name, len(list), d.typ, ir.Type{DType: dtype, Shape: ir.Dims(shape...)}, n)
	}
	from := rlx.New(floats, len(list))
	if whole {
		from = rlx.New(ints, len(list))
	}
	t, err := convert(from, dtype)
	if err != nil || shape == nil {
		return t, err
	}
	return ir.FromBytes(dtype, shape, t.Bytes())
}

// convert casts a tensor as op.Cast does. What becomes an integer or a bool must keep its value.
func convert(t *rlx.Tensor, to rlx.DType) (*rlx.Tensor, error) {
	if t.DType() == to {
		return t, nil
	}
	y, err := cast(t, to)
	if err != nil || ir.Float.Has(to) {
		return y, err
	}
	for i := range y.Len() {
		if t.Float(i) != y.Float(i) || t.Int(i) != y.Int(i) {
			return nil, fmt.Errorf("%s value %v is none of %s", t.DType(), t.At(i), to)
		}
	}
	return y, nil
}

func cast(t *rlx.Tensor, to rlx.DType) (*rlx.Tensor, error) {
	g := rlx.NewGraph("cast")
	g.Output("y", op.Cast(g.Input("x", t.DType(), t.Type().Shape), to))
	p, err := rlx.Compile(context.Background(), g, rlx.On("ref"))
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out, err := p.Run(context.Background(), rlx.Feed{"x": t})
	return out["y"], err
}

// numpyNames are the dtypes as NumPy calls them.
var numpyNames = map[rlx.DType]string{
	rlx.Bool: "bool", rlx.I8: "int8", rlx.I16: "int16", rlx.I32: "int32", rlx.I64: "int64", rlx.U8: "uint8", rlx.U16: "uint16", rlx.U32: "uint32", rlx.U64: "uint64",
	rlx.F16: "float16", rlx.F32: "float32", rlx.F64: "float64", rlx.C64: "complex64",
}

// check compares the tensors with what the model declares, and reads the sizes of symbolic dims off them.
func (v *values) check(s *signature, bad *problems) {
	for i := range s.inputs {
		in := &s.inputs[i]
		t := v.feed[in.name]
		if t == nil {
			continue
		}
		got := typeText(t)
		if t.DType() != in.typ.DType {
			how := "--cast converts it"
			if name := numpyNames[in.typ.DType]; name != "" {
				how += fmt.Sprintf(", and so does x.astype(np.%s) in NumPy", name)
			}
			bad.add("input %s: dtype: got %s, the model takes %s; %s", in.name, got, in.typ, how)
		}
		if t.Rank() != len(in.typ.Shape) {
			bad.add("input %s: rank: got %s with %d dims, the model takes %s with %d", in.name, got, t.Rank(), in.typ, len(in.typ.Shape))
			continue
		}
		for axis, d := range in.typ.Shape {
			v.checkDim(in, axis, d, t.Shape()[axis], got, bad)
		}
	}
}

func (v *values) checkDim(in *declared, axis int, d ir.Dim, size int64, got string, bad *problems) {
	if want, ok := d.Static(); ok {
		if want != size {
			bad.add("input %s: axis %d is %d, expected %d: got %s, the model takes %s", in.name, axis, size, want, got, in.typ)
		}
		return
	}
	symbol, _ := d.Symbol()
	place := fmt.Sprintf("axis %d of %s", axis, in.name)
	if old, ok := v.dims[symbol]; ok && old != size {
		bad.add("input %s: axis %d is %d, but %s is %d by %s, and a dim has one size in all inputs: got %s, the model takes %s",
			in.name, axis, size, symbol, old, v.by[symbol], got, in.typ)
		return
	} else if !ok {
		v.dims[symbol], v.by[symbol] = size, place
	}
}

// missing names the inputs that neither a file nor numbers give.
func (v *values) missing(s *signature) []declared {
	var list []declared
	for _, in := range s.inputs {
		if v.feed[in.name] == nil && v.fill[in.name] == "" {
			list = append(list, in)
		}
	}
	return list
}

// needAll is the error of a run that lacks inputs.
func (v *values) needAll(s *signature) error {
	list := v.missing(s)
	if len(list) == 0 {
		return nil
	}
	lines := make([]string, len(list))
	for i, in := range list {
		example := in.name + "=FILE.npy"
		if known := s.compared(in.name); len(known) > 0 {
			example = fmt.Sprintf("%s=%d", in.name, known[0])
		}
		lines[i] = fmt.Sprintf("input %s is missing: %s, give --in %s", in.name, in.typeText(), example)
	}
	return errors.New(strings.Join(lines, "\n") + "\nor --random, for random values in what is not given")
}
