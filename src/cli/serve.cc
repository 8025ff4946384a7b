// espalier serve: the OpenAI API over HTTP, until Ctrl-C or SIGTERM.
#include <filesystem>
#include <memory>
#include <thread>

#include "base/format.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_files.h"
#include "cli/serve_flags.h"
#include "cli/terminal.h"

namespace espalier {
namespace {

constexpr std::chrono::milliseconds kGrace{4000};         // to finish what runs once asked to stop; cancelling the rest takes a step more
constexpr std::chrono::milliseconds kFailureGrace{1000};  // to tell clients that the engine failed
constexpr std::chrono::milliseconds kLookAround{50};

std::string model_name(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  return path.filename().empty() ? path.parent_path().filename().string() : path.filename().string();
}

void warn_if_open(const ApiServerOptions& options) {
  const std::string& host = options.http.host;
  const bool local = host == "localhost" || host == "::1" || host.starts_with("127.");
  if (!local && options.access.api_keys.empty()) log_warn("listening on {} without an API key: whoever reaches this machine can use it (--api-key)", host);
  if (!local && !options.access.api_keys.empty() && options.http.tls_certificate.empty()) {
    log_warn("listening on {} without TLS: the API key travels in the clear (--tls-cert, --tls-key)", host);
  }
}

Status serve(const ServeFlags& flags) {
  if (flags.log_json) set_log_format(LogFormat::kJson);
  const std::atomic<bool>& stopping = termination_flag();
  ESPALIER_ASSIGN(const ApiServerOptions options, flags.server_options());
  ESPALIER_ASSIGN(const std::string directory, find_model(flags.engine.model));
  ESPALIER_ASSIGN(const SamplingDefaults defaults, read_sampling_defaults(directory));
  ESPALIER_ASSIGN(const std::unique_ptr<ApiServer> server, ApiServer::start(options));
  const std::string& host = options.http.host;
  log_info("listening on {}://{}:{}", options.http.tls_certificate.empty() ? "http" : "https", host.find(':') == std::string::npos ? host : format("[{}]", host),
           server->port());
  warn_if_open(options);

  EngineFlags engine_flags = flags.engine;
  engine_flags.model = directory;
  std::atomic<bool> failed = false;
  engine_flags.engine.on_failure = [&failed](const Error&) { failed = true; };
  engine_flags.engine.on_progress = [&](double fraction) {
    server->set_loading_progress(fraction);
    return !stopping.load();
  };
  Result<OpenModel> opened = open_model(engine_flags);
  if (!opened.ok()) {
    server->stop(std::chrono::milliseconds(0));
    if (stopping.load() && opened.error().code == ErrorCode::kCancelled) return Ok{};  // asked to stop while loading
    return std::move(opened).error();
  }
  const std::shared_ptr<Engine> engine = std::move(opened->engine);
  server->serve({.name = model_name(directory),
                 .tokenizer = opened->tokenizer,
                 .chat_template = opened->chat_template,
                 .engine = engine,
                 .defaults = defaults,
                 .facts = {{"max_sequences", engine_flags.engine.max_sequences}, {"max_queue", engine_flags.engine.max_queue}}});
  log_info("ready: {} with a context of {} tokens", options.served_model_name.empty() ? model_name(directory) : options.served_model_name,
           engine->context_length());

  while (!stopping.load() && !failed.load()) std::this_thread::sleep_for(kLookAround);
  const bool all_answered = server->stop(failed.load() ? kFailureGrace : kGrace);
  if (failed.load()) return engine->health();
  log_info("stopped{}", all_answered ? "" : "; requests that were still running have been cancelled");
  return Ok{};
}

}  // namespace

RegisteredCommand add_serve_command(CLI::App& root) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* app = root.add_subcommand("serve", "Serve the OpenAI API over HTTP");
  flags->add_to(*app);
  return {app, [flags] { return finish(serve(*flags)); }};
}

}  // namespace espalier
