// The server: routes of the OpenAI API over one engine. It listens before there is a model, so that /health can tell how far loading has
// come. Public members may be called from every thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "chat/prompt.h"
#include "engine/engine.h"
#include "http/http_server.h"
#include "server/access_gate.h"
#include "server/chat_request.h"
#include "server/request_limits.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

struct ApiServerOptions {
  HttpServerOptions http;
  AccessRules access;
  RequestLimits limits;
  Thinking thinking = Thinking::kOff;
  std::string served_model_name;       // empty: the model's own
  bool strict_model = false;           // 404 for any other name
  bool log_prompts = false;            // prompts and replies in the log
  std::chrono::milliseconds ping_after{15'000};  // of silence in a stream: a comment
};

// What is served. The engine must outlive the server or be given up by `stop`.
struct ServedModel {
  std::string name;                    // of its directory
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
  std::shared_ptr<Engine> engine;
  SamplingDefaults defaults;
  Json facts = Json::object();         // further members of /props
};

class ApiServer {
 public:
  // Errors as HttpServer::start.
  static Result<std::unique_ptr<ApiServer>> start(ApiServerOptions options);
  virtual ~ApiServer() = default;

  virtual uint16_t port() const = 0;
  // From 0 to 1; shown by /health until `serve` is called.
  virtual void set_loading_progress(double fraction) = 0;
  virtual void serve(ServedModel model) = 0;

  // No new requests; those under way may finish for `grace`, then they are cancelled. True if all were answered.
  virtual bool stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace espalier
