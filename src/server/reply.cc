#include "server/reply.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/utf8.h"

namespace espalier {
namespace {

double rounded_ms(double ms) { return std::round(ms * 1000.0) / 1000.0; }

}  // namespace

Json reply_document(const ReplyHead& head, std::string_view object, Json choices) {
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}, {"choices", std::move(choices)}};
}

std::string sse_frame(const Json& document) { return "data: " + dump_json(document) + "\n\n"; }

std::string sse_error(const ApiError& error) {
  std::string frames = sse_frame(to_json(error));
  frames += kSseDone;
  return frames;
}

Json usage_json(const RequestStats& stats) {
  return {{"prompt_tokens", stats.prompt_tokens},
          {"completion_tokens", stats.output_tokens},
          {"total_tokens", stats.prompt_tokens + stats.output_tokens},
          {"prompt_tokens_details", {{"cached_tokens", stats.hot_tokens}}}};
}

Json details_json(const RequestStats& stats) {
  return {{"prompt_tokens", stats.prompt_tokens},
          {"cached_tokens", stats.hot_tokens},
          {"completion_tokens", stats.output_tokens},
          {"adopted_tokens", stats.adopted_tokens},
          {"cold_reason", stats.cold_reason.empty() ? Json(nullptr) : Json(stats.cold_reason)},
          {"preemptions", stats.preemptions},
          {"timings",
           {{"queue_ms", rounded_ms(stats.queue_ms)}, {"first_token_ms", rounded_ms(stats.first_token_ms)}, {"total_ms", rounded_ms(stats.total_ms)}}}};
}

Json logprob_json(const Tokenizer& tokenizer, TokenId token, float logprob) {
  const std::string_view text = tokenizer.token_bytes(token);
  Json bytes = Json::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  // -infinity has no number in JSON; the API uses this one for "practically never".
  const double shown = std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0;
  return {{"token", replace_invalid_utf8(text)}, {"logprob", shown}, {"bytes", std::move(bytes)}};
}

std::vector<Json> LogprobQueue::take() {
  const size_t end = std::min(shown_, entries_.size());
  std::vector<Json> taken(std::make_move_iterator(entries_.begin() + static_cast<ptrdiff_t>(taken_)),
                          std::make_move_iterator(entries_.begin() + static_cast<ptrdiff_t>(end)));
  taken_ = end;
  return taken;
}

}  // namespace espalier
