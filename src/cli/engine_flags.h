// The flags of every command that runs an engine, and the engine they ask for.
#pragma once

#include <memory>
#include <string>

#include "chat/prompt.h"
#include "cli/commands.h"
#include "engine/engine.h"

namespace espalier {

// A check for sizes, which CLI11 would let wrap around: empty where the text is fine, else what is wrong.
std::string refuse_negative(std::string& text);

struct EngineFlags {
  std::string model;
  std::string backend = "cpu";
  int threads = 0;
  EngineOptions engine;

  void add_to(CLI::App& app);
};

struct OpenModel {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
  std::unique_ptr<Engine> engine;
};

// On a terminal a line on stderr says how far the loading is, and is gone at its end. The flags' own `on_progress` is called all the same.
Result<OpenModel> open_model(const EngineFlags& flags);

}  // namespace espalier
