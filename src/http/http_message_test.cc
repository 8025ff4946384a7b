#include "http/http_message.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(HttpMessage, AHeaderIsFoundWhateverItsCase) {
  HttpRequest request;
  request.headers = {{"Content-Type", "application/json"}, {"X-Session-ID", "first"}, {"x-session-id", "second"}};
  ASSERT_NE(request.header("content-type"), nullptr);
  EXPECT_EQ(*request.header("CONTENT-TYPE"), "application/json");
  EXPECT_EQ(*request.header("x-Session-Id"), "first");
  EXPECT_EQ(request.header("content"), nullptr);
  EXPECT_EQ(request.header("content-type-x"), nullptr);
  EXPECT_EQ(request.header(""), nullptr);
}

TEST(HttpMessage, OnlyLettersOfAsciiFoldTheirCase) {
  HttpResponse response;
  response.headers = {{"a[b", "1"}, {"\xc3\x84", "2"}};
  EXPECT_EQ(response.header("a{b"), nullptr);  // '[' and '{' differ by the bit that tells 'K' from 'k'
  EXPECT_EQ(response.header("\xc3\xa4"), nullptr);
  EXPECT_EQ(*response.header("A[B"), "1");
}

}  // namespace
}  // namespace espalier
