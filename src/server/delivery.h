// A generating request on its way to its client: token streams of the engine on one side, an HTTP exchange on the other. Everything after
// `begin` happens on the thread of the exchange; the engine only nudges it. A client that goes cancels its streams; what the engine still
// says is read to the end, so that every request is counted with its true numbers.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/request.h"
#include "http/http_server.h"
#include "server/reply.h"
#include "server/request_record.h"

namespace espalier {

struct DeliveryOptions {
  ReplyForm form;
  int64_t context_length = 0;                   // for errors
  std::chrono::steady_clock::time_point received = {};
  StreamFiller filler = {};                          // of streams whose first token takes its time
  std::vector<HttpHeader> headers = {};              // of the answer
  bool keep_text = false;                       // as the model wrote it, in the record
};

class Delivery : public std::enable_shared_from_this<Delivery> {
 public:
  // `record` holds what is known already; the rest is filled in and handed to `on_over`, on the thread of the exchange, once.
  Delivery(std::shared_ptr<HttpExchange> exchange, std::vector<TokenStream> streams, std::unique_ptr<Reply> reply, DeliveryOptions options,
           RequestRecord record, std::function<void(const RequestRecord&)> on_over);

  // Whoever calls keeps the object alive until `on_over` ran.
  void begin();

 private:
  void drain();
  void finish();
  void cancel();
  RequestStats total_stats() const;
  Status status() const;

  std::shared_ptr<HttpExchange> exchange_;
  std::vector<TokenStream> streams_;
  std::vector<bool> over_;  // of each stream
  std::unique_ptr<Reply> reply_;
  DeliveryOptions options_;
  RequestRecord record_;
  std::function<void(const RequestRecord&)> on_over_;
  std::atomic<bool> nudged_ = false;
  bool finished_ = false;
};

}  // namespace espalier
