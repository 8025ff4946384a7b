// What is remembered of one answered request: a line of the log, and the numbers behind /metrics. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "engine/request.h"

namespace espalier {

struct RequestRecord {
  std::string method = {};
  std::string route = {};     // the route as it is named in the documentation, or "other"
  std::string peer = {};
  std::string id = {};             // of the reply; empty where there is none
  int status = 0;
  std::string error = {};          // what was wrong; empty: nothing
  double total_ms = 0.0;      // request read to answer handed over

  // Of a request that reached the engine.
  bool generated = false;
  bool stream = false;
  bool client_gone = false;
  bool empty_reply = false;
  bool stray_call = false;
  int64_t tool_calls = 0;
  std::string finish_reason = {};
  std::optional<double> first_token_ms = {};  // request read to first token
  RequestStats stats = {};
  std::string text = {};  // of the reply as the model wrote it, where logging asks for it
};

// The unit of the times above.
double ms_since(std::chrono::steady_clock::time_point start);

// "POST /v1/chat/completions 200 812 ms: 23456 prompt tokens (23001 hot), 89 new, first after 61 ms, tool_calls"
std::string log_text(const RequestRecord& record);
Json log_fields(const RequestRecord& record);

}  // namespace espalier
