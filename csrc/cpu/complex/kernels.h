// The kinds on c64.
KERNEL(ComplexNormSq, c64, generic, strided, elements, norm_sq_c64)
KERNEL(ComplexNormSqBackward, c64, generic, strided, elements, norm_sq_backward_c64)
KERNEL(Conjugate, c64, generic, strided, elements, conjugate_c64)
