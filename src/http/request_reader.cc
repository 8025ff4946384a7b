#include "http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <limits>
#include <utility>

#include "base/format.h"
#include "base/result.h"

namespace espalier {

namespace beast = boost::beast;
using beast::http::field;

// Beast's events, written straight into an HttpRequest. An event that refuses the request leaves a fault and stops the parser.
class RequestReader::Parser final : public beast::http::basic_parser<true> {
 public:
  explicit Parser(size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {
    header_limit(std::numeric_limits<uint32_t>::max());  // Beast limits single lines, not their sum: RequestReader counts
    body_limit(boost::none);                             // so that the gate is asked first
  }

  HttpRequest request;
  Fault fault{};
  bool version_11 = false;
  bool expects_continue = false;
  uint64_t body_bytes = 0;       // announced by the chunks so far
  bool took_chunk_line = false;  // or the trailers

  // Beast asserts that the last chunk does not come in pieces of less than its five bytes. Nothing else between chunks is shorter.
  bool may_take(size_t num_bytes) const { return !is_header_done() || !chunked() || chunk_bytes_left_ > 0 || num_bytes >= 5; }

 private:
  using Error = beast::error_code;

  static std::string text(beast::string_view view) { return std::string(view.data(), view.size()); }

  void refuse(int status, std::string message, Error& error) {
    fault = {status, std::move(message)};
    error = beast::http::error::bad_field;  // any but need_more
  }

  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version, Error&) override {
    request.method = text(method);
    const size_t question = target.find('?');
    request.path = text(target.substr(0, question));
    if (question != beast::string_view::npos) request.query = text(target.substr(question + 1));
    version_11 = version == 11;
  }

  void on_field_impl(field name, beast::string_view name_text, beast::string_view value, Error& error) override {
    if (is_header_done()) return;  // a trailer: nobody asks for those
    if (name == field::content_length && std::exchange(has_length_, true)) return refuse(400, "more than one Content-Length", error);
    if (name == field::content_length && value.find(',') != beast::string_view::npos) return refuse(400, "a list as Content-Length", error);
    if (name == field::host && std::exchange(has_host_, true)) return refuse(400, "more than one Host", error);
    if (name == field::transfer_encoding) {
      if (!version_11) return refuse(400, "Transfer-Encoding in HTTP/1.0", error);
      if (!beast::iequals(value, "chunked")) return refuse(501, "only the transfer encoding 'chunked' is known", error);
    }
    if (name == field::expect && beast::iequals(value, "100-continue")) expects_continue = version_11;
    request.headers.push_back({text(name_text), text(value)});
  }

  void on_header_impl(Error& error) override {
    if (version_11 && !has_host_) refuse(400, "no Host header", error);
  }

  void on_body_init_impl(const boost::optional<uint64_t>&, Error&) override {}

  size_t on_body_impl(beast::string_view bytes, Error&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  void on_chunk_header_impl(uint64_t size, beast::string_view, Error& error) override {
    took_chunk_line = true;
    if (size > max_body_bytes_ - body_bytes) return refuse(413, format("the body is longer than {} bytes", max_body_bytes_), error);
    body_bytes += size;
    chunk_bytes_left_ = size;
  }

  size_t on_chunk_body_impl(uint64_t, beast::string_view bytes, Error& error) override {
    chunk_bytes_left_ -= bytes.size();
    return on_body_impl(bytes, error);
  }

  void on_response_impl(int, beast::string_view, int, Error&) override {}
  void on_finish_impl(Error&) override {}

  const size_t max_body_bytes_;
  uint64_t chunk_bytes_left_ = 0;
  bool has_length_ = false;
  bool has_host_ = false;
};

namespace {

// Whether the request line that begins `bytes` ends in a version that is well formed, just not ours.
bool names_another_version(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const std::string_view version = line.substr(line.rfind(' ') + 1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return version.size() == 8 && version.starts_with("HTTP/") && digit(version[5]) && version[6] == '.' && digit(version[7]);
}

}  // namespace

RequestReader::RequestReader(size_t max_header_bytes, size_t max_body_bytes, std::string peer)
    : max_header_bytes_(max_header_bytes), max_body_bytes_(max_body_bytes), peer_(std::move(peer)) {
  begin_request();
}

void RequestReader::begin_request() {
  parser_ = std::make_unique<Parser>(max_body_bytes_);
  parser_->request.peer = peer_;
  head_bytes_ = 0;
  head_reported_ = false;
}

RequestReader::~RequestReader() = default;

RequestReader::Step RequestReader::failed(Fault fault) {
  fault_ = std::move(fault);
  return Step::kFault;
}

RequestReader::Step RequestReader::read(std::string_view& bytes) {
  if (!started()) {
    // Empty lines before a request: some clients end a body with one that they do not count.
    while (bytes.starts_with("\r\n") && head_bytes_ <= max_header_bytes_) {
      bytes.remove_prefix(2);
      head_bytes_ += 2;
    }
    if (bytes == "\r") return Step::kMore;
  }
  if (head_reported_ && parser_->content_length().value_or(0) > max_body_bytes_) {
    return failed({413, format("a body of {} bytes; at most {} are taken", *parser_->content_length(), max_body_bytes_)});
  }
  while (!bytes.empty() && !parser_->is_done() && parser_->may_take(bytes.size())) {
    beast::error_code error;
    const bool in_head = !parser_->is_header_done();
    const std::string_view before = bytes;
    parser_->took_chunk_line = false;
    const size_t taken = parser_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    bytes.remove_prefix(taken);
    if (in_head) head_bytes_ += taken;
    const bool more = error == beast::http::error::need_more;
    if (in_head && head_bytes_ + (more ? bytes.size() : 0) > max_header_bytes_) {
      return failed({431, format("request line and headers are longer than {} bytes", max_header_bytes_)});
    }
    if (error && !more) {
      if (!parser_->fault.message.empty()) return failed(parser_->fault);
      if (error == beast::http::error::bad_version && names_another_version(before)) return failed({505, "only HTTP/1.1 and HTTP/1.0 are spoken"});
      if (error == beast::http::error::header_limit) return failed({431, "a folded header is too long"});
      return failed({400, format("malformed request: {}", error.message())});
    }
    if (in_head && parser_->is_header_done()) {
      head_reported_ = true;
      return Step::kHead;
    }
    // Beast keeps back the line of a chunk, and the trailers, until it has them whole; nobody needs long ones.
    if ((more ? bytes.size() : parser_->took_chunk_line ? taken : 0) > max_header_bytes_) {
      return failed({400, "malformed request: the line of a chunk, or the trailers, are too long"});
    }
    if (more) return Step::kMore;
  }
  return parser_->is_done() ? Step::kRequest : Step::kMore;
}

bool RequestReader::started() const { return parser_->got_some(); }

const HttpRequest& RequestReader::head() const { return parser_->request; }

const RequestReader::Fault& RequestReader::fault() const { return fault_; }

bool RequestReader::keep_alive() const { return parser_->keep_alive(); }

bool RequestReader::understands_chunks() const { return parser_->version_11; }

bool RequestReader::wants_continue() const {
  return parser_->expects_continue && !parser_->is_done() && parser_->request.body.empty() && parser_->body_bytes == 0;
}

HttpRequest RequestReader::take() {
  ESPALIER_CHECK(parser_->is_done());
  HttpRequest request = std::move(parser_->request);
  begin_request();
  return request;
}

}  // namespace espalier
