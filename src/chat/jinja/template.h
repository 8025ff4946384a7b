// The template engine's door: parse once, render often. Immutable after parsing, usable from every thread. Errors are values here.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "chat/jinja/evaluation.h"
#include "tokenizer/marked_text.h"

namespace espalier::jinja {

struct TemplateInput {
  std::string_view name;
  const Json* value;               // lives until the rendering ends
  Origin origin = Origin::kInput;  // of every byte in it
};

class Template {
 public:
  // `name` names the template in errors: "chat_template.jinja:12: ...". kUnsupported: a construct this engine lacks, or no template at all.
  static Result<Template> parse(std::string_view source, std::string_view name);

  // kInvalidArgument: the template raised (the message is its own) or met a value it cannot handle; kResourceExhausted: a limit was hit.
  Result<MarkedText> render(std::span<const TemplateInput> inputs, const RenderLimits& limits = {},
                            std::chrono::system_clock::time_point now = std::chrono::system_clock::now()) const;

 private:
  Template(Program program, std::string name) : program_(std::make_shared<const Program>(std::move(program))), name_(std::move(name)) {}
  std::shared_ptr<const Program> program_;
  std::string name_;
};

}  // namespace espalier::jinja
