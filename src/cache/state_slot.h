// A leased state slot: the recurrent and convolution states and the boundary hidden row of one sequence or snapshot. Move-only; must
// not outlive its pool. Engine thread only.
#pragma once

#include <cstdint>
#include <utility>

#include "cache/block_pool.h"

namespace espalier {

class StateSlot {
 public:
  StateSlot() = default;
  StateSlot(BlockPool& states, int32_t index) : pool_(&states), index_(index) {}  // takes over the caller's reference
  StateSlot(StateSlot&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), index_(std::exchange(other.index_, -1)) {}
  StateSlot& operator=(StateSlot&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(index_, other.index_);
    return *this;
  }
  ~StateSlot() {
    if (pool_ != nullptr) pool_->drop_reference(index_);
  }

  explicit operator bool() const { return pool_ != nullptr; }
  int32_t index() const { return index_; }

 private:
  BlockPool* pool_ = nullptr;
  int32_t index_ = -1;
};

}  // namespace espalier
