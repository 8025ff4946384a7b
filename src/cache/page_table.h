// The pages of one sequence or snapshot, in order: slot s of the sequence lies on page s / page_size. Holds one reference to each.
// Move-only; must not outlive its pool. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_pool.h"

namespace espalier {

class PageTable {
 public:
  PageTable() = default;
  explicit PageTable(BlockPool& pages) : pool_(&pages) {}
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable&& other) noexcept;
  ~PageTable() { truncate(0); }

  std::span<const int32_t> ids() const { return ids_; }
  size_t size() const { return ids_.size(); }
  int32_t operator[](size_t i) const { return ids_[i]; }
  bool shared(size_t i) const { return pool_->references(ids_[i]) > 1; }
  // Pages at the end that only this table holds: what dropping it would free. (Tables share prefixes, so exclusive pages form a tail.)
  size_t num_exclusive() const;

  PageTable share(size_t num_pages) const;            // the first pages, by reference
  void share_prefix_of(const PageTable& other, size_t num_pages);  // replaces the first pages by those of `other`
  void append(int32_t page);                          // takes over the caller's reference
  void replace(size_t i, int32_t page);               // drops the old page, takes over the caller's reference
  void truncate(size_t num_pages);

 private:
  BlockPool* pool_ = nullptr;
  std::vector<int32_t> ids_;
};

}  // namespace espalier
