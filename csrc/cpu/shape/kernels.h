SPLIT(copy_units)
KERNEL(Copy, any, generic, strided, copy_units, copy)
KERNEL(Concat, any, generic, strided, whole, concat)
