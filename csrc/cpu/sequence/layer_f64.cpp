// Lstm, Gru and Rnn of f64: one sequence of one direction at a time, in f64 throughout.
#include "../core/rlx_begin.h"

#include "layer.h"

namespace rlx {
namespace sequence {
namespace {

double sigmoid(double x) { return 1 / (1 + ::exp(-x)); }

struct Job {
  const Call *c;
  Layer l;
};

// One sequence: its state, and the sums of its gates.
struct Sequence {
  const Job *j;
  int64_t d;
  double *z, *inner, *h, *cell;  // [gates * H], [H], [H], [H]

  // Element g of a vector [D, n], 0 where it is absent.
  double vector(int operand, int64_t g) const {
    if (!j->c->has(operand)) return 0;
    const Operand &o = j->c->in(operand);
    return j->c->in_ptr<double>(operand)[d * o.strides[0] + g * o.strides[1]];
  }
  double clipped(double z) const {
    const double c = j->l.clip;
    return c > 0 && z > c ? c : c > 0 && z < -c ? -c : z;
  }
  // Row g of weights w times v, whose elements are step apart.
  double times(int operand, int64_t g, const double *v, int64_t step) const {
    const Operand &o = j->c->in(operand);
    const double *w = j->c->in_ptr<double>(operand) + d * o.strides[0] + g * o.strides[1];
    double sum = 0;
    for (int64_t i = 0; i < o.dims[2]; i++) sum += w[i * o.strides[2]] * v[i * step];
    return sum;
  }
  double recurrent(int64_t g, const double *v) const { return times(2, g, v, 1) + vector(4, g); }

  void lstm() const {
    const int64_t n = j->l.hidden;
    for (int64_t g = 0; g < 4 * n; g++) z[g] += recurrent(g, h);
    for (int64_t k = 0; k < n; k++) {
      const double in = sigmoid(clipped(z[k] + vector(8, k) * cell[k])), forget = sigmoid(clipped(z[n + k] + vector(8, n + k) * cell[k]));
      cell[k] = forget * cell[k] + in * ::tanh(clipped(z[2 * n + k]));
      h[k] = sigmoid(clipped(z[3 * n + k] + vector(8, 2 * n + k) * cell[k])) * ::tanh(cell[k]);
    }
  }
  void gru(bool reset_first) const {
    const int64_t n = j->l.hidden;
    for (int64_t g = 0; g < 2 * n; g++) z[g] = sigmoid(clipped(z[g] + recurrent(g, h)));
    for (int64_t k = 0; k < n; k++) inner[k] = reset_first ? z[k] * h[k] : h[k];
    for (int64_t k = 0; k < n; k++) z[2 * n + k] += (reset_first ? 1 : z[k]) * recurrent(2 * n + k, inner);
    for (int64_t k = 0; k < n; k++) h[k] = (1 - z[n + k]) * ::tanh(clipped(z[2 * n + k])) + z[n + k] * h[k];
  }
  void rnn(bool relu) const {
    for (int64_t k = 0; k < j->l.hidden; k++) z[k] += recurrent(k, h);
    for (int64_t k = 0; k < j->l.hidden; k++) {
      const double v = clipped(z[k]);
      h[k] = !relu ? ::tanh(v) : v < 0 ? 0 : v;
    }
  }
  void step() const {
    switch (j->l.cell) {
      case LSTM: return lstm();
      case GRU: return gru(false);
      case GRU_RESET_FIRST: return gru(true);
      case RNN_TANH: return rnn(false);
      case RNN_RELU: return rnn(true);
    }
  }
};

void read_state(const Call &c, int operand, int64_t d, int64_t b, double *dst, int64_t n) {
  for (int64_t i = 0; i < n; i++) dst[i] = c.has(operand) ? c.in_ptr<double>(operand)[d * c.in(operand).strides[0] + b * c.in(operand).strides[1] + i * c.in(operand).strides[2]] : 0;
}

void run_sequence(const Job &j, int64_t d, int64_t b, double *mem) {
  const Layer &l = j.l;
  const Call &c = *j.c;
  const int64_t n = l.hidden, length = length_at(c, l, b), bytes = n * int64_t(sizeof(double));
  const Sequence s = {&j, d, mem, mem + l.gates * n, mem + (l.gates + 1) * n, mem + (l.gates + 2) * n};
  read_state(c, 5, d, b, s.h, n);
  if (l.cell == LSTM) read_state(c, 6, d, b, s.cell, n);
  const Operand &x = c.in(0);
  double *y = c.out_ptr<double>(0) + b * l.steps * l.dirs * n + d * n;
  for (int64_t k = 0; k < length && !c.stopped(); k++) {
    const int64_t t = l.backward(d) ? length - 1 - k : k;
    const double *xt = c.in_ptr<double>(0) + b * x.strides[0] + t * x.strides[1];
    for (int64_t g = 0; g < l.gates * n; g++) s.z[g] = s.vector(3, g) + s.times(1, g, xt, x.strides[2]);
    s.step();
    std::memcpy(y + t * l.dirs * n, s.h, size_t(bytes));
  }
  for (int64_t t = length; t < l.steps; t++) std::memset(y + t * l.dirs * n, 0, size_t(bytes));
  std::memcpy(c.out_ptr<double>(1) + (d * l.batch + b) * n, s.h, size_t(bytes));
  if (l.cell == LSTM) std::memcpy(c.out_ptr<double>(2) + (d * l.batch + b) * n, s.cell, size_t(bytes));
}

int64_t slot_doubles(const Layer &l) { return (l.gates + 3) * l.hidden; }

void sequences(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  double *mem = static_cast<double *>(j.c->scratch) + slot * slot_doubles(j.l);
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) run_sequence(j, u / j.l.batch, u % j.l.batch, mem);
}

}  // namespace

int32_t layer_f64_prepare(Prepare &prepare) {
  prepare.cmd->scratch = prepare.max_threads * slot_doubles(layer_of(*prepare.cmd)) * int64_t(sizeof(double));
  return RLX_OK;
}

void layer_f64(const Call &c, Range) {
  Job j = {&c, layer_of(*c.cmd)};
  if (!check_lengths(c, j.l) || j.l.hidden == 0) return;
  c.parallel(j.l.dirs * j.l.batch, 1, sequences, &j);
}

}  // namespace sequence
}  // namespace rlx
