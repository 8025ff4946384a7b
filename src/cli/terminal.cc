#include "cli/terminal.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.h"
#include "cli/commands.h"

namespace espalier {

Status print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return Ok{};
  return make_error(ErrorCode::kIo, "standard output: {}", std::strerror(errno));
}

Result<std::string> read_stdin(size_t max_bytes) {
  std::string text;
  char buffer[1 << 16];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, got);
    if (text.size() > max_bytes) return make_error(ErrorCode::kResourceExhausted, "standard input: more than {} bytes", max_bytes);
  }
  if (std::ferror(stdin) != 0) return make_error(ErrorCode::kIo, "standard input: {}", std::strerror(errno));
  return text;
}

int fail(const Error& error) {
  log_error("{}", error.message);
  return kExitFailure;
}

int finish(const Status& status) { return status.ok() ? 0 : fail(status.error()); }

}  // namespace espalier
