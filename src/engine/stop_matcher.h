// Ends a reply before the first stop string, whatever the pieces it arrives in. Text that may still become a stop string is held back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espalier {

class StopMatcher {
 public:
  StopMatcher() = default;
  explicit StopMatcher(std::vector<std::string> stops);  // empty strings are ignored

  struct Result {
    std::string text;      // may be shown now
    bool stopped = false;  // a stop string was completed; nothing from it on is ever shown
  };
  Result push(std::string_view piece);
  std::string flush();  // what was held back, when the reply ends another way

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace espalier
