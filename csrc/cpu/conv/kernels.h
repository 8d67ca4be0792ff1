// The kernels of the conv family. Every row takes strided operands: x is read through its strides as windows are made.

// sum_rows: units are rows of result 0, with a grain by the length of their sums.
SPLIT(sum_rows)

KERNEL(Conv, f32, generic, strided, whole, conv_f32_generic)
KERNEL(Conv, f32, avx2, strided, whole, conv_f32_avx2)
KERNEL(Conv, f32, avx512, strided, whole, conv_f32_avx512)
PREPARE(Conv, f32, conv_prepare)
KERNEL(Conv, half, generic, strided, whole, conv_f32_generic)
KERNEL(Conv, half, avx2, strided, whole, conv_f32_avx2)
KERNEL(Conv, half, avx512, strided, whole, conv_f32_avx512)
PREPARE(Conv, half, conv_prepare)
KERNEL(Conv, f64, generic, strided, sum_rows, conv_f64)

KERNEL(Conv3d, f32, generic, strided, whole, conv_f32_generic)
KERNEL(Conv3d, f32, avx2, strided, whole, conv_f32_avx2)
KERNEL(Conv3d, f32, avx512, strided, whole, conv_f32_avx512)
PREPARE(Conv3d, f32, conv_prepare)
KERNEL(Conv3d, half, generic, strided, whole, conv_f32_generic)
KERNEL(Conv3d, half, avx2, strided, whole, conv_f32_avx2)
KERNEL(Conv3d, half, avx512, strided, whole, conv_f32_avx512)
PREPARE(Conv3d, half, conv_prepare)
KERNEL(Conv3d, f64, generic, strided, sum_rows, conv_f64)

KERNEL(Im2Col, float, generic, strided, rows, im2col)
