// config.json, with the same text as generation_config.json. What is accepted must be safe to compute with.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "checkpoint/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Json> json = parse_json(text, "fuzz", {.max_bytes = size_t{16} << 20, .max_depth = 32});
  if (!json.ok()) return 0;
  const Result<ModelConfig> config = parse_model_config(*json, &*json, "fuzz/config.json");
  if (!config.ok()) {
    ESPALIER_CHECK(config.error().message.find('\n') == std::string::npos);
    return 0;
  }
  ESPALIER_CHECK(config->layer_kinds.size() == static_cast<size_t>(config->num_layers));
  ESPALIER_CHECK(config->hidden_size > 0 && config->conv_dim() > 0 && 2 * config->query_dim() > 0 && config->kv_dim() > 0);
  ESPALIER_CHECK(config->num_heads % config->num_kv_heads == 0 && config->linear_num_value_heads % config->linear_num_key_heads == 0);
  ESPALIER_CHECK(config->rotary_dim > 0 && config->rotary_dim <= config->head_dim && config->rotary_dim % 2 == 0);
  ESPALIER_CHECK(config->mrope_section[0] + config->mrope_section[1] + config->mrope_section[2] == config->rotary_dim / 2);
  for (const TokenId id : config->stop_ids) ESPALIER_CHECK(id >= 0 && id < config->vocab_rows);
  return 0;
}
