// What one request may ask for. Defaults suit agents; every one of them is a flag of `espalier serve` and stands in /props.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chat/messages.h"

namespace espalier {

struct RequestLimits {
  int64_t max_choices = 16;        // n, of a request
  size_t max_prompts = 64;         // of a completion request
  size_t max_stops = 16;
  size_t max_logit_bias = 1024;
  int max_json_depth = 100;        // of a body
  size_t max_template_steps = size_t{20} << 20;
  MessageLimits messages = {};     // count, tools, nesting, bytes
};

// Where neither the request nor the model's generation_config.json says anything.
struct SamplingDefaults {
  double temperature = 1.0;
  int32_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
};

}  // namespace espalier
