// One rendering: walks the tree of a template with the scopes, limits and memory it needs. Failures unwind as TemplateError. Used by one
// thread; everything it makes lives in its arena until it ends.
#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include "chat/jinja/ast.h"
#include "chat/jinja/builtin.h"
#include "chat/jinja/value.h"
#include "tokenizer/marked_text.h"

namespace espalier::jinja {

struct RenderLimits {
  size_t max_steps = size_t{20} << 20;          // expressions and statements evaluated
  int max_depth = 1200;                          // nested expressions, statements and macro calls together
  size_t max_output_bytes = size_t{64} << 20;
  size_t max_memory_bytes = size_t{512} << 20;   // everything computed on the way
};

struct NamedInput {
  std::string_view name;
  Value value;
};

// A variable of a scope; newest first, so a later assignment hides an earlier one until it is found and overwritten.
struct Variable {
  Symbol symbol;
  Value value;
  Variable* next;
};
struct Scope {
  Scope* outer = nullptr;
  Variable* variables = nullptr;
};

// A macro or the body of a call block, with the scope it was written in.
struct Macro {
  const MacroStatement* statement = nullptr;
  Scope* scope = nullptr;
};

struct LoopState {
  const For* statement = nullptr;
  Scope* scope = nullptr;        // around the loop
  std::span<const Value> items;
  size_t index = 0;
  int64_t depth = 0;             // of recursive loops
  std::span<const Value> last_changed;
  bool changed_before = false;
};

struct CyclerState {
  std::span<const Value> items;
  size_t position = 0;
};
struct JoinerState {
  Text separator;
  bool used = false;
};

class Evaluation {
 public:
  Evaluation(const Program& program, std::span<const NamedInput> inputs, const RenderLimits& limits,
             std::chrono::system_clock::time_point now)
      : program_(program),
        inputs_(inputs),
        limits_(limits),
        arena_(limits.max_memory_bytes),
        now_(now),
        output_(&root_output_),
        root_output_(arena_) {}

  MarkedText run();

  // For filters, tests and methods.
  Arena& arena() { return arena_; }
  std::chrono::system_clock::time_point now() const { return now_; }
  void step();  // counts work done in a loop of a builtin against the limit
  Value call(const Value& callee, const Arguments& arguments);
  Value attribute(const Value& object, std::string_view name);
  Value element(const Value& object, const Value& index);
  // The values a loop over `value` sees: characters of a string, keys of a dictionary. Fails for what cannot be iterated.
  std::span<const Value> iterate(const Value& value);
  Value make_list(const std::vector<Value>& items, SequenceKind kind = SequenceKind::kList);
  Value make_dict(const std::vector<Entry>& entries, Origin origin = Origin::kTemplate);
  Text printed(const Value& value) { return to_text_of(value); }
  bool contains(const Value& container, const Value& item);

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  class Depth;

  Text to_text_of(const Value& value);
  Value lookup(Symbol symbol);
  void assign(Symbol symbol, const Value& value);
  void assign(const Target& target, const Value& value);
  Scope* open_scope(Scope* outer);

  Value evaluate(const Expression& expression);
  Value evaluate_inner(const Expression& expression);
  Value evaluate_attribute(const Attribute& expression);
  Value evaluate_slice(const Slice& expression);
  Value evaluate_call(const Call& expression);
  Value evaluate_builtin(const BuiltinUse& expression, const Value* block_text = nullptr);
  Value evaluate_builtin_subject(const BuiltinUse& expression, const Value* block_text);
  Value evaluate_compare(const Compare& expression);
  Value evaluate_binary(BinaryOperator op, const Value& a, const Value& b);
  Value add(const Value& a, const Value& b);
  Value repeat(const Value& value, Integer times);

  struct EvaluatedArguments {
    std::vector<Value> positional;
    std::vector<NamedValue> named;
    Arguments view() const { return {positional, named}; }
  };
  EvaluatedArguments evaluate_arguments(const CallArguments& arguments);
  Value call_macro(const Macro& macro, const Arguments& arguments, const Value& caller);

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow execute_for(const For& statement);
  void run_loop(const For& statement, Scope* around, const Value& iterable, int64_t depth);
  Text capture(const Body& body);
  void print(const Value& value);

  const Program& program_;
  std::span<const NamedInput> inputs_;
  const RenderLimits& limits_;
  Arena arena_;
  std::chrono::system_clock::time_point now_;
  TextBuilder* output_;
  TextBuilder root_output_;
  Scope* root_ = nullptr;
  Scope* scope_ = nullptr;
  size_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace espalier::jinja
