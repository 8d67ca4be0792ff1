package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// windowExports are convolutions and pools.
var windowExports = map[string]exportRow{
	"Conv":            inF32(emitConv),
	"Conv3d":          inF32(emitConv),
	"ConvTranspose2d": inF32(emitConvTranspose),
	"ConvTranspose3d": inF32(emitConvTranspose),
	"Im2Col":          composedStatic(),
	"Pool":            inF32(emitPool).elseStatic(),
}

var autoPadNames = map[op.AutoPad]string{"none": "NOTSET", "valid": "VALID", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER"}

// window are the attributes of a sliding window over r spatial axes.
func (x *emission) window(stride, dilation, padding, kernel []int64, mode op.AutoPad, r int) []AttributeProto {
	if len(padding) == r {
		padding = append(slices.Clone(padding), padding...)
	}
	if mode != "none" {
		padding = nil
	}
	list := []AttributeProto{attr("kernel_shape", kernel), attr("strides", stride), attr("dilations", dilation), attr("pads", padding)}
	if mode != "none" {
		list = append(list, attr("auto_pad", autoPadNames[mode]))
	}
	return list
}

// kernel are the spatial dims of the weights, nil where they are not known.
func (x *emission) kernel(i int) []int64 {
	k, _ := ir.StaticShape(x.shape(i)[2:])
	return k
}

func grouped(groups int64) AttributeProto {
	if groups == 1 {
		return AttributeProto{}
	}
	return attr("group", groups)
}

// emitConv leaves f64, which runtimes do not convolve, to products where it can.
func emitConv(x *emission, a *op.ConvAttrs) []string {
	if x.dtype(0) == ir.F64 && staticNode(x.n) {
		return x.refuse("f64")
	}
	attrs := x.window(a.Stride, a.Dilation, a.Padding, x.kernel(1), a.AutoPad, len(x.shape(0))-2)
	return x.one("Conv", append(attrs, grouped(a.Groups))...)
}

// emitConvTranspose gives the padding of known sizes in numbers: what same_upper and same_lower mean has changed between versions.
func emitConvTranspose(x *emission, a *op.ConvTransposeAttrs) []string {
	if x.dtype(0) == ir.F64 && staticNode(x.n) {
		return x.refuse("f64")
	}
	r := len(x.shape(0)) - 2
	w := op.TransposeWindow(a, x.shape(0)[2:], x.shape(1)[2:])
	pads, ok := ir.StaticShape(append(slices.Clone(w.Begin), w.End...))
	if !ok {
		return x.refuse("padding that depends on the weights' shape, which is not known")
	}
	attrs := x.window(a.Stride, a.Dilation, pads, x.kernel(1), "none", r)
	return x.one("ConvTranspose", append(attrs, grouped(a.Groups), attr("output_padding", a.OutputPadding))...)
}

func emitPool(x *emission, a *op.PoolAttrs) []string {
	takes := ir.Float
	if a.Fn == "max" && !a.Global {
		takes |= ir.Set(ir.I8, ir.U8)
	}
	switch {
	case a.Fn == "sum":
		return x.refuse("sum over windows")
	case !takes.Has(x.dtype(0)):
		return x.refuse("%s pool of %s", string(a.Fn), x.dtype(0))
	}
	name := map[op.PoolFn]string{"max": "MaxPool", "avg": "AveragePool"}[a.Fn]
	if a.Global {
		return x.one("Global" + name)
	}
	stride := a.Stride
	if len(stride) == 0 {
		stride = a.KernelSize
	}
	attrs := x.window(stride, a.Dilation, a.Padding, a.KernelSize, a.AutoPad, len(a.KernelSize))
	if a.CeilMode {
		x.need(22) // since which no window starts behind x
		attrs = append(attrs, attr("ceil_mode", 1))
	}
	if a.CountIncludePad && a.Fn == "avg" {
		attrs = append(attrs, attr("count_include_pad", 1))
	}
	return x.one(name, attrs...)
}
