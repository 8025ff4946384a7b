#include "http/http_client.h"

#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "base/format.h"

namespace espalier {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAround{50};  // between two looks at `interrupted`
constexpr size_t kReadBytes = size_t{64} << 10;
constexpr uint32_t kMaxHeaderBytes = 64u << 10;
constexpr size_t kMaxUnparsedBytes = 2 * size_t{kMaxHeaderBytes} + kReadBytes;  // heads of messages and chunks are parsed whole

// Where requests go.
struct Origin {
  std::string base;    // "http://host:port/prefix", without a slash at its end: for messages
  std::string host;    // without brackets
  std::string port;
  std::string host_header;
  std::string prefix;  // before every path; empty or "/..."
  bool tls = false;
};

Result<Origin> parse_origin(std::string_view url) {
  const auto refuse = [&](std::string_view why) {
    return make_error(ErrorCode::kInvalidArgument, "'{}' is no address of a server: {}; expected http[s]://HOST[:PORT][/PREFIX]", url, why);
  };
  if (std::any_of(url.begin(), url.end(), [](char c) { return c <= ' ' || c >= 0x7f; })) {  // such text stays out of messages
    return make_error(ErrorCode::kInvalidArgument, "the address of the server has a blank, a control or a non-ASCII character");
  }
  Origin origin;
  origin.tls = url.starts_with("https://");
  if (!origin.tls && !url.starts_with("http://")) return refuse("unknown scheme");
  std::string_view rest = url.substr(origin.tls ? 8 : 7);
  if (rest.find_first_of("?#") != std::string_view::npos) return refuse("query or fragment");
  const size_t slash = std::min(rest.find('/'), rest.size());
  origin.prefix = rest.substr(slash);
  while (origin.prefix.ends_with('/')) origin.prefix.pop_back();
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) return refuse("user name in the address");

  const bool bracketed = authority.starts_with('[');
  const size_t host_end = bracketed ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (host_end == std::string_view::npos) return refuse("no closing bracket");
  origin.host = bracketed ? authority.substr(1, host_end - 1) : authority.substr(0, host_end);
  if (origin.host.empty()) return refuse("no host");
  const std::string_view after = authority.substr(bracketed ? host_end + 1 : host_end);
  const std::string_view standard_port = origin.tls ? "443" : "80";
  origin.port = standard_port;
  if (!after.empty()) {
    const std::string_view digits = after.substr(1);
    unsigned port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (after.front() != ':' || !whole || port < 1 || port > 65535) return refuse("no port from 1 to 65535");
    origin.port = format("{}", port);
  }
  origin.host_header = bracketed ? format("[{}]", origin.host) : origin.host;
  if (origin.port != standard_port) origin.host_header += ":" + origin.port;
  origin.base = std::string(url.substr(0, url.size() - rest.size())) + origin.host_header + origin.prefix;
  return origin;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// A name of RFC 9110, section 5.6.2.
bool is_token(std::string_view text) {
  const auto fits = [](char c) {
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

// The request as it goes over the wire, unless a part of it would break the framing.
Result<std::string> wire_form(const Origin& origin, const HttpRequest& request) {
  const auto breaks_line = [](std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char c) { return c == ' ' || is_control(c); });
  };
  if (!is_token(request.method)) return make_error(ErrorCode::kInvalidArgument, "'{}' is no HTTP method", request.method);
  if (!request.path.starts_with('/') || breaks_line(request.path) || breaks_line(request.query)) {
    return make_error(ErrorCode::kInvalidArgument, "the path of a request begins with '/' and has neither blanks nor control characters");
  }
  std::string wire = format("{} {}{}{}{} HTTP/1.1\r\nHost: {}\r\n", request.method, origin.prefix, request.path, request.query.empty() ? "" : "?",
                            request.query, origin.host_header);
  for (const HttpHeader& header : request.headers) {
    if (!is_token(header.name)) return make_error(ErrorCode::kInvalidArgument, "'{}' is no name of an HTTP header", header.name);
    if (std::any_of(header.value.begin(), header.value.end(), [](char c) { return c != '\t' && is_control(c); })) {  // it may be a secret: not shown
      return make_error(ErrorCode::kInvalidArgument, "the value of the HTTP header {} has a control character", header.name);
    }
    wire += format("{}: {}\r\n", header.name, header.value);
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") wire += format("Content-Length: {}\r\n", request.body.size());
  return wire + "\r\n" + request.body;
}

// Fills an HttpResponse from the bytes of an answer; pieces of a body with status 200 go to `on_body` where there is one.
class AnswerParser final : public http::basic_parser<false> {
 public:
  AnswerParser(HttpResponse& response, const std::function<bool(std::string_view)>& on_body) : response_(response), on_body_(on_body) {
    response_.content_type.clear();
    eager(true);
    header_limit(kMaxHeaderBytes);
  }

 private:
  using View = boost::beast::string_view;

  void on_request_impl(http::verb, View, View, int, error_code&) override {}
  void on_response_impl(int status, View, int, error_code&) override { response_.status = status; }
  void on_field_impl(http::field, View name, View value, error_code&) override {
    const std::string_view key(name.data(), name.size());
    if (same_header_name(key, "Content-Type")) {
      response_.content_type.assign(value.data(), value.size());
    } else if (!same_header_name(key, "Content-Length") && !same_header_name(key, "Transfer-Encoding") && !same_header_name(key, "Connection")) {
      response_.headers.push_back({std::string(key), std::string(value.data(), value.size())});
    }
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(View piece, error_code& error) override { return take(piece, error); }
  void on_chunk_header_impl(uint64_t, View, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, View piece, error_code& error) override { return take(piece, error); }
  void on_finish_impl(error_code&) override {}

  size_t take(View piece, error_code& error) {
    if (!on_body_ || response_.status != 200) {
      response_.body.append(piece.data(), piece.size());
    } else if (!piece.empty() && !on_body_(std::string_view(piece.data(), piece.size()))) {
      error = asio::error::operation_aborted;
    }
    return piece.size();
  }

  HttpResponse& response_;
  const std::function<bool(std::string_view)>& on_body_;
};

// A TCP connection, with or without TLS.
struct Connection {
  explicit Connection(asio::io_context& io) : socket(io) {}

  // Seen without asking: the end of the stream, or bytes that no request asked for. TLS has messages of its own, which say nothing.
  bool lost() {
    char byte;
    const ssize_t seen = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (seen < 0) return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    return seen == 0 || !tls.has_value();
  }

  template <typename Handler>
  void read_some(asio::mutable_buffer into, Handler handler) {
    tls ? tls->async_read_some(into, std::move(handler)) : socket.async_read_some(into, std::move(handler));
  }
  template <typename Handler>
  void write_some(asio::const_buffer bytes, Handler handler) {
    tls ? tls->async_write_some(bytes, std::move(handler)) : socket.async_write_some(bytes, std::move(handler));
  }

  tcp::socket socket;
  std::optional<asio::ssl::stream<tcp::socket&>> tls;
};

bool means_closed(const error_code& error) {
  return error == asio::error::eof || error == asio::error::connection_reset || error == asio::error::broken_pipe ||
         error == asio::ssl::error::stream_truncated;
}

// What an asynchronous operation came to. Shared with its handler, which may outlive the wait for it.
struct Outcome {
  bool done = false;
  error_code error;
  size_t bytes = 0;
};

class BeastHttpClient final : public HttpClient {
 public:
  BeastHttpClient(Origin origin, const HttpClientOptions& options) : origin_(std::move(origin)), options_(options) {}
  ~BeastHttpClient() override { drop_connection(); }

  Status prepare_tls() {
    error_code error;
    tls_.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
    tls_.set_verify_mode(asio::ssl::verify_peer, error);
    if (options_.ca_file.empty()) {
      tls_.set_default_verify_paths(error);
      if (error) return make_error(ErrorCode::kIo, "the system's certificates: {}", error.message());
    } else {
      tls_.load_verify_file(options_.ca_file, error);
      if (error) return make_error(ErrorCode::kInvalidArgument, "{}: no file of PEM certificates: {}", options_.ca_file, error.message());
    }
    return Ok{};
  }

  Result<HttpResponse> send(const HttpRequest& request, const std::function<bool(std::string_view)>& on_body) override {
    ESPALIER_ASSIGN(const std::string wire, wire_form(origin_, request));
    const std::string url = origin_.base + request.path;
    if (connection_ && !connection_->lost()) {
      ESPALIER_ASSIGN(std::optional<HttpResponse> answer, exchange(request, url, wire, on_body));
      if (answer) return *std::move(answer);
    }
    drop_connection();
    ESPALIER_TRY(connect(url));
    ESPALIER_ASSIGN(std::optional<HttpResponse> answer, exchange(request, url, wire, on_body));
    if (!answer) return make_error(ErrorCode::kIo, "{}: the server closed the connection without an answer", url);
    return *std::move(answer);
  }

 private:
  // Runs one operation: `start` gets its handler. Returns early when the time is up or the flag is raised; the connection must then go.
  template <typename Start>
  Result<Outcome> finish(const std::string& url, Clock::time_point deadline, std::string_view waited_for, Start&& start) {
    const auto outcome = std::make_shared<Outcome>();
    start([outcome](const error_code& error, size_t bytes) { *outcome = {.done = true, .error = error, .bytes = bytes}; });
    while (true) {
      if (options_.interrupted != nullptr && options_.interrupted->load()) return Error{ErrorCode::kCancelled, "interrupted"};
      if (outcome->done) return *outcome;
      const auto left = deadline - Clock::now();
      if (left <= Clock::duration::zero()) return make_error(ErrorCode::kIo, "{}: timed out waiting for {}", url, waited_for);
      io_.restart();
      io_.run_one_for(std::min<Clock::duration>(left, kLookAround));
    }
  }

  Status connect(const std::string& url) {
    const Clock::time_point deadline = Clock::now() + options_.connect_timeout;
    tcp::resolver resolver(io_);
    const auto addresses = std::make_shared<tcp::resolver::results_type>();
    ESPALIER_ASSIGN(const Outcome resolved, finish(url, deadline, "the address of the host", [&](auto handler) {
      resolver.async_resolve(origin_.host, origin_.port, [addresses, handler](const error_code& error, const tcp::resolver::results_type& found) {
        *addresses = found;
        handler(error, 0);
      });
    }));
    if (resolved.error) return make_error(ErrorCode::kIo, "{}: no address for '{}': {}", url, origin_.host, resolved.error.message());

    connection_.emplace(io_);
    Status connected = open_connection(url, deadline, *addresses);
    if (!connected.ok()) drop_connection();
    return connected;
  }

  Status open_connection(const std::string& url, Clock::time_point deadline, const tcp::resolver::results_type& addresses) {
    tcp::socket& socket = connection_->socket;
    ESPALIER_ASSIGN(const Outcome connected, finish(url, deadline, "a connection", [&](auto handler) {
      asio::async_connect(socket, addresses, [handler](const error_code& error, const tcp::endpoint&) { handler(error, 0); });
    }));
    if (connected.error) return make_error(ErrorCode::kIo, "{}: cannot connect: {}", url, connected.error.message());
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (!origin_.tls) return Ok{};

    connection_->tls.emplace(socket, tls_);
    SSL* const session = connection_->tls->native_handle();
    X509_VERIFY_PARAM* const wanted = SSL_get0_param(session);
    if (X509_VERIFY_PARAM_set1_ip_asc(wanted, origin_.host.c_str()) != 1) {  // a name, then
      SSL_set1_host(session, origin_.host.c_str());
      SSL_set_tlsext_host_name(session, origin_.host.c_str());
    }
    ESPALIER_ASSIGN(const Outcome shaken, finish(url, deadline, "the TLS handshake", [&](auto handler) {
      connection_->tls->async_handshake(asio::ssl::stream_base::client, [handler](const error_code& error) { handler(error, 0); });
    }));
    if (!shaken.error) return Ok{};
    const long verified = SSL_get_verify_result(session);
    if (verified != X509_V_OK) return make_error(ErrorCode::kIo, "{}: certificate refused: {}", url, X509_verify_cert_error_string(verified));
    return make_error(ErrorCode::kIo, "{}: TLS handshake failed: {}", url, shaken.error.message());
  }

  // Handlers refer to the connection, so they run before it goes. One that resolves a name may stay behind: it refers to nothing here.
  void drop_connection() {
    if (!connection_) return;
    error_code ignored;
    connection_->socket.close(ignored);
    io_.restart();
    io_.poll();
    connection_.reset();
  }

  // The answer; nothing if the server closed the connection before its first byte. The connection is kept only after a whole answer that
  // allows it.
  Result<std::optional<HttpResponse>> exchange(const HttpRequest& request, const std::string& url, std::string_view wire,
                                               const std::function<bool(std::string_view)>& on_body) {
    Keep keep = Keep::kNo;
    Result<std::optional<HttpResponse>> answer = exchange_once(request, url, wire, on_body, keep);
    if (keep == Keep::kNo) drop_connection();
    return answer;
  }

  enum class Keep { kNo, kYes };

  Result<std::optional<HttpResponse>> exchange_once(const HttpRequest& request, const std::string& url, std::string_view wire,
                                                    const std::function<bool(std::string_view)>& on_body, Keep& keep) {
    const auto deadline = [&] { return Clock::now() + options_.silence_timeout; };
    error_code write_error;
    while (!wire.empty() && !write_error) {
      ESPALIER_ASSIGN(const Outcome written, finish(url, deadline(), "the server to read the request", [&](auto handler) {
        connection_->write_some(asio::buffer(wire.data(), wire.size()), handler);
      }));
      wire.remove_prefix(written.bytes);
      write_error = written.error;  // maybe an answer stands there all the same: a refusal sent before the body was read
    }

    HttpResponse response;
    AnswerParser parser(response, on_body);
    parser.body_limit(options_.max_answer_bytes);
    parser.skip(request.method == "HEAD");
    boost::beast::flat_buffer unparsed;
    bool begun = false;
    error_code error;
    while (!parser.is_done() && !error) {
      ESPALIER_ASSIGN(const Outcome read, finish(url, deadline(), "the server's answer", [&](auto handler) {
        connection_->read_some(unparsed.prepare(kReadBytes), handler);
      }));
      if (read.error) {
        if (!begun) {
          if (means_closed(read.error)) return std::optional<HttpResponse>();
          return make_error(ErrorCode::kIo, "{}: {}", url, read.error.message());
        }
        if (read.error == asio::error::eof) parser.put_eof(error);
        if (read.error == asio::error::eof && !error) break;
        return make_error(ErrorCode::kIo, "{}: the connection broke off in the middle of the answer", url);
      }
      begun = true;
      unparsed.commit(read.bytes);
      while (unparsed.size() > 0 && !parser.is_done()) {
        const size_t used = parser.put(unparsed.data(), error);
        unparsed.consume(used);
        if (error || used == 0) break;
      }
      if (error == http::error::need_more) error = {};
      if (unparsed.size() > kMaxUnparsedBytes) error = http::error::header_limit;
    }
    if (error == asio::error::operation_aborted) return make_error(ErrorCode::kCancelled, "{}: the answer was cut off by its reader", url);
    if (error == http::error::body_limit) {
      return make_error(ErrorCode::kResourceExhausted, "{}: the answer is larger than {} bytes", url, options_.max_answer_bytes);
    }
    if (error) return make_error(ErrorCode::kIo, "{}: not a valid HTTP answer: {}", url, error.message());
    if (parser.keep_alive() && unparsed.size() == 0 && !write_error && response.status >= 200) keep = Keep::kYes;
    return std::optional<HttpResponse>(std::move(response));
  }

  const Origin origin_;
  const HttpClientOptions options_;
  asio::io_context io_{1};
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  std::optional<Connection> connection_;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::create(std::string_view url, const HttpClientOptions& options) {
  ESPALIER_ASSIGN(Origin origin, parse_origin(url));
  const bool tls = origin.tls;
  auto client = std::make_unique<BeastHttpClient>(std::move(origin), options);
  if (tls) ESPALIER_TRY(client->prepare_tls());
  return std::unique_ptr<HttpClient>(std::move(client));
}

}  // namespace espalier
