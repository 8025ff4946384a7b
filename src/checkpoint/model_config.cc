#include "checkpoint/model_config.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/format.h"
#include "base/utf8.h"

namespace espalier {
namespace {

// Far above any published model, and small enough that no product of two or three overflows 64 bits, nor a dimension 32.
constexpr int64_t kMaxHiddenSize = 1 << 17;
constexpr int64_t kMaxIntermediateSize = 1 << 20;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxConvKernel = 16;
constexpr int64_t kMaxVocabRows = 1 << 24;
constexpr int64_t kMaxPositions = 1 << 30;
constexpr size_t kMaxStopIds = 1024;

std::string shown(const Json& value) {
  const std::string text = dump_json(value);
  return text.size() <= 80 ? text : std::string(utf8_prefix(text, 77)) + "...";
}

// The member `key` of an object, or null where it is absent or the JSON null.
const Json* member(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(key));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// The integer that `value` is, where it is one within [low, high].
std::optional<int64_t> integer_between(const Json& value, int64_t low, int64_t high) {
  if (!value.is_number_integer()) return std::nullopt;  // true of unsigned ones too
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(high)) return std::nullopt;
  const int64_t number = value.get<int64_t>();
  return number >= low && number <= high ? std::optional(number) : std::nullopt;
}

// One object of the file with the name it has in errors.
struct Section {
  const Json& object;
  std::string where;

  Result<int32_t> integer(std::string_view key, int64_t default_value, int64_t low, int64_t high) const {
    const Json* value = member(object, key);
    if (value == nullptr) return static_cast<int32_t>(default_value);
    const std::optional<int64_t> number = integer_between(*value, low, high);
    if (!number) {
      return make_error(ErrorCode::kCorrupt, "{}: '{}' must be an integer from {} to {}, found {}", where, key, low, high, shown(*value));
    }
    return static_cast<int32_t>(*number);
  }

  Result<double> number(std::string_view key, double default_value, double low, double high) const {
    const Json* value = member(object, key);
    if (value == nullptr) return default_value;
    if (!value->is_number() || !(value->get<double>() >= low && value->get<double>() <= high)) {
      return make_error(ErrorCode::kCorrupt, "{}: '{}' must be a number from {} to {}, found {}", where, key, low, high, shown(*value));
    }
    return value->get<double>();
  }

  Result<bool> boolean(std::string_view key, bool default_value) const {
    if (member(object, key) == nullptr) return default_value;
    return json_bool(object, key, where);
  }

  Result<std::string> text(std::string_view key, std::string_view default_value) const {
    if (member(object, key) == nullptr) return std::string(default_value);
    return json_string(object, key, where);
  }

  // Absent: an empty object.
  Result<Section> section(std::string_view key) const {
    static const Json kEmpty = Json::object();
    const Json* value = member(object, key);
    if (value == nullptr) return Section{kEmpty, format("{}: {}", where, key)};
    if (!value->is_object()) return make_error(ErrorCode::kCorrupt, "{}: '{}' must be an object, found {}", where, key, shown(*value));
    return Section{*value, format("{}: {}", where, key)};
  }
};

Status refuse_quantised(const Section& section) {
  const Json* value = member(section.object, "quantization_config");
  if (value == nullptr) return Ok{};
  std::string method = "?";
  std::string variant;
  if (const Json* name = member(*value, "quant_method"); name != nullptr && name->is_string()) method = name->get<std::string>();
  for (const char* key : {"quant_algo", "format", "fmt"}) {
    const Json* name = member(*value, key);
    if (name == nullptr || !name->is_string()) continue;
    variant = " " + name->get<std::string>();
    break;
  }
  return make_error(ErrorCode::kUnsupported, "{}: quantised checkpoints are not supported yet: quant_method {}", section.where,
                    shown(Json(method + variant)));
}

Status check_model_type(const std::string& type, std::string_view where) {
  if (type == "qwen3_5" || type == "qwen3_5_text") return Ok{};
  if (type.find("moe") != std::string::npos) {
    return make_error(ErrorCode::kUnsupported, "{}: mixture-of-experts models are not supported yet: model_type {}", where,
                      shown(Json(type)));
  }
  return make_error(ErrorCode::kUnsupported, "{}: expected model_type \"qwen3_5\" or \"qwen3_5_text\", found {}", where, shown(Json(type)));
}

// Members whose other values would need arithmetic this build does not have.
Status refuse_variants(const Section& text) {
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    ESPALIER_ASSIGN(const int32_t experts, text.integer(key, 0, 0, 1 << 20));
    if (experts != 0) {
      return make_error(ErrorCode::kUnsupported, "{}: mixture-of-experts models are not supported yet: '{}' {}", text.where, key, experts);
    }
  }
  struct Flag {
    const char* key;
    bool supported;
  };
  for (const Flag& flag : {Flag{"attention_bias", false}, Flag{"attn_output_gate", true}, Flag{"use_sliding_window", false},
                           Flag{"layer_scale", false}, Flag{"mtp_use_dedicated_embeddings", false}}) {
    ESPALIER_ASSIGN(const bool value, text.boolean(flag.key, flag.supported));
    if (value != flag.supported) {
      return make_error(ErrorCode::kUnsupported, "{}: '{}' {} is not supported, expected {}", text.where, flag.key, value, flag.supported);
    }
  }
  for (const char* key : {"hidden_act", "output_gate_type"}) {
    ESPALIER_ASSIGN(const std::string activation, text.text(key, "silu"));
    if (activation != "silu" && activation != "swish") {
      return make_error(ErrorCode::kUnsupported, "{}: '{}' {} is not supported, expected \"silu\"", text.where, key,
                        shown(Json(activation)));
    }
  }
  return Ok{};
}

Result<std::vector<LayerKind>> layer_kinds(const Section& text, int32_t num_layers) {
  std::vector<LayerKind> kinds;
  const Json* types = member(text.object, "layer_types");
  if (types == nullptr) {
    ESPALIER_ASSIGN(const int32_t interval, text.integer("full_attention_interval", 4, 1, kMaxLayers));
    for (int32_t i = 0; i < num_layers; ++i)
      kinds.push_back((i + 1) % interval == 0 ? LayerKind::kFullAttention : LayerKind::kLinearAttention);
    return kinds;
  }
  if (!types->is_array() || types->size() != static_cast<size_t>(num_layers)) {
    return make_error(ErrorCode::kCorrupt, "{}: 'layer_types' must list num_hidden_layers = {} layers, found {}", text.where, num_layers,
                      types->is_array() ? format("{}", types->size()) : shown(*types));
  }
  for (const Json& type : *types) {
    if (type == "linear_attention") {
      kinds.push_back(LayerKind::kLinearAttention);
    } else if (type == "full_attention") {
      kinds.push_back(LayerKind::kFullAttention);
    } else {
      return make_error(ErrorCode::kUnsupported, "{}: layer_types[{}] must be \"linear_attention\" or \"full_attention\", found {}",
                        text.where, kinds.size(), shown(type));
    }
  }
  return kinds;
}

// Pairs of each position stream, interleaved t, h, w, t, ... until none is left: 32 pairs are [11, 11, 10].
std::array<int32_t, 3> default_mrope_section(int32_t pairs) { return {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3}; }

// `rope_parameters`, or its older spelling: rope_theta in the text config and rope_scaling beside it.
Status read_rope(const Section& text, ModelConfig& config) {
  const bool old_spelling = member(text.object, "rope_parameters") == nullptr;
  ESPALIER_ASSIGN(const Section rope, text.section(old_spelling ? "rope_scaling" : "rope_parameters"));
  ESPALIER_ASSIGN(const std::string old_type, rope.text("type", "default"));
  ESPALIER_ASSIGN(const std::string type, rope.text("rope_type", old_type));
  if (type != "default" && type != "mrope") {
    return make_error(ErrorCode::kUnsupported, "{}: rope_type {} is not supported, expected \"default\"", rope.where, shown(Json(type)));
  }
  ESPALIER_ASSIGN(const bool interleaved, rope.boolean("mrope_interleaved", true));
  if (!interleaved) return make_error(ErrorCode::kUnsupported, "{}: 'mrope_interleaved' false is not supported, expected true", rope.where);

  constexpr double kDefaultTheta = 1e7;
  ESPALIER_ASSIGN(const double outer_theta, text.number("rope_theta", kDefaultTheta, 1.0, 1e15));
  ESPALIER_ASSIGN(config.rope_theta, rope.number("rope_theta", outer_theta, 1.0, 1e15));
  ESPALIER_ASSIGN(const double outer_factor, text.number("partial_rotary_factor", 0.25, 0.0, 1.0));
  ESPALIER_ASSIGN(const double factor, rope.number("partial_rotary_factor", outer_factor, 0.0, 1.0));
  const double rotary = config.head_dim * factor;
  config.rotary_dim = static_cast<int32_t>(std::lround(rotary));
  if (config.rotary_dim < 2 || config.rotary_dim % 2 != 0 || std::abs(rotary - config.rotary_dim) > 1e-6) {
    return make_error(ErrorCode::kCorrupt,
                      "{}: partial_rotary_factor {} of head_dim {} must be a positive even number of dimensions, found {}", rope.where,
                      factor, config.head_dim, rotary);
  }

  const int32_t pairs = config.rotary_dim / 2;
  config.mrope_section = default_mrope_section(pairs);
  const Json* sections = member(rope.object, "mrope_section");
  if (sections == nullptr) return Ok{};
  int64_t sum = 0;
  bool valid = sections->is_array() && sections->size() == 3;
  for (size_t i = 0; valid && i < 3; ++i) {
    const std::optional<int64_t> count = integer_between((*sections)[i], 0, pairs);
    valid = count.has_value();
    config.mrope_section[i] = static_cast<int32_t>(count.value_or(0));
    sum += config.mrope_section[i];
  }
  if (!valid || sum != pairs) {
    return make_error(ErrorCode::kCorrupt, "{}: 'mrope_section' must be three counts that add up to {} rotated pairs, found {}", rope.where,
                      pairs, shown(*sections));
  }
  return Ok{};
}

Status add_stop_ids(const Section& section, ModelConfig& config) {
  const Json* value = member(section.object, "eos_token_id");
  if (value == nullptr) return Ok{};
  if (value->is_array() && value->size() > kMaxStopIds) {
    return make_error(ErrorCode::kCorrupt, "{}: 'eos_token_id' lists {} ids, more than the limit of {}", section.where, value->size(),
                      kMaxStopIds);
  }
  const Json one = Json::array({*value});
  for (const Json& id : value->is_array() ? *value : one) {
    const std::optional<int64_t> number = integer_between(id, 0, config.vocab_rows - 1);
    if (!number) {
      return make_error(ErrorCode::kCorrupt, "{}: 'eos_token_id' must hold token ids below the {} vocabulary rows, found {}", section.where,
                        config.vocab_rows, shown(id));
    }
    config.stop_ids.push_back(static_cast<TokenId>(*number));
  }
  std::sort(config.stop_ids.begin(), config.stop_ids.end());
  config.stop_ids.erase(std::unique(config.stop_ids.begin(), config.stop_ids.end()), config.stop_ids.end());
  return Ok{};
}

Status read_sizes(const Section& text, ModelConfig& config) {
  ESPALIER_ASSIGN(config.hidden_size, text.integer("hidden_size", 4096, 1, kMaxHiddenSize));
  ESPALIER_ASSIGN(config.intermediate_size, text.integer("intermediate_size", 12288, 1, kMaxIntermediateSize));
  ESPALIER_ASSIGN(config.num_layers, text.integer("num_hidden_layers", 32, 1, kMaxLayers));
  ESPALIER_ASSIGN(config.layer_kinds, layer_kinds(text, config.num_layers));
  ESPALIER_ASSIGN(config.vocab_rows, text.integer("vocab_size", 248320, 1, kMaxVocabRows));
  ESPALIER_ASSIGN(config.max_position_embeddings, text.integer("max_position_embeddings", 32768, 1, kMaxPositions));
  ESPALIER_ASSIGN(config.rms_norm_eps, text.number("rms_norm_eps", 1e-6, 1e-12, 0.1));
  ESPALIER_ASSIGN(config.num_heads, text.integer("num_attention_heads", 16, 1, kMaxHeads));
  ESPALIER_ASSIGN(config.num_kv_heads, text.integer("num_key_value_heads", 4, 1, kMaxHeads));
  ESPALIER_ASSIGN(config.head_dim, text.integer("head_dim", 256, 2, kMaxHeadDim));
  ESPALIER_ASSIGN(config.linear_num_key_heads, text.integer("linear_num_key_heads", 16, 1, kMaxHeads));
  ESPALIER_ASSIGN(config.linear_num_value_heads, text.integer("linear_num_value_heads", 32, 1, kMaxHeads));
  ESPALIER_ASSIGN(config.linear_key_head_dim, text.integer("linear_key_head_dim", 128, 1, kMaxHeadDim));
  ESPALIER_ASSIGN(config.linear_value_head_dim, text.integer("linear_value_head_dim", 128, 1, kMaxHeadDim));
  ESPALIER_ASSIGN(config.conv_kernel, text.integer("linear_conv_kernel_dim", 4, 2, kMaxConvKernel));
  if (config.num_heads % config.num_kv_heads != 0) {
    return make_error(ErrorCode::kCorrupt, "{}: num_attention_heads {} must be a multiple of num_key_value_heads {}", text.where,
                      config.num_heads, config.num_kv_heads);
  }
  if (config.linear_num_value_heads % config.linear_num_key_heads != 0) {
    return make_error(ErrorCode::kCorrupt, "{}: linear_num_value_heads {} must be a multiple of linear_num_key_heads {}", text.where,
                      config.linear_num_value_heads, config.linear_num_key_heads);
  }
  return Ok{};
}

}  // namespace

int32_t ModelConfig::num_linear_layers() const {
  return static_cast<int32_t>(std::count(layer_kinds.begin(), layer_kinds.end(), LayerKind::kLinearAttention));
}

Result<ModelConfig> parse_model_config(const Json& config_json, const Json* generation_config, std::string_view name) {
  if (!config_json.is_object()) return make_error(ErrorCode::kCorrupt, "{}: expected an object, found {}", name, shown(config_json));
  const Section top{config_json, std::string(name)};
  ESPALIER_ASSIGN(const std::string outer_type, top.text("model_type", ""));
  if (outer_type.empty())
    return make_error(ErrorCode::kCorrupt, "{}: 'model_type' is missing, expected \"qwen3_5\" or \"qwen3_5_text\"", name);
  ESPALIER_TRY(check_model_type(outer_type, top.where));
  const bool nested = member(config_json, "text_config") != nullptr;
  ESPALIER_ASSIGN(const Section inner, top.section("text_config"));
  const Section& text = nested ? inner : top;

  ModelConfig config;
  ESPALIER_ASSIGN(config.model_type, text.text("model_type", "qwen3_5_text"));
  ESPALIER_TRY(check_model_type(config.model_type, text.where));
  if (const Json* names = member(config_json, "architectures"); names != nullptr) {
    if (!names->is_array() || names->size() > 16 ||
        !std::all_of(names->begin(), names->end(), [](const Json& n) { return n.is_string(); })) {
      return make_error(ErrorCode::kCorrupt, "{}: 'architectures' must be a list of names, found {}", name, shown(*names));
    }
    if (!names->empty()) config.architecture = names->front().get<std::string>();
  }
  ESPALIER_TRY(refuse_quantised(top));
  ESPALIER_TRY(refuse_quantised(text));
  ESPALIER_TRY(refuse_variants(text));
  ESPALIER_TRY(read_sizes(text, config));
  ESPALIER_TRY(read_rope(text, config));
  ESPALIER_ASSIGN(config.num_mtp_layers, text.integer("mtp_num_hidden_layers", 1, 0, kMaxLayers));
  if (config.num_mtp_layers > 1) {
    return make_error(ErrorCode::kUnsupported, "{}: 'mtp_num_hidden_layers' {} is not supported, expected 0 or 1", text.where,
                      config.num_mtp_layers);
  }
  config.has_mtp = config.num_mtp_layers > 0;
  const bool stated = member(text.object, "tie_word_embeddings") != nullptr || member(top.object, "tie_word_embeddings") != nullptr;
  ESPALIER_ASSIGN(const bool inner_ties, text.boolean("tie_word_embeddings", !stated));
  ESPALIER_ASSIGN(const bool outer_ties, top.boolean("tie_word_embeddings", !stated));
  config.tie_word_embeddings = inner_ties || outer_ties;
  ESPALIER_TRY(add_stop_ids(top, config));
  if (nested) ESPALIER_TRY(add_stop_ids(text, config));
  if (generation_config != nullptr) {
    const std::string_view directory = name.substr(0, name.rfind('/') + 1);
    const Section generation{*generation_config, format("{}generation_config.json", directory)};
    if (!generation_config->is_object()) {
      return make_error(ErrorCode::kCorrupt, "{}: expected an object, found {}", generation.where, shown(*generation_config));
    }
    ESPALIER_TRY(add_stop_ids(generation, config));
  }
  return config;
}

}  // namespace espalier
