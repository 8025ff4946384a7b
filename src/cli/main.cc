// The composition root: command line in, one command run, exit code out.
#include <csignal>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  using namespace espalier;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write, not the end of the process

  CLI::App app("Runs hybrid language models for agents, with long histories kept hot.", "espalier");
  app.set_version_flag("--version", "espalier 0.1.0");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  const std::vector<RegisteredCommand> commands = {
      add_run_command(app),    add_serve_command(app), add_inspect_command(app), add_replay_command(app), add_tokenize_command(app),
      add_render_command(app), add_parse_command(app), add_logits_command(app),  add_score_command(app),
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  for (const RegisteredCommand& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return kExitUsage;
}
