// espalier inspect MODEL: what a checkpoint is and what running it takes, without loading it.
#include <memory>

#include "base/format.h"
#include "base/json.h"
#include "chat/prompt.h"
#include "checkpoint/model_tensors.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/model_files.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "model/activations.h"
#include "model/layouts.h"

namespace espalier {
namespace {

constexpr int32_t kPageSize = 64;

struct InspectOptions {
  std::string model;
  int64_t context = 0;
  size_t cache_bytes = 0;
  int threads = 0;
  bool json = false;
};

// Bytes in memory while the model runs: one sequence that fills the context, or a cache filled to its limit where one is given.
struct MemoryPlan {
  int64_t context = 0;
  size_t weights = 0;
  size_t activations = 0;
  size_t pages = 0;
  size_t state = 0;
  size_t cache = 0;  // limit of pages and states; 0: only what one sequence needs
  size_t total() const { return weights + activations + (cache != 0 ? cache : pages + state); }
};

Result<MemoryPlan> plan_memory(const Checkpoint& checkpoint, const Backend& backend, const InspectOptions& options) {
  const ModelConfig& config = checkpoint.config();
  const EngineOptions engine;
  MemoryPlan plan{.context = options.context == 0 ? config.max_position_embeddings : options.context, .cache = options.cache_bytes};
  plan.activations = Activations::planned_bytes(backend.activation_dtype(), config, engine.max_rows, engine.max_sequences);
  std::vector<TensorSpec> tensors = trunk_tensors(config);
  if (config.has_mtp) {
    for (TensorSpec& spec : mtp_tensors(config)) tensors.push_back(std::move(spec));
  }
  for (const TensorSpec& spec : tensors) {
    ESPALIER_ASSIGN(const ConstTensorView tensor, checkpoint.tensor(spec.name));
    const bool matrix = spec.shape.rank() == 2;
    const bool embedding = spec.kind == TensorKind::kEmbedding;
    if (embedding) plan.weights += tensor.size_bytes();  // rows are looked up as stored
    if (matrix && (!embedding || config.tie_word_embeddings)) {
      plan.weights += backend.prepared_weight_bytes(spec.shape[0], spec.shape[1], tensor.dtype);
    } else if (!matrix) {
      plan.weights += static_cast<size_t>(spec.shape.num_elements()) * sizeof(float);
    }
  }
  const size_t num_pages = static_cast<size_t>((plan.context + kPageSize - 1) / kPageSize);
  plan.pages = num_pages * kv_layout(config, backend.default_kv_dtype(), kPageSize).page_bytes();
  plan.state = state_layout(config, backend.activation_dtype()).slot_bytes();
  return plan;
}

std::string megabytes(size_t bytes) { return format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

std::string_view tool_call_format_name(ToolCallFormat format) {
  switch (format) {
    case ToolCallFormat::kNone: return "none";
    case ToolCallFormat::kXmlFunction: return "xml_function";
    case ToolCallFormat::kJsonFunction: return "json_function";
  }
  return "none";
}

// What is known of the model's template, which a checkpoint may lack.
struct TemplateFacts {
  std::string problem;  // why there is none
  std::string tool_calls = "none";
  bool reasoning = false;
};

TemplateFacts template_facts(const std::string& directory) {
  const auto chat_template = ChatTemplate::load(directory);
  if (!chat_template.ok()) return {.problem = chat_template.error().message};
  return {.problem = {}, .tool_calls = std::string(tool_call_format_name((*chat_template)->tool_call_format())), .reasoning = (*chat_template)->has_reasoning()};
}

Json to_json(const Checkpoint& checkpoint, const Tokenizer& tokenizer, const Backend& backend, const MemoryPlan& plan, const TemplateFacts& facts) {
  const ModelConfig& config = checkpoint.config();
  Json out;
  out["architecture"] = config.architecture;
  out["model_type"] = config.model_type;
  out["layers"] = {{"linear_attention", config.num_linear_layers()}, {"full_attention", config.num_full_layers()}};
  out["hidden_size"] = config.hidden_size;
  out["vocab_rows"] = config.vocab_rows;
  out["vocab_size"] = tokenizer.vocab_size();
  out["tied_embeddings"] = config.tie_word_embeddings;
  out["mtp"] = config.has_mtp;
  out["max_context"] = config.max_position_embeddings;
  out["stop_ids"] = config.stop_ids;
  Json kinds = Json::array();
  for (const InventoryEntry& entry : checkpoint.inventory()) {
    kinds.push_back({{"kind", std::string(tensor_kind_name(entry.kind))}, {"tensors", entry.num_tensors}, {"bytes", entry.size_bytes}});
  }
  out["chat_template"] = {{"usable", facts.problem.empty()}, {"tool_calls", facts.tool_calls}, {"reasoning", facts.reasoning}};
  out["tensors"] = kinds;
  out["backend"] = backend.name();
  out["memory"] = {{"context", plan.context}, {"weights", plan.weights}, {"activations", plan.activations}, {"pages", plan.pages},
                   {"state", plan.state}, {"cache", plan.cache}, {"total", plan.total()}};
  return out;
}

std::string to_text(const Checkpoint& checkpoint, const Tokenizer& tokenizer, const Backend& backend, const MemoryPlan& plan,
                    const TemplateFacts& facts) {
  const ModelConfig& config = checkpoint.config();
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) { text += format("{:<15}{}\n", name, value); };
  line("model", config.architecture.empty() ? config.model_type : format("{} ({})", config.architecture, config.model_type));
  line("layers", format("{} Gated DeltaNet, {} full attention{}", config.num_linear_layers(), config.num_full_layers(),
                        config.has_mtp ? ", 1 MTP" : ""));
  line("sizes", format("hidden {}, feed-forward {}, {} query and {} KV heads of {}", config.hidden_size, config.intermediate_size,
                       config.num_heads, config.num_kv_heads, config.head_dim));
  line("vocabulary", format("{} ids in {} rows, {} head", tokenizer.vocab_size(), config.vocab_rows, config.tie_word_embeddings ? "tied" : "separate"));
  std::string stops;
  for (const TokenId id : config.stop_ids) stops += format("{}{} {}", stops.empty() ? "" : ", ", id, tokenizer.token_bytes(id));
  line("stops at", stops.empty() ? "nothing: no stop ids are given" : stops);
  line("chat template", facts.problem.empty() ? format("tool calls {}, {}", facts.tool_calls, facts.reasoning ? "reasoning in think blocks" : "no reasoning")
                                              : "not usable: " + facts.problem);
  text += "\ntensors\n";
  for (const InventoryEntry& entry : checkpoint.inventory()) {
    text += format("  {:<18}{:>6}{:>14}\n", tensor_kind_name(entry.kind), entry.num_tensors, megabytes(entry.size_bytes));
  }
  text += format("\nmemory on {}, one sequence of {} tokens\n", backend.name(), plan.context);
  text += format("  {:<18}{:>20}\n", "weights", megabytes(plan.weights));
  text += format("  {:<18}{:>20}\n", "activations", megabytes(plan.activations));
  text += format("  {:<18}{:>20}\n", "keys and values", megabytes(plan.pages));
  text += format("  {:<18}{:>20}\n", "recurrent state", megabytes(plan.state));
  if (plan.cache != 0) text += format("  {:<18}{:>20}   (limit of both, for all sequences and snapshots)\n", "cache", megabytes(plan.cache));
  text += format("  {:<18}{:>20}\n", "together", megabytes(plan.total()));
  return text;
}

Status inspect(const InspectOptions& options) {
  ESPALIER_ASSIGN(const Checkpoint checkpoint, open_checkpoint(options.model));
  ESPALIER_ASSIGN(const auto tokenizer, Tokenizer::load(options.model));
  ESPALIER_ASSIGN(const std::unique_ptr<Backend> backend, make_backend("cpu", options.threads));
  ESPALIER_ASSIGN(const MemoryPlan plan, plan_memory(checkpoint, *backend, options));
  const TemplateFacts facts = template_facts(options.model);
  if (options.json) return print(dump_json(to_json(checkpoint, *tokenizer, *backend, plan, facts)) + "\n");
  return print(to_text(checkpoint, *tokenizer, *backend, plan, facts));
}

}  // namespace

RegisteredCommand add_inspect_command(CLI::App& root) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* app = root.add_subcommand("inspect", "What a checkpoint is and what running it takes");
  app->add_option("model", options->model, "Directory of the checkpoint")->required();
  app->add_option("--context", options->context, "Tokens to plan memory for; 0: the model's own")->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  app->add_option("--cache-bytes", options->cache_bytes, "Plan for a cache of that limit (64M, 8G, ...) instead of one sequence")
      ->transform(CLI::Validator(refuse_negative, "SIZE"))
      ->transform(CLI::AsSizeValue(false));
  app->add_option("--threads", options->threads, "Threads; 0: physical cores")->check(CLI::Range(0, 1024));
  app->add_flag("--json", options->json, "One JSON object instead of text");
  return {app, [options] { return finish(inspect(*options)); }};
}

}  // namespace espalier
