// Sample: an id per row of logits, one worker to a row, all in f64. The operations and their order are those of the reference interpreter, so
// that ids agree wherever exp does.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "../reduce/lines.h"
#include "../rng/rng.h"
#include "order.h"

namespace rlx {
namespace sort {
namespace {

constexpr int64_t WORK = 1 << 12;  // logits of a piece of work

enum { LOGITS, U, TEMPERATURE, STEP };  // operands

// ---- logits

struct f16_logits : f16_key {
  static double value(uint16_t b) { return elementwise::f64_from_f16(b); }
};
struct bf16_logits : bf16_key {
  static double value(uint16_t b) { return elementwise::f64_from_bf16(b); }
};
struct f32_logits : f32_key {
  static double value(uint32_t b) {
    float f;
    std::memcpy(&f, &b, 4);
    return double(f);
  }
};
struct f64_logits : f64_key {
  static double value(uint64_t b) { return elementwise::f64_of_bits(b); }
};

double float_at(const Call &c, int k, int64_t i) {
  switch (c.in(k).dtype) {
    case RLX_F16: return elementwise::f64_from_f16(c.in_ptr<uint16_t>(k)[i]);
    case RLX_BF16: return elementwise::f64_from_bf16(c.in_ptr<uint16_t>(k)[i]);
    case RLX_F64: return c.in_ptr<double>(k)[i];
    default: return double(c.in_ptr<float>(k)[i]);
  }
}

// ---- operands with a number per row

// Calls f(number, value) for the elements of operand k until it returns false.
template <class F> bool each(const Call &c, int k, F f) {
  const Operand &o = c.in(k);
  int64_t strides[1][RLX_MAX_RANK];
  for (uint32_t d = 0; d < o.rank; d++) strides[0][d] = o.strides[d];
  int64_t r = 0;
  for (Walk<1> w(o.dims, int(o.rank), strides, 0, o.count); w.next();)
    for (int64_t i = 0; i < w.n; i++)
      if (!f(r++, float_at(c, k, w.at[0] + i * w.step[0]))) return false;
  return true;
}

bool check_operands(const Call &c) {
  if (c.has(TEMPERATURE) && !each(c, TEMPERATURE, [&](int64_t r, double v) {
        const bool ok = v >= 0 && v < double(INFINITY);
        if (!ok) c.fail("C2", "temperature %lld is %g, expected a finite number >= 0", static_cast<long long>(r), v);
        return ok;
      }))
    return false;
  return !c.has(U) || each(c, U, [&](int64_t r, double v) {
    const bool ok = v >= 0 && v < 1;
    if (!ok) c.fail("C3", "u %lld is %g, expected in [0, 1)", static_cast<long long>(r), v);
    return ok;
  });
}

// The draws of a node without u: element r of RngUniform's f32 numbers of [0, 1).
struct Draws {
  rng::Stream stream;
  int64_t unit = -1;
  uint32_t words[rng::WORDS];

  double at(int64_t r) {
    if (r / rng::WORDS != unit) rng::stream_words(stream, unit = r / rng::WORDS, words);
    return double(words[r % rng::WORDS] >> 8) * 0x1p-24;
  }
};

// ---- rows

struct Job {
  const Call *call;
  const rlx_SampleAttrs *a;
  rng::Stream stream;
  int rank;  // of the rows
  int64_t strides[3][RLX_MAX_RANK] = {};
  int64_t n, step;
};

bool cuts(const rlx_SampleAttrs &a, int64_t n) { return a.top_k > 0 && a.top_k < n; }
bool needs_order(const rlx_SampleAttrs &a, int64_t n) { return cuts(a, n) || a.top_p < 1; }
int64_t kept(const rlx_SampleAttrs &a, int64_t n) { return cuts(a, n) ? a.top_k : n; }
int64_t probability_bytes(int64_t n) { return (n + 7) / 8 * 64; }

// Every eighth element, then the eight sums in pairs, then what is left.
double sum_of_lanes(const Call &c, const double *p, int64_t n) {
  double lane[8] = {};
  const int64_t whole = n & ~int64_t(7);
  in_pieces(c, 0, whole, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += 8)
      for (int k = 0; k < 8; k++) lane[k] += p[i + k];
  });
  double sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
  for (int64_t i = whole; i < n; i++) sum += p[i];
  return sum;
}

void scale(const Call &c, double *p, int64_t n) {
  const double sum = sum_of_lanes(c, p, n);
  in_pieces(c, 0, n, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) p[i] /= sum;
  });
}

// The least i with p_0 + .. + p_i > u; if rounding leaves none, the last with p > 0; -1 if the run was stopped.
int64_t drawn(const Call &c, const double *p, int64_t n, double u) {
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < n; i++) {
    if (i % POLL == POLL - 1 && c.stopped()) return -1;
    if (p[i] == 0) continue;
    if ((sum += p[i]) > u) return i;
    last = i;
  }
  return last;
}

template <class K, class O> struct Sampler {
  typedef typename K::T T;
  typedef typename O::E E;

  const Job &j;
  double *p;
  E *room;

  // The place of the greatest logit, the first of equal ones; -1 where the row breaks C1 or the run was stopped.
  int64_t greatest(const T *x, int64_t row) const {
    double most = -double(INFINITY);
    int64_t best = -1;
    for (int64_t i = 0; i < j.n; i++) {
      if (i % POLL == POLL - 1 && j.call->stopped()) return -1;
      const double v = K::value(x[i * j.step]);
      if (!(v < double(INFINITY))) {
        j.call->fail("C1", "logits of row %lld hold %s at %lld, expected finite numbers or -inf", static_cast<long long>(row), v != v ? "NaN" : "+Inf", static_cast<long long>(i));
        return -1;
      }
      if (v > most) most = v, best = i;
    }
    if (best < 0) j.call->fail("C1", "logits of row %lld hold nothing above -inf", static_cast<long long>(row));
    return best;
  }

  // p of the first `kept` ids in order, scaled, and again after all but the first whose sum reaches top_p are taken out.
  bool keep_top(const T *x, double most, double t) const {
    const int64_t k = kept(*j.a, j.n);
    const E *e = Order<K, O>{x, j.step, j.n, k, true, j.call}.first(room);
    if (e == nullptr) return false;
    in_pieces(*j.call, 0, j.n, [&](int64_t begin, int64_t end) { std::memset(p + begin, 0, size_t(end - begin) * sizeof(double)); });
    for (int64_t r = 0; r < k; r++) {
      if (r % POLL == POLL - 1 && j.call->stopped()) return false;
      const int64_t i = O::place(e[r]);
      p[i] = ::exp((K::value(x[i * j.step]) - most) / t);
    }
    scale(*j.call, p, j.n);
    if (!(j.a->top_p < 1)) return true;
    double sum = 0;
    bool cut = false;
    for (int64_t r = 0; r < k; r++) {
      if (r % POLL == POLL - 1 && j.call->stopped()) return false;
      double &v = p[O::place(e[r])];
      sum += v;
      cut = cut || (r > 0 && sum - v >= j.a->top_p);
      if (cut) v = 0;
    }
    scale(*j.call, p, j.n);
    return true;
  }

  // The id of a row; -1 if the run ends here.
  int64_t row(const T *x, int64_t number, double t, double u) const {
    const int64_t best = greatest(x, number);
    if (best < 0 || t == 0) return best;
    const double most = K::value(x[best * j.step]);
    if (needs_order(*j.a, j.n)) return keep_top(x, most, t) ? drawn(*j.call, p, j.n, u) : -1;
    in_pieces(*j.call, 0, j.n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) p[i] = ::exp((K::value(x[i * j.step]) - most) / t);
    });
    scale(*j.call, p, j.n);
    return drawn(*j.call, p, j.n, u);
  }

  static void rows(void *ctx, int64_t begin, int64_t end, int slot) {
    const Job &j = *static_cast<const Job *>(ctx);
    const Call &c = *j.call;
    char *const memory = slot_memory(c, slot);
    const Sampler s{j, reinterpret_cast<double *>(memory), reinterpret_cast<E *>(memory + probability_bytes(j.n))};
    Draws draws;
    draws.stream = j.stream;
    int64_t r = begin;
    for (Walk<3> w(c.in(LOGITS).dims, j.rank, j.strides, begin, end); w.next();)
      for (int64_t i = 0; i < w.n; i++, r++) {
        if (c.stopped()) return;
        const double t = c.has(TEMPERATURE) ? float_at(c, TEMPERATURE, w.at[2] + i * w.step[2]) : j.a->temperature;
        const double u = c.has(U) ? float_at(c, U, w.at[1] + i * w.step[1]) : draws.at(r);
        const int64_t id = s.row(c.in_ptr<T>(LOGITS) + w.at[0] + i * w.step[0], r, t, u);
        if (id < 0) return;
        put_index(c.out_data[0], c.out(0).dtype, r, id);
      }
  }

  static void run(Job &j) {
    const Split s = split_lines(j.call->out(0).count, j.n, WORK);
    parallel(j.call->pool(), num_slots(*j.call), s.units, s.grain, rows, &j, j.call->cancel());
  }
};

template <class K> void run_as(Job &j) {
  if (is_short(j.call->in(LOGITS).dtype, j.n)) return Sampler<K, Short>::run(j);
  return Sampler<K, Long>::run(j);
}

}  // namespace

int32_t sample_prepare(Prepare &q) {
  const rlx_SampleAttrs &a = *static_cast<const rlx_SampleAttrs *>(q.cmd->attrs);
  const Operand &x = q.cmd->in[LOGITS];
  const int64_t n = x.dims[x.rank - 1];
  ask_slots(q, q.cmd->out[0].count, probability_bytes(n) + (needs_order(a, n) ? room_bytes(x.dtype, n, kept(a, n)) : 0));
  return RLX_OK;
}

// Contract: f64 throughout, exp of libm; running sums go over ascending ids.
void sample(const Call &c, Range) {
  if (!check_operands(c)) return;
  const Operand &x = c.in(LOGITS);
  Job j;
  j.call = &c, j.a = &c.attrs<rlx_SampleAttrs>();
  j.stream = rng::stream_of(c, j.a->seed, uint64_t(j.a->key), STEP);
  j.rank = int(x.rank) - 1, j.n = x.dims[j.rank], j.step = x.strides[j.rank];
  for (int d = 0; d < j.rank; d++) {
    j.strides[0][d] = x.strides[d];
    if (c.has(U)) j.strides[1][d] = c.in(U).strides[d];
    if (c.has(TEMPERATURE) && c.in(TEMPERATURE).rank > 0) j.strides[2][d] = c.in(TEMPERATURE).strides[d];
  }
  switch (x.dtype) {
    case RLX_F16: return run_as<f16_logits>(j);
    case RLX_BF16: return run_as<bf16_logits>(j);
    case RLX_F32: return run_as<f32_logits>(j);
    default: return Sampler<f64_logits, Long>::run(j);
  }
}

}  // namespace sort
}  // namespace rlx
