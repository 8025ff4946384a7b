// The tensors a model of the family has: canonical names, shapes, kinds; and which raw names of published exports mean them.
// Row orders inside the matrices are the forward pass's business.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/model_config.h"
#include "tensor/tensor.h"

namespace espalier {

enum class TensorKind { kEmbedding, kAttention, kGatedDeltaNet, kMlp, kNorm, kHead, kMtp, kVisionSkipped, kIgnored };
std::string_view tensor_kind_name(TensorKind kind);  // "embedding", "attention", ..., "vision (skipped)"

struct TensorSpec {
  std::string name;  // canonical
  Shape shape;       // matrices are [out, in]
  TensorKind kind = TensorKind::kIgnored;
};

// Embedding, layers, final norm, and the head unless `config` ties it.
std::vector<TensorSpec> trunk_tensors(const ModelConfig& config);
// The MTP layer: its fusion matrix, norms and one full-attention layer.
std::vector<TensorSpec> mtp_tensors(const ModelConfig& config);

// "model.language_model.layers.3.mlp.up_proj.weight" -> "layers.3.mlp.up_proj.weight". Nothing where no known prefix leads to a
// name of the text model; whether the model has a tensor of that name is another question.
std::optional<std::string> canonical_tensor_name(std::string_view raw_name);
bool is_vision_tensor(std::string_view raw_name);
// Tensors that exports carry along and that hold nothing a model of this family needs: cached RoPE frequencies, activation and KV
// scales left behind by a quantiser, a draft-side copy of the head.
bool is_ignorable_tensor(std::string_view raw_name);

}  // namespace espalier
