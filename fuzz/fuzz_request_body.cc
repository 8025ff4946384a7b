// Any bytes as the body of a completion request: it is refused in one line that becomes an answer of the API, or everything it asks for lies
// within the limits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "sampling/sampling_params.h"
#include "server/api_error.h"
#include "server/chat_request.h"
#include "server/completion_request.h"

namespace espalier {
namespace {

constexpr int64_t kVocabSize = int64_t{1} << 31;  // ids beyond the real one are the engine's to refuse

void check_refusal(const Error& error) {
  ESPALIER_CHECK(error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kUnsupported);
  ESPALIER_CHECK(!error.message.empty() && error.message.find('\n') == std::string::npos);
  const HttpResponse answer = to_response(error_of_request(error));
  ESPALIER_CHECK(answer.status == 400);
  const Result<Json> body = parse_json(answer.body, "answer");
  ESPALIER_CHECK(body.ok() && body->at("error").at("message").is_string());
}

void check_request(const Request& request, const RequestLimits& limits) {
  ESPALIER_CHECK(validate(request.sampling, kVocabSize).ok());
  ESPALIER_CHECK(request.num_choices >= 1 && request.num_choices <= limits.max_choices);
  ESPALIER_CHECK(request.max_new_tokens == -1 || request.max_new_tokens > 0);
  ESPALIER_CHECK(request.stop.size() <= limits.max_stops);
  for (const std::string& stop : request.stop) ESPALIER_CHECK(!stop.empty() && stop.size() <= kMaxStopBytes);
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const RequestLimits limits;
  const Result<Json> body = parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "the body", {.max_depth = limits.max_json_depth});
  if (!body.ok()) return 0;
  const Result<ChatRequest> chat = read_chat_request(*body, limits, {}, Thinking::kOff);
  if (chat.ok()) {
    check_request(chat->request, limits);
    ESPALIER_CHECK(!chat->input.messages.empty());
    ESPALIER_CHECK(chat->required_names.empty() || chat->tools != nullptr);
    ESPALIER_CHECK(!chat->suppress_calls || chat->tools == nullptr);
  } else {
    check_refusal(chat.error());
  }
  const Result<CompletionRequest> completion = read_completion_request(*body, limits, {});
  if (completion.ok()) {
    ESPALIER_CHECK(!completion->requests.empty() && completion->requests.size() <= limits.max_prompts);
    for (const Request& request : completion->requests) {
      check_request(request, limits);
      ESPALIER_CHECK(request.prompt.empty() != request.prompt_ids.empty());
    }
  } else {
    check_refusal(completion.error());
  }
  return 0;
}
