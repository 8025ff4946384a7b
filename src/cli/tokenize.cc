// espalier tokenize MODEL < text: the ids of a text, as JSON.
#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_files.h"
#include "cli/terminal.h"

namespace espalier {
namespace {

constexpr size_t kMaxInput = size_t{256} << 20;

struct TokenizeOptions {
  std::string model;
  bool plain = false;
};

Status tokenize(const TokenizeOptions& options) {
  ESPALIER_ASSIGN(const auto tokenizer, Tokenizer::load(options.model));
  ESPALIER_ASSIGN(const std::string text, read_stdin(kMaxInput));
  const auto control = options.plain ? Tokenizer::Control::kIgnore : Tokenizer::Control::kMatch;
  Json result;
  result["ids"] = tokenizer->encode(text, control);
  return print(dump_json(result) + "\n");
}

}  // namespace

RegisteredCommand add_tokenize_command(CLI::App& root) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* app = root.add_subcommand("tokenize", "Turn text from stdin into token ids: {\"ids\": [...]}");
  app->add_option("model", options->model, "Directory of the checkpoint (its tokenizer.json)")->required();
  app->add_flag("--plain", options->plain, "Text that spells a control token stays ordinary text");
  return {app, [options] { return finish(tokenize(*options)); }};
}

}  // namespace espalier
