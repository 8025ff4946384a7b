#include "replay/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace espalier {
namespace {

constexpr double kMissProbability = 0.01;  // 1 - confidence

}  // namespace

SeriesSummary summarise(std::vector<double> values) {
  SeriesSummary summary;
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  const double count = static_cast<double>(values.size());
  summary.count = values.size();
  summary.total = std::accumulate(values.begin(), values.end(), 0.0);
  summary.min = values.front();
  summary.max = values.back();
  summary.average = summary.total / count;
  if (values.size() > 1) {
    double squares = 0.0;
    for (const double value : values) squares += (value - summary.average) * (value - summary.average);
    summary.standard_deviation = std::sqrt(squares / (count - 1.0));
  }
  summary.median = values[percentile_index(values.size(), 50.0)];
  for (size_t i = 0; i < kPercentiles.size(); ++i) summary.percentiles[i] = values[percentile_index(values.size(), kPercentiles[i].percent)];
  for (size_t i = 0; i < kNumEarlyStopping; ++i) {
    if (const auto index = early_stopping_index(values.size(), kPercentiles[i].percent)) summary.early_stopping[i] = values[*index];
  }
  return summary;
}

size_t percentile_index(size_t count, double percent) { return static_cast<size_t>(std::floor(static_cast<double>(count - 1) * (percent / 100.0))); }

std::optional<size_t> early_stopping_index(size_t count, double percent) {
  const double n = static_cast<double>(count);
  const double above = 1.0 - percent / 100.0;  // probability that one value exceeds the percentile
  double log_term = n * std::log1p(-above);    // of exactly t values above, t = 0; logarithms, as the first terms underflow
  double at_most = std::exp(log_term);
  size_t t = 0;
  while (t < count) {
    const double k = static_cast<double>(t);
    log_term += std::log((n - k) / (k + 1.0)) + std::log(above) - std::log1p(-above);
    at_most += std::exp(log_term);
    if (at_most >= kMissProbability) break;
    ++t;
  }
  return t == 0 ? std::nullopt : std::optional<size_t>(count - t);
}

Json to_json(const SeriesSummary& summary) {
  Json json = Json::object();
  if (summary.count == 0) return json;
  json["total"] = summary.total;
  json["min"] = summary.min;
  json["max"] = summary.max;
  json["median"] = summary.median;
  json["avg"] = summary.average;
  json["std_dev"] = summary.standard_deviation;
  for (size_t i = 0; i < kPercentiles.size(); ++i) json["percentiles"][std::string(kPercentiles[i].name)] = summary.percentiles[i];
  for (size_t i = 0; i < kNumEarlyStopping; ++i) {
    Json& entry = json["early_stopping_percentiles"][std::string(kPercentiles[i].name)];
    if (summary.early_stopping[i]) entry = *summary.early_stopping[i];
  }
  return json;
}

}  // namespace espalier
