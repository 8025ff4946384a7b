#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"

namespace espalier {
namespace {

using MemberList = std::vector<Json::object_t::value_type>;  // the base class of ordered_map: appends without a search
constexpr size_t kScanKeysUpTo = 16;  // members of an object whose keys are compared pair by pair

// Keeps one member per key: the last value, in the place of the first. Returns a key that occurred twice, if one did.
std::optional<std::string> remove_duplicate_keys(Json::object_t& object) {
  const size_t size = object.size();
  const auto member = [&object](size_t i) -> Json::object_t::value_type& { return object.begin()[static_cast<std::ptrdiff_t>(i)]; };
  std::vector<size_t> order(size);  // by key, equal keys in the order of the text
  std::iota(order.begin(), order.end(), size_t{0});
  if (size <= kScanKeysUpTo) {
    bool unique = true;
    for (size_t i = 1; i < size && unique; ++i) {
      for (size_t j = 0; j < i && unique; ++j) unique = member(i).first != member(j).first;
    }
    if (unique) return std::nullopt;
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int compared = member(a).first.compare(member(b).first);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::vector<bool> superseded(size, false);
  for (size_t first = 0; first < size;) {
    size_t last = first;
    while (last + 1 < size && member(order[last + 1]).first == member(order[first]).first) superseded[order[++last]] = true;
    if (last != first) member(order[first]).second = std::move(member(order[last]).second);
    first = last + 1;
  }
  const auto first_superseded = std::find(superseded.begin(), superseded.end(), true);
  if (first_superseded == superseded.end()) return std::nullopt;
  std::string duplicate = member(static_cast<size_t>(first_superseded - superseded.begin())).first;
  Json::object_t kept;
  for (size_t i = 0; i < size; ++i) {
    if (!superseded[i]) static_cast<MemberList&>(kept).emplace_back(member(i).first, std::move(member(i).second));
  }
  object = std::move(kept);
  return duplicate;
}

// Builds the document while it is read. nlohmann's own builder searches all earlier keys of an object for each new one, which is
// quadratic in a vocabulary of 250,000 entries, and has no depth limit.
class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit DocumentBuilder(const JsonLimits& limits) : max_depth_(limits.max_depth), duplicate_keys_(limits.duplicate_keys) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not part of JSON text
  bool start_object(std::size_t) override { return enter(Json::object()); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override {
    const std::optional<std::string> duplicate = remove_duplicate_keys(open_.back()->get_ref<Json::object_t&>());
    if (duplicate && duplicate_keys_ == DuplicateKeys::kError) {
      message = format("key '{}' occurs twice in one object", printable(*duplicate, 200));
      return false;
    }
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return enter(Json::array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string& last_token, const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;  // nlohmann's exception id
    message = format("{} at byte {}, near '{}'", error.id == kNumberOverflow ? "number out of range" : "not valid JSON", position, printable(last_token));
    return false;
  }

  Json document;
  std::string message;

 private:
  static std::string printable(const std::string& token, size_t longest = 24) {
    std::string out;
    for (const char c : token.substr(token.size() > longest ? token.size() - longest : 0)) out += (c >= 0x20 && c < 0x7f) ? c : '.';
    return out;
  }

  Json* place(Json value) {
    if (open_.empty()) {
      document = std::move(value);
      return &document;
    }
    if (open_.back()->is_array()) {
      auto& array = open_.back()->get_ref<Json::array_t&>();
      return &array.emplace_back(std::move(value));
    }
    MemberList& members = open_.back()->get_ref<Json::object_t&>();
    return &members.emplace_back(std::move(key_), std::move(value)).second;
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool enter(Json container) {
    if (open_.size() == static_cast<size_t>(max_depth_)) {
      message = format("nested deeper than {} levels", max_depth_);
      return false;
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  int max_depth_;
  DuplicateKeys duplicate_keys_;
  std::string key_;
  std::vector<Json*> open_;  // containers around the current position; only the innermost grows, so the pointers stay valid
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
  return make_error(ErrorCode::kCorrupt, "{}: '{}' must be {}, found {}", where, key, wanted, utf8_prefix(dump_json(found), 60));
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return make_error(ErrorCode::kCorrupt, "{}: {} bytes of JSON exceed the limit of {}", name, text.size(), limits.max_bytes);
  }
  DocumentBuilder builder(limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return make_error(ErrorCode::kCorrupt, "{}: {}", name, builder.message);
  return std::move(builder.document);
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
