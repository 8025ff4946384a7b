// espalier replay: plays a recorded agent workload and reports what it cost.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/model_files.h"
#include "cli/terminal.h"
#include "engine/prompt_encoder.h"
#include "http/http_client.h"
#include "replay/answer_tokens.h"
#include "replay/engine_executor.h"
#include "replay/http_executor.h"
#include "replay/prefix_ceiling.h"
#include "replay/replayer.h"

namespace espalier {
namespace {

struct ReplayFlags {
  EngineFlags engine;
  ReplayOptions replay;
  std::string data, replies;
  std::string url, api_key, ca_file;
  bool json = false, show_text = false, ceiling = false;
};

using TextSink = std::function<void(std::string_view)>;

// Who answers, and what that needs to live.
struct Player {
  OpenModel model;
  std::unique_ptr<TurnExecutor> executor;
};

// Calls visit(conversation, turn) for every turn that the options leave in, in the order of the replay.
template <typename Visit>
Status for_each_turn(const Workload& workload, const ReplayOptions& options, Visit&& visit) {
  int64_t conversations = 0;
  for (const Conversation& conversation : workload.conversations) {
    if (options.num_conversations > 0 && conversations++ == options.num_conversations) break;
    int64_t turns = 0;
    for (const ConversationTurn& turn : conversation.turns) {
      if (options.num_turns > 0 && turns++ == options.num_turns) break;
      ESPALIER_TRY(visit(conversation, turn));
    }
  }
  return Ok{};
}

// What a perfect cache could serve of this workload, from the prompts alone.
Status report_ceiling(const Workload& workload, const ReplayFlags& flags) {
  ESPALIER_ASSIGN(const std::string directory, find_model(flags.engine.model));
  ESPALIER_ASSIGN(const auto tokenizer, Tokenizer::load(directory));
  ESPALIER_ASSIGN(const auto chat_template, ChatTemplate::load(directory));
  PromptEncoder encoder(tokenizer, size_t{256} << 20);
  PrefixCeiling ceiling;
  ESPALIER_TRY(for_each_turn(workload, flags.replay, [&](const Conversation& conversation, const ConversationTurn& turn) -> Status {
    ESPALIER_ASSIGN(const RenderedPrompt prompt, render_turn(*chat_template, conversation, turn));
    const EncodedPrompt encoded = encoder.encode(prompt.text, prompt.branch_points, ReplyIds::kAdopt);
    ceiling.add({.ids = encoded.ids, .snapshots = encoded.branch_points});
    return Ok{};
  }));
  const CeilingTotals& totals = ceiling.totals();
  if (flags.json) {
    const Json out = {{"prompts", totals.prompts}, {"prompt_tokens", totals.prompt_tokens}, {"perfect", totals.perfect}, {"snapshots", totals.snapshot}};
    return print(dump_json(out) + "\n");
  }
  const auto share = [&](int64_t tokens) { return 100.0 * static_cast<double>(tokens) / static_cast<double>(std::max<int64_t>(1, totals.prompt_tokens)); };
  return print(format("{} prompts, {} tokens\n  shared with an earlier prompt  {:>12}  {:.3f} %\n  at a snapshot                  {:>12}  {:.3f} %\n",
                      totals.prompts, totals.prompt_tokens, totals.perfect, share(totals.perfect), totals.snapshot, share(totals.snapshot)));
}

Result<Player> play_in_process(const EngineFlags& flags, const TextSink& on_text) {
  Player player;
  ESPALIER_ASSIGN(player.model, open_model(flags));
  player.executor = std::make_unique<EngineExecutor>(*player.model.engine, player.model.chat_template, on_text, &interrupt_flag());
  return player;
}

Result<Player> play_against_server(const ReplayFlags& flags, const TextSink& on_text) {
  HttpExecutorOptions options{.api_key = flags.api_key, .on_text = on_text};
  if (const char* const key = std::getenv("ESPALIER_API_KEY"); options.api_key.empty() && key != nullptr) options.api_key = key;
  if (!flags.engine.model.empty()) {
    ESPALIER_ASSIGN(auto tokenizer, Tokenizer::load(flags.engine.model));
    ESPALIER_ASSIGN(auto chat_template, ChatTemplate::load(flags.engine.model));
    options.tokens = std::make_shared<const AnswerTokens>(std::move(tokenizer), std::move(chat_template));
  }
  ESPALIER_ASSIGN(auto client, HttpClient::create(flags.url, {.ca_file = flags.ca_file, .interrupted = &interrupt_flag()}));
  Player player;
  player.executor = std::make_unique<HttpExecutor>(std::move(client), std::move(options));
  return player;
}

Status run_replay(const ReplayFlags& flags) {
  ESPALIER_ASSIGN(const Workload workload, load_workload(flags.data));
  if (flags.ceiling) return report_ceiling(workload, flags);
  if (!flags.replies.empty()) ESPALIER_TRY(check_writable(flags.replies));  // now rather than after an hour of playing

  const auto show = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); std::fflush(stdout); };
  const TextSink on_text = flags.show_text ? TextSink(show) : nullptr;
  ESPALIER_ASSIGN(const Player player, flags.url.empty() ? play_in_process(flags.engine, on_text) : play_against_server(flags, on_text));
  std::string replies;
  const bool live = ::isatty(STDERR_FILENO) != 0 && !flags.show_text;
  const auto progress = [&](const ReplayProgress& now) {
    if (flags.show_text && now.outcome.ok()) {
      const TurnOutcome& turn = *now.outcome;
      const double decode_ms = turn.latency_ms - turn.ttft_ms.value_or(turn.latency_ms);
      const double rate = decode_ms > 0 ? 1000.0 * static_cast<double>(turn.tokens_after_first) / decode_ms : 0.0;
      show(format("\n-- turn {}: {} prompt tokens, {} hot; first token after {:.1f} ms, {:.0f} tokens/s\n\n", now.turns_done, turn.prompt_tokens,
                  turn.hot_tokens, turn.ttft_ms.value_or(0.0), rate));
    }
    if (!flags.replies.empty()) replies += dump_json(reply_record(now.request, now.outcome)) + "\n";
    if (live) std::fprintf(stderr, "\r\x1b[K%s", progress_line(now).c_str());
  };
  Result<ReplayReport> report = replay(workload, flags.replay, *player.executor, progress);
  if (live) std::fputc('\n', stderr);
  if (!report.ok()) return std::move(report).error();
  ESPALIER_TRY(print(flags.json ? dump_json(to_json(*report)) + "\n" : to_table(*report)));
  if (!flags.replies.empty()) ESPALIER_TRY(write_file_atomic(flags.replies, replies));
  if (report->turns_failed > 0) {
    return make_error(ErrorCode::kInternal, "{} of {} turns failed; first: {}", report->turns_failed, report->turns_ok + report->turns_failed,
                      report->failures.empty() ? "unknown" : report->failures.front());
  }
  return Ok{};
}

}  // namespace

RegisteredCommand add_replay_command(CLI::App& root) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* app = root.add_subcommand("replay", "Play a recorded agent workload, one turn after the other, and report");
  app->add_option("--data", flags->data, "Workload: conversations as JSON lines")->required();
  app->add_option("--model", flags->engine.model,
                  "Directory of the checkpoint; the default model otherwise. With --url: whose tokenizer and template count the answers' tokens");
  app->add_option("--conversations", flags->replay.num_conversations, "Only the first so many; 0: all")->check(CLI::NonNegativeNumber);
  app->add_option("--turns", flags->replay.num_turns, "Only the first so many of each conversation; 0: all")->check(CLI::NonNegativeNumber);
  app->add_option("--max-tokens", flags->replay.max_tokens, "Longest reply")->capture_default_str()->check(CLI::PositiveNumber);
  app->add_option("--replies", flags->replies, "Also write every reply to this file, as JSON lines");
  app->add_flag("--show-text", flags->show_text, "Stream the replies and a line for each turn");
  app->add_flag("--json", flags->json, "The report as one JSON object");
  CLI::Option* const url =
      app->add_option("--url", flags->url, "Ask this server of the OpenAI API (http://HOST:PORT) instead of a model in this process");
  app->add_option("--api-key", flags->api_key, "Key for the server; ESPALIER_API_KEY otherwise")->needs(url);
  app->add_option("--ca-file", flags->ca_file, "Certificates to trust with https, as PEM; the system's otherwise")->needs(url);
  const std::vector<CLI::Option*> before = app->get_options();
  app->add_flag("--ceiling", flags->ceiling, "Run no model: what could a perfect cache serve?");
  flags->engine.add_to(*app);
  for (CLI::Option* const option : app->get_options()) {  // what concerns a model in this process
    if (std::find(before.begin(), before.end(), option) == before.end()) url->excludes(option);
  }
  return {app, [flags] { return finish(run_replay(*flags)); }};
}

}  // namespace espalier
