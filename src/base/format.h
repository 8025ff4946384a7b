// Text formatting: the one place that includes fmt. `espalier::format("{} rows", n)`.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/result.h"

namespace espalier {

using fmt::format;

// error(ErrorCode::kCorrupt, "{}: expected {} bytes, found {}", path, a, b)
template <typename... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> text, Args&&... args) {
  return Error{code, fmt::format(text, std::forward<Args>(args)...)};
}

}  // namespace espalier
