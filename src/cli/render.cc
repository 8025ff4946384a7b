// espalier render MODEL REQUEST.json: the prompt of a chat-completions body, as text and ids.
#include <memory>

#include "base/json.h"
#include "chat/messages.h"
#include "chat/prompt.h"
#include "cli/commands.h"
#include "cli/model_files.h"
#include "cli/terminal.h"

namespace espalier {
namespace {

struct RenderFlags {
  std::string model, request;
};

Status render(const RenderFlags& flags) {
  ESPALIER_ASSIGN(const auto tokenizer, Tokenizer::load(flags.model));
  ESPALIER_ASSIGN(const auto chat_template, ChatTemplate::load(flags.model));
  ESPALIER_ASSIGN(const Json body, load_json(flags.request));
  if (!body.is_object() || !body.contains("messages")) {
    return Error{ErrorCode::kInvalidArgument, flags.request + ": expected an object with \"messages\""};
  }
  RenderOptions options;
  if (const auto kwargs = body.find("chat_template_kwargs"); kwargs != body.end() && kwargs->is_object()) {
    options.template_kwargs = *kwargs;
    if (const auto thinking = kwargs->find("enable_thinking"); thinking != kwargs->end() && thinking->is_boolean()) {
      options.enable_thinking = thinking->get<bool>();
    }
  }
  ESPALIER_ASSIGN(const ChatInput input, normalise_messages(body["messages"], body.value("tools", Json())));
  ESPALIER_ASSIGN(const MarkedText text, chat_template->render(input, options));
  Json out;
  out["text"] = text.text;
  out["ids"] = tokenizer->encode(text);
  return print(dump_json(out) + "\n");
}

}  // namespace

RegisteredCommand add_render_command(CLI::App& root) {
  auto flags = std::make_shared<RenderFlags>();
  CLI::App* app = root.add_subcommand("render", "Render a chat-completions body: {\"text\": ..., \"ids\": [...]}");
  app->add_option("model", flags->model, "Directory of the checkpoint (its template and tokenizer)")->required();
  app->add_option("request", flags->request, "JSON file with messages, tools and chat_template_kwargs")->required();
  return {app, [flags] { return finish(render(*flags)); }};
}

}  // namespace espalier
