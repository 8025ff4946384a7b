#include "http/exchange.h"

#include <exception>
#include <type_traits>
#include <utility>

#include "base/log.h"

namespace espalier {
namespace {

class QueuedExchange final : public HttpExchange {
 public:
  QueuedExchange(std::shared_ptr<ExchangeState> state, std::shared_ptr<ExchangeQueue> queue) : state_(std::move(state)), queue_(std::move(queue)) {}
  ~QueuedExchange() override { queue_->push({std::move(state_), exchange_call::Abandon{}}); }
  QueuedExchange(const QueuedExchange&) = delete;
  QueuedExchange& operator=(const QueuedExchange&) = delete;

  const HttpRequest& request() const override { return state_->request; }
  void respond(HttpResponse response) override { push(exchange_call::Respond{std::move(response)}); }
  void begin_stream(HttpResponse head, StreamFiller filler) override { push(exchange_call::BeginStream{std::move(head), std::move(filler)}); }
  void write(std::string bytes) override { push(exchange_call::Write{std::move(bytes)}); }
  void finish() override { push(exchange_call::Finish{}); }
  bool gone() const override { return state_->gone; }
  void on_gone(std::function<void()> callback) override { push(exchange_call::OnGone{std::move(callback)}); }
  void post(std::function<void()> task) override { push(exchange_call::Post{std::move(task)}); }

 private:
  template <typename Call>
  void push(Call call) {
    queue_->push({state_, std::move(call)});
  }

  std::shared_ptr<ExchangeState> state_;
  std::shared_ptr<ExchangeQueue> queue_;
};

void apply(ExchangeCall& call) {
  ExchangeState& exchange = *call.exchange;
  std::visit(
      [&](auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, exchange_call::Post>) {
          run_guarded("a posted task", what.task);
        } else if constexpr (std::is_same_v<What, exchange_call::OnGone>) {
          if (exchange.gone) {
            run_guarded("an on_gone callback", what.callback);
          } else if (exchange.sink != nullptr) {
            exchange.on_gone.push_back(std::move(what.callback));
          }
        } else if (exchange.sink != nullptr) {
          if constexpr (std::is_same_v<What, exchange_call::Respond>) exchange.sink->respond(std::move(what.response));
          if constexpr (std::is_same_v<What, exchange_call::BeginStream>) exchange.sink->begin_stream(std::move(what.head), std::move(what.filler));
          if constexpr (std::is_same_v<What, exchange_call::Write>) exchange.sink->write(std::move(what.bytes));
          if constexpr (std::is_same_v<What, exchange_call::Finish>) exchange.sink->finish();
          if constexpr (std::is_same_v<What, exchange_call::Abandon>) exchange.sink->abandon();
        }
      },
      call.what);
}

}  // namespace

bool run_guarded(const char* what, const std::function<void()>& function) {
  try {
    function();
    return true;
  } catch (const std::exception& error) {
    log_error("http: {} threw: {}", what, error.what());
  } catch (...) {
    log_error("http: {} threw something that is no exception", what);
  }
  return false;
}

void ExchangeQueue::push(ExchangeCall call) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;  // the call is destroyed after the lock: with it may go the last reference to another exchange, which comes here too
    calls_.push_back(std::move(call));
    if (std::exchange(run_is_due_, true)) return;
  }
  post_([weak = weak_from_this()] {
    if (const std::shared_ptr<ExchangeQueue> queue = weak.lock()) queue->run();
  });
}

void ExchangeQueue::run() {
  std::vector<ExchangeCall> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
    run_is_due_ = false;
  }
  const auto run_for = [](ExchangeState& exchange, const std::function<void()>& step) {
    if (!run_guarded("answering", step) && exchange.sink != nullptr) exchange.sink->cut();
  };
  for (ExchangeCall& call : calls) run_for(*call.exchange, [&] { apply(call); });
  for (const ExchangeCall& call : calls) {
    if (call.exchange->sink != nullptr) run_for(*call.exchange, [&] { call.exchange->sink->flush(); });
  }
}

void ExchangeQueue::close() {
  std::vector<ExchangeCall> calls;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  calls.swap(calls_);
}

std::shared_ptr<HttpExchange> make_exchange(std::shared_ptr<ExchangeState> state, std::shared_ptr<ExchangeQueue> queue) {
  return std::make_shared<QueuedExchange>(std::move(state), std::move(queue));
}

}  // namespace espalier
