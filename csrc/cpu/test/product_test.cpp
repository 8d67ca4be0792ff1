#include "../core/rlx_begin.h"

// Tests MatMul, products with weights in block formats and the convolutions through the ABI, under every instruction set that this machine runs. Values
// must lie within the stated bound of sums in f64 (integers: equal modulo 2^bits), and have the same bits for any number of threads, with operand 1 bound
// or constant (packed), and for an item of the batch run alone.
#include <stdio.h>
#include <stdlib.h>

#include "../core/kernel.h"
#include "../quant/packed.h"

extern "C" const rlx_backend *rlx_backend_cpu(void);

namespace {

const rlx_backend *backend;
const char *isa;
long failures, programs, elements;

uint32_t seed = 7;
uint32_t next() { return seed = seed * 1664525u + 1013904223u, seed >> 8; }

void fail(const char *what, const char *op, int dtype, int problem) {
  if (failures++ < 20) fprintf(stderr, "FAIL %s: %s of %s, problem %d: %s\n", isa, op, rlx_dtype_names[dtype], problem, what);
}

// A tensor: memory of `elems` elements, seen through dims and strides from element `origin` on.
struct Tensor {
  uint32_t dtype, rank;
  int64_t dims[RLX_MAX_RANK], strides[RLX_MAX_RANK], origin, elems;
  void *data;
};

int64_t count_of(const Tensor &t) {
  int64_t n = 1;
  for (uint32_t d = 0; d < t.rank; d++) n *= t.dims[d];
  return n;
}

// Exact: the values of these tests are few bits wide.
double get(const Tensor &t, int64_t i) {
  const uint16_t h = t.dtype == RLX_F16 || t.dtype == RLX_BF16 ? static_cast<uint16_t *>(t.data)[i] : 0;
  uint32_t b = uint32_t(h) << 16;
  float f;
  switch (t.dtype) {
    case RLX_F16: {
      const int e = h >> 10 & 31, m = h & 1023;
      const double v = e == 0 ? ldexp(m, -24) : e == 31 ? (m != 0 ? double(NAN) : double(INFINITY)) : ldexp(1024 + m, e - 25);
      return h >> 15 ? -v : v;
    }
    case RLX_BF16: return std::memcpy(&f, &b, 4), double(f);
    case RLX_F32: return double(static_cast<float *>(t.data)[i]);
    default: return static_cast<double *>(t.data)[i];
  }
}
void set(Tensor &t, int64_t i, int v) {  // v / 8
  const float f = float(v) / 8;
  uint32_t b;
  std::memcpy(&b, &f, 4);
  switch (t.dtype) {
    case RLX_F16: static_cast<uint16_t *>(t.data)[i] = uint16_t(v == 0 ? 0 : (b >> 31 << 15) | (((b >> 23 & 255) - 112) << 10) | (b >> 13 & 1023)); break;
    case RLX_BF16: static_cast<uint16_t *>(t.data)[i] = uint16_t(b >> 16); break;
    case RLX_F32: static_cast<float *>(t.data)[i] = f; break;
    case RLX_F64: static_cast<double *>(t.data)[i] = double(f); break;
    case RLX_I32: case RLX_U32: static_cast<uint32_t *>(t.data)[i] = next() * 65537u; break;
    default: static_cast<uint64_t *>(t.data)[i] = uint64_t(next()) * 0x9e3779b97f4a7c15u; break;
  }
}

// shift permutes the axes in memory, so that shift 0 is contiguous.
Tensor tensor(uint32_t dtype, uint32_t rank, const int64_t *dims, uint32_t shift) {
  Tensor t = {};
  t.dtype = dtype, t.rank = rank, t.elems = 1;
  for (uint32_t i = rank; i-- > 0;) {
    const uint32_t d = (i + shift) % rank;
    t.dims[d] = dims[d], t.strides[d] = t.elems;
    t.elems *= dims[d];
  }
  const size_t bytes = size_t(t.elems) * size_t(rlx_dtype_sizes[dtype]);
  if (posix_memalign(&t.data, 64, bytes + 1) != 0) abort();
  for (int64_t i = 0; i < t.elems; i++) set(t, i, int(next() % 31) - 15);
  return t;
}

// Command words.
struct Words {
  uint32_t w[512];
  uint32_t n = 0;
  void u32(uint32_t v) { w[n++] = v; }
  void i64(int64_t v) { u32(uint32_t(v)), u32(uint32_t(uint64_t(v) >> 32)); }
  void list(const int64_t *v, int count) {
    u32(count < 0 ? RLX_ABSENT : uint32_t(count));
    for (int i = 0; i < count; i++) i64(v[i]);
  }
  void type(const Tensor &t) {  // of the memory, as one axis
    u32(t.dtype | 1 << 8), i64(t.elems);
  }
  void operand(const Tensor &t, uint32_t slot, uint32_t index) {
    u32(t.dtype | t.rank << 8 | slot << 16), u32(index), i64(t.origin * rlx_dtype_sizes[t.dtype]);
    for (uint32_t d = 0; d < t.rank; d++) i64(t.dims[d]);
    for (uint32_t d = 0; d < t.rank; d++) i64(t.strides[d]);
  }
};

// Runs y = op(a, b), with b as a constant or an input. attributes holds their words.
bool run(uint32_t op, const Tensor &a, const Tensor &b, Tensor &y, const Words &attributes, bool constant, int threads) {
  Words w;
  w.u32(RLX_WORDS_MAGIC), w.u32(RLX_WORDS_VERSION), w.i64(int64_t(backend->table_hash)), w.i64(0);
  w.u32(constant ? 1 : 2), w.u32(1), w.u32(constant ? 1 : 0), w.u32(0), w.u32(1);
  w.type(a);
  if (!constant) w.type(b);
  w.type(y);
  if (constant) w.type(b);
  const uint32_t start = w.n;
  w.u32(op), w.u32(0), w.u32(1 | 2 << 16);
  w.operand(y, RLX_OUTPUT, 0), w.operand(a, RLX_INPUT, 0), w.operand(b, constant ? RLX_CONST : RLX_INPUT, constant ? 0 : 1);
  for (uint32_t i = 0; i < attributes.n; i++) w.u32(attributes.w[i]);
  w.w[start + 1] = w.n - start;

  programs++;
  rlx_error e = {};
  rlx_device *device = nullptr;
  rlx_weights *weights = nullptr;
  rlx_program *program = nullptr;
  rlx_program_info info = {};
  const rlx_open_options open = {sizeof open, threads, isa, 0};
  const rlx_constant c = {b.data, uint64_t(b.elems * rlx_dtype_sizes[b.dtype]), 0};
  void *inputs[2] = {a.data, b.data}, *outputs[1] = {y.data}, *host = nullptr;
  rlx_arena *arena = nullptr;
  bool ok = backend->open(0, &open, &device, &e) == RLX_OK && backend->weights_open(device, nullptr, &c, constant ? 1 : 0, &weights, &e) == RLX_OK &&
            backend->load(device, weights, w.w, w.n, &program, &info, &e) == RLX_OK && backend->arena_open(program, &arena, &host, &e) == RLX_OK;
  if (ok) {
    std::memset(host, 0xa5, info.arena_bytes);  // here with the kernels' scratch
    std::memset(y.data, 0xa5, size_t(y.elems * rlx_dtype_sizes[y.dtype]));
    rlx_run_args args = {};
    args.size = sizeof args, args.inputs = inputs, args.outputs = outputs, args.arena = arena, args.error = &e, args.count = info.commands;
    ok = backend->run(program, &args) == RLX_OK;
  }
  if (!ok) fprintf(stderr, "%s\n", e.text);
  if (arena != nullptr) backend->arena_close(arena, &e);
  if (program != nullptr) backend->unload(program, &e);
  if (weights != nullptr) backend->weights_close(weights, &e);
  if (device != nullptr) backend->close(device, &e);
  return ok;
}

// Sum k of element i of y: the elements of a and b of each term.
struct Problem {
  uint32_t op;
  const char *name;
  Tensor a, b, y;
  Words attributes;
  int64_t terms;
  bool (*term)(const Problem &, const int64_t *at, int64_t k, int64_t *in_a, int64_t *in_b);
  int64_t param[10];
  bool chain;  // the bits of sums are known
};

uint64_t integer(const Tensor &t, int64_t i) { return rlx_dtype_sizes[t.dtype] == 4 ? static_cast<uint32_t *>(t.data)[i] : static_cast<uint64_t *>(t.data)[i]; }

// One step of a sum of products of halves: the x86 set without fma rounds twice.
float chain_step(float a, float b, float c) {
#if defined(__x86_64__)
  if (strcmp(isa, "generic") == 0) return a * b + c;
#endif
  return __builtin_fmaf(a, b, c);
}

// The bits of element i of y if v was its sum: NaNs have no bits of their own.
bool rounds_to(const Tensor &y, int64_t i, float v) {
  uint32_t want;
  std::memcpy(&want, &v, 4);
  if (y.dtype == RLX_BF16) want = (want + 0x7fff + (want >> 16 & 1)) >> 16 << 16;
  uint32_t got = y.dtype == RLX_BF16 ? uint32_t(static_cast<uint16_t *>(y.data)[i]) << 16 : static_cast<uint32_t *>(y.data)[i];
  return v != v ? (got & 0x7fffffff) > 0x7f800000 : got == want;
}

void check_chain(const Problem &p, int number) {
  int64_t at[RLX_MAX_RANK] = {};
  for (int64_t i = 0; i < count_of(p.y); i++) {
    float sum = 0;
    for (int64_t k = 0; k < p.terms; k++) {
      int64_t ia, ib;
      if (p.term(p, at, k, &ia, &ib)) sum = chain_step(float(get(p.a, ia)), float(get(p.b, ib)), sum);
    }
    elements++;
    if (!rounds_to(p.y, i, sum)) return fail("other bits than the chain of its terms", p.name, int(p.y.dtype), number);
    for (uint32_t d = p.y.rank; d-- > 0 && ++at[d] == p.y.dims[d];) at[d] = 0;
  }
}

void check(const Problem &p, int number) {
  if (p.chain) return check_chain(p, number);
  const bool whole = p.y.dtype == RLX_I32 || p.y.dtype == RLX_U32 || p.y.dtype == RLX_I64 || p.y.dtype == RLX_U64;
  const double eps = p.a.dtype == RLX_F64 ? 0x1p-53 : 0x1p-24, last = p.y.dtype == RLX_F16 ? 0x1p-11 : p.y.dtype == RLX_BF16 ? 0x1p-8 : 0;
  int64_t at[RLX_MAX_RANK] = {};
  for (int64_t i = 0; i < count_of(p.y); i++) {
    double sum = 0, size = 0;
    uint64_t wrapped = 0;
    for (int64_t k = 0; k < p.terms; k++) {
      int64_t ia, ib;
      if (!p.term(p, at, k, &ia, &ib)) continue;
      if (whole) {
        wrapped += integer(p.a, ia) * integer(p.b, ib);
      } else {
        const double v = get(p.a, ia) * get(p.b, ib);
        sum += v, size += fabs(v);
      }
    }
    elements++;
    if (whole) {
      if (integer(p.y, i) != (rlx_dtype_sizes[p.y.dtype] == 4 ? uint32_t(wrapped) : wrapped)) return fail("a wrong integer", p.name, int(p.y.dtype), number);
    } else if (!(fabs(get(p.y, i) - sum) <= 1.5 * double(p.terms) * eps * size + last * fabs(sum))) {
      return fail("a value outside its bound", p.name, int(p.y.dtype), number);
    }
    for (uint32_t d = p.y.rank; d-- > 0 && ++at[d] == p.y.dims[d];) at[d] = 0;
  }
}

void problem(Problem &p, int number) {
  const size_t bytes = size_t(p.y.elems * rlx_dtype_sizes[p.y.dtype]);
  void *first = malloc(bytes + 1);
  if (!run(p.op, p.a, p.b, p.y, p.attributes, false, 1)) fail("does not run", p.name, int(p.a.dtype), number);
  std::memcpy(first, p.y.data, bytes);
  if (p.term != nullptr) check(p, number);
  for (int threads = 1; threads <= 3; threads++)
    for (int constant = threads == 1; constant < 2; constant++) {
      if (!run(p.op, p.a, p.b, p.y, p.attributes, constant != 0, threads)) fail("does not run", p.name, int(p.a.dtype), number);
      if (std::memcmp(first, p.y.data, bytes) != 0) fail(constant ? "a constant changes bits" : "threads change bits", p.name, int(p.a.dtype), number);
    }
  // Items of the first axis alone. Operand 1 has no such axis here.
  for (int64_t i = 0; p.param[9] == 1 && i < p.y.dims[0]; i++) {
    Tensor a = p.a, y = p.y;
    if (a.elems > 0) a.origin += i * a.strides[0];
    a.dims[0] = y.dims[0] = 1, y.elems = p.y.elems / p.y.dims[0];
    if (!run(p.op, a, p.b, y, p.attributes, true, 1)) fail("an item does not run", p.name, int(p.a.dtype), number);
    const size_t item = bytes / size_t(p.y.dims[0]);
    if (std::memcmp(static_cast<char *>(first) + size_t(i) * item, y.data, item) != 0) fail("an item alone has other bits", p.name, int(p.a.dtype), number);
  }
  free(first), free(p.a.data), free(p.b.data), free(p.y.data);
}

// a [X, M, K] by b [K, N] or [X, K, N].
bool product_term(const Problem &p, const int64_t *at, int64_t k, int64_t *in_a, int64_t *in_b) {
  *in_a = at[0] * p.a.strides[0] + at[1] * p.a.strides[1] + k * p.a.strides[2];
  *in_b = p.b.rank == 2 ? k * p.b.strides[0] + at[2] * p.b.strides[1] : at[0] * p.b.strides[0] + k * p.b.strides[1] + at[2] * p.b.strides[2];
  return true;
}

void products(uint32_t dtype) {
  const int64_t list[][4] = {{1, 1, 1, 1},    {3, 1, 7, 33},  {2, 5, 9, 17},     {4, 14, 65, 32}, {2, 57, 300, 40}, {5, 3, 31, 130},
                             {1, 130, 20, 9}, {2, 33, 1, 64}, {1, 1, 600, 300},  {3, 2, 0, 4},    {2, 8, 40, 1},    {70, 1, 70, 20}};
  for (int i = 0; i < int(sizeof list / sizeof *list); i++)
    for (int form = 0; form < 4; form++) {
      const int64_t *s = list[i], a[3] = {s[0], s[1], s[2]}, b[3] = {s[0], s[2], s[3]}, y[3] = {s[0], s[1], s[3]};
      const bool batched = form == 3;
      Problem p = {};
      p.op = RLX_OP_MatMul, p.name = "MatMul", p.terms = s[2], p.term = product_term;
      p.a = tensor(dtype, 3, a, uint32_t(form == 2 ? 2 : form == 1 ? 1 : 0));
      p.b = batched ? tensor(dtype, 3, b, 0) : tensor(dtype, 2, b + 1, uint32_t(form));
      const bool wide = (dtype == RLX_F16 || dtype == RLX_BF16) && i % 2 == 1;
      p.y = tensor(wide ? uint32_t(RLX_F32) : dtype, 3, y, 0);
      p.attributes.u32(wide ? uint32_t(RLX_F32) : 0u);
      p.param[9] = batched ? 0 : 1;
      problem(p, 10 * i + form);
    }
}

// Elements of an operand: exponents in [low, high] (as stored), some zeros, the bits of spot at one of 8 places; few: mantissas that cancel often.
struct Elements {
  uint32_t low, high;
  bool few;
  uint16_t spot[2];
  bool fades;  // zeros from a quarter of k on
};

void fill_bf16(Tensor &t, const Elements &e, uint32_t k_axis) {
  const int64_t step = t.strides[k_axis], size = t.dims[k_axis];
  for (int64_t i = 0; i < t.elems; i++) {
    const uint32_t r = next(), place = next() % 440;
    uint16_t x = uint16_t((r & (e.few ? 0x8000 : 0x807f)) | (e.few ? r % 3 : 0) | (e.low + (r >> 8) % (e.high - e.low + 1)) << 7);
    if (place % 11 == 0) x &= 0x8000;
    if (place % 8 == 1 && e.spot[0] != 0) x = e.spot[r & 1];
    if (e.fades && i / step % size >= (size + 3) / 4) x = 0;
    static_cast<uint16_t *>(t.data)[i] = x;
  }
}

// bf16 whose sums are chains of fma, to the bit: where no subnormal can arise, where operands, products or sums bring some in, and with infinities
// and NaNs.
void chains() {
  const struct { Elements a, b; } data[] = {
      {{110, 140, false, {}, false}, {100, 130, false, {}, false}},
      {{71, 71, true, {}, false}, {71, 71, true, {}, false}},  // sums down to the least normal number
      {{71, 71, true, {}, false}, {70, 70, true, {}, false}},  // and below
      {{60, 70, false, {}, false}, {60, 70, false, {}, false}},
      {{1, 20, false, {}, false}, {1, 20, false, {}, false}},  // products that vanish but for their signs
      {{1, 254, false, {}, false}, {1, 254, false, {}, false}},
      {{0, 0, false, {}, false}, {150, 200, false, {}, false}},
      {{150, 200, false, {}, false}, {0, 0, false, {}, false}},
      {{55, 60, false, {}, true}, {65, 70, false, {}, false}},
      {{55, 60, false, {}, false}, {65, 70, false, {}, true}},
      {{110, 140, false, {0x0001, 0x8a40}, false}, {100, 130, false, {}, false}},
      {{110, 140, false, {0x7f80, 0xff80}, false}, {100, 130, false, {0x7f80, 0x0000}, false}},
      {{110, 140, false, {0x7fc1, 0x0001}, false}, {100, 130, false, {0xffc2, 0x7f80}, false}},  // NaNs that meet beside subnormals
  };
  const int64_t list[][4] = {{3, 1, 7, 33}, {2, 5, 9, 17}, {2, 31, 300, 40}, {1, 130, 21, 9}, {1, 1, 2101, 70}, {3, 40, 40, 1}, {1, 17, 1100, 80}, {4, 2, 2, 60}, {70, 1, 3, 33}};
  constexpr int shapes = int(sizeof list / sizeof *list);
  // Which of two NaNs the generic set passes on, the compiler chooses, for each height of a tile.
  const int sets = int(sizeof data / sizeof *data) - (strcmp(isa, "generic") == 0);
  for (int n = 0; n < 2 * sets * shapes; n++) {
    const int64_t *s = list[n % shapes], a[3] = {s[0], s[1], s[2]}, b[3] = {s[0], s[2], s[3]}, y[3] = {s[0], s[1], s[3]};
    const int set = n / shapes % sets, form = (n + n / shapes) % 4;
    const bool batched = form == 3, wide = n / shapes >= sets;
    Problem p = {};
    p.op = RLX_OP_MatMul, p.name = "MatMul (chain)", p.terms = s[2], p.term = product_term, p.chain = true;
    p.a = tensor(RLX_BF16, 3, a, uint32_t(form == 2 ? 1 : 0)), p.b = batched ? tensor(RLX_BF16, 3, b, 0) : tensor(RLX_BF16, 2, b + 1, uint32_t(form));
    fill_bf16(p.a, data[set].a, 2), fill_bf16(p.b, data[set].b, batched ? 1 : 0);
    p.y = tensor(wide ? RLX_F32 : RLX_BF16, 3, y, 0);
    p.attributes.u32(wide ? uint32_t(RLX_F32) : 0u);
    p.param[9] = batched ? 0 : 1;
    problem(p, n);
  }
}

// a [X, M, K] f32 by rows of weights in blocks, of any codes and small finite scales. The conformance suite holds the values against the interpreter's.
void packed_products(int64_t scheme) {
  const int64_t list[][4] = {{1, 1, 1, 1}, {6, 1, 3, 7}, {3, 2, 1, 24}, {2, 5, 5, 30}, {1, 60, 2, 13}, {50, 1, 1, 5}};
  const rlx::quant::BlockSize block = rlx::quant::gguf_blocks[scheme];
  for (int i = 0; i < int(sizeof list / sizeof *list); i++) {
    const int64_t *s = list[i], blocks = s[2] * (block.weights == 32 ? 3 : 1), k = blocks * block.weights;
    const int64_t a[3] = {s[0], s[1], k}, b[1] = {s[3] * blocks * block.bytes}, y[3] = {s[0], s[1], s[3]};
    Problem p = {};
    p.op = RLX_OP_DequantMatMul, p.name = "DequantMatMul";
    p.a = tensor(RLX_F32, 3, a, 0), p.b = tensor(RLX_F32, 1, b, 0), p.y = tensor(RLX_F32, 3, y, 0);
    p.b.dtype = RLX_U8;
    for (int64_t j = 0; j < b[0]; j++) static_cast<uint8_t *>(p.b.data)[j] = uint8_t(next() & 0xbf);  // no f16 with the exponent of infinity
    p.attributes.u32(uint32_t(scheme)), p.attributes.i64(0), p.attributes.u32(rlx_WeightLayout_kn), p.attributes.i64(4), p.attributes.u32(rlx_Compute_f32);
    p.param[9] = 1;
    problem(p, 100 * int(scheme) + i);
  }
}

// x [N, C, H, W], w [O, C/groups, h, w]; param: stride 2, dilation 2, begin 2, groups.
bool conv_term(const Problem &p, const int64_t *at, int64_t k, int64_t *in_a, int64_t *in_b) {
  const int64_t kh = p.b.dims[2], kw = p.b.dims[3], c = k / (kh * kw), h = k / kw % kh, w = k % kw;
  const int64_t y = at[2] * p.param[0] + h * p.param[2] - p.param[4], x = at[3] * p.param[1] + w * p.param[3] - p.param[5];
  if (y < 0 || y >= p.a.dims[2] || x < 0 || x >= p.a.dims[3]) return false;
  const int64_t channel = at[1] / (p.b.dims[0] / p.param[6]) * p.b.dims[1] + c;
  *in_a = at[0] * p.a.strides[0] + channel * p.a.strides[1] + y * p.a.strides[2] + x * p.a.strides[3];
  *in_b = at[1] * p.b.strides[0] + c * p.b.strides[1] + h * p.b.strides[2] + w * p.b.strides[3];
  return true;
}

void convolutions(uint32_t dtype) {
  struct { int64_t n, c, h, w, o, kh, kw, sh, sw, dh, dw, pad[4], groups; } list[] = {
      {2, 3, 9, 40, 20, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, 1},  {3, 16, 7, 7, 33, 1, 1, 1, 1, 1, 1, {0, 0, 0, 0}, 1},
      {1, 3, 17, 71, 8, 7, 7, 2, 2, 1, 1, {3, 3, 3, 3}, 1},  {2, 6, 8, 70, 6, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, 6},
      {2, 5, 12, 39, 10, 3, 5, 2, 2, 1, 2, {0, 2, 1, 3}, 5}, {1, 60, 6, 6, 9, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, 1},
      {2, 8, 10, 11, 12, 2, 3, 3, 2, 2, 1, {1, 0, 2, 1}, 4}, {1, 2, 1, 90, 3, 1, 9, 1, 3, 1, 4, {0, 5, 0, 20}, 1},
      {1, 4, 3, 3, 4, 3, 3, 1, 1, 3, 3, {3, 3, 3, 3}, 4},    {2, 700, 3, 5, 40, 1, 1, 1, 1, 1, 1, {0, 0, 0, 0}, 1}};
  for (int i = 0; i < int(sizeof list / sizeof *list); i++)
    for (uint32_t form = 0; form < 4; form++) {
      const auto &s = list[i];
      const int64_t oh = (s.h + s.pad[0] + s.pad[2] - s.dh * (s.kh - 1) - 1) / s.sh + 1, ow = (s.w + s.pad[1] + s.pad[3] - s.dw * (s.kw - 1) - 1) / s.sw + 1;
      const int64_t x[4] = {s.n, s.c, s.h, s.w}, w[4] = {s.o, s.c / s.groups, s.kh, s.kw}, y[4] = {s.n, s.o, oh, ow};
      Problem p = {};
      p.op = RLX_OP_Conv, p.name = "Conv", p.terms = w[1] * s.kh * s.kw, p.term = conv_term;
      p.a = tensor(dtype, 4, x, form), p.b = tensor(dtype, 4, w, form % 2), p.y = tensor(dtype, 4, y, 0);
      const int64_t stride[2] = {s.sh, s.sw}, dilation[2] = {s.dh, s.dw}, param[10] = {s.sh, s.sw, s.dh, s.dw, s.pad[0], s.pad[1], s.groups, 0, 0, 1};
      p.attributes.list(stride, 2), p.attributes.list(dilation, 2), p.attributes.list(s.pad, 4), p.attributes.u32(rlx_AutoPad_none), p.attributes.i64(s.groups);
      std::memcpy(p.param, param, sizeof param);
      problem(p, 10 * i + int(form));
    }
}

}  // namespace

int main() {
  backend = rlx_backend_cpu();
  const char *const sets[] = {"generic", "avx2", "avx512", "neon"};
  const uint32_t dtypes[] = {RLX_F16, RLX_BF16, RLX_F32, RLX_F64, RLX_I32, RLX_U32, RLX_I64, RLX_U64};
  for (const char *set : sets) {
    isa = set;
    rlx_device *device = nullptr;
    rlx_error e = {};
    const rlx_open_options open = {sizeof open, 1, isa, 0};
    if (backend->open(0, &open, &device, &e) != RLX_OK) {
      printf("%s: not executed\n", isa);
      continue;
    }
    backend->close(device, &e);
    for (uint32_t dtype : dtypes) {
      products(dtype);
      if ((RLX_DTYPES_float >> dtype & 1) != 0) convolutions(dtype);
    }
    chains();
    for (int64_t scheme = 0; scheme < rlx::quant::GGUF_SCHEMES; scheme++) packed_products(scheme);
    printf("%s: %ld programs, %ld elements, %ld failures\n", isa, programs, elements, failures);
  }
  return failures != 0;
}
