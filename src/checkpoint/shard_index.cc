#include "checkpoint/shard_index.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "base/format.h"
#include "base/json.h"
#include "base/utf8.h"

namespace espalier {
namespace {

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kExtension = ".safetensors";
constexpr size_t kMaxShards = 4096;
constexpr size_t kMaxNameBytes = 255;

Result<std::set<std::string>> safetensors_files(const std::string& directory) {
  std::error_code error;
  std::set<std::string> names;
  for (auto entry = std::filesystem::directory_iterator(directory, error); !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(kExtension)) names.insert(std::move(name));
  }
  if (error) return make_error(ErrorCode::kIo, "{}: cannot list: {}", directory, error.message());
  return names;
}

bool is_plain_file_name(const std::string& name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  return printable && name.size() <= kMaxNameBytes && name.find('/') == std::string::npos && name.ends_with(kExtension);
}

Status read_index(const Json& document, ShardIndex& index) {
  const auto map = document.is_object() ? document.find("weight_map") : document.end();
  if (map == document.end() || !map->is_object() || map->empty()) {
    return make_error(ErrorCode::kCorrupt, "{}: expected an object 'weight_map' that lists the tensors' files, found none", index.path);
  }
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>())) {
      return make_error(ErrorCode::kCorrupt, "{}: tensor {}: expected the name of a .safetensors file in the same directory, found {}",
                        index.path, utf8_prefix(dump_json(Json(tensor)), 120), utf8_prefix(dump_json(file), 120));
    }
    files.insert(file.get_ref<const std::string&>());
  }
  if (files.size() > kMaxShards) {
    return make_error(ErrorCode::kCorrupt, "{}: {} files exceed the limit of {}", index.path, files.size(), kMaxShards);
  }
  index.files.assign(files.begin(), files.end());
  for (const auto& [tensor, file] : map->items()) {
    const auto found = std::lower_bound(index.files.begin(), index.files.end(), file.get_ref<const std::string&>());
    index.file_of_tensor.emplace(tensor, static_cast<size_t>(found - index.files.begin()));
  }
  return Ok{};
}

void note_ignored(const std::set<std::string>& present, ShardIndex& index) {
  std::string names;
  size_t count = 0;
  for (const std::string& name : present) {
    if (std::binary_search(index.files.begin(), index.files.end(), name)) continue;
    if (++count <= 3) names += (count == 1 ? "" : ", ") + name;
  }
  if (count == 0) return;
  index.notes.push_back(
      format("{}: ignored, not part of the model: {}{}", index.path, names, count > 3 ? format(" and {} more", count - 3) : ""));
}

}  // namespace

Result<ShardIndex> read_shard_index(const std::string& directory) {
  ESPALIER_ASSIGN(const std::set<std::string> present, safetensors_files(directory));
  ShardIndex index;
  index.path = format("{}/{}", directory, kIndexName);
  index.is_index = true;
  const JsonLimits limits{.max_bytes = size_t{128} << 20, .max_depth = 8, .duplicate_keys = DuplicateKeys::kError};
  Result<Json> document = load_json(index.path, limits);
  if (document.ok()) {
    ESPALIER_TRY(read_index(*document, index));
  } else if (document.error().code == ErrorCode::kNotFound) {
    if (present.empty()) return make_error(ErrorCode::kNotFound, "{}: no weights: neither {} nor any *.safetensors", directory, kIndexName);
    index.is_index = false;
    const std::string single(present.contains(std::string(kSingleName)) ? kSingleName : *present.begin());
    if (single != kSingleName && present.size() > 1) {
      return make_error(ErrorCode::kNotFound, "{}: {} *.safetensors files, expected {} to say which of them are the model", directory,
                        present.size(), kIndexName);
    }
    index.files = {single};
    index.path = format("{}/{}", directory, single);
  } else {
    return std::move(document).error();
  }
  note_ignored(present, index);
  return index;
}

}  // namespace espalier
