KERNEL(Copy, any, generic, strided, elements, copy)
