// What the server counts, and its Prometheus text. Every member may be called from every thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "http/http_server.h"
#include "server/request_record.h"

namespace espalier {

// Counts of values at most each bound, as Prometheus wants them: cumulative.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {}
  void add(double value);
  // `name` in the unit of the values; label sets do not occur.
  void append_to(std::string& text, std::string_view name, std::string_view help) const;

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;  // of each interval; the last one is open
  double sum_ = 0.0;
};

class Metrics {
 public:
  void add(const RequestRecord& record);
  // `engine` is null while the model loads.
  std::string text(const HttpServerStats& http, const EngineStats* engine) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;  // by route and status
  std::map<std::string, int64_t> finish_reasons_;
  int64_t tool_calls_ = 0;
  int64_t stray_calls_ = 0;
  int64_t empty_replies_ = 0;
  int64_t clients_gone_ = 0;
  Histogram first_token_s_{{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}};
  Histogram duration_s_{{0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}};
  Histogram queue_s_{{0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60}};
  Histogram token_s_{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1}};
};

}  // namespace espalier
