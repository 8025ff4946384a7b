#include "chat/jinja/unicode.h"

#include <locale.h>
#include <wctype.h>

#include "chat/jinja/text.h"

namespace espalier::jinja {
namespace {

// The library's own Unicode tables, whatever locale the process runs in; null (ASCII only) on systems without it.
locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

bool is_ascii_upper(uint32_t c) { return c >= 'A' && c <= 'Z'; }
bool is_ascii_lower(uint32_t c) { return c >= 'a' && c <= 'z'; }

}  // namespace

uint32_t to_upper(uint32_t c) {
  if (c < 0x80) return is_ascii_lower(c) ? c - 32 : c;
  return unicode_locale() == nullptr ? c : static_cast<uint32_t>(towupper_l(static_cast<wint_t>(c), unicode_locale()));
}

uint32_t to_lower(uint32_t c) {
  if (c < 0x80) return is_ascii_upper(c) ? c + 32 : c;
  return unicode_locale() == nullptr ? c : static_cast<uint32_t>(towlower_l(static_cast<wint_t>(c), unicode_locale()));
}

bool is_upper(uint32_t c) {
  if (c < 0x80) return is_ascii_upper(c);
  return unicode_locale() != nullptr && iswupper_l(static_cast<wint_t>(c), unicode_locale()) != 0;
}

bool is_lower(uint32_t c) {
  if (c < 0x80) return is_ascii_lower(c);
  return unicode_locale() != nullptr && iswlower_l(static_cast<wint_t>(c), unicode_locale()) != 0;
}

bool is_decimal(uint32_t c) { return c >= '0' && c <= '9'; }

bool is_alpha(uint32_t c) {
  if (c < 0x80) return is_ascii_upper(c) || is_ascii_lower(c);
  return unicode_locale() != nullptr && iswalpha_l(static_cast<wint_t>(c), unicode_locale()) != 0;
}

bool is_printable(uint32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  if (is_space(c)) return false;
  return unicode_locale() == nullptr || iswprint_l(static_cast<wint_t>(c), unicode_locale()) != 0;
}

}  // namespace espalier::jinja
