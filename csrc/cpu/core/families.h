// The one list of kernel families in C++. registry.cpp includes it several times, each time with other meanings of the macros; a family's
// rows join when its folder has a kernels.h. cgo/cpu lists the same folders for the Go build.
#if __has_include("../elementwise/kernels.h")
RLX_FAMILY_BEGIN(elementwise)
#include "../elementwise/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../shape/kernels.h")
RLX_FAMILY_BEGIN(shape)
#include "../shape/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../index/kernels.h")
RLX_FAMILY_BEGIN(index)
#include "../index/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../reduce/kernels.h")
RLX_FAMILY_BEGIN(reduce)
#include "../reduce/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../matmul/kernels.h")
RLX_FAMILY_BEGIN(matmul)
#include "../matmul/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../norm/kernels.h")
RLX_FAMILY_BEGIN(norm)
#include "../norm/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../sort/kernels.h")
RLX_FAMILY_BEGIN(sort)
#include "../sort/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../conv/kernels.h")
RLX_FAMILY_BEGIN(conv)
#include "../conv/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../pool/kernels.h")
RLX_FAMILY_BEGIN(pool)
#include "../pool/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../attention/kernels.h")
RLX_FAMILY_BEGIN(attention)
#include "../attention/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../sequence/kernels.h")
RLX_FAMILY_BEGIN(sequence)
#include "../sequence/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../quant/kernels.h")
RLX_FAMILY_BEGIN(quant)
#include "../quant/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../fft/kernels.h")
RLX_FAMILY_BEGIN(fft)
#include "../fft/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../rng/kernels.h")
RLX_FAMILY_BEGIN(rng)
#include "../rng/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../complex/kernels.h")
RLX_FAMILY_BEGIN(complex)
#include "../complex/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../control/kernels.h")
RLX_FAMILY_BEGIN(control)
#include "../control/kernels.h"
RLX_FAMILY_END
#endif
#if __has_include("../region/kernels.h")
RLX_FAMILY_BEGIN(region)
#include "../region/kernels.h"
RLX_FAMILY_END
#endif
