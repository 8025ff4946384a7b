// Any bytes: parsing never crashes, and what was parsed survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const Result<Json> parsed = parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "input");
  if (!parsed.ok()) {
    ESPALIER_CHECK(parsed.error().message.starts_with("input: ") && parsed.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const std::string text = dump_json(*parsed);
  ESPALIER_CHECK(dump_json(parse_json(text, "written").value()) == text);
  return 0;
}
