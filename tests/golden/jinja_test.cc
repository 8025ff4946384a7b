// 132 programs run by the reference implementation of the template language, output or error.
#include <gtest/gtest.h>

#include <ctime>

#include "chat/jinja/template.h"
#include "tests/support/oracle.h"

namespace espalier::testing {
namespace {

std::chrono::system_clock::time_point fixed_now() {
  std::tm parts{};
  parts.tm_year = 2026 - 1900;
  parts.tm_mon = 2;
  parts.tm_mday = 4;
  parts.tm_hour = 5;
  parts.tm_min = 6;
  parts.tm_sec = 7;
  parts.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(std::mktime(&parts));
}

TEST(JinjaGolden, EveryProgramPrintsOrFailsAsTheReferenceDoes) {
  ESPALIER_REQUIRE_SHARED();
  int checked = 0;
  for (const Json& row : read_jsonl(shared_path("oracle/chat/jinja.jsonl"))) {
    SCOPED_TRACE(row["id"].get<std::string>() + ": " + row["template"].get<std::string>());
    std::string output, error;
    const auto parsed = jinja::Template::parse(row["template"].get<std::string>(), "template");
    if (parsed.ok()) {
      std::vector<jinja::TemplateInput> inputs;
      for (const auto& [name, value] : row["context"].items()) inputs.push_back({name, &value});
      const auto rendered = parsed->render(inputs, {}, fixed_now());
      (rendered.ok() ? output : error) = rendered.ok() ? rendered->text : rendered.error().message;
    } else {
      error = parsed.error().message;
    }
    if (row.contains("expect")) {
      EXPECT_EQ(error, "");
      EXPECT_EQ(output, row["expect"].get<std::string>());
    } else {
      EXPECT_NE(error.find(row["error"].get<std::string>()), std::string::npos) << error << "\nexpected: " << row["error"];
    }
    ++checked;
  }
  EXPECT_EQ(checked, 132);
}

}  // namespace
}  // namespace espalier::testing
