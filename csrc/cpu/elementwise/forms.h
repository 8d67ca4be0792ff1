// forms.h: f32, f16 and bf16 in memory, as vectors of f32. Text for the namespace of an instruction set: see loops.h.

struct f32_form {
  typedef float type;
  static RLX_FN vf get(const float *p) { return load(p); }
  static RLX_FN vf get_part(const float *p, int n) { return load_part(p, n); }
  static RLX_FN void put(float *p, vf x) { store(p, x); }
  static RLX_FN void put_part(float *p, vf x, int n) { store_part(p, x, n); }
};
struct f16_form {
  typedef uint16_t type;
  static RLX_FN vf get(const uint16_t *p) { return load_f16(p); }
  static RLX_FN vf get_part(const uint16_t *p, int n) { return load_f16_part(p, n); }
  static RLX_FN void put(uint16_t *p, vf x) { store_f16(p, x); }
  static RLX_FN void put_part(uint16_t *p, vf x, int n) { store_f16_part(p, x, n); }
};
struct bf16_form {
  typedef uint16_t type;
  static RLX_FN vf get(const uint16_t *p) { return load_bf16(p); }
  static RLX_FN vf get_part(const uint16_t *p, int n) { return load_bf16_part(p, n); }
  static RLX_FN void put(uint16_t *p, vf x) { store_bf16(p, x); }
  static RLX_FN void put_part(uint16_t *p, vf x, int n) { store_bf16_part(p, x, n); }
};
