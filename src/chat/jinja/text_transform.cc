#include "chat/jinja/text_transform.h"

#include <algorithm>

#include "base/utf8.h"
#include "chat/jinja/evaluation.h"
#include "chat/jinja/unicode.h"

namespace espalier::jinja {
namespace {

// change(code point) -> code point, called in order over the whole text.
template <typename Change>
Text map_characters(Evaluation& evaluation, const Text& text, Change&& change) {
  TextBuilder out(evaluation.arena());
  for_each_run(text, [&](std::string_view run, Origin origin) {
    std::string changed;
    changed.reserve(run.size());
    for (size_t i = 0; i < run.size();) {
      const CodePoint next = decode_utf8(run, i);
      if (next.valid) {
        append_utf8(changed, change(next.value));
      } else {
        changed += run.substr(i, next.length);
      }
      i += next.length;
    }
    out.append(std::string_view(changed), origin);
  });
  return out.finish();
}

bool is_cased(uint32_t c) { return is_upper(c) || is_lower(c); }

}  // namespace

Text upper(Evaluation& evaluation, const Text& text) { return map_characters(evaluation, text, to_upper); }
Text lower(Evaluation& evaluation, const Text& text) { return map_characters(evaluation, text, to_lower); }

Text capitalize(Evaluation& evaluation, const Text& text) {
  bool first = true;
  return map_characters(evaluation, text, [&](uint32_t c) { return std::exchange(first, false) ? to_upper(c) : to_lower(c); });
}

Text swap_case(Evaluation& evaluation, const Text& text) {
  return map_characters(evaluation, text, [](uint32_t c) { return is_upper(c) ? to_lower(c) : to_upper(c); });
}

Text title(Evaluation& evaluation, const Text& text) {
  bool inside = false;
  return map_characters(evaluation, text, [&](uint32_t c) {
    const uint32_t changed = inside ? to_lower(c) : to_upper(c);
    inside = is_cased(c);
    return changed;
  });
}

Text title_words(Evaluation& evaluation, const Text& text) {
  bool inside = false;
  return map_characters(evaluation, text, [&](uint32_t c) {
    const uint32_t changed = inside ? to_lower(c) : to_upper(c);
    inside = !(is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<');
    return changed;
  });
}

Text replace(Evaluation& evaluation, const Text& text, const Text& from, const Text& to, Integer count) {
  Arena& arena = evaluation.arena();
  TextBuilder out(arena);
  if (from.empty()) {  // Python puts `to` between all characters
    const std::vector<size_t> offsets = code_point_offsets(text.bytes);
    for (size_t i = 0; i < offsets.size(); ++i) {
      evaluation.step();
      if (count < 0 || static_cast<Integer>(i) < count) out.append(to);
      if (i + 1 < offsets.size()) out.append(slice(arena, text, offsets[i], offsets[i + 1]));
    }
    return out.finish();
  }
  size_t plain = 0;
  for (Integer done = 0; count < 0 || done < count; ++done) {
    const size_t at = text.bytes.find(from.bytes, plain);
    if (at == std::string_view::npos) break;
    evaluation.step();
    out.append(slice(arena, text, plain, at));
    out.append(to);
    plain = at + from.size();
  }
  if (plain == 0) return text;
  out.append(slice(arena, text, plain, text.size()));
  return out.finish();
}

std::vector<Text> split(Evaluation& evaluation, const Text& text, const Text* separator, Integer count, Side from) {
  Arena& arena = evaluation.arena();
  std::vector<std::pair<size_t, size_t>> pieces;  // begin, end
  if (separator != nullptr) {
    if (separator->empty()) fail("empty separator");
    size_t begin = 0;
    for (size_t at = text.bytes.find(separator->bytes); at != std::string_view::npos; at = text.bytes.find(separator->bytes, begin)) {
      evaluation.step();
      pieces.emplace_back(begin, at);
      begin = at + separator->size();
    }
    pieces.emplace_back(begin, text.size());
  } else {
    size_t begin = std::string_view::npos;
    for (size_t i = 0; i < text.size();) {
      const CodePoint next = decode_utf8(text.bytes, i);
      if (is_space(next.value)) {
        if (begin != std::string_view::npos) pieces.emplace_back(std::exchange(begin, std::string_view::npos), i);
      } else if (begin == std::string_view::npos) {
        begin = i;
      }
      i += next.length;
    }
    if (begin != std::string_view::npos) pieces.emplace_back(begin, text.size());
  }
  // The pieces beyond the permitted cuts stay together.
  if (count >= 0 && static_cast<Integer>(pieces.size()) > count + 1) {
    const auto cuts = static_cast<size_t>(count);
    if (from == Side::kRight) {
      const size_t last_joined = pieces.size() - cuts - 1;
      pieces[last_joined].first = separator != nullptr ? 0 : pieces.front().first;
      pieces.erase(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(last_joined));
    } else {
      pieces[cuts].second = text.size();
      pieces.resize(cuts + 1);
    }
  }
  std::vector<Text> parts;
  for (const auto& [begin, end] : pieces) parts.push_back(slice(arena, text, begin, end));
  return parts;
}

std::vector<Text> split_lines(Evaluation& evaluation, const Text& text, bool keep_ends) {
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint next = decode_utf8(text.bytes, i);
    const uint32_t c = next.value;
    size_t end = i + next.length;
    const bool breaks = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (breaks) {
      if (c == '\r' && end < text.size() && text.bytes[end] == '\n') ++end;
      lines.push_back(slice(evaluation.arena(), text, begin, keep_ends ? end : i));
      begin = end;
    }
    i = end;
  }
  if (begin < text.size()) lines.push_back(slice(evaluation.arena(), text, begin, text.size()));
  return lines;
}

Text join(Evaluation& evaluation, const Text& separator, std::span<const Text> parts) {
  TextBuilder out(evaluation.arena());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out.append(separator);
    out.append(parts[i]);
  }
  return out.finish();
}

Text pad(Evaluation& evaluation, const Text& text, Integer width, Side side, const Text& fill) {
  const auto length = static_cast<Integer>(count_code_points(text.bytes));
  if (width <= length) return text;
  if (count_code_points(fill.bytes) != 1) fail("The fill character must be exactly one character long");
  if (width > Integer{1} << 24) throw TemplateError{Failure::kLimit, "a text padded beyond 16 million characters"};
  const auto missing = static_cast<size_t>(width - length);
  // str.center puts the odd one to the left where the width is odd.
  const size_t left = side == Side::kLeft ? missing : (side == Side::kRight ? 0 : missing / 2 + (missing & static_cast<size_t>(width) & 1));
  TextBuilder out(evaluation.arena());
  const auto repeat = [&](size_t times) {
    for (size_t i = 0; i < times; ++i) out.append(fill);
  };
  repeat(left);
  out.append(text);
  repeat(missing - left);
  return out.finish();
}

}  // namespace espalier::jinja
