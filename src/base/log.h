// The only writer to stderr while the program runs normally. Levels by ESPALIER_LOG=debug|info|warn|error (else info).
// Safe from every thread. spdlog stays behind log.cc.
#pragma once

#include <optional>
#include <string_view>

#include "base/format.h"

namespace espalier {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

std::optional<LogLevel> parse_log_level(std::string_view name);  // "debug", "info", "warn", "error"
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view text);

enum class LogFormat {
  kText,  // "info: ..."
  kJson,  // {"time":"2026-01-31T12:00:00.000Z","level":"info","message":"...", ...} a line
};
void set_log_format(LogFormat format);
// `fields`: the members of a JSON object, without its braces, that join the line in kJson; kText shows the text alone.
void log_event(LogLevel level, std::string_view text, std::string_view fields);

template <typename... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(LogLevel::kDebug)) log_line(LogLevel::kDebug, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(LogLevel::kInfo)) log_line(LogLevel::kInfo, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warn(fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(LogLevel::kWarn)) log_line(LogLevel::kWarn, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace espalier
