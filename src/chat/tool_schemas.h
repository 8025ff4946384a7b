// The tools a request declares, as far as parsing a reply needs them. Immutable.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace espalier {

class ToolSchemas {
 public:
  // `tools` as in ChatInput::tools: [{"type":"function","function":{"name":...,"parameters":{...}}}]; odd entries are left out. Of two
  // tools with one name the first counts.
  explicit ToolSchemas(const Json& tools);

  bool empty() const { return names_.empty(); }
  bool declares(std::string_view name) const { return parameters_.contains(name); }
  const std::vector<std::string>& names() const { return names_; }

  // False only if the tool is declared, lists its parameters, and this is none of them.
  bool takes(std::string_view function, std::string_view parameter) const;

  // A parameter's value as the model wrote it, as JSON text: coerced to what the schema says (value_coercion.h), numbers with the model's
  // literals where they are valid JSON. Never fails: what does not fit stays a string. Model text is never evaluated.
  std::string coerce(std::string_view function, std::string_view parameter, std::string_view value) const;

 private:
  std::vector<std::string> names_;                     // in the order declared
  std::map<std::string, Json, std::less<>> parameters_;  // name -> parameters schema
};

}  // namespace espalier
