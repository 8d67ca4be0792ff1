package conform

import (
	"context"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Hold keeps the device that opts choose open until the returned function is called. Every Compile opens its device, which takes some
// backends longer than a whole case; what is behind an open device is shared. Where it cannot be opened, the cases say why.
func Hold(ctx context.Context, opts ...rlx.Option) (release func()) {
	p, err := hold(ctx, opts...)
	if err != nil {
		return func() {}
	}
	return func() { p.Close() }
}

// hold compiles a program that does nothing.
func hold(ctx context.Context, opts ...rlx.Option) (*rlx.Program, error) {
	g := ir.NewGraph("hold")
	g.Output("y", g.Constant(ir.Scalar(float32(0))))
	return rlx.Compile(ctx, g, opts...)
}
