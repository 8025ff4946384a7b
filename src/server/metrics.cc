#include "server/metrics.h"

#include <algorithm>

#include "base/format.h"

namespace espalier {
namespace {

// Label values come from us, but an error code may be anything some day.
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void append_head(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  text += format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <typename Number>
void append_one(std::string& text, std::string_view name, std::string_view type, std::string_view help, Number value) {
  append_head(text, name, type, help);
  text += format("{} {}\n", name, value);
}

}  // namespace

void Histogram::add(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void Histogram::append_to(std::string& text, std::string_view name, std::string_view help) const {
  append_head(text, name, "histogram", help);
  int64_t count = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    count += counts_[i];
    text += format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], count);
  }
  count += counts_.back();
  text += format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, count, name, sum_, name, count);
}

void Metrics::add(const RequestRecord& record) {
  const std::lock_guard lock(mutex_);
  ++requests_[{record.route, record.status}];
  if (!record.generated) return;
  if (!record.finish_reason.empty()) ++finish_reasons_[record.finish_reason];
  tool_calls_ += record.tool_calls;
  stray_calls_ += record.stray_call ? 1 : 0;
  empty_replies_ += record.empty_reply ? 1 : 0;
  clients_gone_ += record.client_gone ? 1 : 0;
  duration_s_.add(record.total_ms / 1000.0);
  queue_s_.add(record.stats.queue_ms / 1000.0);
  if (!record.first_token_ms.has_value()) return;
  first_token_s_.add(*record.first_token_ms / 1000.0);
  if (record.stats.output_tokens > 1) {
    token_s_.add((record.total_ms - *record.first_token_ms) / 1000.0 / static_cast<double>(record.stats.output_tokens - 1));
  }
}

std::string Metrics::text(const HttpServerStats& http, const EngineStats* engine) const {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    append_head(text, "espalier_requests_total", "counter", "Answered requests by route and status.");
    for (const auto& [key, count] : requests_) {
      text += format("espalier_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", label_value(key.first), key.second, count);
    }
    append_head(text, "espalier_finish_reasons_total", "counter", "Generated replies by the reason of their end.");
    for (const auto& [reason, count] : finish_reasons_) {
      text += format("espalier_finish_reasons_total{{reason=\"{}\"}} {}\n", label_value(reason), count);
    }
    append_one(text, "espalier_tool_calls_total", "counter", "Tool calls in replies.", tool_calls_);
    append_one(text, "espalier_stray_calls_total", "counter", "Replies with markup of a tool call that was none and stayed text.", stray_calls_);
    append_one(text, "espalier_empty_replies_total", "counter", "Replies without any text or call.", empty_replies_);
    append_one(text, "espalier_clients_gone_total", "counter", "Requests whose client left before the end.", clients_gone_);
    first_token_s_.append_to(text, "espalier_time_to_first_token_seconds", "Request read to first token.");
    token_s_.append_to(text, "espalier_time_per_output_token_seconds", "Mean time of each further token of a reply.");
    duration_s_.append_to(text, "espalier_request_duration_seconds", "Request read to end of the reply.");
    queue_s_.append_to(text, "espalier_queue_seconds", "Time in the queue before the first computation.");
  }
  append_one(text, "espalier_http_connections", "gauge", "Open connections.", http.connections_open);
  append_one(text, "espalier_http_connections_total", "counter", "Accepted connections.", http.connections_accepted);
  append_one(text, "espalier_http_refused_total", "counter", "Requests refused before their body was read.", http.refused);
  append_one(text, "espalier_ready", "gauge", "1 once the model is loaded.", engine == nullptr ? 0 : 1);
  if (engine == nullptr) return text;
  append_one(text, "espalier_prompt_tokens_total", "counter", "Tokens of prompts.", engine->prompt_tokens);
  append_one(text, "espalier_hot_tokens_total", "counter", "Prompt tokens taken from the cache.", engine->hot_tokens);
  append_one(text, "espalier_computed_tokens_total", "counter", "Prompt tokens computed.", engine->computed_tokens);
  append_one(text, "espalier_output_tokens_total", "counter", "Tokens of replies.", engine->output_tokens);
  append_one(text, "espalier_steps_total", "counter", "Forward passes.", engine->steps);
  append_one(text, "espalier_preemptions_total", "counter", "Sequences set aside for waiting ones.", engine->preemptions);
  append_one(text, "espalier_running", "gauge", "Sequences being computed.", engine->running);
  append_one(text, "espalier_queued", "gauge", "Sequences waiting.", engine->queued);
  append_one(text, "espalier_cache_bytes", "gauge", "Bytes of keys, values and states held.", engine->cache_bytes);
  append_one(text, "espalier_cache_budget_bytes", "gauge", "The most they may be.", engine->cache_budget);
  append_one(text, "espalier_cache_snapshots", "gauge", "Resumable prefixes.", engine->snapshots);
  append_head(text, "espalier_cache_evictions_total", "counter", "Resumable prefixes dropped, by reason.");
  for (const auto& [reason, count] : engine->evictions_by_reason) {
    text += format("espalier_cache_evictions_total{{reason=\"{}\"}} {}\n", label_value(reason), count);
  }
  return text;
}

}  // namespace espalier
