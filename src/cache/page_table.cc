#include "cache/page_table.h"

#include <utility>

#include "base/result.h"

namespace espalier {

PageTable::PageTable(PageTable&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), ids_(std::exchange(other.ids_, {})) {}

PageTable& PageTable::operator=(PageTable&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(ids_, other.ids_);
  return *this;
}

size_t PageTable::num_exclusive() const {
  size_t count = 0;
  while (count < ids_.size() && !shared(ids_.size() - 1 - count)) ++count;
  return count;
}

PageTable PageTable::share(size_t num_pages) const {
  ESPALIER_CHECK(num_pages <= ids_.size());
  PageTable table(*pool_);
  table.ids_.assign(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(num_pages));
  for (const int32_t page : table.ids_) pool_->add_reference(page);
  return table;
}

void PageTable::share_prefix_of(const PageTable& other, size_t num_pages) {
  ESPALIER_CHECK(num_pages <= ids_.size() && num_pages <= other.ids_.size());
  for (size_t i = 0; i < num_pages; ++i) {
    if (ids_[i] == other.ids_[i]) continue;
    pool_->add_reference(other.ids_[i]);
    replace(i, other.ids_[i]);
  }
}

void PageTable::append(int32_t page) { ids_.push_back(page); }

void PageTable::replace(size_t i, int32_t page) { pool_->drop_reference(std::exchange(ids_[i], page)); }

void PageTable::truncate(size_t num_pages) {
  while (ids_.size() > num_pages) {
    pool_->drop_reference(ids_.back());
    ids_.pop_back();
  }
}

}  // namespace espalier
