// The kernels of the matmul family. Every row takes strided operands: matrices are packed, or read through their strides, as they are used.
// DotGeneral runs as its decomposition.

KERNEL(MatMul, f32, generic, strided, whole, matmul_f32)
PREPARE(MatMul, f32, matmul_f32_prepare)

// Other dtypes run as MatMul and the body behind it.
KERNEL(MatMulRegion, f32, generic, strided, whole, matmul_region_f32)
PREPARE(MatMulRegion, f32, matmul_region_f32_prepare)

KERNEL(MatMul, half, generic, strided, whole, matmul_blocked_generic)
KERNEL(MatMul, half, avx2, strided, whole, matmul_blocked_avx2)
KERNEL(MatMul, half, avx512, strided, whole, matmul_blocked_avx512)
KERNEL(MatMul, half, neon, strided, whole, matmul_blocked_neon)
PREPARE(MatMul, half, matmul_blocked_prepare)

KERNEL(MatMul, f64, generic, strided, whole, matmul_blocked_generic)
KERNEL(MatMul, f64, avx2, strided, whole, matmul_blocked_avx2)
KERNEL(MatMul, f64, avx512, strided, whole, matmul_blocked_avx512)
KERNEL(MatMul, f64, neon, strided, whole, matmul_blocked_neon)
PREPARE(MatMul, f64, matmul_blocked_prepare)

KERNEL(MatMul, i32, generic, strided, whole, matmul_blocked_generic)
KERNEL(MatMul, i32, avx2, strided, whole, matmul_blocked_avx2)
KERNEL(MatMul, i32, avx512, strided, whole, matmul_blocked_avx512)
KERNEL(MatMul, i32, neon, strided, whole, matmul_blocked_neon)
PREPARE(MatMul, i32, matmul_blocked_prepare)

KERNEL(MatMul, u32, generic, strided, whole, matmul_blocked_generic)
KERNEL(MatMul, u32, avx2, strided, whole, matmul_blocked_avx2)
KERNEL(MatMul, u32, avx512, strided, whole, matmul_blocked_avx512)
KERNEL(MatMul, u32, neon, strided, whole, matmul_blocked_neon)
PREPARE(MatMul, u32, matmul_blocked_prepare)

KERNEL(MatMul, i64, generic, strided, whole, matmul_blocked_generic)
KERNEL(MatMul, i64, avx2, strided, whole, matmul_blocked_avx2)
KERNEL(MatMul, i64, avx512, strided, whole, matmul_blocked_avx512)
KERNEL(MatMul, i64, neon, strided, whole, matmul_blocked_neon)
PREPARE(MatMul, i64, matmul_blocked_prepare)

KERNEL(MatMul, u64, generic, strided, whole, matmul_blocked_generic)
KERNEL(MatMul, u64, avx2, strided, whole, matmul_blocked_avx2)
KERNEL(MatMul, u64, avx512, strided, whole, matmul_blocked_avx512)
KERNEL(MatMul, u64, neon, strided, whole, matmul_blocked_neon)
PREPARE(MatMul, u64, matmul_blocked_prepare)
