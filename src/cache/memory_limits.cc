#include "cache/memory_limits.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/format.h"

namespace espalier {
namespace {

constexpr size_t kMaxProcFile = size_t{1} << 20;
constexpr size_t kLeastReserve = size_t{256} << 20;

std::optional<size_t> leading_number(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  size_t value = 0;
  const auto parsed = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

// The number behind `key` at the beginning of a line: "MemAvailable:   123 kB", "inactive_file 456".
std::optional<size_t> field(std::string_view text, std::string_view key) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.starts_with(key) && line.size() > key.size()) return leading_number(line.substr(key.size()));
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<size_t> number_in(const std::string& path) {
  const Result<std::string> text = read_file(path, kMaxProcFile);
  if (!text.ok()) return std::nullopt;
  return leading_number(*text);  // "max" is no number: no limit
}

// What the group in `directory` may still take; nothing if it has no limit.
std::optional<size_t> group_room(const std::string& directory, std::string_view limit_file, std::string_view usage_file,
                                 std::string_view droppable_key) {
  const auto limit = number_in(format("{}/{}", directory, limit_file));
  if (!limit.has_value()) return std::nullopt;
  const size_t usage = number_in(format("{}/{}", directory, usage_file)).value_or(0);
  const Result<std::string> stat = read_file(directory + "/memory.stat", kMaxProcFile);
  const size_t droppable = stat.ok() ? field(*stat, droppable_key).value_or(0) : 0;
  const size_t used = usage - std::min(usage, droppable);
  return *limit - std::min(*limit, used);
}

// Lowers `limits` to the room of the group at `base` + `path` and of all its parents.
void apply_groups(MemoryLimits& limits, const std::string& base, std::string path, std::string_view limit_file, std::string_view usage_file,
                  std::string_view droppable_key) {
  while (true) {
    const std::string directory = base + (path == "/" ? "" : path);
    const auto room = group_room(directory, limit_file, usage_file, droppable_key);
    if (room.has_value() && *room < limits.available_bytes) {
      limits = {*room, format("{}/{}", directory, limit_file)};
    }
    const size_t slash = path.rfind('/');
    if (path.empty() || path == "/" || slash == std::string::npos) return;
    path = path.substr(0, slash);
  }
}

}  // namespace

Result<MemoryLimits> read_memory_limits(const std::string& root) {
  ESPALIER_ASSIGN(const std::string meminfo, read_file(root + "/proc/meminfo", kMaxProcFile));
  const auto available_kb = field(meminfo, "MemAvailable:");
  if (!available_kb.has_value()) return make_error(ErrorCode::kIo, "{}/proc/meminfo: MemAvailable is missing", root);
  MemoryLimits limits{*available_kb * 1024, "MemAvailable"};

  const Result<std::string> groups = read_file(root + "/proc/self/cgroup", kMaxProcFile);
  if (!groups.ok()) return limits;  // a kernel without control groups
  const std::string_view text = *groups;
  for (size_t begin = 0; begin < text.size();) {  // lines of "ID:CONTROLLERS:PATH"
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) {
      apply_groups(limits, root + "/sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file ");
    } else if (format(",{},", controllers).find(",memory,") != std::string::npos) {
      apply_groups(limits, root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ");
    }
  }
  return limits;
}

size_t default_cache_budget(size_t available_bytes, size_t planned_bytes) {
  const size_t left = available_bytes - std::min(available_bytes, planned_bytes);
  const size_t reserve = std::max(left / 8, kLeastReserve);
  return left - std::min(left, reserve);
}

}  // namespace espalier
