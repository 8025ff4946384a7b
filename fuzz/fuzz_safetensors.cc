// The header of a safetensors file. What is accepted must lie inside the file, or reading a tensor would leave it.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "checkpoint/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const Result<SafetensorsHeader> header = parse_safetensors_header(std::as_bytes(std::span(data, size)), size, "fuzz");
  if (!header.ok()) {
    ESPALIER_CHECK(header.error().message.find('\n') == std::string::npos);
    return 0;
  }
  size_t end = size;
  for (auto info = header->tensors.rbegin(); info != header->tensors.rend(); ++info) {
    ESPALIER_CHECK(info->offset <= end && info->size_bytes == end - info->offset);
    ESPALIER_CHECK(static_cast<size_t>(info->shape.num_elements()) * dtype_size(info->dtype) == info->size_bytes);
    end = info->offset;
  }
  return 0;
}
