#include "replay/replay_report.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace espalier {
namespace {

constexpr size_t kMaxLineText = 100;  // bytes of a reason or failure

double at_percent(const SeriesSummary& series, std::string_view name) {
  for (size_t i = 0; i < kPercentiles.size(); ++i) {
    if (kPercentiles[i].name == name) return series.percentiles[i];
  }
  return 0.0;
}

std::string shortened(const std::string& text) { return text.size() <= kMaxLineText ? text : text.substr(0, kMaxLineText - 3) + "..."; }

std::string line(std::string_view name, std::string_view value) { return format("{:<16}{}\n", name, value); }

std::string series_row(std::string_view name, const SeriesSummary& series) {
  if (series.count == 0) return format("{:<16}{:>12}\n", name, "no samples");
  return format("{:<16}{:>12.2f}{:>12.2f}{:>12.2f}{:>12.2f}{:>12.2f}{:>10}\n", name, series.average, series.median, at_percent(series, "90.0"),
                at_percent(series, "99.0"), series.max, series.count);
}

std::string counts(const std::map<std::string, int64_t>& by_name) {
  std::vector<std::pair<std::string, int64_t>> sorted(by_name.begin(), by_name.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, count] : sorted) text += format("{}{} {}", text.empty() ? "" : ", ", name, count);
  return text;
}

}  // namespace

double ReplayReport::hot_share() const { return prompt_tokens == 0 ? 0.0 : static_cast<double>(hot_tokens) / static_cast<double>(prompt_tokens); }

Json to_json(const ReplayReport& report) {
  Json json = Json::object();
  json["turns_ok"] = report.turns_ok;
  json["turns_failed"] = report.turns_failed;
  json["prompt_tokens"] = report.prompt_tokens;
  json["hot_tokens"] = report.hot_tokens;
  json["output_tokens"] = report.output_tokens;
  json["wall_s"] = report.wall_s;
  json["ttft_ms"] = to_json(report.ttft_ms);
  json["tpot_ms"] = to_json(report.tpot_ms);
  json["latency_ms"] = to_json(report.latency_ms);
  json["iou"] = report.iou.expected == 0 ? Json(nullptr) : Json(report.iou.score);
  json["finish_reasons"] = Json::object();
  for (const auto& [reason, count] : report.finish_reasons) json["finish_reasons"][reason] = count;
  return json;
}

std::string to_table(const ReplayReport& report) {
  std::string text = line("turns", format("{} ok, {} failed", report.turns_ok, report.turns_failed));
  text += line("prompt tokens", format("{}, {} hot ({:.3f} %)", report.prompt_tokens, report.hot_tokens, 100.0 * report.hot_share()));
  text += line("output tokens", format("{}", report.output_tokens));
  if (!report.token_counts.empty()) text += line("token counts", report.token_counts);
  text += line("wall time", format("{:.1f} s", report.wall_s));
  text += line("IoU", report.iou.expected == 0 ? std::string("no turn to score")
                                               : format("{:.4f} over {} turns, {} missing", report.iou.score, report.iou.expected, report.iou.missing));
  text += line("finish reasons", report.finish_reasons.empty() ? "none" : counts(report.finish_reasons));
  text += format("\n{:<16}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}\n", "", "average", "p50", "p90", "p99", "max", "samples");
  text += series_row("TTFT ms", report.ttft_ms);
  text += series_row("TPOT ms", report.tpot_ms);
  text += series_row("latency ms", report.latency_ms);
  if (!report.cold_reasons.empty()) text += "\nfirst cold token, turns by reason\n";
  for (const auto& [reason, count] : report.cold_reasons) text += format("{:>8}  {}\n", count, shortened(reason));
  if (!report.failures.empty()) text += "\nfailures\n";
  for (const std::string& failure : report.failures) text += format("  {}\n", shortened(failure));
  return text;
}

std::string cold_reason_kind(std::string_view explanation) {
  std::string kind;
  bool in_number = false;
  for (size_t i = 0; i < explanation.size(); ++i) {
    const bool digit = explanation[i] >= '0' && explanation[i] <= '9';
    const bool point = in_number && explanation[i] == '.' && i + 1 < explanation.size() && explanation[i + 1] >= '0' && explanation[i + 1] <= '9';
    if (digit && !in_number) kind += '#';
    in_number = digit || point;
    if (!in_number) kind += explanation[i];
  }
  return kind;
}

}  // namespace espalier
