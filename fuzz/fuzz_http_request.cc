// The bytes that a client sends, through the connection the server runs. What is understood must not depend on how the bytes were cut into
// segments: a proxy in front would see the one, we the other. And whatever comes, each request has one answer, in order, well framed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/connection.h"

namespace espalier {
namespace {

// Gives a connection its bytes piece by piece and keeps what it sends; a write is taken in two halves.
class FuzzTransport final : public Transport {
 public:
  void start_read(std::span<char> into) override {
    ESPALIER_CHECK(!read_into_ && !closed && !into.empty());
    read_into_ = into;
  }
  void start_write(std::string_view bytes) override {
    ESPALIER_CHECK(write_.empty() && !closed && !shut && !bytes.empty());
    write_ = bytes;
  }
  void wake_at(HttpTime) override {}
  void shut_down_sending() override {
    ESPALIER_CHECK(!shut && !closed);
    shut = true;
  }
  void close() override { closed = true; }

  // False if the connection waits for nothing.
  bool advance(Connection& connection, std::string_view& input, size_t piece) {
    if (closed) return false;
    if (!write_.empty()) {
      const std::string_view taken = write_.substr(0, (write_.size() + 1) / 2);
      write_ = {};
      output.append(taken);
      connection.on_written(taken.size());
      return true;
    }
    if (!read_into_) return false;
    const std::span<char> into = *read_into_;
    read_into_.reset();
    const size_t num_bytes = std::min({piece, into.size(), input.size()});
    if (num_bytes == 0) {
      connection.on_read_end();
      return true;
    }
    std::copy_n(input.begin(), num_bytes, into.begin());
    input.remove_prefix(num_bytes);
    connection.on_read(num_bytes);
    return true;
  }

  std::string output;
  bool shut = false;
  bool closed = false;

 private:
  std::optional<std::span<char>> read_into_;
  std::string_view write_;
};

struct Outcome {
  std::vector<std::string> requests;
  std::vector<int> statuses;
  bool refused = false;
};

std::string text_of(const HttpRequest& request) {
  std::string text = request.method + '\n' + request.path + '\n' + request.query + '\n' + request.body + '\n';
  for (const HttpHeader& header : request.headers) text += header.name + ':' + header.value + '\n';
  return text;
}

void answer(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  if (request.path.size() % 2 == 0) return exchange->respond({.status = request.query.empty() ? 200 : 204, .body = request.body});
  exchange->begin_stream({.body = request.body.substr(0, 3)});
  exchange->write(request.method);
  exchange->write("");
  exchange->finish();
}

// The statuses of the answers in `output`, whose framing is checked. `methods`: of the requests they answer.
std::vector<int> read_answers(std::string_view output, const std::vector<std::string>& requests) {
  const auto take_line = [&] {
    const size_t end = output.find("\r\n");
    ESPALIER_CHECK(end != std::string_view::npos);
    const std::string line(output.substr(0, end));
    output.remove_prefix(end + 2);
    return line;
  };
  const auto take = [&](size_t num_bytes) {
    ESPALIER_CHECK(num_bytes <= output.size());
    output.remove_prefix(num_bytes);
  };
  std::vector<int> statuses;
  while (!output.empty()) {
    const std::string status_line = take_line();
    ESPALIER_CHECK(status_line.starts_with("HTTP/1.1 "));
    const int status = std::stoi(status_line.substr(9, 3));
    std::optional<size_t> length;
    bool chunked = false;
    bool closes = false;
    for (std::string line; !(line = take_line()).empty();) {
      if (line.starts_with("Content-Length: ")) length = std::stoul(line.substr(16));
      if (line == "Transfer-Encoding: chunked") chunked = true;
      if (line == "Connection: close") closes = true;
    }
    if (status == 100) continue;
    const bool to_head = statuses.size() < requests.size() && requests[statuses.size()].starts_with("HEAD\n");
    statuses.push_back(status);
    if (!length && !chunked && status != 204) {
      ESPALIER_CHECK(closes);
      return statuses;
    }
    // A refused request may have been a HEAD too, which only its answer tells.
    if (to_head || (statuses.size() > requests.size() && output.empty())) continue;
    if (length) take(*length);
    while (chunked) {
      const size_t size = std::stoul(take_line(), nullptr, 16);
      take(size);
      ESPALIER_CHECK(take_line().empty());
      chunked = size != 0;
    }
    ESPALIER_CHECK(!closes || output.empty());
  }
  return statuses;
}

Outcome serve(std::string_view input, const std::function<size_t()>& next_piece) {
  Outcome outcome;
  std::deque<ExchangeQueue::Task> tasks;
  ConnectionContext context;
  context.limits.max_header_bytes = 700;
  context.limits.max_body_bytes = 3000;
  context.queue = std::make_shared<ExchangeQueue>([&](ExchangeQueue::Task task) { tasks.push_back(std::move(task)); });
  context.callbacks.gate = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.header("refuse") == nullptr) return std::nullopt;
    return HttpResponse{.status = 403, .body = "refused"};
  };
  context.callbacks.handler = [&](const std::shared_ptr<HttpExchange>& exchange) {
    outcome.requests.push_back(text_of(exchange->request()));
    answer(exchange);
  };
  FuzzTransport transport;
  Connection connection(transport, context, "fuzz");
  connection.start();
  for (;;) {
    if (!tasks.empty()) {
      const ExchangeQueue::Task task = std::move(tasks.front());
      tasks.pop_front();
      task();
    } else if (!transport.advance(connection, input, next_piece())) {
      break;
    }
  }
  ESPALIER_CHECK(transport.closed);  // the input has ended
  ESPALIER_CHECK(context.requests == static_cast<int64_t>(outcome.requests.size()));
  ESPALIER_CHECK(context.refused <= 1);
  outcome.refused = context.refused == 1;
  outcome.statuses = read_answers(transport.output, outcome.requests);
  ESPALIER_CHECK(outcome.statuses.size() == outcome.requests.size() + (outcome.refused ? 1 : 0));
  return outcome;
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  // Headers that arrive piece by piece are not judged before their end, so there has to be one.
  const std::string input = std::string(reinterpret_cast<const char*>(data), size) + "\r\n\r\n";
  const Outcome whole = serve(input, [&] { return input.size(); });
  uint32_t seed = static_cast<uint32_t>(size) * 2654435761u + (size == 0 ? 0 : data[size / 2]);  // other cuts for other inputs, the same for the same
  const Outcome cut = serve(input, [&] {
    seed = seed * 1664525u + 1013904223u;
    return size_t{1} + (seed >> 24) % (1 + (seed >> 16) % 64);
  });
  ESPALIER_CHECK(whole.requests == cut.requests);
  ESPALIER_CHECK(whole.refused == cut.refused);
  return 0;
}
