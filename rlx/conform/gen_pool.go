package conform

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() { generate(pool, "Pool") }

// poolCase is one geometry: lists are left out where nil.
type poolCase struct {
	x, kernel, stride, dilation, padding []int64
	ceil, include                        bool
}

var pools = []poolCase{
	{x: dims(1, 2, 7), kernel: dims(2)},
	{x: dims(2, 3, 17), kernel: dims(3), stride: dims(2), padding: dims(1), ceil: true, include: true},
	{x: dims(1, 2, 9), kernel: dims(3), stride: dims(1), dilation: dims(3), padding: dims(2, 6)},
	{x: dims(1, 1, 50), kernel: dims(19), stride: dims(7), padding: dims(9, 18), ceil: true},
	{x: dims(1, 3, 8, 8), kernel: dims(2, 2), stride: dims(2, 2)},
	{x: dims(1, 2, 15, 33), kernel: dims(3, 3), stride: dims(2, 2), padding: dims(1, 1)},
	{x: dims(2, 2, 9, 70), kernel: dims(3, 3), stride: dims(1, 1), padding: dims(1, 1), include: true},
	{x: dims(2, 3, 7, 5), kernel: dims(7, 5)},
	{x: dims(1, 2, 11, 13), kernel: dims(4, 3), stride: dims(3, 4), dilation: dims(2, 1), padding: dims(0, 2, 5, 1), ceil: true, include: true},
	{x: dims(1, 2, 6, 41), kernel: dims(2, 3), stride: dims(2, 1), dilation: dims(1, 2), padding: dims(1, 0), ceil: true},
	{x: dims(1, 5, 9, 20), kernel: dims(2, 20), stride: dims(3, 1), ceil: true},
	{x: dims(1, 2, 5, 6), kernel: dims(3, 1), stride: dims(math.MaxInt64, 4), dilation: dims(1, math.MaxInt64), include: true},
	{x: dims(1, 2, 3, 7), kernel: dims(3, 7), stride: dims(1<<62, 3), ceil: true},
	{x: dims(0, 3, 5, 5), kernel: dims(2, 2)},
	{x: dims(2, 0, 5), kernel: dims(2)},
	{x: dims(1, 2, 4, 5, 6), kernel: dims(2, 2, 2)},
	{x: dims(2, 1, 5, 7, 9), kernel: dims(3, 2, 3), stride: dims(1, 2, 3), padding: dims(1, 0, 2), include: true},
	{x: dims(1, 2, 7, 6, 35), kernel: dims(2, 3, 2), dilation: dims(2, 1, 3), padding: dims(0, 1, 0, 2, 0, 3), ceil: true},
}

var largePools = []poolCase{
	{x: dims(1, 9, 57, 64), kernel: dims(3, 3), stride: dims(2, 2), padding: dims(1, 1)},
	{x: dims(1, 2, 150, 140), kernel: dims(3, 2), stride: dims(1, 1), padding: dims(1, 0), include: true},
	{x: dims(1, 1, 5000), kernel: dims(3), stride: dims(2), ceil: true},
}

var globalPools = [][]int64{{2, 3, 5}, {1, 2, 7, 7}, {2, 2, 3, 4, 5}, {0, 2, 3}, {1, 3, 1, 1}}

func pool(m *maker) {
	auto := m.enums["auto_pad"]
	picked := part(m, 5, len(pools), pools)
	if m.large {
		picked = slices.Concat(picked, largePools)
		if auto == "none" { // taps further apart than planes reach
			picked = append(picked, poolCase{x: dims(1, 2, 9), kernel: dims(2), stride: dims(1), dilation: dims(2000000), padding: dims(1999999, 0)})
		}
	}
	for _, p := range picked {
		a := attrs{"kernel_size": p.kernel, "ceil_mode": p.ceil, "count_include_pad": p.include}
		for name, v := range map[string][]int64{"stride": p.stride, "dilation": p.dilation, "padding": p.padding} {
			if v != nil && (name != "padding" || auto == "none") {
				a[name] = v
			}
		}
		m.pooled(a, p.x, auto == "valid") // without its padding a dilated kernel may not fit
	}
	if auto != "none" {
		return
	}
	for _, s := range some(m, 2, globalPools) {
		m.pooled(attrs{"global": true}, s, false)
	}
	if m.large {
		m.pooled(attrs{"global": true}, dims(2, 3, 41, 50), false)
	}
}

func (m *maker) pooled(a attrs, shape []int64, optional bool) {
	x := m.rng.wide(m.dtype, shape)
	exact := m.enums["fn"] == "max"
	if ir.Float.Has(m.dtype) {
		x = m.rng.plain(m.dtype, shape)
		if exact || len(m.cases)%3 == 2 {
			x = m.rng.odd(m.dtype, shape)
		}
	}
	c := m.add(a, x)
	c.optional, c.linear = optional, !exact
	if exact {
		c.tight = &ir.Tolerance{}
	}
}
