// The chat-completions request of a replayed turn, byte for byte as the official harness sends it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "replay/workload.h"

namespace espalier {

struct RequestBodyOptions {
  std::string_view model = "Qwen3.6-27B-Q4_K_M";
  double temperature = 0.0;
  int64_t max_completion_tokens = 1024;
  int64_t seed = 42;
};

// Compact JSON with the fields model, messages, temperature, max_completion_tokens, stream, seed, tools in this order (`tools` only where
// the conversation has some); non-ASCII text raw, control characters as short escapes or \u00xx.
std::string request_body(const Conversation& conversation, const ConversationTurn& turn, const RequestBodyOptions& options = {});

}  // namespace espalier
