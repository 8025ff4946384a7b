#include "chat/jinja/arena.h"

#include <algorithm>
#include <cstring>

namespace espalier::jinja {
namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kBlockBytes = size_t{64} << 10;

}  // namespace

void Arena::account(size_t bytes) {
  if (bytes > max_bytes_ - total_bytes_) {
    throw TemplateError{Failure::kLimit, espalier::format("the values it builds exceed {} bytes", max_bytes_)};
  }
  total_bytes_ += bytes;
}

void* Arena::allocate(size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  account(bytes);
  if (objects_.empty() || objects_.back().size - objects_.back().used < bytes) {
    const size_t size = std::max(bytes, kBlockBytes);
    objects_.push_back({std::unique_ptr<char[]>(new char[size]), size, 0});
  }
  Block& block = objects_.back();
  char* begin = block.bytes.get() + block.used;
  block.used += bytes;
  return begin;
}

char* Arena::reserve_text(size_t bytes) {
  account(bytes);
  if (texts_.empty() || texts_.back().size - texts_.back().used < bytes) {
    const size_t size = std::max(bytes + bytes / 2, kBlockBytes);  // room for a concatenation to grow in place
    texts_.push_back({std::unique_ptr<char[]>(new char[size]), size, 0});
  }
  Block& block = texts_.back();
  char* begin = block.bytes.get() + block.used;
  block.used += bytes;
  return begin;
}

std::string_view Arena::copy(std::string_view bytes) {
  if (bytes.empty()) return {};
  char* begin = reserve_text(bytes.size());
  std::memcpy(begin, bytes.data(), bytes.size());
  return {begin, bytes.size()};
}

std::string_view Arena::join(std::string_view a, std::string_view b) {
  if (a.empty()) return copy(b);
  if (!texts_.empty()) {
    Block& block = texts_.back();
    const char* tip = block.bytes.get() + block.used;
    if (a.data() + a.size() == tip && block.size - block.used >= b.size()) {
      account(b.size());
      if (!b.empty()) std::memcpy(block.bytes.get() + block.used, b.data(), b.size());
      block.used += b.size();
      return {a.data(), a.size() + b.size()};
    }
  }
  char* begin = reserve_text(a.size() + b.size());
  std::memcpy(begin, a.data(), a.size());
  if (!b.empty()) std::memcpy(begin + a.size(), b.data(), b.size());
  return {begin, a.size() + b.size()};
}

}  // namespace espalier::jinja
