// Bytes read from a connection and not used yet: filled at the back, used up at the front. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace espalier {

class InputBuffer {
 public:
  // Room for at least `num_bytes` behind what is held, until the next call. Moves what is held.
  std::span<char> space(size_t num_bytes) {
    std::copy(bytes_.data() + begin_, bytes_.data() + end_, bytes_.data());
    end_ -= begin_;
    begin_ = 0;
    if (end_ == 0 && bytes_.size() > 4 * num_bytes) bytes_ = {};  // a large request has passed
    if (bytes_.size() < end_ + num_bytes) bytes_.resize(end_ + num_bytes);
    return std::span(bytes_).subspan(end_);
  }
  void commit(size_t num_bytes) { end_ += num_bytes; }  // that many bytes of `space` were filled

  std::string_view view() const { return {bytes_.data() + begin_, end_ - begin_}; }
  void consume(size_t num_bytes) { begin_ += num_bytes; }
  void clear() { begin_ = end_; }

 private:
  std::vector<char> bytes_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace espalier
