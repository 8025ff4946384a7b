// Plays turns against a server of the OpenAI API, with the requests of the official harness byte for byte and its definitions of time to
// first token and latency. Stricter than the harness about answers: an error in the stream, a stream without a finish reason or that
// breaks off, an empty answer, and every status but 200 fail the turn. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/http_client.h"
#include "replay/answer_tokens.h"
#include "replay/replayer.h"
#include "replay/streamed_answer.h"

namespace espalier {

struct HttpExecutorOptions {
  std::string api_key = {};                              // empty: no Authorization header
  std::shared_ptr<const AnswerTokens> tokens = {};       // counts answers as the harness does; null: what the server says about them
  std::function<void(std::string_view)> on_text = {};    // sees the answer as it grows
};

class HttpExecutor : public TurnExecutor {
 public:
  HttpExecutor(std::unique_ptr<HttpClient> client, HttpExecutorOptions options) : client_(std::move(client)), options_(std::move(options)) {}

  // kCancelled if the client was interrupted.
  Result<TurnOutcome> run(const TurnRequest& request) override;
  std::string token_counts() const override;

 private:
  Status fill_counts(const TurnRequest& request, const StreamedAnswer& answer, TurnOutcome& outcome);

  std::unique_ptr<HttpClient> client_;
  HttpExecutorOptions options_;
  int64_t turns_answered_ = 0;
  int64_t turns_without_prompt_count_ = 0;
  int64_t turns_without_answer_count_ = 0;
};

}  // namespace espalier
