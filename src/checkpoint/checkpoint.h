// A Hugging Face model directory: config, weights in one or many safetensors files, every tensor that the model needs present and of
// its shape. Tensors go by canonical names, whatever prefix the export gave them:
//   embed_tokens.weight, norm.weight, layers.{i}.…, lm_head.weight, mtp.…
// Immutable once open; may be read from any thread. Views are valid while the Checkpoint lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "checkpoint/model_config.h"
#include "checkpoint/model_tensors.h"
#include "checkpoint/safetensors.h"
#include "tensor/tensor.h"

namespace espalier {

struct InventoryEntry {
  TensorKind kind = TensorKind::kIgnored;
  int64_t num_tensors = 0;
  size_t size_bytes = 0;  // as stored
};

class Checkpoint {
 public:
  // Opens and checks everything but the values themselves. The index decides which files are read; without one it is
  // model.safetensors, else the only *.safetensors there. Any fault is one line that names file, tensor, expected and found.
  static Result<Checkpoint> open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const ModelConfig& config() const { return config_; }  // has_mtp and tie_word_embeddings as the files are
  bool has(std::string_view name) const { return tensors_.contains(std::string(name)); }
  // A tensor by canonical name: BF16, F16 or F32, of the shape model_tensors.h gives, aligned for its dtype. kNotFound names the
  // tensor; it cannot happen for tensors of the trunk, nor for MTP where config().has_mtp, nor for the head where it is not tied.
  Result<ConstTensorView> tensor(std::string_view name) const;
  // The tensor will not be read again: its pages may leave memory.
  void drop(std::string_view name) const;

  // Kinds that occur, in the order of TensorKind.
  const std::vector<InventoryEntry>& inventory() const { return inventory_; }
  // Lines a person should see: files beside the shards that were ignored, MTP tensors that the config promises but no file holds.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class CheckpointReader;
  struct Location {
    size_t shard = 0;
    const TensorInfo* info = nullptr;  // owned by the shard
  };
  Checkpoint() = default;

  std::string directory_;
  ModelConfig config_;
  std::vector<SafetensorsFile> shards_;
  std::unordered_map<std::string, Location> tensors_;  // by canonical name
  std::vector<InventoryEntry> inventory_;
  std::vector<std::string> notes_;
};

}  // namespace espalier
