#include "http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "http/raw_client_test_support.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

std::string post(std::string_view body) {
  return "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// Requests that the handler put aside, for the test to answer from its own thread.
class Waiting {
 public:
  HttpHandler handler() {
    return [this](std::shared_ptr<HttpExchange> exchange) {
      const std::lock_guard lock(mutex_);
      exchanges_.push_back(std::move(exchange));
      arrived_.notify_all();
    };
  }

  std::shared_ptr<HttpExchange> next() {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, kPatience, [this] { return !exchanges_.empty(); })) return nullptr;
    std::shared_ptr<HttpExchange> exchange = std::move(exchanges_.front());
    exchanges_.pop_front();
    return exchange;
  }

  bool empty() {
    const std::lock_guard lock(mutex_);
    return exchanges_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<HttpExchange>> exchanges_;
};

HttpResponse text(std::string body) { return {.status = 200, .content_type = "text/plain", .body = std::move(body)}; }

void echo(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  exchange->respond(text(request.method + " " + request.path + " " + request.body));
}

std::unique_ptr<HttpServer> serve(HttpCallbacks callbacks, const HttpLimits& limits = {}) {
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start({.port = 0, .limits = limits}, std::move(callbacks));
  EXPECT_TRUE(server.ok()) << server.error().message;
  return std::move(server).value();
}

std::unique_ptr<HttpServer> serve(HttpHandler handler, const HttpLimits& limits = {}) {
  return serve(HttpCallbacks{.gate = {}, .handler = std::move(handler), .error_page = {}}, limits);
}

bool soon(const std::function<bool()>& condition) {
  for (const auto end = steady_clock::now() + kPatience; steady_clock::now() < end; std::this_thread::sleep_for(milliseconds(1))) {
    if (condition()) return true;
  }
  return false;
}

// Set when the client was reported gone.
std::shared_ptr<std::promise<void>> watch(HttpExchange& exchange) {
  auto gone = std::make_shared<std::promise<void>>();
  exchange.on_gone([gone] { gone->set_value(); });
  return gone;
}

bool happens(const std::shared_ptr<std::promise<void>>& event) { return event->get_future().wait_for(kPatience) == std::future_status::ready; }

// Framing.

TEST(HttpServer, AnAnswerByteForByte) {
  const auto server = serve([](const auto& exchange) { exchange->respond({.status = 404, .headers = {{"X-Request-Id", "r1"}}, .body = "{}"}); });
  RawClient client(server->port());
  client.send(kGet);
  EXPECT_EQ(client.read_until("{}"),
            "HTTP/1.1 404 Not Found\r\nServer: espalier\r\nContent-Type: application/json\r\nX-Request-Id: r1\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_TRUE(client.is_silent_for(milliseconds(20)));
}

TEST(HttpServer, AStreamByteForByte) {
  const auto server = serve([](const auto& exchange) {
    exchange->begin_stream({.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-store"}}, .body = "data: 1\n\n"});
    exchange->write("data: a frame of 27 bytes\n\n");
    exchange->write("");  // an empty chunk would be the last one
    exchange->write("x");
    exchange->finish();
  });
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {  // the second tells that the first ended where it should
    client.send(kGet);
    EXPECT_EQ(client.read_until("0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nServer: espalier\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
              "Transfer-Encoding: chunked\r\n\r\n"
              "9\r\ndata: 1\n\n\r\n1b\r\ndata: a frame of 27 bytes\n\n\r\n1\r\nx\r\n0\r\n\r\n");
  }
  EXPECT_TRUE(client.is_silent_for(milliseconds(20)));
}

TEST(HttpServer, TheLastChunkGoesOutWithTheLastData) {
  const auto server = serve([](const auto& exchange) {
    exchange->begin_stream({});
    exchange->write("the end");
    exchange->finish();
  });
  RawClient client(server->port());
  client.send(kGet);
  ASSERT_TRUE(client.receive());  // one segment
  EXPECT_THAT(client.received(), EndsWith("\r\n\r\n7\r\nthe end\r\n0\r\n\r\n"));
}

TEST(HttpServer, EachPieceOfAStreamLeavesWhenItIsWritten) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(kGet);
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  exchange->begin_stream({});
  EXPECT_EQ(client.read_head().status, 200);
  for (const char* piece : {"one", "two"}) {
    exchange->write(piece);
    EXPECT_EQ(client.read_until(std::string(piece) + "\r\n"), "3\r\n" + std::string(piece) + "\r\n");
  }
  exchange->finish();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
}

TEST(HttpServer, AThousandStreamsOnOneConnection) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) {
      const auto exchange = waiting.next();
      if (!exchange) return;
      exchange->begin_stream({.content_type = "text/event-stream"});
      for (int piece = 0; piece < 5; ++piece) exchange->write(exchange->request().body + "." + std::to_string(piece) + " ");
      exchange->finish();
    }
  });
  RawClient client(server->port());
  for (int i = 0; i < 1000; ++i) {
    const std::string n = std::to_string(i);
    client.send(post(n));
    const RawAnswer answer = client.read_answer();
    ASSERT_TRUE(answer.complete) << i;
    ASSERT_EQ(answer.body, n + ".0 " + n + ".1 " + n + ".2 " + n + ".3 " + n + ".4 ");
    ASSERT_THAT(answer.head, Not(HasSubstr("Connection:")));
  }
  producer.join();
  EXPECT_EQ(server->stats().connections_accepted, 1);
  EXPECT_EQ(server->stats().requests, 1000);
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(post("first") + post("second") + std::string(kGet) + post(std::string(1'000'000, 'x')) + post("last"));
  for (const char* answer : {"1", "2", "3", "4", "5"}) {
    const auto exchange = waiting.next();
    ASSERT_TRUE(exchange);
    std::this_thread::sleep_for(milliseconds(5));
    EXPECT_TRUE(waiting.empty()) << "the next request began before this one was answered";
    if (*answer == '2') {
      EXPECT_EQ(exchange->request().body, "second");
      exchange->begin_stream({});
      exchange->write(answer);
      exchange->finish();
    } else {
      exchange->respond(text(answer));
    }
    EXPECT_EQ(client.read_answer().body, answer);
  }
}

TEST(HttpServer, ARequestIsHandedOverAsItWasSent) {
  HttpRequest seen;
  const auto server = serve([&](const auto& exchange) {
    seen = exchange->request();
    exchange->respond({});
  });
  RawClient client(server->port());
  client.send(
      "\r\nPATCH /a%20b//c?q=1&r=%3f?x HTTP/1.1\r\nhost: localhost:80\r\nX-Twice:  one \r\nX-TWICE: two\r\nEmpty:\r\n"
      "Content-Length: 4\r\n\r\nbody");
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(seen.method, "PATCH");
  EXPECT_EQ(seen.path, "/a%20b//c");
  EXPECT_EQ(seen.query, "q=1&r=%3f?x");
  EXPECT_EQ(seen.body, "body");
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(client.socket(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(seen.peer, "127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  std::vector<std::string> headers;
  for (const HttpHeader& header : seen.headers) headers.push_back(header.name + "=" + header.value);
  EXPECT_THAT(headers, ElementsAre("host=localhost:80", "X-Twice=one", "X-TWICE=two", "Empty=", "Content-Length=4"));
}

TEST(HttpServer, ABodyIsReadByLengthOrByChunksHoweverItIsCut) {
  const auto server = serve(echo);
  RawClient client(server->port());
  using std::string_literals::operator""s;
  const std::string body = "a\0b\r\n\r\n\xff"s;
  const std::string by_length = post(body);
  const std::string by_chunks =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3;name=value\r\na\0b\r\n00005\r\n\r\n\r\n\xff\r\n0\r\nTrailer: x\r\n\r\n"s;
  for (const std::string& request : {by_length, by_chunks}) {
    client.send(request);
    EXPECT_EQ(client.read_answer().body, "POST / " + body);
    for (const char byte : request) client.send(std::string_view(&byte, 1));
    EXPECT_EQ(client.read_answer().body, "POST / " + body);
  }
}

TEST(HttpServer, TrailersAreReadOver) {
  std::promise<std::vector<HttpHeader>> headers;
  const auto server = serve([&](const auto& exchange) {
    headers.set_value(exchange->request().headers);
    exchange->respond({});
  });
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nHost: b\r\nAuthorization: late\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(headers.get_future().get().size(), 2u);
}

TEST(HttpServer, ALargeBodyAndALargeAnswer) {
  const auto server = serve(echo);
  RawClient client(server->port());
  std::string body(20 << 20, '\0');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7 + i / 4096);
  std::thread sender([&] { client.send(post(body)); });
  const RawAnswer answer = client.read_answer();
  sender.join();
  EXPECT_TRUE(answer.complete);
  EXPECT_TRUE(answer.body == "POST / " + body);
}

TEST(HttpServer, HeadAnswersAsGetWithoutTheBody) {
  const auto server = serve([](const auto& exchange) {
    if (exchange->request().path == "/stream") {
      exchange->begin_stream({.body = "data"});
      exchange->write("more");
      exchange->finish();
    } else {
      exchange->respond(text("twelve bytes"));
    }
  });
  RawClient client(server->port());
  client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client.read_head().head, HasSubstr("\r\nContent-Length: 12\r\n"));
  client.send("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client.read_head().head, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  client.send(kGet);
  EXPECT_EQ(client.read_answer().body, "twelve bytes");
  client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n");
  EXPECT_THAT(client.read_head().head, HasSubstr("\r\nContent-Length: 12\r\n"));
  EXPECT_THAT(client.read_to_end(), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("malformed"))) << "what follows is no HEAD request";
}

TEST(HttpServer, AStatusWithoutABodyHasNone) {
  const auto server = serve([](const auto& exchange) { exchange->respond({.status = 204, .body = "dropped"}); });
  RawClient client(server->port());
  client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.read_head().head, "HTTP/1.1 204 No Content\r\nServer: espalier\r\n\r\n");
  EXPECT_TRUE(client.is_silent_for(milliseconds(20)));
}

TEST(HttpServer, EveryMethodReachesTheHandler) {
  const auto server = serve(echo);
  RawClient client(server->port());
  for (const std::string method : {"GET", "OPTIONS", "DELETE", "PUT", "M-SEARCH", "get"}) {
    client.send(method + " /x HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.read_answer().body, method + " /x ");
  }
}

// HTTP/1.0 and the end of a connection.

TEST(HttpServer, AnHttp10ClientGetsAStreamUnchunkedUpToTheEndOfTheConnection) {
  const auto server = serve([](const auto& exchange) {
    exchange->begin_stream({.content_type = "text/plain", .body = "one "});
    exchange->write("two");
    exchange->finish();
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.read_to_end(), "HTTP/1.1 200 OK\r\nServer: espalier\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\none two");
  EXPECT_TRUE(client.ended_cleanly());
}

TEST(HttpServer, AnHttp10ClientKeepsItsConnectionIfItAsks) {
  const auto server = serve(echo);
  RawClient client(server->port());
  client.send("GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.body, "GET /a ");
  EXPECT_THAT(answer.head, HasSubstr("\r\nConnection: keep-alive\r\n"));
  client.send("GET /b HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("\r\n\r\nGET /b ")));
  EXPECT_TRUE(client.ended_cleanly());
}

TEST(HttpServer, ConnectionCloseIsHonouredAndSaid) {
  const auto server = serve(echo);
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + std::string(kGet));
  EXPECT_THAT(client.read_to_end(), AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("\r\nConnection: close\r\n"), EndsWith("\r\n\r\nGET / ")));
  EXPECT_TRUE(client.ended_cleanly());
  EXPECT_EQ(server->stats().requests, 1);
}

// What is no request.

struct BadRequest {
  const char* name;
  std::string bytes;
  int status;
};

class HttpServerBadRequest : public ::testing::TestWithParam<BadRequest> {};

TEST_P(HttpServerBadRequest, IsAnsweredAndEndsItsConnection) {
  std::atomic<int> pages = 0;
  std::atomic<int> handled = 0;
  const auto server = serve(HttpCallbacks{.gate = {},
                                          .handler = [&](const auto& exchange) { ++handled; echo(exchange); },
                                          .error_page = [&](int status, std::string_view message) {
                                            ++pages;
                                            EXPECT_FALSE(message.empty());
                                            return HttpResponse{.status = status, .body = "{\"error\":true}"};
                                          }});
  RawClient client(server->port());
  client.send(GetParam().bytes);
  const std::string answer = client.read_to_end();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(GetParam().status) + " "));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n{\"error\":true}"));
  EXPECT_TRUE(client.ended_cleanly());
  EXPECT_EQ(pages, 1);
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(server->stats().refused, 1);
  EXPECT_EQ(server->stats().requests, 0);
}

std::string with_headers(const std::string& headers) { return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\nabcd" + std::string(kGet); }

INSTANTIATE_TEST_SUITE_P(
    HttpServer, HttpServerBadRequest,
    ::testing::Values(
        BadRequest{"NoHttp", "hello there\r\n\r\n", 400}, BadRequest{"NoMethod", " / HTTP/1.1\r\n\r\n", 400},
        BadRequest{"BinaryBytes", "\x16\x03\x01\x02\x01\x01\xfc\x03\x03\r\n\r\n", 400},
        BadRequest{"NoVersion", "GET /\r\n\r\n", 400}, BadRequest{"VersionWithoutForm", "GET / HTTP/eleven\r\nHost: a\r\n\r\n", 400},
        BadRequest{"Http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505}, BadRequest{"Http09", "GET / HTTP/0.9\r\n\r\n", 505},
        BadRequest{"SpaceBeforeColon", with_headers("Content-Length : 4\r\n"), 400},
        BadRequest{"LineFeedsAlone", "GET / HTTP/1.1\nHost: a\n\n", 400}, BadRequest{"NulInHeader", with_headers(std::string("X: a\0b\r\n", 8)), 400},
        BadRequest{"BareReturnInHeader", with_headers("X: a\rb\r\n"), 400}, BadRequest{"EmptyName", with_headers(": x\r\n"), 400},
        BadRequest{"NoHost", "GET / HTTP/1.1\r\n\r\n", 400}, BadRequest{"TwoHosts", with_headers("Host: b\r\n"), 400},
        BadRequest{"TwoLengths", with_headers("Content-Length: 4\r\nContent-Length: 5\r\n"), 400},
        BadRequest{"TheSameLengthTwice", with_headers("Content-Length: 4\r\nContent-Length: 4\r\n"), 400},
        BadRequest{"AListOfLengths", with_headers("Content-Length: 4, 4\r\n"), 400},
        BadRequest{"NegativeLength", with_headers("Content-Length: -4\r\n"), 400},
        BadRequest{"SignedLength", with_headers("Content-Length: +4\r\n"), 400},
        BadRequest{"HexLength", with_headers("Content-Length: 0x4\r\n"), 400},
        BadRequest{"EmptyLength", with_headers("Content-Length:\r\n"), 400},
        BadRequest{"LengthBeyond64Bits", with_headers("Content-Length: 18446744073709551620\r\n"), 400},
        BadRequest{"LengthAndChunks", with_headers("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), 400},
        BadRequest{"ChunksAndLength", with_headers("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"), 400},
        BadRequest{"ChunkedTwice", with_headers("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
        BadRequest{"AnotherEncoding", with_headers("Transfer-Encoding: gzip, chunked\r\n"), 501},
        BadRequest{"IdentityEncoding", with_headers("Transfer-Encoding: identity\r\n"), 501},
        BadRequest{"ChunkedNotLast", with_headers("Transfer-Encoding: chunked, gzip\r\n"), 501},
        BadRequest{"ChunkedByAnotherName", with_headers("Transfer-Encoding: xchunked\r\n"), 501},
        BadRequest{"ChunksInHttp10", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        BadRequest{"ChunkSizeWithoutDigits", with_headers("Transfer-Encoding: chunked\r\n") + "\r\n\r\n", 400},
        BadRequest{"ChunkSizeBeyond64Bits",
                   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000004\r\nabcd\r\n0\r\n\r\n", 400},
        BadRequest{"ChunkSizeNegative", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-4\r\nabcd\r\n0\r\n\r\n", 400},
        BadRequest{"ChunkLongerThanItSays", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400},
        BadRequest{"LengthAmongTheTrailers", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 4\r\n\r\n", 400}),
    [](const auto& bad) { return bad.param.name; });

// Limits.

constexpr HttpLimits kSmall{.max_header_bytes = 1000, .max_body_bytes = 1000};

TEST(HttpServerLimits, HeadersUpToTheLimitAreTaken) {
  const auto server = serve(echo, kSmall);
  const std::string frame = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";
  for (const size_t size : {1000u, 1001u}) {
    RawClient client(server->port());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(size - frame.size(), 'x') + "\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, size == 1000 ? 200 : 431);
  }
}

TEST(HttpServerLimits, AnEndlessLineOrEndlesslyManyHeadersAre431) {
  const auto server = serve(echo, kSmall);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  while (many.size() <= 1000) many += "a:b\r\n";
  const std::string line = "GET /" + std::string(1000, 'x');
  for (const std::string& bytes : {many, line}) {
    RawClient whole(server->port());
    whole.send(bytes);
    EXPECT_THAT(whole.read_to_end(), StartsWith("HTTP/1.1 431 "));
    RawClient piecewise(server->port());
    for (size_t i = 0; i < bytes.size(); i += 7) piecewise.send(bytes.substr(i, 7));
    EXPECT_THAT(piecewise.read_to_end(), StartsWith("HTTP/1.1 431 "));
  }
}

TEST(HttpServerLimits, AnAnnouncedLengthIsRefusedBeforeTheBodyIsRead) {
  const auto server = serve(echo, kSmall);
  for (const std::string length : {"1001", "18446744073709551615", "2147483648"}) {
    RawClient client(server->port());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: " + length + "\r\n\r\n");
    EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 413 "));
  }
  RawClient client(server->port());
  client.send(post(std::string(1000, 'x')));
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(HttpServerLimits, ChunksBeyondTheLimitAre413) {
  const auto server = serve(echo, kSmall);
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string most = "3e7\r\n" + std::string(999, 'x') + "\r\n";
  RawClient enough(server->port());
  enough.send(head + most + "1\r\ny\r\n0\r\n\r\n");
  EXPECT_EQ(enough.read_answer().status, 200);
  for (const std::string chunk : {"2\r\n", "ffffffffffffffff\r\n"}) {
    RawClient client(server->port());
    client.send(head + most + chunk);
    EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 413 "));
  }
  for (const std::string& line : {"1;" + std::string(2000, 'x'), "0\r\nTrailer: " + std::string(2000, 'x')}) {
    RawClient client(server->port());
    client.send(head + line);
    EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 400 "));
  }
}

// L4.
TEST(HttpServerLimits, FourGigabytesInChunksAreCutAtTheLimit) {
  const auto server = serve(echo, {.max_body_bytes = 4 << 20});
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "100000\r\n" + std::string(1 << 20, 'x') + "\r\n";
  int sent = 0;
  std::thread sender([&] {
    while (sent < 4096 && client.send(chunk)) ++sent;
  });
  EXPECT_EQ(client.read_answer().status, 413);
  client.read_to_end();
  sender.join();
  EXPECT_LT(sent, 200) << "megabytes; beyond the limit a client is listened to only for as long as it may need to see the answer";
}

TEST(HttpServerLimits, MoreConnectionsWaitUntilOneCloses) {
  Waiting waiting;
  const auto server = serve(waiting.handler(), {.max_connections = 2});
  RawClient first(server->port());
  RawClient second(server->port());
  first.send(kGet);
  second.send(kGet);
  const auto one = waiting.next();
  const auto two = waiting.next();
  RawClient third(server->port());  // in the listen queue
  third.send(kGet);
  EXPECT_TRUE(third.is_silent_for(milliseconds(100)));
  EXPECT_EQ(server->stats().connections_open, 2);
  first.close();
  const auto three = waiting.next();
  ASSERT_TRUE(three);
  three->respond(text("at last"));
  EXPECT_EQ(third.read_answer().body, "at last");
  EXPECT_FALSE(two->gone());
}

TEST(HttpServerLimits, TheLongestIdleConnectionGivesWay) {
  const auto server = serve(echo, {.max_connections = 2, .idle_timeout = milliseconds(2'000)});
  RawClient longest(server->port());
  ASSERT_TRUE(soon([&] { return server->stats().connections_open == 1; }));
  std::this_thread::sleep_for(milliseconds(600));
  RawClient other(server->port());
  ASSERT_TRUE(soon([&] { return server->stats().connections_open == 2; }));
  RawClient newcomer(server->port());
  newcomer.send(kGet);
  EXPECT_EQ(newcomer.read_answer().status, 200);
  other.send(kGet);
  EXPECT_EQ(other.read_answer().status, 200);
  EXPECT_EQ(longest.read_to_end(), "");
}

TEST(HttpServerLimits, WithoutDescriptorsClientsWaitAndAreServedLater) {
  const auto server = serve(echo);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> taken;
  for (int copy; (copy = ::dup(socket)) >= 0;) taken.push_back(copy);
  RawClient client(socket);
  client.connect_to(server->port());
  client.send(kGet);
  EXPECT_TRUE(client.is_silent_for(milliseconds(100)));
  EXPECT_EQ(server->stats().connections_accepted, 0);
  for (const int copy : taken) ::close(copy);
  EXPECT_EQ(client.read_answer().status, 200);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// Deadlines.

TEST(HttpServerDeadlines, HeadersThatDoNotEndAre408) {
  const auto server = serve(echo, {.header_timeout = milliseconds(100)});
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\n");
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 408 "));
}

TEST(HttpServerDeadlines, AByteNowAndThenDoesNotExtendThem) {
  const auto server = serve(echo, {.header_timeout = milliseconds(200), .body_timeout = milliseconds(200)});
  for (const std::string begin : {"GET / HTTP/1.1\r\nHost: a\r\nX: ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"}) {
    RawClient client(server->port());
    client.send(begin);
    const auto start = steady_clock::now();
    while (!client.receive(milliseconds(10)) && steady_clock::now() - start < kPatience) client.send("x");
    EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 408 "));
    EXPECT_GE(steady_clock::now() - start, milliseconds(150));
  }
}

TEST(HttpServerDeadlines, ABodyThatDoesNotEndIs408) {
  const auto server = serve(echo, {.body_timeout = milliseconds(100)});
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 408 "));
}

TEST(HttpServerDeadlines, AnIdleConnectionIsClosedWithoutAWord) {
  const auto server = serve(echo, {.idle_timeout = milliseconds(150)});
  RawClient fresh(server->port());
  EXPECT_EQ(fresh.read_to_end(), "");
  RawClient used(server->port());
  used.send(kGet);
  EXPECT_EQ(used.read_answer().status, 200);
  used.send("\r\n");  // begins no request
  EXPECT_EQ(used.read_to_end(), "");
  EXPECT_TRUE(used.ended_cleanly());
}

TEST(HttpServerDeadlines, TheyDoNotCountWhileARequestIsAnswered) {
  Waiting waiting;
  constexpr milliseconds kShort(50);
  const auto server = serve(waiting.handler(), {.header_timeout = kShort, .body_timeout = kShort, .idle_timeout = kShort});
  RawClient client(server->port());
  client.send(std::string(kGet) + "GET ");  // and a part of the next request
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  EXPECT_TRUE(client.is_silent_for(milliseconds(200)));
  exchange->respond(text("late"));
  EXPECT_EQ(client.read_answer().body, "late");
  client.send("/ HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(waiting.next());
}

TEST(HttpServerDeadlines, MayBeForEver) {
  constexpr auto kForEver = milliseconds::max();
  const auto server = serve(
      [](const auto& exchange) {
        exchange->begin_stream({}, {.bytes = "filler", .after = kForEver});
        exchange->finish();
      },
      {.header_timeout = kForEver, .body_timeout = kForEver, .idle_timeout = kForEver, .send_timeout = kForEver});
  RawClient client(server->port());
  for (const char piece : post("x")) client.send(std::string_view(&piece, 1));
  EXPECT_EQ(client.read_answer().body, "");
  EXPECT_TRUE(client.is_silent_for(milliseconds(20)));
  EXPECT_TRUE(server->stop(kForEver));
}

// L11.
TEST(HttpServerDeadlines, FiveHundredSlowSendersDoNotSlowANormalRequest) {
  const auto server = serve(echo);
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur < 1100) {
    files.rlim_cur = std::min<rlim_t>(4096, files.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  std::vector<RawClient> slow;
  for (int i = 0; i < 500; ++i) {
    slow.emplace_back(server->port());
    slow.back().send(i % 2 == 0 ? "GET / HT" : "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhal");
  }
  ASSERT_TRUE(soon([&] { return server->stats().connections_open == 500; }));
  std::atomic<bool> done = false;
  std::thread trickle([&] {
    while (!done) {
      for (size_t i = 0; i < slow.size() && !done; i += 2) slow[i].send("T");
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  milliseconds longest{0};
  for (int i = 0; i < 20; ++i) {
    const auto start = steady_clock::now();
    RawClient client(server->port());
    client.send(post("normal"));
    EXPECT_EQ(client.read_answer().body, "POST / normal");
    longest = std::max(longest, std::chrono::duration_cast<milliseconds>(steady_clock::now() - start));
  }
  done = true;
  trickle.join();
  EXPECT_LT(longest, milliseconds(1000));
}

// The gate, and Expect.

TEST(HttpServerGate, RefusesBeforeTheBodyIsRead) {
  Waiting waiting;
  const auto gate = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    EXPECT_EQ(head.body, "");
    EXPECT_THAT(head.peer, StartsWith("127.0.0.1:"));
    if (head.header("authorization") != nullptr) return std::nullopt;
    return HttpResponse{.status = 401, .body = "no key"};
  };
  const auto server = serve(HttpCallbacks{.gate = gate, .handler = waiting.handler(), .error_page = {}});
  RawClient without(server->port());
  without.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(without.read_to_end(), AllOf(StartsWith("HTTP/1.1 401 Unauthorized\r\n"), HasSubstr("\r\nConnection: close\r\n"), EndsWith("no key")));
  EXPECT_TRUE(without.ended_cleanly());
  RawClient with(server->port());
  with.send("POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer k\r\nContent-Length: 4\r\n\r\nbody");
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  EXPECT_EQ(exchange->request().body, "body");
  EXPECT_EQ(server->stats().refused, 1);
  EXPECT_EQ(server->stats().requests, 1);
}

TEST(HttpServerGate, AClientThatSendsItsWholeBodyFirstReadsTheRefusal) {
  const auto gate = [](const HttpRequest&) { return HttpResponse{.status = 403, .body = "foreign"}; };
  const auto server = serve(HttpCallbacks{.gate = gate, .handler = echo, .error_page = {}});
  for (int i = 0; i < 5; ++i) {
    RawClient client(server->port());
    EXPECT_TRUE(client.send(post(std::string(20 << 20, 'x')) + std::string(kGet)));
    EXPECT_THAT(client.read_to_end(), AllOf(StartsWith("HTTP/1.1 403 "), EndsWith("foreign")));
  }
  EXPECT_EQ(server->stats().requests, 0);
}

TEST(HttpServerGate, AClientThatHasStoppedSendingReadsTheWholeRefusal) {
  const auto gate = [](const HttpRequest&) { return HttpResponse{.status = 403, .body = std::string(16 << 20, 'x')}; };
  const auto server = serve(HttpCallbacks{.gate = gate, .handler = echo, .error_page = {}});
  RawClient client(server->port());
  client.send(kGet);
  ::shutdown(client.socket(), SHUT_WR);
  std::this_thread::sleep_for(milliseconds(20));  // the end of its sending is seen while the answer is under way
  EXPECT_EQ(client.read_answer().body.size(), size_t{16} << 20);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_TRUE(client.ended_cleanly());
}

TEST(HttpServerGate, ContinueIsSaidOnlyToThoseWhoWaitForIt) {
  const auto server = serve(echo);
  RawClient waits(server->port());
  for (int i = 0; i < 2; ++i) {
    waits.send("POST / HTTP/1.1\r\nHost: a\r\nexpect: 100-Continue\r\nContent-Length: 4\r\n\r\n");
    EXPECT_EQ(waits.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_TRUE(waits.is_silent_for(milliseconds(10)));
    waits.send("body");
    EXPECT_EQ(waits.read_answer().body, "POST / body");
  }
  RawClient begun(server->port());
  begun.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n4");  // begins of its own accord
  EXPECT_TRUE(begun.is_silent_for(milliseconds(20)));
  begun.send("\r\nbody\r\n0\r\n\r\n");
  EXPECT_EQ(begun.read_answer().body, "POST / body");
  RawClient others(server->port());
  for (const std::string request : {
           "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",        // the body is here already
           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",                                // never asked
           "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",            // no body
           "POST / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",
       }) {
    others.send(request);
    EXPECT_EQ(others.read_answer().status, 200);
  }
}

// Clients that go.

TEST(HttpServerGone, IsSeenWhileTheRequestWaits) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  for (const bool by_reset : {false, true}) {
    RawClient client(server->port());
    client.send(kGet);
    const auto exchange = waiting.next();
    ASSERT_TRUE(exchange);
    const auto gone = watch(*exchange);
    EXPECT_FALSE(exchange->gone());
    const auto start = steady_clock::now();
    by_reset ? client.reset() : client.close();
    ASSERT_TRUE(happens(gone));
    EXPECT_LT(steady_clock::now() - start, milliseconds(500));
    EXPECT_TRUE(exchange->gone());
    exchange->respond(text("to nobody"));
  }
  EXPECT_TRUE(soon([&] { return server->stats().connections_open == 0; }));
}

TEST(HttpServerGone, IsSeenBehindPipelinedRequestsWhichAreNotBegun) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(post("first") + post("second") + post(std::string(100'000, 'x')));
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  const auto gone = watch(*exchange);
  client.close();
  EXPECT_TRUE(happens(gone));
  exchange->respond({});
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(server->stats().requests, 1);
}

TEST(HttpServerGone, IsSeenWhileAStreamIsSilentOrRunning) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  for (const bool running : {false, true}) {
    RawClient client(server->port());
    client.send(kGet);
    const auto exchange = waiting.next();
    ASSERT_TRUE(exchange);
    exchange->begin_stream({.body = "begin"});
    EXPECT_THAT(client.read_until("begin"), EndsWith("begin"));
    const auto gone = watch(*exchange);
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      while (running && !stop) {
        exchange->write("token");
        std::this_thread::sleep_for(milliseconds(1));
      }
    });
    client.close();
    EXPECT_TRUE(happens(gone));
    stop = true;
    writer.join();
    exchange->write("to nobody");
    exchange->finish();
  }
}

TEST(HttpServerGone, ALateCallbackRunsAtOnceAndOneThatIsNotNeededNever) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient first(server->port());
  first.send(kGet);
  const auto lost = waiting.next();
  ASSERT_TRUE(lost);
  first.close();
  ASSERT_TRUE(soon([&] { return lost->gone(); }));
  EXPECT_TRUE(happens(watch(*lost)));

  RawClient second(server->port());
  second.send(kGet);
  const auto served = waiting.next();
  ASSERT_TRUE(served);
  std::atomic<int> calls = 0;
  const auto held = std::make_shared<int>();
  served->on_gone([&calls, held] { ++calls; });
  served->respond({});
  EXPECT_EQ(second.read_answer().status, 200);
  EXPECT_TRUE(soon([&] { return held.use_count() == 1; })) << "the callback was kept";
  second.close();
  ASSERT_TRUE(soon([&] { return server->stats().connections_open == 0; }));
  served->on_gone([&] { ++calls; });
  std::promise<void> done;
  served->post([&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(served->gone());
}

TEST(HttpServerGone, AClientThatDoesNotReadIsDropped) {
  Waiting waiting;
  const auto server = serve(waiting.handler(), {.max_unsent_bytes = 1 << 20});
  RawClient client(server->port());
  client.send(kGet);
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  const auto gone = watch(*exchange);
  exchange->begin_stream({});
  const std::string piece(64 << 10, 'x');
  size_t written = 0;
  while (!exchange->gone() && written < (size_t{256} << 20)) {
    exchange->write(piece);
    written += piece.size();
    if (written % (1 << 20) == 0) std::this_thread::sleep_for(milliseconds(2));  // the socket takes what it can
  }
  EXPECT_TRUE(happens(gone));
  EXPECT_GT(written, size_t{1} << 20);
  EXPECT_EQ(server->stats().connections_open, 0);
}

TEST(HttpServerGone, AClientThatReadsNothingForTheSendTimeoutIsDropped) {
  Waiting waiting;
  const auto server = serve(waiting.handler(), {.send_timeout = milliseconds(150)});
  RawClient client(server->port());
  client.send(kGet);
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  const auto gone = watch(*exchange);
  exchange->respond(text(std::string(64 << 20, 'x')));  // more than max_unsent_bytes: a whole answer is one piece
  EXPECT_TRUE(happens(gone));
}

TEST(HttpServerGone, ASlowReaderIsNotDroppedWhileItMakesProgress) {
  const auto server = serve([](const auto& exchange) { exchange->respond(text(std::string(24 << 20, 'x'))); }, {.send_timeout = milliseconds(1'000)});
  RawClient client(server->port());
  const int small = 64 << 10;
  ::setsockopt(client.socket(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  client.send(kGet);
  const auto start = steady_clock::now();
  size_t received = client.read_head().body.size();
  while (steady_clock::now() - start < milliseconds(1'500)) {
    received += client.read_bytes(200'000).size();
    std::this_thread::sleep_for(milliseconds(50));
  }
  received += client.read_bytes((24 << 20) - received).size();
  EXPECT_EQ(received, size_t{24} << 20);
}

// Fillers.

TEST(HttpServerFiller, FillsASilentStreamOnly) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(kGet);
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  exchange->begin_stream({}, {.bytes = ": wait\n\n", .after = milliseconds(200)});
  client.read_head();
  EXPECT_EQ(client.read_until("\n\n\r\n"), "8\r\n: wait\n\n\r\n");
  EXPECT_EQ(client.read_until("\n\n\r\n"), "8\r\n: wait\n\n\r\n");
  const auto start = steady_clock::now();
  std::string expected;
  int pieces = 0;
  for (auto last = start; steady_clock::now() - start < milliseconds(500); last = steady_clock::now()) {
    if (steady_clock::now() - last > milliseconds(100)) GTEST_SKIP() << "this machine was too busy to write every few milliseconds";
    exchange->write("x");
    ++pieces;
    std::this_thread::sleep_for(milliseconds(3));
  }
  exchange->finish();
  std::string rest = client.read_until("0\r\n\r\n");
  const size_t first_x = rest.find("1\r\nx");
  ASSERT_NE(first_x, std::string::npos);
  for (int i = 0; i < pieces; ++i) expected += "1\r\nx\r\n";
  EXPECT_EQ(rest.substr(first_x), expected + "0\r\n\r\n");
  EXPECT_TRUE(client.is_silent_for(milliseconds(300))) << "a filler behind the end of the stream";
}

// Faults of the caller.

TEST(HttpServerFaults, AHandlerThatThrowsAnswers500) {
  Waiting kept;
  const auto server = serve([&](std::shared_ptr<HttpExchange> exchange) {
    const std::string path = exchange->request().path;
    kept.handler()(exchange);  // a reference lives on: the 500 must not wait for it
    if (path == "/answered") exchange->respond(text("before"));
    if (path == "/int") throw 1;
    throw std::runtime_error("broken");
  });
  RawClient client(server->port());
  for (const std::string path : {"/exception", "/int", "/answered", "/exception"}) {
    client.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    const RawAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, path == "/answered" ? 200 : 500);
    EXPECT_THAT(answer.head, Not(HasSubstr("broken")));
    EXPECT_THAT(answer.body, Not(HasSubstr("broken")));
  }
}

TEST(HttpServerFaults, AGateOrAnErrorPageThatThrowsAnswers500) {
  const auto server = serve(HttpCallbacks{.gate = [](const HttpRequest&) -> std::optional<HttpResponse> { throw std::runtime_error("gate"); },
                                          .handler = echo,
                                          .error_page = [](int, std::string_view) -> HttpResponse { throw std::runtime_error("page"); }});
  RawClient client(server->port());
  client.send(kGet);
  EXPECT_THAT(client.read_to_end(), AllOf(StartsWith("HTTP/1.1 500 "), EndsWith("internal error\n")));
}

TEST(HttpServerFaults, AnExchangeDroppedWithoutAnAnswerAnswers500) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send(kGet);
    ASSERT_TRUE(waiting.next());  // and dropped
    EXPECT_EQ(client.read_answer().status, 500);
  }
}

TEST(HttpServerFaults, AStreamDroppedBeforeItsEndIsCutSoThatTheClientCanTell) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(kGet);
  auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  exchange->begin_stream({.body = "half"});
  exchange.reset();
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.body, "half");
  EXPECT_FALSE(answer.complete);
}

TEST(HttpServerFaults, CallsOutOfOrderAreIgnored) {
  const auto server = serve([](const auto& exchange) {
    exchange->write("no stream yet");
    exchange->finish();
    if (exchange->request().path == "/stream") {
      exchange->begin_stream({.body = "a"});
      exchange->begin_stream({.body = "b"});
      exchange->respond(text("c"));
      exchange->write("d");
      exchange->finish();
      exchange->finish();
      exchange->write("e");
    } else {
      exchange->respond(text("one"));
      exchange->respond(text("two"));
      exchange->begin_stream({});
    }
  });
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(client.read_answer().chunks, ElementsAre("a", "d"));
    client.send(kGet);
    EXPECT_EQ(client.read_answer().body, "one");
  }
}

TEST(HttpServerFaults, AHeaderCannotSplitTheAnswer) {
  const auto server = serve([](const auto& exchange) {
    HttpResponse response = text("body");
    response.content_type = "text/plain\r\nSet-Cookie: a=b";
    response.headers = {{"X-Good", "kept"},
                        {"X-Value", "a\r\nSet-Cookie: a=b"},
                        {"X-Feed", "a\nSet-Cookie: a=b"},
                        {"X-Return", "a\rb"},
                        {"X-Nul", std::string("a\0b", 3)},
                        {"X-Name: x\r\nSet-Cookie", "a=b"},
                        {"X Space", "a"},
                        {"", "empty"},
                        {"content-length", "0"},
                        {"Transfer-Encoding", "chunked"},
                        {"connection", "close"},
                        {"X-Also", "kept"}};
    exchange->respond(response);
  });
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send(kGet);
    EXPECT_EQ(client.read_until("body"), "HTTP/1.1 200 OK\r\nServer: espalier\r\nX-Good: kept\r\nX-Also: kept\r\nContent-Length: 4\r\n\r\nbody");
  }
}

TEST(HttpServerFaults, OneConnectionDoesNotHurtAnother) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient good(server->port());
  good.send(kGet);
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  exchange->begin_stream({.body = "1"});
  for (int i = 0; i < 20; ++i) {
    RawClient bad(server->port());
    bad.send(i % 2 == 0 ? "\xff\xfe\r\n\r\n" : "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
    if (i % 2 == 0) {
      EXPECT_EQ(bad.read_answer().status, 400);
    }
    bad.reset();
  }
  exchange->write("2");
  exchange->finish();
  EXPECT_EQ(good.read_answer().body, "12");
}

// Threads.

TEST(HttpServerThreads, CallsTakeEffectInOrderWhoeverMakesThem) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(kGet);
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  exchange->begin_stream({});
  std::promise<std::thread::id> task_thread;
  exchange->post([&] {
    exchange->write("from the server's thread ");
    task_thread.set_value(std::this_thread::get_id());
  });
  EXPECT_NE(task_thread.get_future().get(), std::this_thread::get_id());
  std::string expected = "from the server's thread ";
  for (int i = 0; i < 20; ++i) {  // each thread begins when the one before has made its call
    std::thread([&] { exchange->write(std::to_string(i) + " "); }).join();
    expected += std::to_string(i) + " ";
  }
  exchange->finish();
  EXPECT_EQ(client.read_answer().body, expected);
}

TEST(HttpServerThreads, ManyClientsAndManyAnsweringThreads) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  constexpr int kClients = 8;
  constexpr int kRequests = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (const auto exchange = waiting.next()) {
        if (exchange->request().path == "/end") return exchange->respond({});
        exchange->begin_stream({});
        exchange->write(exchange->request().body);
        exchange->write("!");
        exchange->finish();
      }
    });
  }
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      RawClient client(server->port());
      for (int i = 0; i < kRequests; ++i) {
        const std::string body = std::to_string(c) + "/" + std::to_string(i);
        client.send(post(body));
        EXPECT_EQ(client.read_answer().body, body + "!");
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t t = 0; t < threads.size(); ++t) {
    RawClient client(server->port());
    client.send("GET /end HTTP/1.1\r\nHost: a\r\n\r\n");
    client.read_answer();
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpServerThreads, AnExchangeMayOutliveItsServer) {
  Waiting waiting;
  auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(kGet);
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  const auto gone = watch(*exchange);
  server.reset();
  EXPECT_TRUE(happens(gone));
  EXPECT_TRUE(exchange->gone());
  exchange->begin_stream({});
  exchange->write("x");
  const auto held = std::make_shared<int>();
  exchange->post([held] { FAIL() << "on no thread"; });
  EXPECT_EQ(held.use_count(), 1) << "the task was kept";
  EXPECT_EQ(exchange->request().method, "GET");
}

// Stopping.

TEST(HttpServerStop, ClosesIdleConnectionsAndListensNoMore) {
  const auto server = serve(echo);
  RawClient used(server->port());
  used.send(kGet);
  EXPECT_EQ(used.read_answer().status, 200);
  RawClient fresh(server->port());
  RawClient begun(server->port());
  begun.send("GET / HT");
  ASSERT_TRUE(soon([&] { return server->stats().connections_open == 3; }));
  const auto start = steady_clock::now();
  EXPECT_TRUE(server->stop(milliseconds(10'000)));
  EXPECT_LT(steady_clock::now() - start, milliseconds(5'000));
  EXPECT_EQ(used.read_to_end(), "");
  EXPECT_EQ(fresh.read_to_end(), "");
  EXPECT_EQ(begun.read_to_end(), "");
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_NE(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
  EXPECT_TRUE(server->stop(milliseconds(0))) << "a second time";
}

TEST(HttpServerStop, WaitsForAnswersUnderWay) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient queued(server->port());
  queued.send(std::string(kGet) + std::string(kGet));  // the second must not begin
  const auto not_begun = waiting.next();
  RawClient streaming(server->port());
  streaming.send(kGet);
  const auto begun = waiting.next();
  ASSERT_TRUE(not_begun && begun);
  begun->begin_stream({.body = "1"});
  EXPECT_THAT(streaming.read_until("1\r\n1\r\n"), Not(HasSubstr("Connection:")));
  RawClient uploading(server->port());
  uploading.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
  ASSERT_TRUE(soon([&] { return server->stats().connections_open == 3; }));
  std::this_thread::sleep_for(milliseconds(20));

  auto stopped = std::async(std::launch::async, [&] { return server->stop(kPatience); });
  EXPECT_EQ(stopped.wait_for(milliseconds(50)), std::future_status::timeout);
  uploading.send("dy");
  const auto uploaded = waiting.next();
  ASSERT_TRUE(uploaded);
  uploaded->respond(text("uploaded"));
  EXPECT_THAT(uploading.read_to_end(), AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("uploaded")));
  uploading.close();
  not_begun->begin_stream({.body = "late"});
  not_begun->finish();
  EXPECT_THAT(queued.read_to_end(), AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("4\r\nlate\r\n0\r\n\r\n")));
  queued.close();
  EXPECT_FALSE(begun->gone());
  begun->write("2");
  begun->finish();
  EXPECT_EQ(streaming.read_to_end(), "1\r\n2\r\n0\r\n\r\n");
  streaming.close();
  EXPECT_TRUE(stopped.get());
  EXPECT_EQ(server->stats().requests, 3);
}

TEST(HttpServerStop, CutsWhatIsLeftAfterTheGrace) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(kGet);
  const auto exchange = waiting.next();
  ASSERT_TRUE(exchange);
  exchange->begin_stream({.body = "1"});
  client.read_until("1\r\n1\r\n");
  const auto gone = watch(*exchange);
  const auto start = steady_clock::now();
  EXPECT_FALSE(server->stop(milliseconds(100)));
  EXPECT_GE(steady_clock::now() - start, milliseconds(100));
  EXPECT_TRUE(exchange->gone());
  EXPECT_TRUE(happens(gone));
  EXPECT_EQ(client.read_to_end(), "");
  std::promise<void> ran;
  exchange->post([&] { ran.set_value(); });  // the thread is there until the server goes
  ran.get_future().wait();
}

TEST(HttpServerStop, AShorterGraceOvertakesALongerOne) {
  Waiting waiting;
  const auto server = serve(waiting.handler());
  RawClient client(server->port());
  client.send(kGet);
  const auto exchange = waiting.next();
  auto patient = std::async(std::launch::async, [&] { return server->stop(milliseconds::max()); });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(server->stop(milliseconds(0)));
  EXPECT_FALSE(patient.get());
}

// Starting.

TEST(HttpServerStart, NamesAnAddressThatIsInUse) {
  const auto first = serve(echo);
  const auto second = HttpServer::start({.port = first->port()}, {.gate = {}, .handler = echo, .error_page = {}});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_THAT(second.error().message, AllOf(HasSubstr("127.0.0.1"), HasSubstr(std::to_string(first->port())), HasSubstr("in use")));
}

TEST(HttpServerStart, NamesAHostThatDoesNotExist) {
  for (const std::string host : {"no-such-host.invalid", "192.0.2.1", "300.1.1.1"}) {
    const auto server = HttpServer::start({.host = host, .port = 0}, {.gate = {}, .handler = echo, .error_page = {}});
    ASSERT_FALSE(server.ok()) << host;
    EXPECT_EQ(server.error().code, ErrorCode::kIo);
    EXPECT_THAT(server.error().message, HasSubstr(host));
    EXPECT_THAT(server.error().message, Not(HasSubstr("\n")));
  }
}

TEST(HttpServerStart, ListensOnEveryAddressOfAName) {
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start({.host = "localhost", .port = 0}, {.gate = {}, .handler = echo, .error_page = {}});
  ASSERT_TRUE(server.ok()) << server.error().message;
  RawClient client((*server)->port());
  client.send(kGet);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(HttpServerStart, ListensOnIpv6) {
  const auto tell_peer = [](const std::shared_ptr<HttpExchange>& exchange) { exchange->respond(text(exchange->request().peer)); };
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start({.host = "::1", .port = 0}, {.gate = {}, .handler = tell_peer, .error_page = {}});
  if (!server.ok()) GTEST_SKIP() << "no IPv6 here: " << server.error().message;
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons((*server)->port());
  address.sin6_addr = in6addr_loopback;
  ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  RawClient client(socket);
  client.send(kGet);
  EXPECT_THAT(client.read_answer().body, StartsWith("[::1]:"));
}

}  // namespace
}  // namespace espalier
