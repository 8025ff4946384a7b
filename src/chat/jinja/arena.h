// Memory of one rendering. Everything a template computes lives here until the rendering ends, so values are plain copies without
// reference counts, and one number bounds what a hostile template can take. Used by one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "chat/jinja/error.h"

namespace espalier::jinja {

class Arena {
 public:
  explicit Arena(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Bytes aligned for any value. Fails with kLimit when the rendering would exceed its memory bound.
  void* allocate(size_t bytes);
  // Counts memory held elsewhere (text builders) against the same bound.
  void account(size_t bytes);

  template <typename T>
  T* create(T value) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T))) T(value);
  }
  // `count` default-constructed elements.
  template <typename T>
  std::span<T> array(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count > max_bytes_ / sizeof(T)) account(max_bytes_);
    T* items = static_cast<T*>(allocate(count * sizeof(T)));
    for (size_t i = 0; i < count; ++i) new (items + i) T();
    return {items, count};
  }
  std::string_view copy(std::string_view bytes);
  // a followed by b. When `a` is the newest text of the arena it is extended in place, so a chain of n concatenations copies each byte
  // once. Older views of `a` stay valid: only bytes behind them are written.
  std::string_view join(std::string_view a, std::string_view b);

 private:
  char* reserve_text(size_t bytes);

  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
    size_t used = 0;
  };
  std::vector<Block> objects_;
  std::vector<Block> texts_;
  size_t max_bytes_;
  size_t total_bytes_ = 0;
};

}  // namespace espalier::jinja
