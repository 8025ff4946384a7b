// The flags of `espalier serve`, and what they ask of the server.
#pragma once

#include <string>
#include <vector>

#include "cli/engine_flags.h"
#include "server/api_server.h"

namespace espalier {

struct ServeFlags {
  EngineFlags engine;
  ApiServerOptions server;
  std::string api_key, api_key_file;
  std::string thinking = "off";
  bool log_json = false;

  void add_to(CLI::App& app);
  // With the keys read and the words understood. Errors name the flag or file.
  Result<ApiServerOptions> server_options() const;
};

}  // namespace espalier
