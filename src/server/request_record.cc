#include "server/request_record.h"

#include <cmath>

#include "base/format.h"

namespace espalier {
namespace {

double tenths(double ms) { return std::round(ms * 10.0) / 10.0; }

}  // namespace

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::string log_text(const RequestRecord& record) {
  std::string text = format("{} {} {} {:.1f} ms", record.method, record.route, record.status, record.total_ms);
  if (record.generated) {
    text += format(": {} prompt tokens ({} hot), {} new", record.stats.prompt_tokens, record.stats.hot_tokens, record.stats.output_tokens);
    if (record.first_token_ms.has_value()) text += format(", first after {:.1f} ms", *record.first_token_ms);
    if (record.client_gone) {
      text += ", client gone";
    } else if (!record.finish_reason.empty()) {
      text += ", " + record.finish_reason;
    }
    if (!record.stats.cold_reason.empty()) text += "; cold: " + record.stats.cold_reason;
  }
  if (!record.error.empty()) text += ": " + record.error;
  return text;
}

Json log_fields(const RequestRecord& record) {
  Json fields = {{"method", record.method}, {"route", record.route}, {"status", record.status}, {"peer", record.peer}, {"total_ms", tenths(record.total_ms)}};
  if (!record.id.empty()) fields["id"] = record.id;
  if (!record.error.empty()) fields["error"] = record.error;
  if (record.generated) {
    fields["stream"] = record.stream;
    fields["prompt_tokens"] = record.stats.prompt_tokens;
    fields["cached_tokens"] = record.stats.hot_tokens;
    fields["completion_tokens"] = record.stats.output_tokens;
    fields["queue_ms"] = tenths(record.stats.queue_ms);
    fields["first_token_ms"] = record.first_token_ms.has_value() ? Json(tenths(*record.first_token_ms)) : Json(nullptr);
    fields["finish_reason"] = record.finish_reason;
    fields["tool_calls"] = record.tool_calls;
    fields["client_gone"] = record.client_gone;
    if (!record.stats.cold_reason.empty()) fields["cold_reason"] = record.stats.cold_reason;
  }
  return fields;
}

}  // namespace espalier
