#include "base/result.h"

#include <cstdio>

namespace espalier {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kResourceExhausted: return "resource exhausted";
    case ErrorCode::kContextLength: return "context length exceeded";
    case ErrorCode::kIo: return "input/output";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

void check_failed(const char* file, int line, std::string_view what) {
  std::fprintf(stderr, "espalier: internal error at %s:%d: %.*s\n", file, line, static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace espalier
