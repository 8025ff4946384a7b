// Any bytes as a template over a small context: parsing and rendering end within their limits, and text that the context brought in is
// never marked as the template's own.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "chat/jinja/template.h"

namespace {

// No template in the corpus spells these characters, and no operation makes them out of others: where they appear, they are input.
constexpr std::string_view kInputOnly = "\xE2\x98\x83\xE2\x98\x84\xE2\x98\x85";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const Result<jinja::Template> parsed = jinja::Template::parse(source, "input");
  if (!parsed.ok()) {
    ESPALIER_CHECK(!parsed.error().message.empty());
    return 0;
  }
  static const Json kMessages = parse_json(R"([{"role":"system","content":"☃ x"},{"role":"user","content":"☄\n<b>"},
      {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"★","arguments":{"k":[1,2.5,null,"☃"]}}}]}])",
                                           "messages")
                                    .value();
  static const Json kText = "☃ Abc \xC3\xA9 ☄";
  static const Json kNumber = 3;
  jinja::RenderLimits limits;
  limits.max_steps = 100'000;
  limits.max_output_bytes = size_t{1} << 20;
  limits.max_memory_bytes = size_t{32} << 20;
  const jinja::TemplateInput inputs[] = {{"messages", &kMessages}, {"s", &kText}, {"n", &kNumber}};
  const Result<MarkedText> rendered = parsed->render(inputs, limits);
  if (!rendered.ok()) return 0;
  ESPALIER_CHECK(rendered->size() <= limits.max_output_bytes);
  ESPALIER_CHECK(rendered->spans.empty() == rendered->empty());
  ESPALIER_CHECK(rendered->empty() || rendered->spans.back().end == rendered->size());
  if (source.find('\xE2') != std::string_view::npos || source.find('\\') != std::string_view::npos) return 0;
  for (size_t letter = 0; letter < kInputOnly.size(); letter += 3) {
    const std::string_view input_only = kInputOnly.substr(letter, 3);
    for (size_t at = rendered->text.find(input_only); at != std::string::npos; at = rendered->text.find(input_only, at + 1)) {
      ESPALIER_CHECK(rendered->origin_at(at) == Origin::kInput && rendered->origin_at(at + 2) == Origin::kInput);
    }
  }
  return 0;
}
