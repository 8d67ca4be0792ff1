// Random numbers; see rng.h. The dtype of the rows is that of an operand whose values do not count.
SPLIT(rng_split)

KERNEL(RngUniform, any, generic, strided, rng_split, uniform_generic)
KERNEL(RngUniform, any, avx2, strided, rng_split, uniform_avx2)
KERNEL(RngUniform, any, avx512, strided, rng_split, uniform_avx512)
KERNEL(RngUniform, any, neon, strided, rng_split, uniform_neon)

KERNEL(RngNormal, any, generic, strided, rng_split, normal_generic)
KERNEL(RngNormal, any, avx2, strided, rng_split, normal_avx2)
KERNEL(RngNormal, any, avx512, strided, rng_split, normal_avx512)
KERNEL(RngNormal, any, neon, strided, rng_split, normal_neon)
