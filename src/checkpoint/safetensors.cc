#include "checkpoint/safetensors.h"

#include <cstdint>
#include <cstring>
#include <unordered_set>

#include "base/format.h"
#include "base/json.h"

namespace espalier {
namespace {

constexpr size_t kMaxRealignedBytes = size_t{4} << 30;
constexpr size_t kDataAlignment = 64;

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  ESPALIER_ASSIGN(MappedFile mapped, MappedFile::open(path));
  SafetensorsFile file(std::move(mapped));
  const std::span<const std::byte> bytes = file.file_.bytes();
  ESPALIER_ASSIGN(file.header_, parse_safetensors_header(bytes, bytes.size(), path));
  size_t realigned_bytes = 0;
  for (size_t i = 0; i < file.header_.tensors.size(); ++i) {
    const TensorInfo& info = file.header_.tensors[i];
    file.by_name_.emplace(info.name, i);
    if (info.offset % dtype_size(info.dtype) == 0 || info.size_bytes == 0) continue;
    realigned_bytes += info.size_bytes;
    if (realigned_bytes > kMaxRealignedBytes) {
      return make_error(
          ErrorCode::kUnsupported,
          "{}: tensor '{}': its data starts at byte {}, not a multiple of {}, and more than {} bytes of the file would have to be moved",
          path, info.name, info.offset, dtype_size(info.dtype), kMaxRealignedBytes);
    }
    AlignedBuffer copy(info.size_bytes);
    std::memcpy(copy.data(), bytes.data() + info.offset, info.size_bytes);
    file.realigned_by_offset_.emplace(info.offset, std::move(copy));
  }
  return file;
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.tensors[found->second];
}

ConstTensorView SafetensorsFile::view(const TensorInfo& info) const {
  if (info.size_bytes == 0) return {nullptr, info.dtype, info.shape};
  const auto copy = realigned_by_offset_.find(info.offset);
  const void* data = copy != realigned_by_offset_.end() ? copy->second.data() : file_.bytes().data() + info.offset;
  return {data, info.dtype, info.shape};
}

Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                         std::span<const std::pair<std::string, std::string>> metadata) {
  Json header = Json::object();
  if (!metadata.empty()) {
    Json& entries = header["__metadata__"] = Json::object();
    for (const auto& [key, value] : metadata) entries[key] = value;
  }
  auto& members = header.get_ref<Json::object_t&>();
  std::unordered_set<std::string_view> names;
  size_t data_bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty() || name.size() > kMaxTensorNameBytes || name == "__metadata__" || !names.insert(name).second) {
      return make_error(ErrorCode::kInvalidArgument, "{}: '{}' cannot name a tensor: empty, too long, reserved or used twice", path, name);
    }
    Json entry = Json::object();
    entry["dtype"] = dtype_name(tensor.dtype);
    Json& shape = entry["shape"] = Json::array();
    for (int i = 0; i < tensor.shape.rank(); ++i) shape.push_back(tensor.shape[i]);
    entry["data_offsets"] = {data_bytes, data_bytes + tensor.size_bytes()};
    static_cast<std::vector<Json::object_t::value_type>&>(members).emplace_back(name, std::move(entry));
    data_bytes += tensor.size_bytes();
  }
  std::string file = dump_json(header);
  file.append((kDataAlignment - (sizeof(uint64_t) + file.size()) % kDataAlignment) % kDataAlignment, ' ');
  const uint64_t header_bytes = file.size();
  file.insert(0, reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  file.reserve(file.size() + data_bytes);
  for (const auto& [name, tensor] : tensors) file.append(static_cast<const char*>(tensor.data), tensor.size_bytes());
  return write_file_atomic(path, file);
}

}  // namespace espalier
