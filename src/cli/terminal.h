// What a command prints: results to stdout whole or not at all, errors as one line to stderr.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier {

// Writes and flushes; a full disk or a closed pipe is an error that says so.
Status print(std::string_view text);
// All of stdin, at most `max_bytes`.
Result<std::string> read_stdin(size_t max_bytes);
// Logs the error and returns the exit code for it.
int fail(const Error& error);
// The exit code of a finished command.
int finish(const Status& status);

}  // namespace espalier
