// Regions: chains of elementwise nodes in one pass over memory (region.cpp).

KERNEL(ElementwiseRegion, bool, generic, strided, whole, elementwise_region)
KERNEL(ElementwiseRegion, real, generic, strided, whole, elementwise_region)
PREPARE(ElementwiseRegion, bool, elementwise_region_prepare)
PREPARE(ElementwiseRegion, real, elementwise_region_prepare)

KERNEL(BatchElementwiseRegion, bool, generic, strided, whole, batch_region)
KERNEL(BatchElementwiseRegion, real, generic, strided, whole, batch_region)
PREPARE(BatchElementwiseRegion, bool, batch_region_prepare)
PREPARE(BatchElementwiseRegion, real, batch_region_prepare)

KERNEL(TransformRegion, any, generic, strided, rows, transform_region)
