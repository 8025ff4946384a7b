// espalier logits MODEL --ids IDS.json --out OUT.safetensors: what the model says after every token, for comparing engines.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/format.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "cli/commands.h"
#include "cli/forward_runner.h"
#include "cli/model_files.h"
#include "cli/terminal.h"

namespace espalier {
namespace {

constexpr size_t kMaxOutputBytes = size_t{16} << 30;

struct LogitsOptions {
  std::string model, ids, out, backend = "cpu";
  int threads = 0;
  bool layers = false;
};

// Collects the residual stream into one tensor a layer, chunk after chunk.
class HiddenCollector : public HiddenObserver {
 public:
  HiddenCollector(int32_t num_layers, int32_t num_tokens, int32_t hidden_size) {
    for (int32_t i = 0; i < num_layers + 2; ++i) tensors_.emplace_back(DType::kF32, Shape{num_tokens, hidden_size});
  }
  void on_hidden(int32_t layer, const ConstTensorView& rows) override {
    Tensor& tensor = tensors_[static_cast<size_t>(layer + 1)];
    const auto width = static_cast<size_t>(rows.shape[1]);
    const Tensor wide = to_f32(rows);
    std::memcpy(tensor.as<float>() + done_ * width, wide.as<float>(), wide.view().size_bytes());
    if (static_cast<size_t>(layer + 2) == tensors_.size()) done_ += static_cast<size_t>(rows.rows());
  }
  // hidden.0 (the embedding) to hidden.L, then final.
  void append_to(std::vector<NamedTensor>& out) const {
    for (size_t i = 0; i + 1 < tensors_.size(); ++i) out.push_back({format("hidden.{}", i), tensors_[i].view()});
    out.push_back({"final", tensors_.back().view()});
  }

 private:
  std::vector<Tensor> tensors_;
  size_t done_ = 0;
};

Result<std::vector<TokenId>> read_ids(const std::string& path, int64_t vocab_rows) {
  ESPALIER_ASSIGN(const Json document, load_json(path));
  const Json& list = document.is_object() && document.contains("ids") ? document["ids"] : document;
  if (!list.is_array() || list.empty()) return make_error(ErrorCode::kInvalidArgument, "{}: expected a list of token ids, or {{\"ids\": [...]}}", path);
  std::vector<TokenId> ids;
  for (const Json& item : list) {
    if (!item.is_number_integer() || item.get<double>() < 0 || item.get<double>() >= static_cast<double>(vocab_rows)) {
      return make_error(ErrorCode::kInvalidArgument, "{}: {} is not a token id below {}", path, dump_json(item).substr(0, 40), vocab_rows);
    }
    ids.push_back(item.get<TokenId>());
  }
  return ids;
}

Status logits(const LogitsOptions& options) {
  ESPALIER_ASSIGN(const Checkpoint checkpoint, open_checkpoint(options.model));
  const ModelConfig& config = checkpoint.config();
  ESPALIER_ASSIGN(const std::vector<TokenId> ids, read_ids(options.ids, config.vocab_rows));
  const size_t row_values = static_cast<size_t>(config.vocab_rows) +
                            (options.layers ? static_cast<size_t>(config.num_layers + 2) * static_cast<size_t>(config.hidden_size) : 0);
  if (ids.size() * row_values * sizeof(float) > kMaxOutputBytes) {
    return make_error(ErrorCode::kResourceExhausted, "{} tokens would give {} bytes of output; the limit is {}", ids.size(),
                      ids.size() * row_values * sizeof(float), kMaxOutputBytes);
  }
  const auto num_tokens = static_cast<int32_t>(ids.size());
  ESPALIER_ASSIGN(const std::unique_ptr<Backend> backend, make_backend(options.backend, options.threads));
  ESPALIER_ASSIGN(ForwardRunner runner, ForwardRunner::create(checkpoint, *backend, num_tokens));

  Tensor rows(DType::kF32, Shape{num_tokens, config.vocab_rows});
  std::unique_ptr<HiddenCollector> hidden;
  if (options.layers) hidden = std::make_unique<HiddenCollector>(config.num_layers, num_tokens, config.hidden_size);
  runner.run(ids, [&](int32_t first, const ConstTensorView& chunk) {
    std::memcpy(rows.as<float>() + static_cast<size_t>(first) * static_cast<size_t>(config.vocab_rows), chunk.data, chunk.size_bytes());
  }, hidden.get());

  std::vector<NamedTensor> tensors = {{"logits", rows.view()}};
  if (hidden != nullptr) hidden->append_to(tensors);
  return write_safetensors(options.out, tensors);
}

}  // namespace

RegisteredCommand add_logits_command(CLI::App& root) {
  auto options = std::make_shared<LogitsOptions>();
  CLI::App* app = root.add_subcommand("logits", "Write the logits after every token to a safetensors file");
  app->add_option("model", options->model, "Directory of the checkpoint")->required();
  app->add_option("--ids", options->ids, "JSON file: [ids] or {\"ids\": [ids]}")->required();
  app->add_option("--out", options->out, "File to write: logits F32 [tokens, vocabulary rows]")->required();
  app->add_flag("--layers", options->layers, "Also hidden.0 (embedding) ... hidden.L and final, F32 [tokens, hidden]");
  app->add_option("--backend", options->backend, "cpu or reference")->capture_default_str();
  app->add_option("--threads", options->threads, "Threads; 0: physical cores")->check(CLI::Range(0, 1024));
  return {app, [options] { return finish(logits(*options)); }};
}

}  // namespace espalier
