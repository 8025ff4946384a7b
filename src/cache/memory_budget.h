// The one number that pages and states share. Bytes held never exceed the limit; bytes promised to admitted sequences are kept
// available for them. Engine thread only.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace espalier {

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit_bytes) : limit_(limit_bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  size_t limit() const { return limit_; }
  size_t held() const { return held_; }          // backed by memory: in use or kept for quick reuse
  size_t promised() const { return promised_; }  // may still be asked for by running sequences
  size_t peak() const { return peak_; }          // the most ever held

  bool try_take(size_t bytes) {
    if (bytes > limit_ - held_) return false;
    held_ += bytes;
    if (held_ > peak_) peak_ = held_;
    return true;
  }
  void give_back(size_t bytes) {
    ESPALIER_CHECK(bytes <= held_);
    held_ -= bytes;
  }

 private:
  friend class BudgetPromise;
  size_t limit_;
  size_t held_ = 0;
  size_t promised_ = 0;
  size_t peak_ = 0;
};

// What an admitted sequence may still take: its computed worst case minus what it has taken. The rest lapses with the handle.
class BudgetPromise {
 public:
  BudgetPromise() = default;
  BudgetPromise(MemoryBudget& budget, size_t bytes) : budget_(&budget), bytes_(bytes) { budget.promised_ += bytes; }
  BudgetPromise(BudgetPromise&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  BudgetPromise& operator=(BudgetPromise&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BudgetPromise() {
    if (budget_ != nullptr) budget_->promised_ -= bytes_;
  }

  size_t bytes() const { return bytes_; }
  void use(size_t bytes) {
    ESPALIER_CHECK(bytes <= bytes_);
    bytes_ -= bytes;
    budget_->promised_ -= bytes;
  }

 private:
  MemoryBudget* budget_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace espalier
