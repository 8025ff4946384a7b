// The tools a request declares, as far as parsing a reply needs them. Immutable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace espalier {

class ToolSchemas {
 public:
  // `tools` as in ChatInput::tools: [{"type":"function","function":{"name":...,"parameters":{...}}}]; odd entries are left out.
  explicit ToolSchemas(const Json& tools);

  bool empty() const { return names_.empty(); }
  bool declares(std::string_view name) const;
  const std::vector<std::string>& names() const { return names_; }

  // A parameter's value as the model wrote it, as JSON text: coerced to what the schema says, numbers with the model's literals where they
  // are valid JSON. Never fails: what does not fit stays a string. Model text is never evaluated.
  std::string coerce(std::string_view function, std::string_view parameter, std::string_view value) const;

 private:
  std::vector<std::string> names_;
  Json parameters_;  // name -> parameters schema
};

}  // namespace espalier
