#include "chat/tool_schemas.h"

#include "chat/value_coercion.h"

namespace espalier {
namespace {

const Json* member(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(key));
  return found == object.end() ? nullptr : &*found;
}

const Json* object_member(const Json& object, std::string_view key) {
  const Json* found = member(object, key);
  return found != nullptr && found->is_object() ? found : nullptr;
}

}  // namespace

ToolSchemas::ToolSchemas(const Json& tools) {
  if (!tools.is_array()) return;
  for (const Json& tool : tools) {
    const Json* function = object_member(tool, "function");
    const Json* name = function == nullptr ? nullptr : member(*function, "name");
    if (name == nullptr || !name->is_string()) continue;
    const Json* parameters = object_member(*function, "parameters");
    const auto [at, added] = parameters_.try_emplace(name->get<std::string>(), parameters == nullptr ? Json::object() : *parameters);
    if (added) names_.push_back(at->first);
  }
}

bool ToolSchemas::takes(std::string_view function, std::string_view parameter) const {
  const auto found = parameters_.find(function);
  if (found == parameters_.end()) return true;
  const Json* properties = object_member(found->second, "properties");
  return properties == nullptr || member(*properties, parameter) != nullptr || object_member(found->second, "additionalProperties") != nullptr;
}

std::string ToolSchemas::coerce(std::string_view function, std::string_view parameter, std::string_view value) const {
  const auto found = parameters_.find(function);
  if (found == parameters_.end()) return coerce_value(nullptr, Json(), value);
  const Json& root = found->second;
  const Json* properties = object_member(root, "properties");
  const Json* schema = properties == nullptr ? nullptr : member(*properties, parameter);
  if (schema == nullptr) schema = object_member(root, "additionalProperties");
  return coerce_value(schema, root, value);
}

}  // namespace espalier
