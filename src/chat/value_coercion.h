// A parameter's value, which the XML form of tool calls writes as bare text, to the JSON that its schema asks for. Schemas come from
// requests and may be odd in any way; text that does not fit stays a string. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace espalier {

// `schema` is the parameter's, null if there is none; local references ("#/$defs/...") start at `root`. Returns JSON text.
//
//   string, str, text, varchar, char, enum   the text; null for null / none if the schema allows null
//   any other type                           null for null / none, in any case
//   int*, uint*, long*, short*, unsigned*    an integer
//   num*, float*                             a number, as an integer if it is integral
//   boolean, bool, binary                    whether it is "true", in any case
//   object, array, arr*, dict*, list*        JSON (read once more if it is a string), else a Python literal
//   another type                             a Python literal
//
// A list of types, anyOf, oneOf and allOf count as their first member that is not null. Without a type: an enum's member that reads like
// the text; an object or array if there are properties or items; else a string.
std::string coerce_value(const Json* schema, const Json& root, std::string_view text);

}  // namespace espalier
