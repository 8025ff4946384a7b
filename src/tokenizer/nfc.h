// Unicode normalisation form C. The only file that knows utf8proc. Linear apart from sorting runs of combining marks.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/marked_text.h"

namespace espalier {

// `text` in NFC, each ill-formed subpart replaced by U+FFFD. Text that a quick check proves to be NFC is returned as it is, untouched;
// otherwise the view is of `storage`.
std::string_view to_nfc(std::string_view text, std::string& storage);

// The same with marks: a character composed of characters of both origins counts as input.
MarkedText to_nfc(const MarkedText& text);

}  // namespace espalier
