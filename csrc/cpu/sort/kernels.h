// Order along an axis, see sort.cpp; draws by logits, see sample.cpp.
SPLIT(sort_split)
PREPARE(TopK, any, top_k_prepare)
PREPARE(Sort, any, sort_prepare)
PREPARE(ArgSort, any, sort_prepare)

KERNEL(TopK, real, generic, strided, sort_split, top_k)
KERNEL(TopK, bool, generic, strided, sort_split, top_k)
KERNEL(Sort, real, generic, strided, sort_split, sort_lines)
KERNEL(Sort, bool, generic, strided, sort_split, sort_lines)
KERNEL(ArgSort, real, generic, strided, sort_split, sort_lines)
KERNEL(ArgSort, bool, generic, strided, sort_split, sort_lines)

PREPARE(Sample, any, sample_prepare)
KERNEL(Sample, float, generic, strided, whole, sample)
