#include "server/completion_request.h"

#include <limits>
#include <utility>

#include "base/format.h"

namespace espalier {
namespace {

Status add_prompt(const Json& prompt, const std::string& path, const Request& shared, CompletionRequest& completion) {
  Request request = shared;
  if (prompt.is_string()) {
    request.prompt = MarkedText(prompt.get_ref<const std::string&>(), Origin::kTemplate);
  } else if (prompt.is_array()) {
    ESPALIER_ASSIGN(request.prompt_ids, read_token_ids(prompt, path));
  } else {
    return wrong_field(path, "a string or a list of token ids", prompt);
  }
  if (request.prompt.empty() && request.prompt_ids.empty()) return make_error(ErrorCode::kInvalidArgument, "{}: is empty", path);
  completion.requests.push_back(std::move(request));
  return Ok{};
}

Status read_prompts(JsonFields& fields, const RequestLimits& limits, const Request& shared, CompletionRequest& completion) {
  const Json* prompt = fields.any("prompt");
  if (prompt == nullptr) return make_error(ErrorCode::kInvalidArgument, "prompt: missing");
  const bool several = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  if (!several) return add_prompt(*prompt, "prompt", shared, completion);
  if (prompt->size() > limits.max_prompts) {
    return make_error(ErrorCode::kInvalidArgument, "prompt: expected at most {} prompts, found {}", limits.max_prompts, prompt->size());
  }
  for (size_t i = 0; i < prompt->size(); ++i) ESPALIER_TRY(add_prompt((*prompt)[i], format("prompt[{}]", i), shared, completion));
  return Ok{};
}

}  // namespace

Result<std::vector<TokenId>> read_token_ids(const Json& ids, const std::string& path) {
  if (!ids.is_array()) return wrong_field(path, "a list of token ids", ids);
  std::vector<TokenId> tokens;
  tokens.reserve(ids.size());
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > std::numeric_limits<TokenId>::max()) {
      return wrong_field(format("{}[{}]", path, tokens.size()), "a token id", id);
    }
    tokens.push_back(id.get<TokenId>());
  }
  return tokens;
}

Result<CompletionRequest> read_completion_request(const Json& body, const RequestLimits& limits, const SamplingDefaults& defaults) {
  ESPALIER_TRY(check_body(body));
  JsonFields fields(body);
  CompletionRequest completion;
  ESPALIER_ASSIGN(completion.model, read_model_name(fields));
  ESPALIER_TRY(fields.refuse("suffix", "filling in the middle is not supported"));
  ESPALIER_TRY(fields.refuse("echo", "not supported", false));
  ESPALIER_TRY(fields.refuse("best_of", "not supported; use n", 1));
  ESPALIER_TRY(fields.refuse("response_format", "output is not constrained yet", {{"type", "text"}}));
  ESPALIER_TRY(fields.refuse("grammar", "constrained output is not supported yet"));
  ESPALIER_TRY(fields.refuse("json_schema", "constrained output is not supported yet"));
  Request shared;
  ESPALIER_TRY(read_generation_fields(fields, limits, defaults, shared));
  if (shared.max_new_tokens < 0 && fields.any("max_tokens") == nullptr && fields.any("max_completion_tokens") == nullptr) {
    shared.max_new_tokens = 16;  // the API's default for this route
  }
  ESPALIER_ASSIGN(completion.stream, read_stream_fields(fields));
  ESPALIER_ASSIGN(const auto logprobs, fields.integer("logprobs", 0, kMaxTopLogprobs));
  completion.logprobs = logprobs.has_value();
  if (logprobs.has_value()) shared.sampling.top_logprobs = static_cast<int32_t>(*logprobs);
  ESPALIER_TRY(read_prompts(fields, limits, shared, completion));
  for (const std::string_view name : {"user", "metadata", "store", "service_tier", "cache_prompt", "return_progress"}) fields.ignore(name);
  completion.unknown_fields = fields.unknown();
  return completion;
}

}  // namespace espalier
