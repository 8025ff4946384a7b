#include "chat/value_coercion.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "chat/literal_reader.h"
#include "chat/number_literal.h"
#include "chat/reply_text.h"

namespace espalier {
namespace {

constexpr int kMaxSchemasVisited = 64;  // per value: references may be circular and members may refer to their parents

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool is_true(const Json* value) { return value != nullptr && value->is_boolean() && value->get<bool>(); }

// What a schema says about a value, as far as text can be read by it.
struct Expectation {
  std::string type;               // lower case; empty: nothing was said
  bool nullable = false;
  const Json* choices = nullptr;  // an enum without a type
  bool empty() const { return type.empty() && choices == nullptr; }
};

class SchemaReader {
 public:
  explicit SchemaReader(const Json& root) : root_(root) {}

  Expectation read(const Json& schema) {
    if (!schema.is_object() || ++visited_ > kMaxSchemasVisited) return {};
    if (const Json* reference = member(schema, "$ref")) {
      const Json* target = reference->is_string() ? find(reference->get_ref<const std::string&>()) : nullptr;
      return target == nullptr ? Expectation{} : read(*target);
    }
    Expectation expected;
    expected.nullable = is_true(member(schema, "nullable"));
    if (const Json* type = member(schema, "type")) {
      if (type->is_string()) expected.type = lower(type->get_ref<const std::string&>());
      if (type->is_array()) read_type_list(*type, expected);
      if (!expected.type.empty()) return expected;
    }
    for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
      const Json* members = member(schema, keyword);
      if (members == nullptr || !members->is_array()) continue;
      read_members(*members, expected);
      if (!expected.empty()) return expected;
    }
    if (const Json* choices = member(schema, "enum"); choices != nullptr && choices->is_array()) {
      expected.choices = choices;
    } else if (member(schema, "properties") != nullptr) {
      expected.type = "object";
    } else if (member(schema, "items") != nullptr) {
      expected.type = "array";
    }
    return expected;
  }

 private:
  static void read_type_list(const Json& types, Expectation& expected) {
    for (const Json& type : types) {
      if (!type.is_string()) continue;
      const std::string name = lower(type.get_ref<const std::string&>());
      if (name == "null") {
        expected.nullable = true;
      } else if (expected.type.empty()) {
        expected.type = name;
      }
    }
    if (expected.type.empty() && expected.nullable) expected.type = "null";
  }

  void read_members(const Json& members, Expectation& expected) {
    for (const Json& schema : members) {
      const Expectation one = read(schema);
      expected.nullable = expected.nullable || one.nullable || one.type == "null";
      if (!expected.empty() || one.type == "null") continue;
      expected.type = one.type;
      expected.choices = one.choices;
    }
    if (expected.empty() && expected.nullable) expected.type = "null";
  }

  // "#/$defs/place" below the root; empty for every other reference.
  const Json* find(std::string_view reference) const {
    if (!reference.starts_with("#/")) return nullptr;
    const Json* at = &root_;
    for (size_t begin = 2; begin <= reference.size();) {
      const size_t end = std::min(reference.find('/', begin), reference.size());
      if (!at->is_object()) return nullptr;
      at = member(*at, unescaped(reference.substr(begin, end - begin)).c_str());
      if (at == nullptr) return nullptr;
      begin = end + 1;
    }
    return at;
  }

  static std::string unescaped(std::string_view part) {  // RFC 6901
    std::string out;
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1')) {
        out += part[++i] == '0' ? '~' : '/';
      } else {
        out += part[i];
      }
    }
    return out;
  }

  const Json& root_;
  int visited_ = 0;
};

bool is_null_word(std::string_view text) {
  const std::string word = lower(text);
  return word == "null" || word == "none";
}

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), type) != names.end();
}

bool begins_with_one_of(std::string_view type, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view beginning) { return type.starts_with(beginning); });
}

std::optional<std::string> read_structure(std::string_view text) {
  std::optional<std::string> json = json_from_literal(text, LiteralDialect::kJson);
  if (json && json->starts_with('"')) {  // written as a string: what it holds counts, if that can be read
    const Result<Json> inner = parse_json(*json, "value");
    if (!inner.ok()) return json;
    const std::string& held = inner->get_ref<const std::string&>();
    if (auto again = json_from_literal(held, LiteralDialect::kJson)) return again;
    if (auto again = json_from_literal(held, LiteralDialect::kPython)) return again;
    return json;
  }
  return json ? json : json_from_literal(text, LiteralDialect::kPython);
}

std::string read_choice(const Expectation& expected, std::string_view text) {
  for (const Json& choice : *expected.choices) {
    if (choice.is_string() && choice.get_ref<const std::string&>() == text) return json_quoted(text);
  }
  for (const Json& choice : *expected.choices) {
    if (choice.is_null() && is_null_word(trim_blanks(text))) return "null";
    if (!choice.is_string() && dump_json(choice) == trim_blanks(text)) return std::string(trim_blanks(text));
  }
  return expected.nullable && is_null_word(trim_blanks(text)) ? "null" : json_quoted(text);
}

std::optional<std::string> read_as(std::string_view type, std::string_view text) {
  if (begins_with_one_of(type, {"int", "uint", "long", "short", "unsigned"})) return json_integer(text);
  if (begins_with_one_of(type, {"num", "float"})) return json_number(text);
  if (is_one_of(type, {"boolean", "bool", "binary"})) return lower(trim_blanks(text)) == "true" ? "true" : "false";
  if (is_one_of(type, {"object", "array"}) || begins_with_one_of(type, {"arr", "dict", "list"})) return read_structure(text);
  return json_from_literal(text, LiteralDialect::kPython);
}

}  // namespace

std::string coerce_value(const Json* schema, const Json& root, std::string_view text) {
  const Expectation expected = schema == nullptr ? Expectation{} : SchemaReader(root).read(*schema);
  if (expected.choices != nullptr) return read_choice(expected, text);
  if (expected.type.empty()) return json_quoted(text);
  if (is_one_of(expected.type, {"string", "str", "text", "varchar", "char", "enum"})) {
    return expected.nullable && is_null_word(text) ? "null" : json_quoted(text);
  }
  if (is_null_word(trim_blanks(text))) return "null";
  std::optional<std::string> json = read_as(expected.type, text);
  return json ? *std::move(json) : json_quoted(text);
}

}  // namespace espalier
