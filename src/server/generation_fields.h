// The fields that chat and completion requests share: sampling, limits of the reply, streaming. Pure functions.
#pragma once

#include "base/result.h"
#include "engine/request.h"
#include "server/json_fields.h"
#include "server/request_limits.h"

namespace espalier {

struct StreamFields {
  bool stream = false;
  bool include_usage = false;
};

// kInvalidArgument unless the body is an object.
Status check_body(const Json& body);
// The model asked for; empty: none.
Result<std::string> read_model_name(JsonFields& fields);

// Fills in everything but the prompt, the log-probabilities and what a tool choice adds. Without a seed a random one is drawn. Errors name
// the field.
Status read_generation_fields(JsonFields& fields, const RequestLimits& limits, const SamplingDefaults& defaults, Request& request);
Result<StreamFields> read_stream_fields(JsonFields& fields);

}  // namespace espalier
