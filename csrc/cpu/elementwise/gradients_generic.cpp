// Gradients of functions of f32, 4 lanes of plain C++. See loops.h.
#include "../core/rlx_begin.h"

#include "elementwise.h"

namespace rlx {
namespace elementwise {

Loop backward_generic(int fn);

namespace {
#include "../core/vec_generic.h"
#include "../core/vec_math.h"
#include "../core/scalar_gen.h"
#include "loops.h"
#include "gradients.h"
}  // namespace

Loop backward_generic(int fn) { return backward_of(fn); }

}  // namespace elementwise
}  // namespace rlx
