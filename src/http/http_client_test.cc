#include "http/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "tests/support/scripted_server.h"
#include "tests/support/tls_peer.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using std::chrono::milliseconds;
using Script = ScriptedServer::Script;

std::unique_ptr<HttpClient> client_of(const ScriptedServer& server, const HttpClientOptions& options = {}) {
  return HttpClient::create(server.url(), options).value();
}

HttpRequest post(std::string body = "{}") {
  return {.method = "POST", .path = "/v1/things", .headers = {{"Accept", "text/event-stream"}}, .body = std::move(body)};
}
HttpRequest get(std::string path = "/health") { return {.method = "GET", .path = std::move(path)}; }

std::string fixed_answer(std::string_view body, std::string_view more_headers = "") {
  return format("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{}Content-Length: {}\r\n\r\n{}", more_headers, body.size(), body);
}

Script answering(std::string bytes) {
  return [bytes](ScriptedPeer& peer) {
    peer.read_request();
    peer.send(bytes);
  };
}

constexpr std::string_view kChunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

Error failure_of(std::string answer) {
  const ScriptedServer server({answering(std::move(answer))});
  const auto result = client_of(server)->send(post());
  EXPECT_FALSE(result.ok());
  if (result.ok()) return {};
  EXPECT_THAT(result.error().message, HasSubstr(server.url() + "/v1/things"));
  return result.error();
}

TEST(HttpClient, WritesTheRequestWithItsHeadersInOrderAndNothingElse) {
  std::string seen;
  {
    const ScriptedServer server({[&](ScriptedPeer& peer) {
      seen = peer.read_request();
      peer.send(fixed_answer("ok"));
    }});
    HttpRequest request{.method = "POST", .path = "/v1/things", .query = "a=1", .headers = {{"X-B", "2"}, {"X-A", "1"}}, .body = "{\"x\":1}"};
    ASSERT_TRUE(HttpClient::create(server.url() + "/prefix/").value()->send(request).ok());
    seen = seen.replace(seen.find(std::to_string(server.port())), std::to_string(server.port()).size(), "PORT");
  }
  EXPECT_EQ(seen, "POST /prefix/v1/things?a=1 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX-B: 2\r\nX-A: 1\r\nContent-Length: 7\r\n\r\n{\"x\":1}");
}

TEST(HttpClient, ReadsABodyOfAnnouncedLength) {
  const ScriptedServer server({answering(fixed_answer("hello", "X-Request-ID: 7\r\n"))});
  const HttpResponse answer = client_of(server)->send(get()).value();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "text/plain");
  EXPECT_EQ(answer.body, "hello");
  ASSERT_EQ(answer.headers.size(), 1u);
  EXPECT_EQ(answer.headers[0].name, "X-Request-ID");
  EXPECT_EQ(answer.headers[0].value, "7");
}

TEST(HttpClient, ReadsABodyThatEndsWithTheConnection) {
  const ScriptedServer server({answering("HTTP/1.1 200 OK\r\n\r\nto the end")});
  EXPECT_EQ(client_of(server)->send(get()).value().body, "to the end");
}

TEST(HttpClient, AnAnswerMayArriveByteByByte) {
  const std::string bytes = std::string(kChunkedHead) + "5\r\nda\n\nt\r\n3;note=x\r\na\xc3\xa4\r\n0\r\nX-Trailer: 1\r\n\r\n";
  std::vector<std::string> pieces;
  for (const char byte : bytes) pieces.emplace_back(1, byte);
  const ScriptedServer server({[&](ScriptedPeer& peer) {
    peer.read_request();
    peer.send_in_pieces(pieces);
  }});
  std::string body;
  const auto answer = client_of(server)->send(post(), [&](std::string_view piece) { return body += piece, true; });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->content_type, "text/event-stream");
  EXPECT_EQ(body, "da\n\nta\xc3\xa4");
  EXPECT_THAT(answer->body, IsEmpty());
}

TEST(HttpClient, PiecesOfABodyAreSeenWhenTheyArriveAndNotAtItsEnd) {
  std::atomic<bool> first_seen = false;
  bool waited_for_reader = false;
  {
    const ScriptedServer server({[&](ScriptedPeer& peer) {
      peer.read_request();
      peer.send(std::string(kChunkedHead) + "6\r\nfirst \r\n");
      for (int i = 0; i < 1000 && !first_seen; ++i) std::this_thread::sleep_for(milliseconds(5));
      waited_for_reader = first_seen;
      peer.send("4\r\nlast\r\n0\r\n\r\n");
    }});
    std::string body;
    const auto see = [&](std::string_view piece) {
      body += piece;
      first_seen = true;
      return true;
    };
    ASSERT_TRUE(client_of(server)->send(post(), see).ok());
    EXPECT_EQ(body, "first last");
  }
  EXPECT_TRUE(waited_for_reader);
}

TEST(HttpClient, ABodyOfAnotherStatusComesWithTheAnswer) {
  const std::string body = R"({"error":{"message":"no such key"}})";
  const std::string head = format("HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.size());
  const ScriptedServer server({answering(head + body)});
  const HttpResponse answer = client_of(server)->send(post(), [](std::string_view) { return ADD_FAILURE(), true; }).value();
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.body, body);
}

TEST(HttpClient, AnswersToHeadAndWithoutContentHaveNoBody) {
  const ScriptedServer server({[](ScriptedPeer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    peer.read_request();
    peer.send("HTTP/1.1 204 No Content\r\n\r\n");
    peer.read_request();
    peer.send(fixed_answer("x"));
  }});
  const auto client = client_of(server);
  EXPECT_THAT(client->send({.method = "HEAD", .path = "/"}).value().body, IsEmpty());
  EXPECT_EQ(client->send(get()).value().status, 204);
  EXPECT_EQ(client->send(get()).value().body, "x");
}

TEST(HttpClient, AnInterimStatusIsTheAnswerBecauseNoneWasAskedFor) {
  const ScriptedServer server({answering("HTTP/1.1 100 Continue\r\n\r\n" + fixed_answer("x"))});
  EXPECT_EQ(client_of(server)->send(post()).value().status, 100);
}

TEST(HttpClient, KeepsItsConnection) {
  const ScriptedServer server({[](ScriptedPeer& peer) {
    for (int i = 0; i < 3; ++i) {
      peer.read_request();
      peer.send(fixed_answer(std::to_string(i)));
    }
  }});
  const auto client = client_of(server);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client->send(post()).value().body, std::to_string(i));
  EXPECT_EQ(server.accepted(), 1);
}

TEST(HttpClient, ConnectsAnewWhereTheServerSaysThatItCloses) {
  const ScriptedServer server({[](ScriptedPeer& peer) {
                                 peer.read_request();
                                 peer.send(fixed_answer("1", "Connection: close\r\n"));
                                 peer.wait_until_closed();
                               },
                               answering(fixed_answer("2"))});
  const auto client = client_of(server);
  EXPECT_EQ(client->send(post()).value().body, "1");
  EXPECT_EQ(client->send(post()).value().body, "2");
}

TEST(HttpClient, ReplacesAConnectionThatTheServerClosedWhileItWasIdle) {
  std::vector<std::string> bodies;
  const auto once = [&](ScriptedPeer& peer) {
    bodies.push_back(peer.read_request());
    peer.send(fixed_answer("ok"));
  };
  {
    const ScriptedServer server({once, once});
    const auto client = client_of(server);
    ASSERT_TRUE(client->send(post("one")).ok());
    std::this_thread::sleep_for(milliseconds(50));
    const auto second = client->send(post("two"));
    ASSERT_TRUE(second.ok()) << second.error().message;
    EXPECT_EQ(second->body, "ok");
  }
  EXPECT_THAT(bodies, ElementsAre(HasSubstr("one"), HasSubstr("two")));
}

TEST(HttpClient, ReplacesAConnectionThatTheServerClosesWhileTheNextRequestIsOnItsWay) {
  const auto after_reading_two = [](ScriptedPeer& peer) {
    peer.read_request();
    peer.send(fixed_answer("1"));
    peer.read_request();
    peer.reset_on_close();
  };
  const ScriptedServer server({after_reading_two, answering(fixed_answer("2"))});
  const auto client = client_of(server);
  ASSERT_EQ(client->send(post()).value().body, "1");
  const auto second = client->send(post());
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->body, "2");
  EXPECT_EQ(server.accepted(), 2);
}

TEST(HttpClient, ReplacesAConnectionOnceOnly) {
  const auto closing = [](ScriptedPeer& peer) { peer.read_request(); };
  const ScriptedServer server({[&](ScriptedPeer& peer) {
                                 peer.read_request();
                                 peer.send(fixed_answer("1"));
                                 peer.read_request();
                               },
                               closing, closing});
  const auto client = client_of(server);
  ASSERT_TRUE(client->send(post()).ok());
  const auto second = client->send(post());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_EQ(server.accepted(), 2);
}

TEST(HttpClient, AConnectionThatBreaksInTheMiddleOfAnAnswerIsNotTriedAgain) {
  const ScriptedServer server({[](ScriptedPeer& peer) {
                                 peer.read_request();
                                 peer.send(fixed_answer("1"));
                                 peer.read_request();
                                 peer.send(std::string(kChunkedHead) + "5\r\nhello");
                               },
                               answering(fixed_answer("2"))});
  const auto client = client_of(server);
  ASSERT_TRUE(client->send(post()).ok());
  const auto second = client->send(post());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("middle of the answer"));
  EXPECT_EQ(client->send(post()).value().body, "2");  // a broken connection is not the next request's business
}

TEST(HttpClient, BytesThatNobodyAskedForEndTheConnection) {
  const ScriptedServer server({[](ScriptedPeer& peer) {
                                 peer.read_request();
                                 peer.send(fixed_answer("1"));
                                 std::this_thread::sleep_for(milliseconds(20));
                                 peer.send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
                                 peer.wait_until_closed();
                               },
                               answering(fixed_answer("2"))});
  const auto client = client_of(server);
  ASSERT_EQ(client->send(post()).value().body, "1");
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(client->send(post()).value().body, "2");
}

struct BrokenAnswer {
  std::string name, bytes;
};

class BrokenAnswers : public ::testing::TestWithParam<BrokenAnswer> {};

TEST_P(BrokenAnswers, AreErrorsThatNameTheUrl) { EXPECT_EQ(failure_of(GetParam().bytes).code, ErrorCode::kIo); }

INSTANTIATE_TEST_SUITE_P(HttpClient, BrokenAnswers,
                         ::testing::Values(BrokenAnswer{"NothingAtAll", ""}, BrokenAnswer{"NoHttp", "SSH-2.0-OpenSSH_9.2\r\n"},
                                           BrokenAnswer{"HeadCutOff", "HTTP/1.1 200 OK\r\nContent-Le"},
                                           BrokenAnswer{"NoStatus", "HTTP/1.1 OK\r\n\r\n"},
                                           BrokenAnswer{"NoLength", "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"},
                                           BrokenAnswer{"TwoLengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"},
                                           BrokenAnswer{"BodyTooShort", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"},
                                           BrokenAnswer{"NoChunkSize", std::string(kChunkedHead) + "zz\r\n"},
                                           BrokenAnswer{"ChunkLongerThanItsSize", std::string(kChunkedHead) + "2\r\nabc\r\n0\r\n\r\n"},
                                           BrokenAnswer{"ChunkCutOff", std::string(kChunkedHead) + "ff\r\nabc"},
                                           BrokenAnswer{"LastChunkMissing", std::string(kChunkedHead) + "3\r\nabc\r\n"}),
                         [](const auto& tested) { return tested.param.name; });

TEST(HttpClient, AHeadWithoutEndIsNotReadForever) {
  for (const std::string& begin : {std::string("HTTP/1.1 200 OK\r\nX: "), std::string(kChunkedHead) + "3;", std::string(kChunkedHead) + "0\r\nX: "}) {
    const Error error = failure_of(begin + std::string(1 << 20, 'x'));
    EXPECT_EQ(error.code, ErrorCode::kIo);
    EXPECT_THAT(error.message, HasSubstr("not a valid HTTP answer")) << begin;  // rather than cut off
  }
}

TEST(HttpClient, AnAnswerBeyondTheLimitEndsAtTheLimit) {
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  const ScriptedServer server({[&](ScriptedPeer& peer) {
                                 peer.read_request();
                                 peer.send(kChunkedHead);
                                 for (int i = 0; i < 1000; ++i) peer.send(chunk);
                               },
                               answering("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")});
  const auto client = client_of(server, {.max_answer_bytes = 200'000});
  size_t seen = 0;
  const auto chunked = client->send(post(), [&](std::string_view piece) { return seen += piece.size(), true; });
  ASSERT_FALSE(chunked.ok());
  EXPECT_EQ(chunked.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(chunked.error().message, AllOf(HasSubstr("200000"), HasSubstr(server.url())));
  EXPECT_LE(seen, 200'000u);
  const auto announced = client->send(post());
  ASSERT_FALSE(announced.ok());
  EXPECT_EQ(announced.error().code, ErrorCode::kResourceExhausted);
}

TEST(HttpClient, ARefusalBeforeTheBodyWasReadIsStillRead) {
  const ScriptedServer server({[](ScriptedPeer& peer) {
    peer.send("HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
    std::this_thread::sleep_for(milliseconds(50));
  }});
  const auto answer = client_of(server)->send(post(std::string(8 << 20, 'x')));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 413);
  EXPECT_EQ(answer->body, "big");
}

TEST(HttpClient, SilenceEndsTheRequestAndSlownessDoesNot) {
  const ScriptedServer server({[](ScriptedPeer& peer) {
    peer.read_request();
    peer.send(kChunkedHead);
    for (int i = 0; i < 4; ++i) {  // 240 ms altogether
      std::this_thread::sleep_for(milliseconds(60));
      peer.send("1\r\nx\r\n");
    }
    peer.wait_until_closed();
  }});
  const auto client = client_of(server, {.silence_timeout = milliseconds(200)});
  std::string seen;
  const auto start = std::chrono::steady_clock::now();
  const auto result = client->send(post(), [&](std::string_view piece) { return seen += piece, true; });
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("timed out"), HasSubstr(server.url())));
  EXPECT_EQ(seen, "xxxx");
  EXPECT_GE(took, milliseconds(440));
  EXPECT_LT(took, milliseconds(5000));
}

TEST(HttpClient, AnInterruptionIsNoticedWhileTheServerIsSilent) {
  std::atomic<bool> interrupted = false;
  const ScriptedServer server({[&](ScriptedPeer& peer) {
    peer.read_request();
    interrupted = true;
    peer.wait_until_closed();
  }});
  const auto start = std::chrono::steady_clock::now();
  const auto result = client_of(server, {.interrupted = &interrupted})->send(post());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5000));
}

TEST(HttpClient, AReaderMayCutTheAnswerOffWhichClosesTheConnection) {
  const auto start = std::chrono::steady_clock::now();
  const ScriptedServer server({[](ScriptedPeer& peer) {
                                 peer.read_request();
                                 peer.send(std::string(kChunkedHead) + "1\r\na\r\n1\r\nb\r\n");
                                 peer.wait_until_closed();
                               },
                               answering(fixed_answer("next"))});
  const auto client = client_of(server);
  int pieces = 0;
  const auto result = client->send(post(), [&](std::string_view) { return ++pieces, false; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(pieces, 1);
  EXPECT_EQ(client->send(post()).value().body, "next");
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5000));  // the server did not have to wait for its own clock
}

TEST(HttpClient, NobodyListeningIsAnErrorThatNamesTheUrl) {
  int port = 0;
  {
    const ScriptedServer gone({});
    port = gone.port();
  }
  const auto result = HttpClient::create(format("http://127.0.0.1:{}", port)).value()->send(get());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr(format("http://127.0.0.1:{}/health", port)), HasSubstr("refused")));
}

TEST(HttpClient, AHostWithoutAddressIsNamed) {
  const auto result = HttpClient::create("http://no-such-host.invalid", {.connect_timeout = milliseconds(5000)}).value()->send(get());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_THAT(result.error().message, HasSubstr("no-such-host.invalid"));
}

class RefusedUrls : public ::testing::TestWithParam<const char*> {};

TEST_P(RefusedUrls, SayWhy) {
  const auto client = HttpClient::create(GetParam());
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(client.error().message, HasSubstr("'" + std::string(GetParam()) + "'"));
}

INSTANTIATE_TEST_SUITE_P(HttpClient, RefusedUrls,
                         ::testing::Values("", "localhost:8080", "ftp://host", "http://", "http:///path", "http://:80", "http://host:",
                                           "http://host:0", "http://host:65536", "http://host:80x", "http://host:+80", "http://[::1",
                                           "http://[]:80", "http://[::1]80", "http://user:pw@host", "http://host/?q=1", "http://host/#part"));

TEST(HttpClient, AnUrlWithOddCharactersIsRefusedButNotRepeated) {
  for (const std::string_view url : {"http://ho st", "http://host/\r\nX: 1", "http://h\xc3\xb6st"}) {
    const auto client = HttpClient::create(url);
    ASSERT_FALSE(client.ok());
    EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(client.error().message, ::testing::Not(HasSubstr(std::string(url))));
  }
}

TEST(HttpClient, TextThatWouldBreakTheFramingIsRefused) {
  const ScriptedServer server({});
  const auto client = client_of(server);
  const auto code_of = [&](const HttpRequest& request) {
    const auto result = client->send(request);
    return result.ok() ? ErrorCode::kInternal : result.error().code;
  };
  EXPECT_EQ(code_of({.method = "GE T", .path = "/"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of({.method = "GET", .path = "no-slash"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of({.method = "GET", .path = "/a b"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of({.method = "GET", .path = "/", .headers = {{"X Y", "1"}}}), ErrorCode::kInvalidArgument);
  const auto secret = client->send({.method = "GET", .path = "/", .headers = {{"Authorization", "Bearer abc\r\nX: 1"}}});
  ASSERT_FALSE(secret.ok());
  EXPECT_EQ(secret.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(secret.error().message, AllOf(HasSubstr("Authorization"), ::testing::Not(HasSubstr("abc"))));
}

// Servers behind TLS.
class HttpsClient : public ::testing::Test {
 protected:
  ~HttpsClient() override { std::filesystem::remove(ca_path_); }

  std::string trust(const std::string& pem) {
    std::ofstream(ca_path_, std::ios::binary) << pem;
    return ca_path_;
  }
  // One connection; `script` sees it after the handshake.
  static std::function<void(int)> tls(const TestCertificate& certificate, std::function<void(TlsPeer&)> script) {
    return [&certificate, script = std::move(script)](int descriptor) {
      TlsPeer peer(descriptor, certificate);
      script(peer);
    };
  }
  static std::string url_of(const ScriptedServer& server, std::string_view host = "127.0.0.1") {
    return format("https://{}:{}", host, server.port());
  }
  static Result<HttpResponse> ask(const std::string& url, const std::string& ca_file) {
    return HttpClient::create(url, {.ca_file = ca_file}).value()->send(get());
  }

  const std::string ca_path_ = ::testing::TempDir() + format("https_client_ca.{}.pem", ::getpid());
  const TestCertificate certificate_{"IP:127.0.0.1"};
};

TEST_F(HttpsClient, TalksToAServerWhoseCertificateItTrustsAndKeepsTheConnection) {
  const ScriptedServer server = ScriptedServer::of_sockets({tls(certificate_, [](TlsPeer& peer) {
    for (int i = 0; i < 2; ++i) {
      peer.read_request();
      peer.send(std::string(kChunkedHead) + format("1\r\n{}\r\n0\r\n\r\n", i));
    }
  })});
  const auto client = HttpClient::create(url_of(server), {.ca_file = trust(certificate_.pem())}).value();
  EXPECT_EQ(client->send(post()).value().body, "0");
  EXPECT_EQ(client->send(post()).value().body, "1");
}

TEST_F(HttpsClient, ReplacesAConnectionThatTheServerClosedWhileItWasIdle) {
  const auto once = tls(certificate_, [](TlsPeer& peer) {
    peer.read_request();
    peer.send(fixed_answer("ok"));
    peer.say_goodbye();
  });
  const ScriptedServer server = ScriptedServer::of_sockets({once, once});
  const auto client = HttpClient::create(url_of(server), {.ca_file = trust(certificate_.pem())}).value();
  ASSERT_TRUE(client->send(get()).ok());
  std::this_thread::sleep_for(milliseconds(50));
  const auto second = client->send(get());
  ASSERT_TRUE(second.ok()) << second.error().message;
}

TEST_F(HttpsClient, RefusesACertificateThatNobodyVouchesFor) {
  const TestCertificate other("IP:127.0.0.1");
  const auto unused = tls(certificate_, [](TlsPeer& peer) { EXPECT_THAT(peer.read_request(), IsEmpty()); });
  const ScriptedServer server = ScriptedServer::of_sockets({unused, unused});
  for (const std::string& ca_file : {std::string(), trust(other.pem())}) {
    const auto result = ask(url_of(server), ca_file);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kIo);
    EXPECT_THAT(result.error().message, AllOf(HasSubstr(url_of(server)), HasSubstr("certificate refused")));
  }
}

TEST_F(HttpsClient, RefusesACertificateOfAnotherHost) {
  const TestCertificate named("DNS:example.org");
  const auto unused = tls(named, [](TlsPeer& peer) { EXPECT_THAT(peer.read_request(), IsEmpty()); });
  const ScriptedServer server = ScriptedServer::of_sockets({unused, unused});
  for (const std::string_view host : {"127.0.0.1", "localhost"}) {
    const auto result = ask(url_of(server, host), trust(named.pem()));
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message, AllOf(HasSubstr("certificate refused"), HasSubstr("mismatch")));
  }
}

TEST_F(HttpsClient, AcceptsACertificateByName) {
  const TestCertificate named("DNS:localhost");
  const ScriptedServer server = ScriptedServer::of_sockets({tls(named, [](TlsPeer& peer) {
    peer.read_request();
    peer.send(fixed_answer("ok"));
  })});
  EXPECT_EQ(ask(url_of(server, "localhost"), trust(named.pem())).value().body, "ok");
}

TEST_F(HttpsClient, AServerWithoutTlsIsAnError) {
  const ScriptedServer server({[](ScriptedPeer& peer) {
    peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.wait_until_closed();
  }});
  const auto result = ask(url_of(server), trust(certificate_.pem()));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_THAT(result.error().message, HasSubstr("TLS handshake"));
}

TEST_F(HttpsClient, AnAnswerCutOffBelowTlsIsAnError) {
  const ScriptedServer server = ScriptedServer::of_sockets({tls(certificate_, [](TlsPeer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n\r\nno goodbye, so maybe not all");
  })});
  const auto result = ask(url_of(server), trust(certificate_.pem()));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
}

TEST_F(HttpsClient, AFileWithoutCertificatesIsNamedAtOnce) {
  for (const std::string& path : {std::string("/no/such/file.pem"), trust("no certificate")}) {
    const auto client = HttpClient::create("https://localhost", {.ca_file = path});
    ASSERT_FALSE(client.ok());
    EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(client.error().message, HasSubstr(path));
  }
}

}  // namespace
}  // namespace espalier
