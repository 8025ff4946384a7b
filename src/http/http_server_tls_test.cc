#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>

#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include "base/file.h"
#include "http/http_client.h"
#include "http/http_server.h"
#include "http/raw_client_test_support.h"
#include "tests/support/tls_peer.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

class HttpServerTls : public ::testing::TestWithParam<int> {
 protected:
  HttpServerTls() {
    std::string pattern = (std::filesystem::temp_directory_path() / "espalier_tls_XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    write("certificate.pem", certificate_.pem());
    write("key.pem", certificate_.key_pem());
  }
  ~HttpServerTls() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { EXPECT_TRUE(write_file_atomic(path(name), text).ok()); }

  Result<std::unique_ptr<HttpServer>> start(const std::string& certificate, const std::string& key) const {
    return HttpServer::start({.port = 0, .tls_certificate = certificate, .tls_key = key},
                             {.gate = {}, .handler = [](const auto&) {}, .error_page = {}});
  }

  std::unique_ptr<HttpServer> serve(HttpHandler handler, const HttpLimits& limits = {}, HttpGate gate = {}) const {
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::start({.port = 0, .tls_certificate = path("certificate.pem"), .tls_key = path("key.pem"), .limits = limits},
                          {.gate = std::move(gate), .handler = std::move(handler), .error_page = {}});
    EXPECT_TRUE(server.ok()) << server.error().message;
    return std::move(server).value();
  }

  const TestCertificate certificate_{"IP:127.0.0.1"};
  std::filesystem::path folder_;
};

class TlsClient {
 public:
  TlsClient(uint16_t port, int version) : raw_(port), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), session_(nullptr, SSL_free) {
    SSL_CTX_set_security_level(context_.get(), 0);  // old versions may be offered
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    session_.reset(SSL_new(context_.get()));
    SSL_set_fd(session_.get(), raw_.socket());
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL's sockets raise it
    connected_ = SSL_connect(session_.get()) == 1;
    ERR_clear_error();
  }

  bool connected() const { return connected_; }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const int sent = SSL_write(session_.get(), bytes.data(), static_cast<int>(std::min<size_t>(bytes.size(), 1 << 20)));
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  std::string read_until(std::string_view end) {
    size_t at;
    while ((at = received_.find(end)) == std::string::npos) {
      if (!receive()) return std::exchange(received_, {});
    }
    std::string taken = received_.substr(0, at + end.size());
    received_.erase(0, taken.size());
    return taken;
  }
  std::string read_to_end() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }
  bool ended_cleanly() const { return (SSL_get_shutdown(session_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }
  void say_goodbye() { SSL_shutdown(session_.get()); }
  void close() { raw_.close(); }

 private:
  bool receive() {
    char bytes[16384];
    const int num_bytes = SSL_read(session_.get(), bytes, sizeof bytes);
    if (num_bytes > 0) received_.append(bytes, static_cast<size_t>(num_bytes));
    ERR_clear_error();
    return num_bytes > 0;
  }

  RawClient raw_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> session_;
  bool connected_ = false;
  std::string received_;
};

INSTANTIATE_TEST_SUITE_P(Versions, HttpServerTls, ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& version) { return version.param == TLS1_2_VERSION ? "Tls12" : "Tls13"; });

TEST_P(HttpServerTls, StreamsOnAKeptConnection) {
  const auto server = serve([](const auto& exchange) {
    exchange->begin_stream({.content_type = "text/event-stream", .body = "data: 1\n\n"});
    exchange->write(exchange->request().body);
    exchange->finish();
  });
  TlsClient client(server->port(), GetParam());
  ASSERT_TRUE(client.connected());
  for (int i = 0; i < 100; ++i) {
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
    ASSERT_EQ(client.read_until("0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nServer: espalier\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
              "9\r\ndata: 1\n\n\r\n4\r\nbody\r\n0\r\n\r\n");
  }
  EXPECT_EQ(server->stats().connections_accepted, 1);
}

TEST_F(HttpServerTls, LargeBodiesBothWays) {
  const auto server = serve([](const auto& exchange) { exchange->respond({.body = exchange->request().body}); });
  std::string body(8 << 20, '\0');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7 + i / 4096);
  const auto client = HttpClient::create("https://127.0.0.1:" + std::to_string(server->port()), {.ca_file = path("certificate.pem")});
  ASSERT_TRUE(client.ok());
  for (int i = 0; i < 2; ++i) {
    const Result<HttpResponse> answer = (*client)->send({.method = "POST", .path = "/", .query = {}, .headers = {}, .body = body, .peer = {}});
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_TRUE(answer->body == body);
  }
}

TEST_P(HttpServerTls, AnAnswerThatEndsTheConnectionEndsTlsToo) {
  const auto server = serve([](const auto& exchange) { exchange->respond({.body = "bye"}); });
  TlsClient client(server->port(), GetParam());
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), EndsWith("bye"));
  EXPECT_TRUE(client.ended_cleanly());
}

TEST_P(HttpServerTls, ARefusedClientThatSendsItsWholeBodyFirstReadsTheRefusal) {
  const auto server = serve([](const auto&) {}, {}, [](const auto&) { return HttpResponse{.status = 401, .body = "no key"}; });
  TlsClient client(server->port(), GetParam());
  EXPECT_TRUE(client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n" + std::string(4'000'000, 'x')));
  EXPECT_THAT(client.read_to_end(), AllOf(StartsWith("HTTP/1.1 401 "), EndsWith("no key")));
  EXPECT_TRUE(client.ended_cleanly());
}

TEST_P(HttpServerTls, AClientThatGoesIsSeenWithAndWithoutGoodbye) {
  std::promise<std::shared_ptr<HttpExchange>> arrived[2];
  int next = 0;
  const auto server = serve([&](std::shared_ptr<HttpExchange> exchange) { arrived[next++].set_value(std::move(exchange)); });
  for (const bool goodbye : {false, true}) {
    TlsClient client(server->port(), GetParam());
    client.send(kGet);
    const auto exchange = arrived[goodbye ? 1 : 0].get_future().get();
    exchange->begin_stream({.body = "begin"});
    client.read_until("begin\r\n");
    std::promise<void> gone;
    exchange->on_gone([&] { gone.set_value(); });
    goodbye ? client.say_goodbye() : client.close();
    EXPECT_EQ(gone.get_future().wait_for(kPatience), std::future_status::ready);
  }
}

TEST_P(HttpServerTls, StopLetsAnAnswerEnd) {
  std::promise<std::shared_ptr<HttpExchange>> arrived;
  const auto server = serve([&](std::shared_ptr<HttpExchange> exchange) { arrived.set_value(std::move(exchange)); });
  TlsClient idle(server->port(), GetParam());
  RawClient shaking_hands(server->port());
  TlsClient client(server->port(), GetParam());
  client.send(kGet);
  const auto exchange = arrived.get_future().get();
  auto stopped = std::async(std::launch::async, [&] { return server->stop(kPatience); });
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_EQ(shaking_hands.read_to_end(), "");
  exchange->respond({.body = "late"});
  EXPECT_THAT(client.read_to_end(), EndsWith("late"));
  client.close();
  EXPECT_TRUE(stopped.get());
}

TEST_F(HttpServerTls, OlderVersionsAreRefused) {
  const auto server = serve([](const auto& exchange) { exchange->respond({}); });
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) EXPECT_FALSE(TlsClient(server->port(), version).connected());
  EXPECT_TRUE(TlsClient(server->port(), TLS1_2_VERSION).connected());
}

TEST_F(HttpServerTls, PlainHttpIsDroppedAndASilentClientToo) {
  const auto server = serve([](const auto& exchange) { exchange->respond({}); }, {.header_timeout = milliseconds(100)});
  RawClient plain(server->port());
  plain.send(kGet);
  plain.read_to_end();
  RawClient silent(server->port());
  EXPECT_EQ(silent.read_to_end(), "");
  TlsClient good(server->port(), TLS1_3_VERSION);
  good.send(kGet);
  EXPECT_THAT(good.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_EQ(server->stats().requests, 1);
}

TEST_F(HttpServerTls, NamesTheFileThatIsWrong) {
  write("other_key.pem", TestCertificate("IP:127.0.0.1").key_pem());
  write("locked_key.pem",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
        "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgAAAAAAAAAAAICCAAw\n-----END ENCRYPTED PRIVATE KEY-----\n");
  write("empty.pem", "");
  const std::string certificate = path("certificate.pem");
  const std::string key = path("key.pem");
  struct Case {
    std::string certificate;
    std::string key;
    std::string named;
  };
  for (const Case& wrong : {Case{path("absent.pem"), key, "absent.pem"}, Case{path("empty.pem"), key, "empty.pem"}, Case{key, key, "key.pem"},
                            Case{certificate, path("absent.pem"), "absent.pem"}, Case{certificate, certificate, "certificate.pem"},
                            Case{certificate, path("other_key.pem"), "other_key.pem"}, Case{certificate, path("locked_key.pem"), "locked_key.pem"},
                            Case{certificate, "", "certificate.pem"}, Case{"", key, "key.pem"}}) {
    const auto server = start(wrong.certificate, wrong.key);
    ASSERT_FALSE(server.ok()) << wrong.named;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(server.error().message, HasSubstr(wrong.named));
    EXPECT_THAT(server.error().message, ::testing::Not(HasSubstr("\n")));
  }
  EXPECT_TRUE(start(certificate, key).ok());
}

}  // namespace
}  // namespace espalier
