#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "base/format.h"
#include "base/json.h"
#include "base/utf8.h"

namespace espalier {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxMetadataEntries = 4096;
constexpr int kMaxHeaderDepth = 4;  // header, tensor, shape; metadata is flat

// On one line and of a readable length, whatever the file wrote.
std::string shown(const Json& value) {
  const std::string text = dump_json(value);
  return text.size() <= 120 ? text : std::string(utf8_prefix(text, 117)) + "...";
}

// Reads the entry of one tensor: offsets are still relative to the data.
class TensorEntry {
 public:
  TensorEntry(std::string_view path, const std::string& name, const Json& entry) : path_(path), name_(name), entry_(entry) {}

  Result<TensorInfo> read() const {
    ESPALIER_TRY(check_name());
    if (!entry_.is_object()) return corrupt("expected an object, found {}", shown(entry_));
    TensorInfo info;
    info.name = name_;
    ESPALIER_ASSIGN(info.dtype, dtype());
    ESPALIER_ASSIGN(info.shape, shape());
    ESPALIER_ASSIGN(const auto range, data_range());
    info.offset = range.first;
    info.size_bytes = range.second - range.first;
    const std::optional<size_t> expected = shape_bytes(info.shape, info.dtype);
    if (!expected) return corrupt("shape {} of {} has more than 2^63 bytes", info.shape.to_string(), dtype_name(info.dtype));
    if (*expected != info.size_bytes) {
      return corrupt("{} {} takes {} bytes, found {} in data_offsets [{}, {}]", dtype_name(info.dtype), info.shape.to_string(), *expected,
                     info.size_bytes, range.first, range.second);
    }
    return info;
  }

 private:
  template <typename... Args>
  Error corrupt(fmt::format_string<Args...> text, Args&&... args) const {
    return error(ErrorCode::kCorrupt, format(text, std::forward<Args>(args)...));
  }
  Error error(ErrorCode code, const std::string& what) const {
    return make_error(code, "{}: tensor {}: {}", path_, shown(Json(name_)), what);
  }

  Status check_name() const {
    if (name_.empty() || name_.size() > kMaxTensorNameBytes) {
      return corrupt("a name has 1 to {} bytes, this one {}", kMaxTensorNameBytes, name_.size());
    }
    const bool printable =
        std::all_of(name_.begin(), name_.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
    if (!printable) return corrupt("control characters in the name");
    return Ok{};
  }

  // The member `key`, or null.
  const Json* member(const char* key) const {
    const auto found = entry_.find(key);
    return found == entry_.end() ? nullptr : &*found;
  }

  Result<DType> dtype() const {
    const Json* value = member("dtype");
    if (value == nullptr || !value->is_string()) return corrupt("'dtype' must be a string, found {}", value ? shown(*value) : "none");
    const std::optional<DType> parsed = parse_dtype(value->get_ref<const std::string&>());
    if (!parsed) return error(ErrorCode::kUnsupported, format("dtype {} is not known", shown(*value)));
    return *parsed;
  }

  Result<Shape> shape() const {
    const Json* value = member("shape");
    if (value == nullptr || !value->is_array()) return corrupt("'shape' must be an array, found {}", value ? shown(*value) : "none");
    if (value->size() > Shape::kMaxRank) {
      return error(ErrorCode::kUnsupported, format("rank {} exceeds the limit of {}", value->size(), static_cast<int>(Shape::kMaxRank)));
    }
    std::vector<int64_t> dims;
    for (const Json& dim : *value) {
      if (!dim.is_number_unsigned() || dim.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
        return corrupt("a dimension must be an integer from 0 to 2^63 - 1, found {}", shown(dim));
      }
      dims.push_back(dim.get<int64_t>());
    }
    return Shape(dims);
  }

  Result<std::pair<size_t, size_t>> data_range() const {
    const Json* value = member("data_offsets");
    const bool valid = value != nullptr && value->is_array() && value->size() == 2 && (*value)[0].is_number_unsigned() &&
                       (*value)[1].is_number_unsigned() && (*value)[0].get<uint64_t>() <= (*value)[1].get<uint64_t>();
    if (!valid) return corrupt("'data_offsets' must be [begin, end] with 0 <= begin <= end, found {}", value ? shown(*value) : "none");
    return std::pair<size_t, size_t>((*value)[0].get<size_t>(), (*value)[1].get<size_t>());
  }

  // In the signed arithmetic of Shape::num_elements, so that this cannot overflow either, not even before a dimension of zero.
  static std::optional<size_t> shape_bytes(const Shape& shape, DType dtype) {
    int64_t bytes = static_cast<int64_t>(dtype_size(dtype));
    for (int i = 0; i < shape.rank(); ++i) {
      if (__builtin_mul_overflow(bytes, shape[i], &bytes)) return std::nullopt;
    }
    return static_cast<size_t>(bytes);
  }

  std::string_view path_;
  const std::string& name_;
  const Json& entry_;
};

Status read_metadata(const Json& object, std::string_view path, SafetensorsHeader& header) {
  if (!object.is_object() || object.size() > kMaxMetadataEntries) {
    return make_error(ErrorCode::kCorrupt, "{}: '__metadata__' must be an object of at most {} strings, found {}", path,
                      kMaxMetadataEntries, shown(object));
  }
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) {
      return make_error(ErrorCode::kCorrupt, "{}: '__metadata__' {} must be a string, found {}", path, shown(Json(key)), shown(value));
    }
    header.metadata.emplace_back(key, value.get_ref<const std::string&>());
  }
  return Ok{};
}

// Sorts by offset, makes offsets absolute, and holds the tensors against the bytes that are there.
Status lay_out(SafetensorsHeader& header, size_t data_begin, size_t file_bytes, std::string_view path) {
  std::vector<TensorInfo>& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.size_bytes < b.size_bytes;
  });
  const size_t data_bytes = file_bytes - data_begin;
  size_t expected_offset = 0;
  for (TensorInfo& info : tensors) {
    if (info.offset != expected_offset) {
      return make_error(ErrorCode::kCorrupt, "{}: tensor {} {}: expected its data at offset {}, found {}", path, shown(Json(info.name)),
                        info.offset < expected_offset ? "overlaps the one before" : "leaves a gap", expected_offset, info.offset);
    }
    if (info.size_bytes > data_bytes - info.offset) {
      return make_error(ErrorCode::kCorrupt, "{}: truncated: tensor {} ends {} bytes after the end of the file of {} bytes", path,
                        shown(Json(info.name)), info.size_bytes - (data_bytes - info.offset), file_bytes);
    }
    expected_offset += info.size_bytes;
    info.offset += data_begin;
  }
  if (expected_offset != data_bytes) {
    return make_error(ErrorCode::kCorrupt, "{}: expected {} bytes (header and all tensors), found {}", path, data_begin + expected_offset,
                      file_bytes);
  }
  return Ok{};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> start, size_t file_bytes, std::string_view path) {
  if (file_bytes < kLengthBytes || start.size() < kLengthBytes) {
    return make_error(ErrorCode::kCorrupt, "{}: expected a safetensors file, found {} bytes", path, file_bytes);
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, start.data(), kLengthBytes);
  if (header_bytes > kMaxSafetensorsHeaderBytes) {
    return make_error(ErrorCode::kCorrupt, "{}: not a safetensors file: a header of {} bytes exceeds the limit of {}", path, header_bytes,
                      kMaxSafetensorsHeaderBytes);
  }
  if (header_bytes > file_bytes - kLengthBytes || header_bytes > start.size() - kLengthBytes) {
    return make_error(ErrorCode::kCorrupt, "{}: truncated: expected a header of {} bytes, found {} after its length", path, header_bytes,
                      file_bytes - kLengthBytes);
  }
  const std::string_view text(reinterpret_cast<const char*>(start.data()) + kLengthBytes, static_cast<size_t>(header_bytes));
  const JsonLimits limits{.max_bytes = kMaxSafetensorsHeaderBytes, .max_depth = kMaxHeaderDepth, .duplicate_keys = DuplicateKeys::kError};
  ESPALIER_ASSIGN(const Json document, parse_json(text, format("{}: header", path), limits));
  if (!document.is_object()) return make_error(ErrorCode::kCorrupt, "{}: header: expected an object, found {}", path, shown(document));
  if (document.size() > kMaxTensorsInFile) {
    return make_error(ErrorCode::kCorrupt, "{}: {} tensors exceed the limit of {}", path, document.size(), kMaxTensorsInFile);
  }
  SafetensorsHeader header;
  for (const auto& [name, entry] : document.items()) {
    if (name == "__metadata__") {
      ESPALIER_TRY(read_metadata(entry, path, header));
      continue;
    }
    ESPALIER_ASSIGN(TensorInfo info, TensorEntry(path, name, entry).read());
    header.tensors.push_back(std::move(info));
  }
  ESPALIER_TRY(lay_out(header, kLengthBytes + static_cast<size_t>(header_bytes), file_bytes, path));
  return header;
}

}  // namespace espalier
