#include "server/generation_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>
#include <utility>

#include "base/format.h"

namespace espalier {
namespace {

constexpr size_t kMaxModelNameBytes = 1024;
constexpr int64_t kMostTokens = int64_t{1} << 40;  // whatever the context: the engine cuts replies there

Result<std::vector<std::string>> read_stops(JsonFields& fields, size_t max_stops) {
  std::vector<std::string> stops;
  const Json* stop = fields.any("stop");
  if (stop == nullptr) return stops;
  const auto add = [&](const Json& text, const std::string& path) -> Status {
    if (!text.is_string()) return wrong_field(path, "a string", text);
    const std::string& value = text.get_ref<const std::string&>();
    if (value.empty()) return Ok{};  // clients fill lists with empty strings; none ever stops a reply
    if (value.size() > kMaxStopBytes) {
      return make_error(ErrorCode::kInvalidArgument, "{}: expected at most {} bytes, found {}", path, kMaxStopBytes, value.size());
    }
    stops.push_back(value);
    return Ok{};
  };
  if (stop->is_array()) {
    if (stop->size() > max_stops) {
      return make_error(ErrorCode::kInvalidArgument, "stop: expected at most {} entries, found {}", max_stops, stop->size());
    }
    for (size_t i = 0; i < stop->size(); ++i) ESPALIER_TRY(add((*stop)[i], format("stop[{}]", i)));
  } else {
    ESPALIER_TRY(add(*stop, "stop"));
  }
  return stops;
}

// {"50256": -100, ...}
Result<std::vector<std::pair<TokenId, float>>> read_logit_bias(JsonFields& fields, size_t max_entries) {
  std::vector<std::pair<TokenId, float>> biases;
  ESPALIER_ASSIGN(const Json* object, fields.object("logit_bias"));
  if (object == nullptr) return biases;
  if (object->size() > max_entries) {
    return make_error(ErrorCode::kInvalidArgument, "logit_bias: expected at most {} entries, found {}", max_entries, object->size());
  }
  for (const auto& [key, value] : object->items()) {
    TokenId token = -1;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), token);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || token < 0) {
      return make_error(ErrorCode::kInvalidArgument, "logit_bias: expected a token id as key, found {}", short_json(Json(key)));
    }
    if (!value.is_number()) return wrong_field("logit_bias." + key, "a number", value);
    const auto bias = value.get<double>();
    if (!(bias >= -100.0 && bias <= 100.0)) return wrong_field("logit_bias." + key, "a number in [-100, 100]", value);
    biases.emplace_back(token, static_cast<float>(bias));
  }
  return biases;
}

// The newer name wins where both are given.
Result<int64_t> read_max_tokens(JsonFields& fields) {
  ESPALIER_ASSIGN(const std::optional<int64_t> older, fields.integer("max_tokens", -1, kMostTokens));
  ESPALIER_ASSIGN(const std::optional<int64_t> newer, fields.integer("max_completion_tokens", -1, kMostTokens));
  return newer.value_or(older.value_or(-1));
}

}  // namespace

Status check_body(const Json& body) {
  if (body.is_object()) return Ok{};
  return make_error(ErrorCode::kInvalidArgument, "the body must be a JSON object, found {}", short_json(body));
}

Result<std::string> read_model_name(JsonFields& fields) {
  ESPALIER_ASSIGN(const auto model, fields.string("model", kMaxModelNameBytes));
  return model.value_or("");
}

Status read_generation_fields(JsonFields& fields, const RequestLimits& limits, const SamplingDefaults& defaults, Request& request) {
  SamplingParams& sampling = request.sampling;
  ESPALIER_ASSIGN(const auto temperature, fields.number("temperature", 0.0, 100.0));
  ESPALIER_ASSIGN(const auto top_p, fields.number("top_p", 0.0, 1.0));
  ESPALIER_ASSIGN(const auto top_k, fields.integer("top_k", -1, 1 << 30));
  ESPALIER_ASSIGN(const auto min_p, fields.number("min_p", 0.0, 1.0));
  ESPALIER_ASSIGN(const auto presence, fields.number("presence_penalty", -2.0, 2.0));
  ESPALIER_ASSIGN(const auto frequency, fields.number("frequency_penalty", -2.0, 2.0));
  ESPALIER_ASSIGN(const auto repetition, fields.number("repetition_penalty", 0.01, 100.0));
  sampling.temperature = temperature.value_or(defaults.temperature);
  sampling.top_p = top_p.value_or(defaults.top_p);
  sampling.top_k = static_cast<int32_t>(std::max<int64_t>(0, top_k.value_or(defaults.top_k)));  // -1 and 0 both mean off
  sampling.min_p = min_p.value_or(defaults.min_p);
  sampling.presence_penalty = presence.value_or(0.0);
  sampling.frequency_penalty = frequency.value_or(0.0);
  sampling.repetition_penalty = repetition.value_or(defaults.repetition_penalty);
  ESPALIER_ASSIGN(sampling.logit_bias, read_logit_bias(fields, limits.max_logit_bias));
  ESPALIER_ASSIGN(const auto seed, fields.integer("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
  sampling.seed = seed.has_value() ? static_cast<uint64_t>(*seed) : (uint64_t{std::random_device()()} << 32 | std::random_device()());

  ESPALIER_ASSIGN(const auto choices, fields.integer("n", 1, limits.max_choices));
  request.num_choices = static_cast<int32_t>(choices.value_or(1));
  ESPALIER_ASSIGN(request.max_new_tokens, read_max_tokens(fields));
  if (request.max_new_tokens == 0) return make_error(ErrorCode::kInvalidArgument, "max_tokens: expected at least 1, found 0");
  ESPALIER_ASSIGN(request.stop, read_stops(fields, limits.max_stops));
  ESPALIER_ASSIGN(const auto ignore_eos, fields.boolean("ignore_eos"));
  request.ignore_eos = ignore_eos.value_or(false);
  return Ok{};
}

Result<StreamFields> read_stream_fields(JsonFields& fields) {
  StreamFields result;
  ESPALIER_ASSIGN(const auto stream, fields.boolean("stream"));
  result.stream = stream.value_or(false);
  ESPALIER_ASSIGN(const Json* options, fields.object("stream_options"));
  if (options == nullptr) return result;
  JsonFields option_fields(*options, "stream_options");
  ESPALIER_ASSIGN(const auto include_usage, option_fields.boolean("include_usage"));
  result.include_usage = include_usage.value_or(false);
  return result;
}

}  // namespace espalier
