#include "base/json.h"

#include <charconv>
#include <cmath>

#include "base/file.h"
#include "base/format.h"

namespace espalier {
namespace {

// Refuses documents deeper than the limit before nlohmann builds them, and records the reader's own error without exceptions.
class DepthCheck : public nlohmann::json_sax<Json> {
 public:
  explicit DepthCheck(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t value, const string_t& text) override {
    if (std::isfinite(value)) return true;
    message = format("number out of range: {}", text.substr(0, 40));
    return false;
  }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t position, const std::string& last_token, const nlohmann::detail::exception&) override {
    message = format("not valid JSON at byte {}, near '{}'", position, printable(last_token));
    return false;
  }

  std::string message;

 private:
  static std::string printable(const std::string& token) {
    std::string out;
    for (const char c : token.substr(token.size() > 24 ? token.size() - 24 : 0)) out += (c >= 0x20 && c < 0x7f) ? c : '.';
    return out;
  }
  bool enter() {
    if (++depth_ <= max_depth_) return true;
    message = format("nested deeper than {} levels", max_depth_);
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }

  int max_depth_;
  int depth_ = 0;
};

void append_float(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void append_value(std::string& out, const Json& value) {
  if (value.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) out += ',';
      first = false;
      out += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace);
      out += ':';
      append_value(out, member);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i != 0) out += ',';
      append_value(out, value[i]);
    }
    out += ']';
  } else if (value.is_number_float()) {
    append_float(out, value.get<double>());
  } else {
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

Result<const Json*> member(const Json& object, std::string_view key, std::string_view where) {
  if (!object.is_object()) return make_error(ErrorCode::kCorrupt, "{}: expected an object, found {}", where, object.type_name());
  const auto found = object.find(std::string(key));
  if (found == object.end()) return make_error(ErrorCode::kCorrupt, "{}: '{}' is missing", where, key);
  return &*found;
}

Error wrong_type(std::string_view where, std::string_view key, std::string_view wanted, const Json& found) {
  return make_error(ErrorCode::kCorrupt, "{}: '{}' must be {}, found {}", where, key, wanted, dump_json(found).substr(0, 60));
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return make_error(ErrorCode::kCorrupt, "{}: {} bytes of JSON exceed the limit of {}", name, text.size(), limits.max_bytes);
  }
  DepthCheck check(limits.max_depth);
  if (!Json::sax_parse(text.begin(), text.end(), &check)) return make_error(ErrorCode::kCorrupt, "{}: {}", name, check.message);
  Json document = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return make_error(ErrorCode::kCorrupt, "{}: not valid JSON", name);
  return document;
}

Result<Json> load_json(const std::string& path, const JsonLimits& limits) {
  ESPALIER_ASSIGN(const std::string text, read_file(path, limits.max_bytes));
  return parse_json(text, path, limits);
}

std::string dump_json(const Json& value) {
  std::string out;
  append_value(out, value);
  return out;
}

Result<int64_t> json_int(const Json& object, std::string_view key, std::string_view where) {
  ESPALIER_ASSIGN(const Json* found, member(object, key, where));
  if (found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return wrong_type(where, key, "a 64-bit integer", *found);
  if (found->is_number_integer()) return found->get<int64_t>();
  return wrong_type(where, key, "an integer", *found);
}

Result<double> json_number(const Json& object, std::string_view key, std::string_view where) {
  ESPALIER_ASSIGN(const Json* found, member(object, key, where));
  if (found->is_number()) return found->get<double>();
  return wrong_type(where, key, "a number", *found);
}

Result<bool> json_bool(const Json& object, std::string_view key, std::string_view where) {
  ESPALIER_ASSIGN(const Json* found, member(object, key, where));
  if (found->is_boolean()) return found->get<bool>();
  return wrong_type(where, key, "true or false", *found);
}

Result<std::string> json_string(const Json& object, std::string_view key, std::string_view where) {
  ESPALIER_ASSIGN(const Json* found, member(object, key, where));
  if (found->is_string()) return found->get<std::string>();
  return wrong_type(where, key, "a string", *found);
}

}  // namespace espalier
