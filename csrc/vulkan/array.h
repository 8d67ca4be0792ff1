// array.h: a growing array in counted host memory, for plain types. No exceptions: push says whether there was memory.
#pragma once
#include <cstdint>
#include <cstring>

#include "../common/memory.h"

namespace rlx {

template <class T> struct Array {
  T *data = nullptr;
  uint64_t n = 0, room = 0;

  T &operator[](uint64_t i) const { return data[i]; }
  T *begin() const { return data; }
  T *end() const { return data + n; }

  // The memory of k more elements at the end, zeroed; null when there is none.
  T *grow(uint64_t k) {
    if (room - n < k) {
      uint64_t want = room < 8 ? 16 : 2 * room;
      while (want - n < k) want *= 2;
      T *to = static_cast<T *>(memory_alloc(want * sizeof(T)));
      if (to == nullptr) return nullptr;
      if (n != 0) std::memcpy(static_cast<void *>(to), data, n * sizeof(T));
      memory_free(data);
      data = to, room = want;
    }
    T *at = data + n;
    n += k;
    std::memset(static_cast<void *>(at), 0, k * sizeof(T));
    return at;
  }
  bool push(const T &v) {
    T *at = grow(1);
    if (at != nullptr) *at = v;
    return at != nullptr;
  }
  void remove(uint64_t i) {
    std::memmove(static_cast<void *>(data + i), data + i + 1, (n - i - 1) * sizeof(T));
    n--;
  }
  void release() {
    memory_free(data);
    data = nullptr;
    n = room = 0;
  }
};

}  // namespace rlx
