#include "sampling/sampling_params.h"

#include <cmath>
#include <string_view>

#include "base/format.h"

namespace espalier {
namespace {

Status in_range(std::string_view field, double value, double low, double high) {
  if (std::isfinite(value) && value >= low && value <= high) return Ok{};
  return make_error(ErrorCode::kInvalidArgument, "{}: {} is outside [{}, {}]", field, value, low, high);
}

}  // namespace

Status validate(const SamplingParams& params, int64_t vocab_size) {
  ESPALIER_TRY(in_range("temperature", params.temperature, 0.0, 100.0));
  ESPALIER_TRY(in_range("top_k", params.top_k, 0, 1 << 30));
  ESPALIER_TRY(in_range("top_p", params.top_p, 0.0, 1.0));
  ESPALIER_TRY(in_range("min_p", params.min_p, 0.0, 1.0));
  ESPALIER_TRY(in_range("presence_penalty", params.presence_penalty, -100.0, 100.0));
  ESPALIER_TRY(in_range("frequency_penalty", params.frequency_penalty, -100.0, 100.0));
  ESPALIER_TRY(in_range("repetition_penalty", params.repetition_penalty, 0.01, 100.0));
  ESPALIER_TRY(in_range("top_logprobs", params.top_logprobs, -1, kMaxTopLogprobs));
  if (params.logit_bias.size() > kMaxLogitBias) {
    return make_error(ErrorCode::kInvalidArgument, "logit_bias: {} entries, at most {} are taken", params.logit_bias.size(), kMaxLogitBias);
  }
  for (const auto& [token, bias] : params.logit_bias) {
    if (token < 0 || token >= vocab_size) {
      return make_error(ErrorCode::kInvalidArgument, "logit_bias: token {} is outside the vocabulary of {}", token, vocab_size);
    }
    ESPALIER_TRY(in_range("logit_bias", bias, -1000.0, 1000.0));
  }
  return Ok{};
}

}  // namespace espalier
