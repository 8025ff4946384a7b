// espalier score MODEL < text: how well the model predicts a text, as perplexity.
#include <cmath>
#include <memory>

#include "base/format.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/forward_runner.h"
#include "cli/model_files.h"
#include "cli/terminal.h"

namespace espalier {
namespace {

constexpr size_t kMaxInput = size_t{16} << 20;

struct ScoreOptions {
  std::string model, backend = "cpu";
  int threads = 0;
  bool json = false;
};

// -log softmax(row)[target], nats. Source: cross entropy; sums in double.
double loss_of(std::span<const float> row, TokenId target) {
  double best = row[0];
  for (const float x : row) best = std::max(best, static_cast<double>(x));
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - best);
  return best + std::log(sum) - static_cast<double>(row[static_cast<size_t>(target)]);
}

Status score(const ScoreOptions& options) {
  ESPALIER_ASSIGN(const Checkpoint checkpoint, open_checkpoint(options.model));
  ESPALIER_ASSIGN(const auto tokenizer, Tokenizer::load(options.model));
  ESPALIER_ASSIGN(const std::string text, read_stdin(kMaxInput));
  const std::vector<TokenId> ids = tokenizer->encode(text, Tokenizer::Control::kMatch);
  if (ids.size() < 2) return make_error(ErrorCode::kInvalidArgument, "standard input: {} tokens; a score needs at least two", ids.size());
  if (ids.size() > static_cast<size_t>(checkpoint.config().max_position_embeddings)) {
    return make_error(ErrorCode::kContextLength, "standard input: {} tokens; this model takes {}", ids.size(),
                      checkpoint.config().max_position_embeddings);
  }
  if (tokenizer->vocab_size() > static_cast<size_t>(checkpoint.config().vocab_rows)) {
    return make_error(ErrorCode::kCorrupt, "{}: the tokenizer has {} ids, the embedding {} rows", options.model, tokenizer->vocab_size(),
                      checkpoint.config().vocab_rows);
  }
  ESPALIER_ASSIGN(const std::unique_ptr<Backend> backend, make_backend(options.backend, options.threads));
  ESPALIER_ASSIGN(ForwardRunner runner, ForwardRunner::create(checkpoint, *backend, static_cast<int32_t>(ids.size())));

  double loss = 0;
  runner.run(ids, [&](int32_t first, const ConstTensorView& logits) {
    for (int64_t r = 0; r < logits.rows(); ++r) {
      const size_t next = static_cast<size_t>(first + r + 1);
      if (next >= ids.size()) return;
      loss += loss_of({logits.as<float>() + r * logits.shape[1], tokenizer->vocab_size()}, ids[next]);
    }
  });
  const double mean = loss / static_cast<double>(ids.size() - 1);
  if (options.json) {
    Json result;
    result["tokens"] = ids.size();
    result["loss"] = mean;
    result["perplexity"] = std::exp(mean);
    result["bits_per_byte"] = loss / std::log(2.0) / static_cast<double>(text.size());
    return print(dump_json(result) + "\n");
  }
  return print(format("{} tokens, loss {:.4f} nats a token, perplexity {:.3f}\n", ids.size(), mean, std::exp(mean)));
}

}  // namespace

RegisteredCommand add_score_command(CLI::App& root) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* app = root.add_subcommand("score", "Perplexity of a text from stdin");
  app->add_option("model", options->model, "Directory of the checkpoint")->required();
  app->add_flag("--json", options->json, "One JSON object instead of a line");
  app->add_option("--backend", options->backend, "cpu or reference")->capture_default_str();
  app->add_option("--threads", options->threads, "Threads; 0: physical cores")->check(CLI::Range(0, 1024));
  return {app, [options] { return finish(score(*options)); }};
}

}  // namespace espalier
