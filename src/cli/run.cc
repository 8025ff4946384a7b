// espalier run: a chat in the terminal. Ctrl-C ends the answer, Ctrl-D the program, /reset the conversation.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>

#include "base/format.h"
#include "base/json.h"
#include "base/log.h"
#include "chat/messages.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace espalier {
namespace {

constexpr size_t kMaxLine = size_t{4} << 20;

struct RunFlags {
  EngineFlags engine;
  std::string system, prompt;
  int64_t max_tokens = 1024;
  SamplingParams sampling;
  bool thinking = false;
};

// The next line without its newline; nothing at the end of input or after Ctrl-C.
std::optional<std::string> read_line() {
  std::string line;
  while (line.size() < kMaxLine) {
    const int c = std::fgetc(stdin);
    if (c == '\n') return line;
    if (c == EOF) {
      if (std::feof(stdin) != 0 && !line.empty()) return line;
      return std::nullopt;
    }
    line += static_cast<char>(c);
  }
  return line;
}

class Chat {
 public:
  Chat(const RunFlags& flags, OpenModel& model, std::atomic<bool>& interrupted) : flags_(flags), model_(model), interrupted_(interrupted) { reset(); }

  void reset() {
    messages_ = Json::array();
    if (!flags_.system.empty()) messages_.push_back({{"role", "system"}, {"content", flags_.system}});
  }

  // One question and its answer, which joins the conversation even where it was cut short. A question that fails does not.
  Status ask(const std::string& question) {
    messages_.push_back({{"role", "user"}, {"content", question}});
    Status answered = answer();
    if (!answered.ok()) messages_.erase(messages_.size() - 1);
    return answered;
  }

 private:
  Status answer() {
    ESPALIER_ASSIGN(const ChatInput input, normalise_messages(messages_, Json::array()));
    RenderOptions options;
    options.enable_thinking = flags_.thinking;
    ESPALIER_ASSIGN(RenderedPrompt prompt, model_.chat_template->render_with_branch_points(input, options));
    Request request;
    request.prompt = std::move(prompt.text);
    request.branch_points = std::move(prompt.branch_points);
    request.sampling = flags_.sampling;
    request.max_new_tokens = flags_.max_tokens;
    ESPALIER_ASSIGN(TokenStream stream, model_.engine->submit(std::move(request)));
    std::string text;
    interrupted_ = false;
    while (true) {
      bool timed_out = false;
      const std::optional<TokenEvent> event = stream.next_for(std::chrono::milliseconds(50), timed_out);
      if (interrupted_.load()) stream.cancel();
      if (timed_out) continue;
      if (!event.has_value()) break;
      text += event->text;
      ESPALIER_TRY(print(event->text));
    }
    interrupted_ = false;
    ESPALIER_TRY(stream.status());
    ESPALIER_TRY(print("\n"));
    const RequestStats stats = stream.stats();
    log_debug("{} prompt tokens, {} hot, first token after {:.1f} ms, {} tokens in {:.1f} ms", stats.prompt_tokens, stats.hot_tokens,
              stats.first_token_ms, stats.output_tokens, stats.total_ms);
    messages_.push_back({{"role", "assistant"}, {"content", text}});
    return Ok{};
  }

  const RunFlags& flags_;
  OpenModel& model_;
  std::atomic<bool>& interrupted_;
  Json messages_;
};

Status run(const RunFlags& flags) {
  ESPALIER_ASSIGN(OpenModel model, open_model(flags.engine));
  std::atomic<bool>& interrupted = interrupt_flag();
  Chat chat(flags, model, interrupted);
  if (!flags.prompt.empty()) return chat.ask(flags.prompt);

  const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (terminal) ESPALIER_TRY(print("Ctrl-C ends an answer, /reset the conversation, Ctrl-D the program.\n"));
  while (true) {
    if (terminal) ESPALIER_TRY(print("> "));
    const std::optional<std::string> line = read_line();
    if (!line.has_value()) {
      if (!interrupted.exchange(false)) return terminal ? print("\n") : Status(Ok{});
      std::clearerr(stdin);
      ESPALIER_TRY(print("\n"));
      continue;
    }
    if (line->empty()) continue;
    if (*line == "/reset") {
      chat.reset();
      continue;
    }
    // A question that cannot be served is said and forgotten; the conversation goes on.
    if (const Status asked = chat.ask(*line); !asked.ok()) {
      if (asked.error().code == ErrorCode::kIo) return asked;
      log_error("{}", asked.error().message);
    }
  }
}

}  // namespace

RegisteredCommand add_run_command(CLI::App& root) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* app = root.add_subcommand("run", "Chat in the terminal, or answer one prompt");
  app->add_option("model", flags->engine.model, "Directory of the checkpoint; the default model otherwise");
  app->add_option("-p,--prompt", flags->prompt, "Answer this and end");
  app->add_option("--system", flags->system, "System message");
  app->add_option("--max-tokens", flags->max_tokens, "Longest answer")->capture_default_str()->check(CLI::PositiveNumber);
  app->add_option("--temperature", flags->sampling.temperature, "0: always the most probable token")->capture_default_str();
  app->add_option("--top-k", flags->sampling.top_k, "Keep the k most probable tokens; 0: all");
  app->add_option("--top-p", flags->sampling.top_p, "Keep the most probable tokens up to this mass")->capture_default_str();
  flags->sampling.seed = std::random_device()();
  app->add_option("--seed", flags->sampling.seed, "Of the random numbers; another one each time otherwise");
  app->add_flag("--thinking", flags->thinking, "Let the model reason first, where its template can");
  flags->engine.add_to(*app);
  return {app, [flags] { return finish(run(*flags)); }};
}

}  // namespace espalier
