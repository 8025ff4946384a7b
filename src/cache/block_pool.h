// Equal blocks of backend memory named by index: KV pages in one pool, state slots in another. Blocks are reference counted; memory
// comes with first use and goes back to the system when a freed block is not among the few kept for quick reuse. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "cache/memory_budget.h"

namespace espalier {

enum class BlockContent {
  kZero,     // reads as zero: a fresh page or state never shows what an earlier sequence left
  kUnknown,  // the taker overwrites all of it
};

class BlockPool {
 public:
  // Reserves addresses for as many blocks as the budget could ever hold. At most `keep_free` freed blocks keep their memory.
  static Result<BlockPool> create(Backend& backend, MemoryBudget& budget, size_t block_bytes, size_t keep_free);

  // A block with one reference, or nothing when the budget has no room (blocks kept free by another pool count as held).
  std::optional<int32_t> try_take(BlockContent content);
  void add_reference(int32_t block);
  void drop_reference(int32_t block);
  int32_t references(int32_t block) const { return references_[static_cast<size_t>(block)]; }
  void copy(int32_t from, int32_t to);  // the bytes of a whole block

  // Gives the memory of blocks kept free back until `bytes` are freed or none is left; returns what was freed.
  size_t trim(size_t bytes);

  std::byte* data() const { return memory_->data(); }
  size_t block_bytes() const { return block_bytes_; }
  int32_t capacity() const { return static_cast<int32_t>(references_.size()); }
  size_t num_used() const { return num_used_; }
  size_t used_bytes() const { return num_used_ * block_bytes_; }
  size_t kept_free_bytes() const { return warm_.size() * block_bytes_; }

 private:
  BlockPool(Backend& backend, MemoryBudget& budget, size_t block_bytes, size_t keep_free);
  void clear(int32_t block);

  Backend* backend_;
  MemoryBudget* budget_;
  size_t block_bytes_;
  size_t keep_free_;
  std::unique_ptr<BackendMemory> memory_;
  std::unique_ptr<BackendMemory> zeros_;  // one block that nobody writes: clearing is a copy, on any device
  std::vector<int32_t> references_;       // 0: free
  std::vector<int32_t> warm_;             // free, memory kept, content unknown
  std::vector<int32_t> cold_;             // free again, memory given back: reads as zero
  int32_t num_ever_used_ = 0;             // blocks from here on were never touched
  size_t num_used_ = 0;
};

}  // namespace espalier
