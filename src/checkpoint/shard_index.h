// Which files of a model directory hold its weights. Values; no thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace espalier {

struct ShardIndex {
  std::string path;                                        // of the index, or of the single file; names the set in errors
  bool is_index = false;                                   // model.safetensors.index.json decides, else the single file does
  std::vector<std::string> files;                          // plain names inside the directory, ascending
  std::unordered_map<std::string, size_t> file_of_tensor;  // into `files`; empty without an index
  std::vector<std::string> notes;                          // files beside them that are ignored
};

// The index decides; without one it is model.safetensors, else the only *.safetensors. kNotFound: no weights at all. kCorrupt: an
// index that is not valid or names files outside the directory; several files and no index that says which belong together.
Result<ShardIndex> read_shard_index(const std::string& directory);

}  // namespace espalier
