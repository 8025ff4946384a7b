// Where the expected values of other implementations lie. They are beside a developer's checkout and absent in a user's clone:
// there the tests that need them skip and say why.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"

namespace espalier::testing {

// Path below ../shared, whether it exists or not.
std::string shared_path(const std::string& relative);
bool shared_available();
// One JSON value a line. Fails the process with the reason if the file is not readable.
std::vector<Json> read_jsonl(const std::string& path);
std::string sha256_hex(std::string_view bytes);
// Decompresses a whole .gz file.
std::string read_gzip(const std::string& path);

}  // namespace espalier::testing

#define ESPALIER_REQUIRE_SHARED() \
  if (!::espalier::testing::shared_available()) GTEST_SKIP() << "../shared is absent: expected values of other implementations cannot be read"
