#include "server/json_fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"

namespace espalier {
namespace {

constexpr size_t kShownBytes = 60;

// A number as an integer; 3.0 is one, 3.5 and 1e300 are none.
std::optional<int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!(number >= -kExact && number <= kExact) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

}  // namespace

std::string short_json(const Json& value) {
  if (value.is_object()) return value.empty() ? "{}" : format("an object of {} members", value.size());
  if (value.is_array()) return value.empty() ? "[]" : format("a list of {}", value.size());
  if (!value.is_string() || value.get_ref<const std::string&>().size() <= kShownBytes) return dump_json(value);
  return dump_json(Json(utf8_prefix(value.get_ref<const std::string&>(), kShownBytes))) + "...";
}

Error wrong_field(std::string_view path, std::string_view expected, const Json& found) {
  return make_error(ErrorCode::kInvalidArgument, "{}: expected {}, found {}", path, expected, short_json(found));
}

const Json* JsonFields::any(std::string_view name) {
  known_.insert(std::string(name));
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

Result<std::optional<int64_t>> JsonFields::integer(std::string_view name, int64_t low, int64_t high) {
  const Json* value = any(name);
  if (value == nullptr) return std::optional<int64_t>();
  const std::optional<int64_t> number = as_integer(*value);
  if (!number.has_value() || *number < low || *number > high) return wrong_field(path(name), format("an integer in [{}, {}]", low, high), *value);
  return number;
}

Result<std::optional<double>> JsonFields::number(std::string_view name, double low, double high) {
  const Json* value = any(name);
  if (value == nullptr) return std::optional<double>();
  if (value->is_number()) {
    if (const auto number = value->get<double>(); number >= low && number <= high) return std::optional<double>(number);
  }
  return wrong_field(path(name), format("a number in [{}, {}]", low, high), *value);
}

Result<std::optional<bool>> JsonFields::boolean(std::string_view name) {
  const Json* value = any(name);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return wrong_field(path(name), "true or false", *value);
  return std::optional<bool>(value->get<bool>());
}

Result<std::optional<std::string>> JsonFields::string(std::string_view name, size_t max_bytes) {
  const Json* value = any(name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong_field(path(name), "a string", *value);
  const std::string& text = value->get_ref<const std::string&>();
  if (text.size() > max_bytes) {
    return make_error(ErrorCode::kInvalidArgument, "{}: expected at most {} bytes, found {}", path(name), max_bytes, text.size());
  }
  return std::optional<std::string>(text);
}

Result<const Json*> JsonFields::object(std::string_view name) {
  const Json* value = any(name);
  if (value != nullptr && !value->is_object()) return wrong_field(path(name), "an object", *value);
  return value;
}

Result<const Json*> JsonFields::array(std::string_view name, size_t max_size) {
  const Json* value = any(name);
  if (value == nullptr) return value;
  if (!value->is_array()) return wrong_field(path(name), "a list", *value);
  if (value->size() > max_size) {
    return make_error(ErrorCode::kInvalidArgument, "{}: expected at most {} entries, found {}", path(name), max_size, value->size());
  }
  return value;
}

Status JsonFields::refuse(std::string_view name, std::string_view reason, const Json& harmless) {
  const Json* value = any(name);
  if (value == nullptr || *value == harmless) return Ok{};
  return make_error(ErrorCode::kUnsupported, "{}: {}", path(name), reason);
}

std::vector<std::string> JsonFields::unknown() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key)) names.push_back(key);
  }
  return names;
}

}  // namespace espalier
