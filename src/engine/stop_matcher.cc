#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace espalier {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

StopMatcher::Result StopMatcher::push(std::string_view piece) {
  held_ += piece;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    Result result{held_.substr(0, first), true};
    held_.clear();
    return result;
  }
  size_t keep = 0;  // longest suffix that begins some stop string
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) keep = length;
    }
  }
  Result result{held_.substr(0, held_.size() - keep), false};
  held_.erase(0, held_.size() - keep);
  return result;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace espalier
