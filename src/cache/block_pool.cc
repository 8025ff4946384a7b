#include "cache/block_pool.h"

#include <algorithm>
#include <utility>

namespace espalier {

Result<BlockPool> BlockPool::create(Backend& backend, MemoryBudget& budget, size_t block_bytes, size_t keep_free) {
  ESPALIER_CHECK(block_bytes > 0);
  const size_t num_blocks = std::min(budget.limit() / block_bytes, size_t{INT32_MAX});
  ESPALIER_ASSIGN(std::unique_ptr<BackendMemory> memory, backend.reserve(num_blocks * block_bytes));  // before any bookkeeping of that size
  BlockPool pool(backend, budget, block_bytes, keep_free);
  pool.memory_ = std::move(memory);
  ESPALIER_ASSIGN(pool.zeros_, backend.reserve(block_bytes));
  return pool;
}

BlockPool::BlockPool(Backend& backend, MemoryBudget& budget, size_t block_bytes, size_t keep_free)
    : backend_(&backend),
      budget_(&budget),
      block_bytes_(block_bytes),
      keep_free_(keep_free),
      references_(std::min(budget.limit() / block_bytes, size_t{INT32_MAX})) {
  // Blocks are given back by destructors: that must not ask for memory. Untouched, this is address space alone.
  warm_.reserve(std::min(keep_free, references_.size()) + 1);
  cold_.reserve(references_.size());
}

std::optional<int32_t> BlockPool::try_take(BlockContent content) {
  int32_t block = -1;
  if (!warm_.empty()) {
    block = warm_.back();
    warm_.pop_back();
    if (content == BlockContent::kZero) clear(block);
  } else {
    if (cold_.empty() && num_ever_used_ == capacity()) return std::nullopt;
    if (!budget_->try_take(block_bytes_)) return std::nullopt;
    if (!cold_.empty()) {
      block = cold_.back();
      cold_.pop_back();
    } else {
      block = num_ever_used_++;
    }
  }
  references_[static_cast<size_t>(block)] = 1;
  ++num_used_;
  return block;
}

void BlockPool::add_reference(int32_t block) {
  int32_t& count = references_[static_cast<size_t>(block)];
  ESPALIER_CHECK(count > 0);
  ++count;
}

void BlockPool::drop_reference(int32_t block) {
  int32_t& count = references_[static_cast<size_t>(block)];
  ESPALIER_CHECK(count > 0);
  if (--count > 0) return;
  --num_used_;
  warm_.push_back(block);
  if (warm_.size() > keep_free_) trim(block_bytes_);
}

void BlockPool::copy(int32_t from, int32_t to) {
  backend_->ops().copy({.from = data() + static_cast<size_t>(from) * block_bytes_,
                        .to = data() + static_cast<size_t>(to) * block_bytes_,
                        .bytes = block_bytes_});
}

size_t BlockPool::trim(size_t bytes) {
  size_t freed = 0;
  if (!warm_.empty()) backend_->synchronize();  // a copy that reads the block may still be on its way
  while (freed < bytes && !warm_.empty()) {
    const int32_t block = warm_.back();
    warm_.pop_back();
    memory_->discard(static_cast<size_t>(block) * block_bytes_, block_bytes_);
    cold_.push_back(block);
    budget_->give_back(block_bytes_);
    freed += block_bytes_;
  }
  return freed;
}

void BlockPool::clear(int32_t block) {
  backend_->ops().copy({.from = zeros_->data(), .to = data() + static_cast<size_t>(block) * block_bytes_, .bytes = block_bytes_});
}

}  // namespace espalier
