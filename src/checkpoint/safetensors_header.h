// The header of a safetensors file: 8 bytes of length (little endian), that many bytes of JSON, then the data. Everything a hostile
// file could say is checked here, so that whoever reads a tensor needs no check of their own. Pure function of its input.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace espalier {

struct TensorInfo {
  std::string name;  // 1..kMaxTensorNameBytes bytes, no control characters
  DType dtype = DType::kF32;
  Shape shape;
  size_t offset = 0;      // of the first byte, from the start of the file
  size_t size_bytes = 0;  // = elements x size of the dtype
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // ascending offsets, without gaps: together they are the whole data of the file
  std::vector<std::pair<std::string, std::string>> metadata;
};

inline constexpr size_t kMaxSafetensorsHeaderBytes = size_t{100} << 20;
inline constexpr size_t kMaxTensorNameBytes = 512;
inline constexpr size_t kMaxTensorsInFile = 1 << 20;

// `start` is the beginning of the file, at least its header where the file is that long; `file_bytes` the length of the whole file;
// `path` names it in errors. kCorrupt names the tensor, what was expected and what was found: a header that is no JSON or repeats a
// name, a shape whose bytes are not those of its offsets, overlapping tensors or gaps, a file shorter or longer than the header
// says. kUnsupported: a dtype or a rank this build does not know.
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> start, size_t file_bytes, std::string_view path);

}  // namespace espalier
