// The fields of a request's JSON object, read one by one with their types and ranges checked. Remembers which were asked for, so that what
// nobody knows can be named. null is the same as absent. Lives as long as the object it reads; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace espalier {

class JsonFields {
 public:
  // `where` stands before field names in errors, with a dot: "stream_options"; empty for the body itself.
  explicit JsonFields(const Json& object, std::string where = {}) : object_(object), where_(std::move(where)) {}

  // Errors are kInvalidArgument: "top_p: expected a number in [0, 1], found 3". A number with a fraction is no integer.
  Result<std::optional<int64_t>> integer(std::string_view name, int64_t low, int64_t high);
  Result<std::optional<double>> number(std::string_view name, double low, double high);
  Result<std::optional<bool>> boolean(std::string_view name);
  Result<std::optional<std::string>> string(std::string_view name, size_t max_bytes);
  Result<const Json*> object(std::string_view name);  // nullptr: absent
  Result<const Json*> array(std::string_view name, size_t max_size);
  // Whatever it is; nullptr: absent.
  const Json* any(std::string_view name);

  // Takes note of a field that means nothing here.
  void ignore(std::string_view name) { known_.insert(std::string(name)); }
  // kUnsupported if the field is there with another value than the harmless one.
  Status refuse(std::string_view name, std::string_view reason, const Json& harmless = nullptr);

  // Names of fields that were neither asked for nor ignored, in order.
  std::vector<std::string> unknown() const;

  std::string path(std::string_view name) const { return where_.empty() ? std::string(name) : where_ + "." + std::string(name); }

 private:
  const Json& object_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
};

// The beginning of a value as JSON, fit for an error of one line.
std::string short_json(const Json& value);
// "top_p: expected a number, found []"
Error wrong_field(std::string_view path, std::string_view expected, const Json& found);

}  // namespace espalier
