// loops.h: the loops of f32 (with f16 and bf16 widened to it), written once over the vector types. Text for the anonymous namespace of an
// instruction set, after vec_<isa>.h, vec_math.h and scalar_gen.h. A tail shorter than a vector takes the same path as a whole one.

// The functors stay calls otherwise: where one is used by many functions, every constant would be loaded again.
#define RLX_FLAT __attribute__((flatten))

#define RLX_EACH(n, whole, part)                    \
  int64_t i = 0;                                    \
  for (; i + LANES <= (n); i += LANES) {            \
    whole;                                          \
  }                                                 \
  if (const int left = int((n)-i); left > 0) {      \
    part;                                           \
  }

// Results are stored as Work::stream says. The branch is kept in the loop: two copies of every loop would be worth less.
RLX_FN bool streams(const Work &w, const float *y) { return w.stream && reinterpret_cast<uintptr_t>(y) % (LANES * sizeof(float)) == 0; }
RLX_FN void put(float *y, vf v, bool &past) {
  __asm__("" : "+r"(past));
  if (past) stream(y, v);
  else store(y, v);
}

const float *f32_of(const void *const *in, int k) { return static_cast<const float *>(in[k]); }

// Functions that are one long chain of operations run on N vectors side by side: of(v) takes v[0] to v[N - 1].
template <class F> struct together { static constexpr int N = 1; };

template <class F> RLX_FN int64_t each_together(const float *x, float *y, int64_t n, bool &past) {
  int64_t i = 0;
  if constexpr (together<F>::N > 1)
    for (; i + together<F>::N * LANES <= n; i += together<F>::N * LANES) {
      vf v[together<F>::N];
      for (int k = 0; k < together<F>::N; k++) v[k] = load(x + i + k * LANES);
      together<F>::of(v);
      for (int k = 0; k < together<F>::N; k++) put(y + i + k * LANES, v[k], past);
    }
  return i;
}

template <class F> RLX_FLAT void unary_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  float *y = static_cast<float *>(out);
  const vf alpha = splat<vf>(w.alpha), beta = splat<vf>(w.beta);
  bool past = streams(w, y);
  const int64_t done = each_together<F>(x, y, n, past);
  x += done, y += done, n -= done;
  RLX_EACH(n, put(y + i, F::of(load(x + i), alpha, beta), past), store_part(y + i, F::of(load_part(x + i, left), alpha, beta), left))
}
template <class F> RLX_FLAT void predicate_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0);
  uint8_t *y = static_cast<uint8_t *>(out);
  const vf alpha = splat<vf>(w.alpha), beta = splat<vf>(w.beta);
  RLX_EACH(n, store_b8(y + i, F::of(load(x + i), alpha, beta)), store_b8_part(y + i, F::of(load_part(x + i, left), alpha, beta), left))
}
template <class F> RLX_FLAT void backward_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *x = f32_of(in, 0), *dy = f32_of(in, 1);
  float *y = static_cast<float *>(out);
  const vf alpha = splat<vf>(w.alpha), beta = splat<vf>(w.beta);
  bool past = streams(w, y);
  RLX_EACH(n, put(y + i, F::of(load(x + i), load(dy + i), alpha, beta), past),
           store_part(y + i, F::of(load_part(x + i, left), load_part(dy + i, left), alpha, beta), left))
}
template <class F> RLX_FLAT void binary_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  const float *a = f32_of(in, 0), *b = f32_of(in, 1);
  float *y = static_cast<float *>(out);
  bool past = streams(w, y);
  RLX_EACH(n, put(y + i, F::of(load(a + i), load(b + i)), past), store_part(y + i, F::of(load_part(a + i, left), load_part(b + i, left)), left))
}
template <class F> RLX_FLAT void compare_loop(const Work &, const void *const *in, void *out, int64_t n) {
  const float *a = f32_of(in, 0), *b = f32_of(in, 1);
  uint8_t *y = static_cast<uint8_t *>(out);
  RLX_EACH(n, store_b8(y + i, F::of(load(a + i), load(b + i))),
           store_b8_part(y + i, F::of(load_part(a + i, left), load_part(b + i, left)), left))
}

// Eight vectors go through the whole chain in registers. b(k) is vector k of the operand.
#define RLX_EIGHT(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#define RLX_LINK(f) v0 = f(v0, b(0)), v1 = f(v1, b(1)), v2 = f(v2, b(2)), v3 = f(v3, b(3)), v4 = f(v4, b(4)), v5 = f(v5, b(5)), v6 = f(v6, b(6)), v7 = f(v7, b(7))
#define RLX_TURNED(f) v0 = f(b(0), v0), v1 = f(b(1), v1), v2 = f(b(2), v2), v3 = f(b(3), v3), v4 = f(b(4), v4), v5 = f(b(5), v5), v6 = f(b(6), v6), v7 = f(b(7), v7)
#define RLX_LINKS(one)                                         \
  case one LINK_ADD: RLX_LINK(add); break;                     \
  case one LINK_SUB: RLX_LINK(sub); break;                     \
  case one LINK_MUL: RLX_LINK(mul); break;                     \
  case one LINK_TURNED_ADD: RLX_TURNED(add); break;            \
  case one LINK_TURNED_SUB: RLX_TURNED(sub); break;            \
  case one LINK_TURNED_MUL: RLX_TURNED(mul); break;

// max(v, 0), to the bit, in two steps.
RLX_FN vf relu_link(vf v) { return select(le(v, splat<vf>(0.0)), splat<vf>(0.0), v); }
RLX_FN void tanh_link(vf &a, vf &b, vf &c, vf &d) {
  vf v[4] = {a, b, c, d};
  tanh_of<4>(v);
  a = v[0], b = v[1], c = v[2], d = v[3];
}
// Runs the function of a call over n elements of v, with p the other operand, if it takes one.
RLX_FN void call_link(const ChainLink &l, float *v, const float *p, int64_t n) {
  const void *in[MAX_IN] = {v, p, p};
  if (l.link == LINK_TURNED_CALL) in[0] = p, in[1] = v;
  l.call->loop(*l.call, in, v, n);
}
float *place_of(const void *const *in, int k) { return static_cast<float *>(const_cast<void *>(in[k])); }

constexpr int LINK_HALF = 48;  // in a block, of LINK_ROW: four vectors are of a row, four of the next

// The rows of eight vectors, the first of which begins at element i. Returns what links of rows are here; row has the row of the first vector,
// and where they stay links of rows that of each.
RLX_FN int rows_of_block(const Chain &c, const void *const *in, int64_t i, int64_t *row) {
  int64_t at = i + *static_cast<const int64_t *>(in[MAX_LINKS + 1]), r = at / c.row;
  at -= r * c.row;
  row[0] = r;
  if (at + 8 * LANES <= c.row) return LINK_ONE;
  if (at + 4 * LANES == c.row) return LINK_HALF;
  for (int k = 0; k < 8; k++) {
    row[k] = r;
    if ((at += LANES) == c.row) at = 0, r++;
  }
  return LINK_ROW;
}

// HOLDS: with the second value. It takes eight registers, and stays in them where no function is called.
template <bool HOLDS> void chain_block(const Chain &c, const void *const *in, float *y, int64_t i, bool past) {
  const float *x = f32_of(in, 0) + i;
  if (past)  // long calls keep the processor from seeing the next loads
    for (int k = 0; k < 8; k++) __builtin_prefetch(x + (24 + k) * LANES);
  vf v0 = load(x), v1 = load(x + LANES), v2 = load(x + 2 * LANES), v3 = load(x + 3 * LANES);
  vf v4 = load(x + 4 * LANES), v5 = load(x + 5 * LANES), v6 = load(x + 6 * LANES), v7 = load(x + 7 * LANES);
  vf w0 = v0, w1 = v1, w2 = v2, w3 = v3, w4 = v4, w5 = v5, w6 = v6, w7 = v7;
  alignas(64) int64_t row[8];
  const int rows = c.row > 0 ? rows_of_block(c, in, i, row) : LINK_ROW;
  const ChainLink *l = c.link;
  for (int k = 0, links = c.links; k < links; k++, l++) {
    int link = l->link;
    float *p = place_of(in, k + 1) + i;
    if (link >= LINK_ONE && link < LINK_HELD) {
      p -= i;
      if (link >= LINK_ROW && rows != LINK_ROW) link += rows - LINK_ROW, p += row[0] * l->step;
    }
    switch (link) {
#define b(k) load(p + (k) * LANES)
      RLX_LINKS()
#undef b
#define b(k) splat<vf>(double(p[0]))
      RLX_LINKS(LINK_ONE +)
#undef b
#define b(j) splat<vf>(double(p[row[j] * l->step]))
      RLX_LINKS(LINK_ROW +)
#undef b
#define b(k) splat<vf>(double(p[(k) / 4 * l->step]))
      RLX_LINKS(LINK_HALF +)
#undef b
#define b(k) (HOLDS ? w##k : v##k)
      RLX_LINKS(LINK_HELD +)
#undef b
#define hold_vector(k) w##k = v##k;
#define swap_vector(k) { const vf t = w##k; w##k = v##k; v##k = t; }
      case LINK_HOLD:
        if constexpr (HOLDS) { RLX_EIGHT(hold_vector) }
        break;
      case LINK_SWAP:
        if constexpr (HOLDS) { RLX_EIGHT(swap_vector) }
        break;
#undef hold_vector
#undef swap_vector
#define square_vector(k) v##k = mul(v##k, v##k);
      case LINK_SQUARE: RLX_EIGHT(square_vector) break;
#undef square_vector
#define put_vector(k) store(to + (k) * LANES, v##k);
#define get_vector(k) v##k = load(from + (k) * LANES);
      case LINK_TAKE: {
        const float *from = p;
        RLX_EIGHT(get_vector)
        break;
      }
      case LINK_KEEP: {
        float *to = p;
        RLX_EIGHT(put_vector)
        break;
      }
      case LINK_CALL:
      case LINK_TURNED_CALL:
        if constexpr (!HOLDS) {
          alignas(64) float held[8 * LANES];
          float *to = held;
          const float *from = held;
          RLX_EIGHT(put_vector)
          call_link(*l, held, p, 8 * LANES);
          RLX_EIGHT(get_vector)
        }
        break;
#undef put_vector
#undef get_vector
      case LINK_TANH:
        if constexpr (!HOLDS) tanh_link(v0, v1, v2, v3), tanh_link(v4, v5, v6, v7);
        break;
#define relu_vector(k) v##k = relu_link(v##k);
      case LINK_RELU: RLX_EIGHT(relu_vector) break;
#undef relu_vector
      default: __builtin_unreachable();  // a chain has no other links
    }
  }
  put(y, v0, past), put(y + LANES, v1, past), put(y + 2 * LANES, v2, past), put(y + 3 * LANES, v3, past);
  put(y + 4 * LANES, v4, past), put(y + 5 * LANES, v5, past), put(y + 6 * LANES, v6, past), put(y + 7 * LANES, v7, past);
}
void repeat_rows(float *to, const float *x, int64_t step, int64_t head, int64_t row, int64_t n) {
  for (int64_t m = head < n ? head : n; n > 0; to += m, n -= m, m = row < n ? row : n, x += step) {
    int32_t word;
    std::memcpy(&word, x, sizeof word);
    const vf v = from_bits(splat_i(word));
    RLX_EACH(m, store(to + i, v), store_part(to + i, v, left))
  }
}
// The same for n <= 8 * LANES elements, the values in memory: a short run costs its links once, not once for each vector.
void chain_rest(const Chain &c, const void *const *in, float *y, int64_t i, int n) {
  alignas(64) float v[8 * LANES];
  const int whole = n / LANES * LANES, left = n - whole;
  const float *x = f32_of(in, 0) + i;
#define RLX_REST(value)                                                          \
  {                                                                              \
    for (int j = 0; j < whole; j += LANES) {                                     \
      const vf a = load(v + j), b = load(p + j);                                 \
      store(v + j, value);                                                       \
    }                                                                            \
    if (left > 0) {                                                              \
      const vf a = load(v + whole), b = load_part(p + whole, left);              \
      store(v + whole, value);                                                   \
    }                                                                            \
    break;                                                                       \
  }
  for (int j = 0; j < whole; j += LANES) store(v + j, load(x + j));
  if (left > 0) store(v + whole, load_part(x + whole, left));
  alignas(64) float spread[8 * LANES], w[8 * LANES];
  const ChainLink *l = c.link;
  for (int k = 0, links = c.links; k < links; k++, l++) {
    float *p = place_of(in, k + 1) + i;
    if (l->link >= LINK_HELD) {
      p = w;
    } else if (l->link >= LINK_ROW) {
      int64_t at = i + *static_cast<const int64_t *>(in[MAX_LINKS + 1]), r = at / c.row;
      at -= r * c.row;
      p -= i;
      for (int j = 0; j < n; j++) {
        spread[j] = p[r * l->step];
        if (++at == c.row) at = 0, r++;
      }
      p = spread;
    } else if (l->link >= LINK_ONE) {
      repeat_rows(spread, p - i, 0, n, n, n);
      p = spread;
    }
    switch (l->link & (LINK_ONE - 1)) {
      case LINK_ADD: RLX_REST(add(a, b))
      case LINK_SUB: RLX_REST(sub(a, b))
      case LINK_MUL: RLX_REST(mul(a, b))
      case LINK_TURNED_ADD: RLX_REST(add(b, a))
      case LINK_TURNED_SUB: RLX_REST(sub(b, a))
      case LINK_TURNED_MUL: RLX_REST(mul(b, a))
      case LINK_TAKE: std::memcpy(v, p, size_t(n) * sizeof(float)); break;
      case LINK_KEEP: std::memcpy(p, v, size_t(n) * sizeof(float)); break;
      case LINK_HOLD: std::memcpy(w, v, size_t(n) * sizeof(float)); break;
      case LINK_SWAP:
        for (int j = 0; j < n; j++) std::swap(v[j], w[j]);
        break;
      case LINK_SQUARE:
        for (int j = 0; j < n; j += LANES) store(v + j, mul(load(v + j), load(v + j)));
        break;
      case LINK_CALL:
      case LINK_TURNED_CALL: call_link(*l, v, p, n); break;
      case LINK_TANH:
        for (int j = 0; j < n; j += LANES) store(v + j, tanh(load(v + j)));
        break;
      default:
        for (int j = 0; j < n; j += LANES) store(v + j, relu_link(load(v + j)));
    }
  }
#undef RLX_REST
  std::memcpy(y, v, size_t(n) * sizeof(float));
}
void chain_loop(const Work &w, const void *const *in, void *out, int64_t n) {
  float *y = static_cast<float *>(out);
  const bool past = streams(w, y);
  int64_t i = 0;
  const auto block = w.chain->holds ? chain_block<true> : chain_block<false>;
  for (; i + 8 * LANES <= n; i += 8 * LANES) block(*w.chain, in, y + i, i, past);
  if (i < n) chain_rest(*w.chain, in, y + i, i, int(n - i));
}
