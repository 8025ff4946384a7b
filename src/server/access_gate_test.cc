#include "server/access_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

HttpRequest get(std::string path, std::vector<HttpHeader> headers) {
  return {.method = "GET", .path = std::move(path), .query = "", .headers = std::move(headers), .body = "", .peer = ""};
}
int status(const AccessGate& gate, const HttpRequest& request) {
  const auto error = gate.refuse(request);
  return error.has_value() ? error->status : 200;
}
std::string allowed_origin(const AccessGate& gate, const HttpRequest& request) {
  for (const HttpHeader& header : gate.cors_headers(request)) {
    if (header.name == "Access-Control-Allow-Origin") return header.value;
  }
  return "";
}

// L8: a page whose name was rebound to this machine sends its own Host.
TEST(AccessGate, NamesThatAreNotOursAreRefused) {
  const AccessGate gate({.allowed_hosts = {"box.example"}, .cors_origins = {}, .api_keys = {}});
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "192.168.1.7", "app.localhost:1", "BOX.example:8080"}) {
    EXPECT_EQ(status(gate, get("/v1/models", {{"Host", host}})), 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example", "", "127.0.0.1.evil.example", "notlocalhost"}) {
    EXPECT_EQ(status(gate, get("/v1/models", {{"Host", host}})), 403) << host;
  }
  EXPECT_EQ(status(AccessGate({.allowed_hosts = {"*"}, .cors_origins = {}, .api_keys = {}}), get("/", {{"Host", "any.example"}})), 200);
}

TEST(AccessGate, PagesOfOtherOriginsAreRefusedUnlessNamed) {
  const AccessGate closed(AccessRules{});
  const HttpRequest foreign = get("/v1/models", {{"Host", "localhost:8080"}, {"Origin", "https://evil.example"}});
  EXPECT_EQ(status(closed, foreign), 403);
  EXPECT_EQ(allowed_origin(closed, foreign), "");
  EXPECT_EQ(status(closed, get("/", {{"Host", "localhost:8080"}, {"Origin", "null"}})), 403);
  EXPECT_EQ(status(closed, get("/", {{"Host", "localhost:8080"}, {"Origin", "http://localhost:8080"}})), 200);

  const AccessGate open({.allowed_hosts = {}, .cors_origins = {"https://app.example"}, .api_keys = {}});
  const HttpRequest page = get("/v1/models", {{"Host", "localhost:8080"}, {"Origin", "https://app.example"}});
  EXPECT_EQ(status(open, page), 200);
  EXPECT_EQ(allowed_origin(open, page), "https://app.example");
  EXPECT_EQ(status(open, foreign), 403);
}

// L7: the key guards everything but /health.
TEST(AccessGate, TheKeyGuardsEveryRouteButHealth) {
  const AccessGate gate({.allowed_hosts = {}, .cors_origins = {}, .api_keys = {"secret-1", "secret-2"}});
  for (const char* path : {"/v1/models", "/metrics", "/props", "/tokenize", "/v1/cache", "/nothing", "/healthy", "/health/"}) {
    EXPECT_EQ(status(gate, get(path, {})), 401) << path;
    EXPECT_EQ(status(gate, get(path, {{"authorization", "Bearer secret-2"}})), 200) << path;
  }
  EXPECT_EQ(status(gate, get("/health", {})), 200);
  for (const char* value : {"Bearer secret", "Bearer secret-11", "Bearer ", "Bearer", "", "Basic secret-1", "secret-1"}) {
    EXPECT_EQ(status(gate, get("/props", {{"Authorization", value}})), 401) << value;
  }
  EXPECT_EQ(status(gate, get("/props", {{"Authorization", "bearer secret-1"}})), 200);
}

TEST(AccessGate, PreflightsCarryNoKeyAndSayWhatIsAllowed) {
  const AccessGate gate({.allowed_hosts = {}, .cors_origins = {"https://app.example"}, .api_keys = {"secret"}});
  HttpRequest request = get("/v1/chat/completions", {{"Host", "localhost"}, {"Origin", "https://app.example"}, {"Access-Control-Request-Method", "POST"}});
  request.method = "OPTIONS";
  EXPECT_EQ(status(gate, request), 200);
  const HttpResponse answer = gate.preflight(request);
  EXPECT_EQ(answer.status, 204);
  ASSERT_NE(answer.header("Access-Control-Allow-Headers"), nullptr);
  EXPECT_THAT(*answer.header("Access-Control-Allow-Headers"), ::testing::HasSubstr("Authorization"));
}

TEST(AccessGate, ComparesWholeSecrets) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  for (const char* given : {"", "ab", "abd", "abcd", "abcabc"}) EXPECT_FALSE(equal_in_constant_time(given, "abc")) << given;
  EXPECT_FALSE(equal_in_constant_time("a", ""));
}

}  // namespace
}  // namespace espalier
