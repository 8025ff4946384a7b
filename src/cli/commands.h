// The commands of `espalier`. Each adds itself to the command line and returns what runs it: an exit code, 0 on success.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace espalier {

inline constexpr int kExitFailure = 1;  // the work could not be done; the reason is on stderr
inline constexpr int kExitUsage = 2;    // the command line is wrong

using Command = std::function<int()>;

struct RegisteredCommand {
  CLI::App* app;
  Command run;
};

RegisteredCommand add_run_command(CLI::App& root);
RegisteredCommand add_serve_command(CLI::App& root);
RegisteredCommand add_inspect_command(CLI::App& root);
RegisteredCommand add_replay_command(CLI::App& root);
RegisteredCommand add_tokenize_command(CLI::App& root);
RegisteredCommand add_render_command(CLI::App& root);
RegisteredCommand add_parse_command(CLI::App& root);
RegisteredCommand add_logits_command(CLI::App& root);
RegisteredCommand add_score_command(CLI::App& root);

}  // namespace espalier
