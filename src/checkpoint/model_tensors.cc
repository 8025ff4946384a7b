#include "checkpoint/model_tensors.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace espalier {
namespace {

// What stands before the text trunk, longest first: "model." also begins "model.language_model.".
constexpr std::array<std::string_view, 6> kTrunkPrefixes = {"vlm.model.language_model.", "model.language_model.", "language_model.model.",
                                                            "language_model.",           "thinker.model.",        "model."};
// What may stand before `lm_head.` and `mtp.` in re-wrapped exports.
constexpr std::array<std::string_view, 4> kWrapperPrefixes = {"", "language_model.", "vlm.", "thinker."};
constexpr std::array<std::string_view, 7> kVisionPrefixes = {"model.visual.",   "visual.",       "vlm.model.visual.",     "vlm.visual.",
                                                             "thinker.visual.", "vision_tower.", "language_model.visual."};
constexpr std::array<std::string_view, 5> kIgnorableSuffixes = {".rotary_emb.inv_freq", ".input_scale", ".k_scale", ".v_scale", ".q_scale"};

using Specs = std::vector<TensorSpec>;

void add_mlp(Specs& out, const std::string& layer, const ModelConfig& c, TensorKind kind) {
  out.push_back({layer + "mlp.gate_proj.weight", {c.intermediate_size, c.hidden_size}, kind});
  out.push_back({layer + "mlp.up_proj.weight", {c.intermediate_size, c.hidden_size}, kind});
  out.push_back({layer + "mlp.down_proj.weight", {c.hidden_size, c.intermediate_size}, kind});
}

void add_norms(Specs& out, const std::string& layer, const ModelConfig& c, TensorKind kind) {
  out.push_back({layer + "input_layernorm.weight", {c.hidden_size}, kind});
  out.push_back({layer + "post_attention_layernorm.weight", {c.hidden_size}, kind});
}

void add_attention(Specs& out, const std::string& layer, const ModelConfig& c, TensorKind kind) {
  const std::string attention = layer + "self_attn.";
  out.push_back({attention + "q_proj.weight", {2 * c.query_dim(), c.hidden_size}, kind});  // query and output gate
  out.push_back({attention + "k_proj.weight", {c.kv_dim(), c.hidden_size}, kind});
  out.push_back({attention + "v_proj.weight", {c.kv_dim(), c.hidden_size}, kind});
  out.push_back({attention + "o_proj.weight", {c.hidden_size, c.query_dim()}, kind});
  out.push_back({attention + "q_norm.weight", {c.head_dim}, kind});
  out.push_back({attention + "k_norm.weight", {c.head_dim}, kind});
}

void add_gated_delta_net(Specs& out, const std::string& layer, const ModelConfig& c) {
  const std::string net = layer + "linear_attn.";
  const TensorKind kind = TensorKind::kGatedDeltaNet;
  out.push_back({net + "in_proj_qkv.weight", {c.conv_dim(), c.hidden_size}, kind});
  out.push_back({net + "in_proj_z.weight", {c.value_dim(), c.hidden_size}, kind});
  out.push_back({net + "in_proj_b.weight", {c.linear_num_value_heads, c.hidden_size}, kind});
  out.push_back({net + "in_proj_a.weight", {c.linear_num_value_heads, c.hidden_size}, kind});
  out.push_back({net + "conv1d.weight", {c.conv_dim(), 1, c.conv_kernel}, kind});
  out.push_back({net + "A_log", {c.linear_num_value_heads}, kind});
  out.push_back({net + "dt_bias", {c.linear_num_value_heads}, kind});
  out.push_back({net + "norm.weight", {c.linear_value_head_dim}, kind});
  out.push_back({net + "out_proj.weight", {c.hidden_size, c.value_dim()}, kind});
}

}  // namespace

std::string_view tensor_kind_name(TensorKind kind) {
  switch (kind) {
    case TensorKind::kEmbedding: return "embedding";
    case TensorKind::kAttention: return "attention";
    case TensorKind::kGatedDeltaNet: return "gated delta net";
    case TensorKind::kMlp: return "mlp";
    case TensorKind::kNorm: return "norm";
    case TensorKind::kHead: return "head";
    case TensorKind::kMtp: return "mtp";
    case TensorKind::kVisionSkipped: return "vision (skipped)";
    case TensorKind::kIgnored: return "ignored";
  }
  return "?";
}

std::vector<TensorSpec> trunk_tensors(const ModelConfig& c) {
  Specs out;
  out.push_back({"embed_tokens.weight", {c.vocab_rows, c.hidden_size}, TensorKind::kEmbedding});
  for (int32_t i = 0; i < c.num_layers; ++i) {
    const std::string layer = format("layers.{}.", i);
    add_norms(out, layer, c, TensorKind::kNorm);
    if (c.layer_kinds[static_cast<size_t>(i)] == LayerKind::kFullAttention) {
      add_attention(out, layer, c, TensorKind::kAttention);
    } else {
      add_gated_delta_net(out, layer, c);
    }
    add_mlp(out, layer, c, TensorKind::kMlp);
  }
  out.push_back({"norm.weight", {c.hidden_size}, TensorKind::kNorm});
  if (!c.tie_word_embeddings) out.push_back({"lm_head.weight", {c.vocab_rows, c.hidden_size}, TensorKind::kHead});
  return out;
}

std::vector<TensorSpec> mtp_tensors(const ModelConfig& c) {
  Specs out;
  const TensorKind kind = TensorKind::kMtp;
  out.push_back({"mtp.fc.weight", {c.hidden_size, 2 * c.hidden_size}, kind});  // columns: embedding, then hidden
  out.push_back({"mtp.pre_fc_norm_embedding.weight", {c.hidden_size}, kind});
  out.push_back({"mtp.pre_fc_norm_hidden.weight", {c.hidden_size}, kind});
  out.push_back({"mtp.norm.weight", {c.hidden_size}, kind});
  add_norms(out, "mtp.layers.0.", c, kind);
  add_attention(out, "mtp.layers.0.", c, kind);
  add_mlp(out, "mtp.layers.0.", c, kind);
  return out;
}

std::optional<std::string> canonical_tensor_name(std::string_view raw_name) {
  for (const std::string_view prefix : kWrapperPrefixes) {
    if (!raw_name.starts_with(prefix)) continue;
    const std::string_view rest = raw_name.substr(prefix.size());
    if (rest == "lm_head.weight" || rest.starts_with("mtp.")) return std::string(rest);
  }
  for (const std::string_view prefix : kTrunkPrefixes) {
    if (!raw_name.starts_with(prefix)) continue;
    const std::string_view rest = raw_name.substr(prefix.size());
    if (rest.starts_with("embed_tokens.") || rest.starts_with("layers.") || rest.starts_with("norm.")) return std::string(rest);
  }
  return std::nullopt;
}

bool is_vision_tensor(std::string_view raw_name) {
  return std::any_of(kVisionPrefixes.begin(), kVisionPrefixes.end(), [&](std::string_view prefix) { return raw_name.starts_with(prefix); });
}

bool is_ignorable_tensor(std::string_view raw_name) {
  return raw_name.find("mtp.lm_head.") != std::string_view::npos ||
         std::any_of(kIgnorableSuffixes.begin(), kIgnorableSuffixes.end(),
                     [&](std::string_view suffix) { return raw_name.ends_with(suffix); });
}

}  // namespace espalier
