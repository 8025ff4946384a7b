// A body of /v1/completions, read and checked. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "engine/request.h"
#include "server/generation_fields.h"
#include "server/request_limits.h"

namespace espalier {

struct CompletionRequest {
  std::string model;
  std::vector<Request> requests;  // one a prompt, in order
  StreamFields stream;
  bool logprobs = false;
  std::vector<std::string> unknown_fields;
};

// `prompt`: a text, a list of texts, a list of token ids, or a list of such lists. Text is taken as the template would write it: what spells
// a control token is one. Errors: kInvalidArgument and kUnsupported, both name the field.
Result<CompletionRequest> read_completion_request(const Json& body, const RequestLimits& limits, const SamplingDefaults& defaults);

// A list of token ids; `path` names it in errors.
Result<std::vector<TokenId>> read_token_ids(const Json& ids, const std::string& path);

}  // namespace espalier
