// Random tiny checkpoints for laws: any hybrid shape, a few hundred kilobytes, made in a temporary directory by write_safetensors.
// The same seed gives the same bytes on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/model_config.h"

namespace espalier::testing {

struct TinyCheckpointSpec {
  int32_t hidden_size = 64;
  int32_t intermediate_size = 96;
  std::vector<LayerKind> layer_kinds = {LayerKind::kLinearAttention, LayerKind::kLinearAttention, LayerKind::kFullAttention,
                                        LayerKind::kLinearAttention};
  int32_t num_heads = 4;
  int32_t num_kv_heads = 2;
  int32_t head_dim = 32;
  double partial_rotary_factor = 0.25;
  int32_t linear_num_key_heads = 2;
  int32_t linear_num_value_heads = 4;
  int32_t linear_key_head_dim = 32;
  int32_t linear_value_head_dim = 32;
  int32_t vocab_rows = 300;
  bool tied = false;
  bool mtp = true;
  std::vector<int32_t> stop_ids = {299};
  uint64_t seed = 1;
};

// A directory that is removed with its content on destruction. Move-only.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Writes config.json, generation_config.json and model.safetensors (BF16; A_log and the gated norm F32) into a new temporary
// directory. Values are scaled so that activations stay near 1 and decays between 0.8 and 1. Aborts where the disk refuses.
TemporaryDirectory make_tiny_checkpoint(const TinyCheckpointSpec& spec);

}  // namespace espalier::testing
