// What config.json and generation_config.json say about a model, checked: whoever holds a ModelConfig may compute with its numbers
// without overflow. Facts of the family: Qwen3.5 / 3.6 dense hybrids, nested (text_config) or flat. Values; no thread rule.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/token_id.h"

namespace espalier {

enum class LayerKind {
  kLinearAttention,  // Gated DeltaNet
  kFullAttention,    // gated attention
};

struct ModelConfig {
  std::string architecture;  // first of `architectures`, may be empty
  std::string model_type;    // of the text model: "qwen3_5_text"

  int32_t hidden_size = 0;
  int32_t intermediate_size = 0;
  int32_t num_layers = 0;
  std::vector<LayerKind> layer_kinds;  // [num_layers]
  int32_t vocab_rows = 0;              // rows of embedding and head: padded, the tokenizer knows how many ids are real
  int32_t max_position_embeddings = 0;
  double rms_norm_eps = 0;
  // The head is the embedding: stated at either level, or stated nowhere. Checkpoint::open: the files hold no head of their own.
  bool tie_word_embeddings = false;

  // Gated attention.
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t rotary_dim = 0;  // leading dimensions of a head that are rotated; even
  double rope_theta = 0;
  std::array<int32_t, 3> mrope_section{};  // rotated pairs that follow the time, height and width stream, interleaved; sum rotary_dim / 2

  // Gated DeltaNet.
  int32_t linear_num_key_heads = 0;
  int32_t linear_num_value_heads = 0;
  int32_t linear_key_head_dim = 0;
  int32_t linear_value_head_dim = 0;
  int32_t conv_kernel = 0;

  int32_t num_mtp_layers = 0;  // 0 or 1, as the config says; 1 where it is silent
  bool has_mtp = false;        // num_mtp_layers > 0. Checkpoint::open: and the files hold the MTP tensors

  std::vector<TokenId> stop_ids;  // ascending; union of generation_config.json and config.json (both levels)

  int32_t query_dim() const { return num_heads * head_dim; }  // columns of o_proj; q_proj has twice as many rows (query, gate)
  int32_t kv_dim() const { return num_kv_heads * head_dim; }
  int32_t key_dim() const { return linear_num_key_heads * linear_key_head_dim; }
  int32_t value_dim() const { return linear_num_value_heads * linear_value_head_dim; }
  int32_t conv_dim() const { return 2 * key_dim() + value_dim(); }  // channels: q, k, v
  int32_t num_linear_layers() const;
  int32_t num_full_layers() const { return num_layers - num_linear_layers(); }
};

// `config` is config.json, `generation_config` generation_config.json or null where the model has none; `name` names config.json in
// errors. Missing fields take the defaults of the Hugging Face class. kCorrupt: a number of the wrong type, sign or size, or two that
// contradict each other. kUnsupported, by name: other model types, mixture of experts, quantised checkpoints, scaled RoPE,
// activations other than SiLU, biases, attention without its output gate, more than one MTP layer.
Result<ModelConfig> parse_model_config(const Json& config, const Json* generation_config, std::string_view name);

}  // namespace espalier
