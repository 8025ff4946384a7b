#include "http/http_server.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "http/connection.h"

namespace espalier {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr milliseconds kAcceptRetry{20};  // while there are too many connections, or no descriptors left
// A connection may be closed in favour of a new one when it was idle for that long: not between two requests of a busy client.
constexpr milliseconds kIdleEnough{5'000};

std::string address_text(const tcp::endpoint& endpoint) {
  error_code error;
  const std::string address = endpoint.address().to_string(error);
  return endpoint.address().is_v6() ? format("[{}]:{}", address, endpoint.port()) : format("{}:{}", address, endpoint.port());
}

// A connection with its socket, as the server holds it.
class OpenConnection : public Transport {
 public:
  virtual void start() = 0;
  virtual Connection& connection() = 0;
};

class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void forget(const std::shared_ptr<OpenConnection>& connection) = 0;
};

// Stream: tcp::socket or TlsStream. Handlers that are under way keep it alive.
template <typename Stream>
class StreamConnection final : public OpenConnection, public std::enable_shared_from_this<StreamConnection<Stream>> {
 public:
  StreamConnection(Stream stream, ConnectionOwner& owner, ConnectionContext& context, const std::string& peer)
      : stream_(std::move(stream)), timer_(stream_.get_executor()), owner_(owner), context_(context), connection_(*this, context, peer) {}

  void start() override {
    if constexpr (kTls) {
      wake_at(from_now(context_.limits.header_timeout));
      stream_.async_handshake(asio::ssl::stream_base::server, [this, self = this->shared_from_this()](error_code error) {
        if (closed_) return;
        if (error) return close();
        established_ = true;
        guarded([this] { connection_.start(); });
      });
    } else {
      established_ = true;
      guarded([this] { connection_.start(); });
    }
  }

  Connection& connection() override { return connection_; }

  void start_read(std::span<char> into) override {
    if constexpr (kTls) {
      if (goodbye_ == Goodbye::kBeingSaid) {
        read_after_goodbye_ = into;
        return;
      }
      if (goodbye_ == Goodbye::kSaid) return read_from(stream_.next_layer(), into);
    }
    read_from(stream_, into);
  }

  void start_write(std::string_view bytes) override {
    stream_.async_write_some(asio::buffer(bytes.data(), bytes.size()), [this, self = this->shared_from_this()](error_code error, size_t num_bytes) {
      if (closed_) return;
      guarded([this, error, num_bytes] { error ? connection_.on_write_failed() : connection_.on_written(num_bytes); });
    });
  }

  void wake_at(HttpTime time) override {
    timer_.expires_at(time);
    timer_.async_wait([this, self = this->shared_from_this()](error_code error) {
      if (closed_ || error) return;
      if (established_) {
        guarded([this] { connection_.on_wake(); });
      } else {
        close();  // the handshake took too long
      }
    });
  }

  void shut_down_sending() override {
    if constexpr (kTls) {
      // What a client still sends ends the exchange of goodbyes with an error, and a reset would take its answer away: the rest of its bytes is
      // read below TLS, where nothing has to make sense.
      goodbye_ = Goodbye::kBeingSaid;
      stream_.async_shutdown([this, self = this->shared_from_this()](error_code) {
        if (closed_) return;
        goodbye_ = Goodbye::kSaid;
        shut_down_socket();
        if (!read_after_goodbye_.empty()) start_read(read_after_goodbye_);
      });
    } else {
      shut_down_socket();
    }
  }

  void close() override {
    if (std::exchange(closed_, true)) return;
    error_code ignored;
    timer_.cancel(ignored);
    stream_.lowest_layer().close(ignored);
    owner_.forget(this->shared_from_this());
  }

 private:
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;
  enum class Goodbye { kNot, kBeingSaid, kSaid };  // TLS's close_notify

  template <typename From>
  void read_from(From& from, std::span<char> into) {
    from.async_read_some(asio::buffer(into.data(), into.size()), [this, into, self = this->shared_from_this()](error_code error, size_t num_bytes) {
      if (closed_) return;
      if (std::is_same_v<From, TlsStream> && error && goodbye_ != Goodbye::kNot) return start_read(into);
      guarded([this, error, num_bytes] { error ? connection_.on_read_end() : connection_.on_read(num_bytes); });
    });
  }

  void guarded(const std::function<void()>& step) {
    if (!run_guarded("a connection", step)) connection_.cut();
  }

  void shut_down_socket() {
    error_code ignored;
    stream_.lowest_layer().shutdown(tcp::socket::shutdown_send, ignored);
  }

  Stream stream_;
  asio::steady_timer timer_;
  ConnectionOwner& owner_;
  ConnectionContext& context_;
  bool established_ = false;
  bool closed_ = false;
  Goodbye goodbye_ = Goodbye::kNot;
  std::span<char> read_after_goodbye_;
  Connection connection_;
};

class AsioServer final : public HttpServer, public ConnectionOwner {
 public:
  AsioServer(const HttpLimits& limits, HttpCallbacks callbacks) {
    context_.limits = limits;
    context_.callbacks = std::move(callbacks);
    // The loop is shared, because exchanges may be called when the server is gone.
    context_.queue = std::make_shared<ExchangeQueue>([loop = loop_](ExchangeQueue::Task task) { asio::post(*loop, std::move(task)); });
  }

  ~AsioServer() override {
    if (!thread_.joinable()) return;
    stop(milliseconds(0));
    asio::post(*loop_, [this] {
      context_.queue->run();
      context_.queue->close();
      stop_timer_.cancel();
      work_.reset();
    });
    thread_.join();
  }

  Status load_tls(const std::string& certificate, const std::string& key);
  Status listen(const std::string& host, uint16_t port);

  void run() {
    for (const auto& listener : listeners_) wait_for_clients(*listener);
    thread_ = std::thread([this] {
      while (!run_guarded("the server", [this] { loop_->run(); })) {
      }
    });
  }

  uint16_t port() const override { return port_; }

  HttpServerStats stats() const override {
    return {.connections_accepted = accepted_, .connections_open = open_, .requests = context_.requests, .refused = context_.refused};
  }

  bool stop(milliseconds grace) override {
    ESPALIER_CHECK(std::this_thread::get_id() != thread_.get_id());  // it would wait for itself
    const auto nothing_cut = std::make_shared<std::promise<bool>>();
    asio::post(*loop_, [this, grace, nothing_cut] { begin_stop(grace, nothing_cut); });
    return nothing_cut->get_future().get();
  }

 private:
  struct Listener {
    explicit Listener(asio::io_context& loop) : acceptor(loop), retry(loop) {}
    tcp::acceptor acceptor;
    asio::steady_timer retry;
    bool reported = false;  // that accepting fails
  };

  void wait_for_clients(Listener& listener);
  void retry_later(Listener& listener);
  void accept_clients(Listener& listener);
  void open(tcp::socket socket, const tcp::endpoint& peer);
  bool close_longest_idle();
  void forget(const std::shared_ptr<OpenConnection>& connection) override;
  void begin_stop(milliseconds grace, const std::shared_ptr<std::promise<bool>>& nothing_cut);
  void cut_all();
  void report_stopped();

  std::shared_ptr<asio::io_context> loop_ = std::make_shared<asio::io_context>(1);
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop_->get_executor()};
  std::optional<asio::ssl::context> tls_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  uint16_t port_ = 0;
  std::thread thread_;

  // The server's thread alone.
  ConnectionContext context_;
  std::unordered_set<std::shared_ptr<OpenConnection>> connections_;
  asio::steady_timer stop_timer_{*loop_};
  HttpTime stop_deadline_ = HttpTime::max();
  std::vector<std::shared_ptr<std::promise<bool>>> waiting_for_stop_;
  bool cut_something_ = false;

  std::atomic<int64_t> accepted_{0};
  std::atomic<int64_t> open_{0};
};

Status AsioServer::load_tls(const std::string& certificate, const std::string& key) {
  if (certificate.empty() && key.empty()) return Ok{};
  if (certificate.empty() || key.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "TLS needs a certificate and a key: only {} was given", certificate.empty() ? key : certificate);
  }
  tls_.emplace(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(tls_->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(tls_->native_handle(), SSL_OP_NO_RENEGOTIATION);
  error_code error;
  tls_->use_certificate_chain_file(certificate, error);
  if (error) return make_error(ErrorCode::kInvalidArgument, "{}: no certificate in PEM form could be read: {}", certificate, error.message());
  // Without this an encrypted key would ask for its password at the terminal.
  tls_->set_password_callback([](size_t, asio::ssl::context::password_purpose) { return std::string(); }, error);
  tls_->use_private_key_file(key, asio::ssl::context::pem, error);
  if (error) {
    return make_error(ErrorCode::kInvalidArgument, "{}: no key in PEM form, unencrypted and that of {}, could be read: {}", key, certificate,
                      error.message());
  }
  return Ok{};
}

// A name may stand for several addresses (localhost: of IPv4 and IPv6): listens on all that this machine has.
Status AsioServer::listen(const std::string& host, uint16_t port) {
  const auto failed = [&](const error_code& why) { return make_error(ErrorCode::kIo, "cannot listen on {} port {}: {}", host, port, why.message()); };
  error_code error;
  const auto found = tcp::resolver(*loop_).resolve(host, std::to_string(port), tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) return failed(error);
  port_ = port;
  error_code unavailable = asio::error::host_not_found;
  std::vector<tcp::endpoint> done;
  for (const auto& entry : found) {
    const tcp::endpoint endpoint(entry.endpoint().address(), port_);
    if (std::find(done.begin(), done.end(), endpoint) != done.end()) continue;
    done.push_back(endpoint);
    auto listener = std::make_unique<Listener>(*loop_);
    listener->acceptor.open(endpoint.protocol(), error);
    if (!error) listener->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) listener->acceptor.bind(endpoint, error);
    if (error == boost::system::errc::address_not_available || error == boost::system::errc::address_family_not_supported) {
      unavailable = error;
      continue;
    }
    if (!error) listener->acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) listener->acceptor.non_blocking(true, error);
    if (!error) port_ = listener->acceptor.local_endpoint(error).port();
    if (error) return failed(error);
    listeners_.push_back(std::move(listener));
  }
  if (listeners_.empty()) return failed(unavailable);
  return Ok{};
}

void AsioServer::wait_for_clients(Listener& listener) {
  listener.acceptor.async_wait(tcp::acceptor::wait_read, [this, &listener](error_code error) {
    if (error || context_.stopping) return;
    if (!run_guarded("accepting", [&] { accept_clients(listener); })) retry_later(listener);
  });
}

void AsioServer::retry_later(Listener& listener) {
  listener.retry.expires_after(kAcceptRetry);
  listener.retry.async_wait([this, &listener](error_code error) {
    if (!error && !context_.stopping) wait_for_clients(listener);
  });
}

void AsioServer::accept_clients(Listener& listener) {
  for (;;) {
    // Whoever waits for a place stays in the listen queue.
    if (open_ >= static_cast<int64_t>(context_.limits.max_connections) && !close_longest_idle()) return retry_later(listener);
    tcp::socket socket(*loop_);
    tcp::endpoint peer;
    error_code error;
    listener.acceptor.accept(socket, peer, error);
    if (error == asio::error::would_block || error == asio::error::try_again) return wait_for_clients(listener);
    if (error == asio::error::connection_aborted || error == asio::error::interrupted) continue;
    if (error) {  // no descriptors or no memory: they come back
      if (!std::exchange(listener.reported, true)) log_warn("http: cannot accept a connection, trying again: {}", error.message());
      return retry_later(listener);
    }
    listener.reported = false;
    open(std::move(socket), peer);
  }
}

void AsioServer::open(tcp::socket socket, const tcp::endpoint& peer) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  std::shared_ptr<OpenConnection> connection;
  if (tls_) {
    connection = std::make_shared<StreamConnection<TlsStream>>(TlsStream(std::move(socket), *tls_), *this, context_, address_text(peer));
  } else {
    connection = std::make_shared<StreamConnection<tcp::socket>>(std::move(socket), *this, context_, address_text(peer));
  }
  connections_.insert(connection);
  ++accepted_;
  ++open_;
  connection->start();
}

bool AsioServer::close_longest_idle() {
  Connection* longest = nullptr;
  for (const auto& open : connections_) {
    Connection& connection = open->connection();
    if (connection.idle() && (longest == nullptr || connection.idle_since() < longest->idle_since())) longest = &connection;
  }
  const milliseconds enough = std::min(kIdleEnough, context_.limits.idle_timeout / 2);
  if (longest == nullptr || std::chrono::steady_clock::now() - longest->idle_since() < enough) return false;
  longest->close_if_idle();
  return true;
}

void AsioServer::forget(const std::shared_ptr<OpenConnection>& connection) {
  --open_;
  // Later: it is the connection itself that calls.
  asio::post(*loop_, [this, connection] {
    connections_.erase(connection);
    report_stopped();
  });
}

void AsioServer::begin_stop(milliseconds grace, const std::shared_ptr<std::promise<bool>>& nothing_cut) {
  waiting_for_stop_.push_back(nothing_cut);
  context_.stopping = true;
  for (const auto& listener : listeners_) {
    error_code ignored;
    listener->acceptor.close(ignored);
    listener->retry.cancel(ignored);
  }
  for (const auto& open : connections_) open->connection().close_if_idle();
  const HttpTime deadline = from_now(grace);
  if (deadline < stop_deadline_) {
    stop_deadline_ = deadline;
    stop_timer_.expires_at(deadline);
    stop_timer_.async_wait([this](error_code error) {
      if (!error) cut_all();
    });
  }
  report_stopped();
}

void AsioServer::cut_all() {
  for (const auto& open : connections_) {
    cut_something_ = cut_something_ || open->connection().busy();
    open->connection().cut();
  }
}

void AsioServer::report_stopped() {
  if (!connections_.empty()) return;
  for (const auto& waiting : std::exchange(waiting_for_stop_, {})) waiting->set_value(!cut_something_);
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options, HttpCallbacks callbacks) {
  ESPALIER_CHECK(callbacks.handler);
  auto server = std::make_unique<AsioServer>(options.limits, std::move(callbacks));
  ESPALIER_TRY(server->load_tls(options.tls_certificate, options.tls_key));
  ESPALIER_TRY(server->listen(options.host, options.port));
  server->run();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace espalier
