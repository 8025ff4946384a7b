// What templates may ask about characters beyond ASCII: case and classes, by the C library's Unicode locale.
#pragma once

#include <cstdint>

namespace espalier::jinja {

uint32_t to_upper(uint32_t code_point);
uint32_t to_lower(uint32_t code_point);
bool is_upper(uint32_t code_point);
bool is_lower(uint32_t code_point);
bool is_alpha(uint32_t code_point);
bool is_decimal(uint32_t code_point);
bool is_printable(uint32_t code_point);

}  // namespace espalier::jinja
