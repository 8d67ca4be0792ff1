// Index operands: reading, checking, and the errors X2 asks for.
#include "../core/rlx_begin.h"

#include <stdio.h>
#include <stdlib.h>

#include "index.h"

namespace rlx {
namespace index {
namespace {

template <class T> RLX_FN int64_t to_index(T v) { return int64_t(v); }
template <> RLX_FN int64_t to_index(uint64_t v) { return v >> 63 != 0 ? INT64_MAX : int64_t(v); }
template <> RLX_FN int64_t to_index(float v) {
  if (v >= 0x1p63f && v < INFINITY) return INT64_MAX;
  if (!(v >= -0x1p63f && v < 0x1p63f)) return NO_INDEX;
  const int64_t i = int64_t(v);
  return float(i) == v ? i : NO_INDEX;
}

template <class T> void line(const void *data, int64_t at, int64_t step, int64_t n, int64_t *out) {
  const T *x = static_cast<const T *>(data) + at;
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) out[i] = to_index(x[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = to_index(x[i * step]);
  }
}

// Where element i of o lies, in elements.
int64_t place(const Operand &o, int64_t i) {
  int64_t at = 0;
  for (int d = int(o.rank) - 1; d >= 0; d--) at += i % o.dims[d] * o.strides[d], i /= o.dims[d];
  return at;
}

// The shortest digits that read back as v, in the form of %e from 10^6 on and below 10^-4: what Go's %v prints, on which errors agree.
void show(double v, char *text, size_t size) {
  if (v != v || v - v != 0) {
    snprintf(text, size, "%s", v != v ? "NaN" : v > 0 ? "+Inf" : "-Inf");
    return;
  }
  int digits = 0;
  do snprintf(text, size, "%.*e", digits, v);
  while (strtod(text, nullptr) != v && ++digits < 17);
  const char *e = std::strchr(text, 'e');
  const int exponent = e == nullptr ? 0 : atoi(e + 1);
  if (exponent >= -4 && exponent < 6) snprintf(text, size, "%.*f", digits > exponent ? digits - exponent : 0, v);
}

}  // namespace

void read_line(uint32_t dtype, const void *data, int64_t at, int64_t step, int64_t n, int64_t *out) {
  switch (dtype) {
    case RLX_I8: return line<int8_t>(data, at, step, n, out);
    case RLX_I16: return line<int16_t>(data, at, step, n, out);
    case RLX_I32: return line<int32_t>(data, at, step, n, out);
    case RLX_I64: return line<int64_t>(data, at, step, n, out);
    case RLX_U8: return line<uint8_t>(data, at, step, n, out);
    case RLX_U16: return line<uint16_t>(data, at, step, n, out);
    case RLX_U32: return line<uint32_t>(data, at, step, n, out);
    case RLX_U64: return line<uint64_t>(data, at, step, n, out);
    default: return line<float>(data, at, step, n, out);
  }
}

void read_indices(const Operand &o, const void *data, int64_t begin, int64_t end, int64_t *out) {
  if (o.contiguous) return read_line(o.dtype, data, begin, 1, end - begin, out);
  int64_t strides[1][RLX_MAX_RANK];
  for (int d = 0; d < int(o.rank); d++) strides[0][d] = o.strides[d];
  for (Walk<1> w(o, strides, begin, end); w.next(); out += w.n) read_line(o.dtype, data, w.at[0], w.step[0], w.n, out);
}

bool fail_fraction(const Call &c, int k, int64_t i) {
  const Operand &o = c.in(k);
  if (o.dtype != RLX_F32) return false;
  const float v = c.in_ptr<float>(k)[place(o, i)];
  if (v == truncf(v) && v - v == 0) return false;
  char text[64];
  show(double(v), text, sizeof text);
  c.fail("C8", "index %s is not an integer", text);
  return true;
}

void fail_index(const Call &c, int k, int64_t i, int64_t d) {
  if (fail_fraction(c, k, i)) return;
  const Operand &o = c.in(k);
  const int64_t at = place(o, i);
  char text[64];
  if (o.dtype == RLX_U64) {
    snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(c.in_ptr<uint64_t>(k)[at]));
  } else if (o.dtype == RLX_F32) {
    show(double(c.in_ptr<float>(k)[at]), text, sizeof text);
  } else {
    int64_t v;
    read_line(o.dtype, c.in_data[k], at, 1, 1, &v);
    snprintf(text, sizeof text, "%lld", static_cast<long long>(v));
  }
  c.fail("C7", "index %s, expected in [-%lld, %lld)", text, static_cast<long long>(d), static_cast<long long>(d));
}

bool load_indices(const Call &c, int k, int64_t d, int64_t scale, int64_t *out) {
  const Operand &o = c.in(k);
  const void *data = c.in_data[k];
  FirstBad bad;
  each(c, o.count, READ_GRAIN, [&](int64_t begin, int64_t end) {
    read_indices(o, data, begin, end, out + begin);
    const int64_t at = begin + wrap_indices(out + begin, end - begin, d);
    if (at < end) return bad.found(at);
    if (scale != 1)
      for (int64_t i = begin; i < end; i++) out[i] *= scale;
  });
  if (bad.any()) fail_index(c, k, bad.at(), d);
  return !c.stopped();
}

bool check_indices(const Call &c, int k, int64_t d) {
  const Operand &o = c.in(k);
  FirstBad bad;
  each(c, o.count, READ_GRAIN, [&](int64_t begin, int64_t end) {
    int64_t v[CHUNK];
    for (int64_t at = begin; at < end; at += CHUNK) {
      const int64_t n = end - at < CHUNK ? end - at : CHUNK;
      read_indices(o, c.in_data[k], at, at + n, v);
      const int64_t wrong = wrap_indices(v, n, d);
      if (wrong < n) return bad.found(at + wrong);
    }
  });
  if (bad.any()) fail_index(c, k, bad.at(), d);
  return !c.stopped();
}

bool load_tuples(const Call &c, int k, int lead, const int64_t *dims, const int64_t *strides, int64_t *out) {
  const Operand &o = c.in(k);
  const void *data = c.in_data[k];
  const int q = int(o.rank) - 1;
  const int64_t size = o.dims[q], tuples = product(o.dims, 0, q);
  FirstBad bad;
  each(c, tuples, READ_GRAIN / size, [&](int64_t begin, int64_t end) {
    int64_t v[CHUNK];
    for (int64_t at = begin; at < end; at += CHUNK / size) {
      const int64_t n = end - at < CHUNK / size ? end - at : CHUNK / size;
      read_indices(o, data, at * size, (at + n) * size, v);
      for (int64_t t = 0; t < n; t++) {
        int64_t sum = 0, rest = at + t;
        for (int64_t j = 0; j < size; j++) {
          const int64_t d = dims[lead + j], i = v[t * size + j] < 0 ? v[t * size + j] + d : v[t * size + j];
          if (uint64_t(i) >= uint64_t(d)) return bad.found((at + t) * size + j);
          sum += i * strides[lead + j];
        }
        for (int j = q - 1; j >= 0 && lead > 0; j--) {
          if (j < lead) sum += rest % o.dims[j] * strides[j];
          rest /= o.dims[j];
        }
        out[at + t] = sum;
      }
    }
  });
  if (bad.any()) fail_index(c, k, bad.at(), dims[lead + bad.at() % size]);
  return !c.stopped();
}

}  // namespace index
}  // namespace rlx
