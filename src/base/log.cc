#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/json.h"

namespace espalier {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

constexpr const char* kTextPattern = "%^%l%$: %v";
std::atomic<bool> as_json = false;

std::string utc_time() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                     parts.tm_sec, ms);
}

spdlog::logger& logger() {
  static const auto instance = [] {
    auto created = spdlog::stderr_color_mt("espalier");
    created->set_pattern(kTextPattern);
    const char* wanted = std::getenv("ESPALIER_LOG");
    created->set_level(to_spdlog(parse_log_level(wanted ? wanted : "").value_or(LogLevel::kInfo)));
    return created;
  }();
  return *instance;
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warn") return LogLevel::kWarn;
  if (name == "error") return LogLevel::kError;
  return std::nullopt;
}

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }
bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }
void log_line(LogLevel level, std::string_view text) { log_event(level, text, {}); }

void set_log_format(LogFormat format) {
  as_json = format == LogFormat::kJson;
  logger().set_pattern(as_json ? "%v" : kTextPattern);
}

void log_event(LogLevel level, std::string_view text, std::string_view fields) {
  if (!log_enabled(level)) return;
  if (!as_json) {
    logger().log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
    return;
  }
  const auto level_name = spdlog::level::to_string_view(to_spdlog(level));
  std::string line = fmt::format("{{\"time\":\"{}\",\"level\":\"{}\",\"message\":{}", utc_time(), std::string_view(level_name.data(), level_name.size()),
                                 dump_json(Json(std::string(text))));
  if (!fields.empty()) {
    line += ',';
    line += fields;
  }
  line += '}';
  logger().log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace espalier
