// Transformations of texts, character by character, that keep every byte's origin: shared by filters and methods.
#pragma once

#include <string>
#include <vector>

#include "chat/jinja/text.h"
#include "chat/jinja/value.h"

namespace espalier::jinja {

class Evaluation;

Text upper(Evaluation& evaluation, const Text& text);
Text lower(Evaluation& evaluation, const Text& text);
Text capitalize(Evaluation& evaluation, const Text& text);
Text swap_case(Evaluation& evaluation, const Text& text);
Text title(Evaluation& evaluation, const Text& text);         // str.title: every letter after a non-letter
Text title_words(Evaluation& evaluation, const Text& text);   // the filter: first letter of every word, the rest lower
// At most `count` replacements from the left; negative: all.
Text replace(Evaluation& evaluation, const Text& text, const Text& from, const Text& to, Integer count);
// Python's split: `separator` null splits at runs of white space. At most `count` cuts; negative: all.
std::vector<Text> split(Evaluation& evaluation, const Text& text, const Text* separator, Integer count, Side from);
std::vector<Text> split_lines(Evaluation& evaluation, const Text& text, bool keep_ends);
Text join(Evaluation& evaluation, const Text& separator, std::span<const Text> parts);
// Widens to `width` characters.
Text pad(Evaluation& evaluation, const Text& text, Integer width, Side side, const Text& fill);

}  // namespace espalier::jinja
