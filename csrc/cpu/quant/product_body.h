// product_body.h: tiles of sums of pairs, over vectors of PAIRS pairs. Text for the anonymous namespace of an instruction set, after its
// vq, load_q, store_q, splat_q and add_pairs(c, a, b) = c + the products of pairs.

constexpr int COLUMNS = 2 * PAIRS;

template <int H> void tile(const int32_t *a, int64_t k2, const int32_t *b, int32_t *c) {
  vq sum[H][2];
#pragma GCC unroll 4
  for (int i = 0; i < H; i++) sum[i][0] = sum[i][1] = splat_q(0);
  for (int64_t k = 0; k < k2; k++, b += COLUMNS) {
    const vq u = load_q(b), v = load_q(b + PAIRS);
#pragma GCC unroll 4
    for (int i = 0; i < H; i++) {
      const vq x = splat_q(a[i * k2 + k]);
      sum[i][0] = add_pairs(sum[i][0], x, u);
      sum[i][1] = add_pairs(sum[i][1], x, v);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < H; i++) {
    store_q(c + i * COLUMNS, sum[i][0]);
    store_q(c + i * COLUMNS + PAIRS, sum[i][1]);
  }
}

void finish(const Requant &q, void *y, int64_t at, const int32_t *sums, int n, int64_t channel, int step) {
  const int32_t none = 0;
  const int32_t *bias = q.bias != nullptr ? q.bias + channel : &none;
  const int by = q.bias != nullptr ? step : 0;
  if (q.dtype == RLX_I32) {
    int32_t *to = static_cast<int32_t *>(y) + at;
    for (int j = 0; j < n; j++) to[j] = int32_t(uint32_t(sums[j]) + uint32_t(bias[j * by]));
    return;
  }
  const float *m = q.multipliers != nullptr ? q.multipliers + channel : &q.multiplier;
  const int my = q.multipliers != nullptr ? step : 0;
  uint8_t *to = static_cast<uint8_t *>(y) + at;
  for (int j = 0; j < n; j++) to[j] = uint8_t(to_code(float(int32_t(uint32_t(sums[j]) + uint32_t(bias[j * by]))) * m[j * my], q.zero, q.ends));
}

constexpr TileSet set = {COLUMNS, {nullptr, tile<1>, tile<2>, tile<3>, tile<4>}, finish};
