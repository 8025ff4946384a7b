// Safetensors files, memory-mapped for reading, written atomically. An open file is immutable and may be read from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/file.h"
#include "base/result.h"
#include "checkpoint/safetensors_header.h"
#include "tensor/tensor.h"

namespace espalier {

// Move-only; its views are valid while it lives, moves included.
class SafetensorsFile {
 public:
  // Errors as parse_safetensors_header, and those of the file itself (absent, not a regular file, unreadable).
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  size_t file_bytes() const { return file_.bytes().size(); }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return header_.metadata; }
  // Null where the file has no tensor of that name.
  const TensorInfo* find(std::string_view name) const;
  // The data of a tensor of this file, aligned for its dtype: the format does not promise that, so tensors that lie misaligned
  // (old writers did not pad the header) are copied once when the file is opened.
  ConstTensorView view(const TensorInfo& info) const;
  // Its bytes will not be read again (after packing): their pages may leave memory. Reading them later is slow, not wrong.
  void drop(const TensorInfo& info) const { file_.drop(info.offset, info.size_bytes); }

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, size_t> by_name_;           // into header_.tensors
  std::unordered_map<size_t, AlignedBuffer> realigned_by_offset_;  // copies of misaligned tensors
};

struct NamedTensor {
  std::string name;
  ConstTensorView tensor;
};

// Writes a file in the order given, atomically (readers see the old file or the new one), with the data aligned to 64 bytes. The
// file is put together in memory. kInvalidArgument for a name that is empty, too long, repeated or "__metadata__"; else as
// write_file_atomic.
Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                         std::span<const std::pair<std::string, std::string>> metadata = {});

}  // namespace espalier
