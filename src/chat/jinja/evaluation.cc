#include "chat/jinja/evaluation.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/printing.h"

namespace espalier::jinja {

// Counts nesting while it lives.
class Evaluation::Depth {
 public:
  explicit Depth(Evaluation& evaluation) : evaluation_(evaluation) {
    if (++evaluation_.depth_ > evaluation_.limits_.max_depth) {
      --evaluation_.depth_;
      throw TemplateError{Failure::kLimit, espalier::format("nested deeper than {} levels while rendering", evaluation_.limits_.max_depth)};
    }
  }
  ~Depth() { --evaluation_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Evaluation& evaluation_;
};

MarkedText Evaluation::run() {
  root_ = scope_ = open_scope(nullptr);
  execute(program_.body);
  return root_output_.take();
}

void Evaluation::step() {
  if (++steps_ > limits_.max_steps) throw TemplateError{Failure::kLimit, espalier::format("took more than {} steps", limits_.max_steps)};
}

Text Evaluation::to_text_of(const Value& value) { return to_text(arena_, value); }

// ---- scopes

Scope* Evaluation::open_scope(Scope* outer) { return arena_.create(Scope{outer, nullptr}); }

Value Evaluation::lookup(Symbol symbol) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
    for (const Variable* variable = scope->variables; variable != nullptr; variable = variable->next) {
      if (variable->symbol == symbol) return variable->value;
    }
  }
  const std::string_view name = program_.symbols[symbol];
  for (const NamedInput& input : inputs_) {
    if (input.name == name) return input.value;
  }
  if (const Builtin* global = find_global(name)) return Value::object(global);
  return Value::undefined(Absence::kName, name);
}

void Evaluation::assign(Symbol symbol, const Value& value) {
  for (Variable* variable = scope_->variables; variable != nullptr; variable = variable->next) {
    if (variable->symbol == symbol) {
      variable->value = value;
      return;
    }
  }
  scope_->variables = arena_.create(Variable{symbol, value, scope_->variables});
}

void Evaluation::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const std::span<const Value> items = iterate(value);
    if (items.size() != target.parts.size()) {
      fail("{} values to unpack (expected {}, got {})", items.size() < target.parts.size() ? "not enough" : "too many", target.parts.size(),
           items.size());
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) return assign(target.symbol, value);
  const Value object = lookup(target.symbol);
  if (!object.is(Kind::kNamespace)) fail("cannot assign attribute on non-namespace object");
  NamespaceObject& space = *object.as_namespace();
  for (Entry& entry : space.entries.first(space.count)) {
    if (entry.key.bytes() == target.attribute) {
      entry.value = value;
      return;
    }
  }
  if (space.count == space.entries.size()) {
    const std::span<Entry> larger = arena_.array<Entry>(std::max<size_t>(8, 2 * space.count));
    std::copy(space.entries.begin(), space.entries.end(), larger.begin());
    space.entries = larger;
  }
  space.entries[space.count++] = {Value::string(target.attribute, Origin::kTemplate), value};
}

// ---- values

Value Evaluation::make_list(const std::vector<Value>& items, SequenceKind kind) {
  const std::span<Value> kept = arena_.array<Value>(items.size());
  std::copy(items.begin(), items.end(), kept.begin());
  return Value::sequence(kept, kind);
}

Value Evaluation::make_dict(const std::vector<Entry>& entries, Origin origin) {
  const std::span<Entry> kept = arena_.array<Entry>(entries.size());
  size_t count = 0;
  for (const Entry& entry : entries) {  // a later key overwrites an earlier one in its place
    const auto same =
        std::find_if(kept.begin(), kept.begin() + static_cast<ptrdiff_t>(count), [&](const Entry& e) { return equals(e.key, entry.key); });
    if (same != kept.begin() + static_cast<ptrdiff_t>(count)) {
      same->value = entry.value;
    } else {
      kept[count++] = entry;
    }
  }
  return Value::dict(kept.first(count), origin);
}

std::span<const Value> Evaluation::iterate(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return {};
    case Kind::kSequence: return value.items();
    case Kind::kString: {
      const std::vector<size_t> offsets = code_point_offsets(value.bytes());
      const std::span<Value> characters = arena_.array<Value>(offsets.size() - 1);
      for (size_t i = 0; i + 1 < offsets.size(); ++i)
        characters[i] = Value::string(slice(arena_, value.text(), offsets[i], offsets[i + 1]));
      return characters;
    }
    case Kind::kDict: {
      const std::span<Value> keys = arena_.array<Value>(value.entries().size());
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = value.entries()[i].key;
      return keys;
    }
    default: fail("'{}' object is not iterable", type_name(value));
  }
}

bool Evaluation::contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) fail("'in <string>' requires string as left operand, not {}", type_name(item));
    return container.bytes().find(item.bytes()) != std::string_view::npos;
  }
  if (container.is(Kind::kDict)) return find_key(container.entries(), item) != nullptr;
  if (!container.is(Kind::kSequence) && !container.is_undefined()) fail("argument of type '{}' is not iterable", type_name(container));
  for (const Value& value : iterate(container)) {
    step();
    if (equals(value, item)) return true;
  }
  return false;
}

namespace {

Value loop_attribute(Evaluation& evaluation, const Value& object, std::string_view name) {
  LoopState& loop = *object.as_loop();
  const auto number = [](size_t n) { return Value::integer(static_cast<Integer>(n)); };
  if (name == "index") return number(loop.index + 1);
  if (name == "index0") return number(loop.index);
  if (name == "revindex") return number(loop.items.size() - loop.index);
  if (name == "revindex0") return number(loop.items.size() - loop.index - 1);
  if (name == "first") return Value::boolean(loop.index == 0);
  if (name == "last") return Value::boolean(loop.index + 1 == loop.items.size());
  if (name == "length") return number(loop.items.size());
  if (name == "depth") return Value::integer(loop.depth + 1);
  if (name == "depth0") return Value::integer(loop.depth);
  if (name == "previtem")
    return loop.index > 0 ? loop.items[loop.index - 1] : Value::undefined(Absence::kName, "there is no previous item");
  if (name == "nextitem")
    return loop.index + 1 < loop.items.size() ? loop.items[loop.index + 1] : Value::undefined(Absence::kName, "there is no next item");
  static constexpr Builtin kCycle{"cycle", "*", [](Evaluation&, const Value& self, const Arguments& arguments) {
                                    if (arguments.positional.empty()) fail("no items for cycling given");
                                    return arguments.positional[self.as_loop()->index % arguments.positional.size()];
                                  }};
  static constexpr Builtin kChanged{"changed", "*", [](Evaluation& e, const Value& self, const Arguments& arguments) {
                                      LoopState& state = *self.as_loop();
                                      const bool same =
                                          state.changed_before &&
                                          std::equal(arguments.positional.begin(), arguments.positional.end(), state.last_changed.begin(),
                                                     state.last_changed.end(), [](const Value& a, const Value& b) { return equals(a, b); });
                                      state.changed_before = true;
                                      state.last_changed = e.make_list({arguments.positional.begin(), arguments.positional.end()}).items();
                                      return Value::boolean(!same);
                                    }};
  for (const Builtin* method : {&kCycle, &kChanged}) {
    if (name == method->name) return Value::object(evaluation.arena().create(BoundMethod{object, method}));
  }
  return Value::undefined(Absence::kAttribute, name, type_phrase(object));
}

}  // namespace

Value Evaluation::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) fail_undefined(object);
  if (name.starts_with("__") || (object.is(Kind::kSequence) && object.sequence_kind() == SequenceKind::kList && is_mutating_method(name)) ||
      (object.is(Kind::kDict) && is_mutating_method(name) && find_key(object.entries(), name) == nullptr)) {
    return Value::undefined(Absence::kUnsafe, name, type_name(object));
  }
  const Builtin* method = nullptr;
  switch (object.kind()) {
    case Kind::kString: method = find_string_method(name); break;
    case Kind::kSequence: method = find_sequence_method(name); break;
    case Kind::kDict: method = find_dict_method(name); break;
    case Kind::kLoop: return loop_attribute(*this, object, name);
    case Kind::kNamespace: {
      const NamespaceObject& space = *object.as_namespace();
      const Value* found = find_key(space.entries.first(space.count), name);
      return found != nullptr ? *found : Value::undefined(Absence::kAttribute, name, type_phrase(object));
    }
    case Kind::kMacro:
      if (name == "name") return Value::string(object.as_macro()->statement->name, Origin::kTemplate);
      break;
    case Kind::kCycler: {
      static constexpr Builtin kNext{"next", "", [](Evaluation&, const Value& self, const Arguments&) {
                                       CyclerState& cycler = *self.as_cycler();
                                       return cycler.items[cycler.position++ % cycler.items.size()];
                                     }};
      if (name == "next") method = &kNext;
      break;
    }
    default: break;
  }
  if (method != nullptr) return Value::object(arena_.create(BoundMethod{object, method}));
  if (object.is(Kind::kDict)) {
    if (const Value* found = find_key(object.entries(), name)) return *found;
  }
  return Value::undefined(Absence::kAttribute, name, type_phrase(object));
}

Value Evaluation::element(const Value& object, const Value& index) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is(Kind::kDict)) {
    if (const Value* found = find_key(object.entries(), index)) return *found;
  } else if (index.is_integral() && object.is(Kind::kSequence) && object.sequence_kind() <= SequenceKind::kTuple) {
    const auto size = static_cast<Integer>(object.items().size());
    const Integer at = index.as_integer() < 0 ? index.as_integer() + size : index.as_integer();
    if (at >= 0 && at < size) return object.items()[static_cast<size_t>(at)];
  } else if (index.is_integral() && object.is_string()) {
    const std::vector<size_t> offsets = code_point_offsets(object.bytes());
    const auto size = static_cast<Integer>(offsets.size() - 1);
    const Integer at = index.as_integer() < 0 ? index.as_integer() + size : index.as_integer();
    if (at >= 0 && at < size)
      return Value::string(slice(arena_, object.text(), offsets[static_cast<size_t>(at)], offsets[static_cast<size_t>(at) + 1]));
  }
  if (index.is_string()) return attribute(object, arena_.copy(index.bytes()));
  TextBuilder name(arena_);
  append_repr(name, index);
  return Value::undefined(Absence::kElement, name.finish().bytes, type_phrase(object));
}

// ---- expressions

Value Evaluation::evaluate(const Expression& expression) {
  const Depth depth(*this);
  step();
  try {
    return evaluate_inner(expression);
  } catch (TemplateError& error) {
    if (error.line == 0) error.line = expression.line;
    throw;
  }
}

Value Evaluation::evaluate_inner(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::kLiteral: return static_cast<const Literal&>(expression).value;
    case ExpressionKind::kName: return lookup(static_cast<const Name&>(expression).symbol);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple: {
      const auto& items = static_cast<const Items&>(expression).items;
      const std::span<Value> values = arena_.array<Value>(items.size());
      for (size_t i = 0; i < items.size(); ++i) values[i] = evaluate(*items[i]);
      return Value::sequence(values, expression.kind == ExpressionKind::kList ? SequenceKind::kList : SequenceKind::kTuple);
    }
    case ExpressionKind::kDict: {
      std::vector<Entry> entries;
      for (const auto& [key, value] : static_cast<const DictLiteral&>(expression).entries) {
        Entry entry;
        entry.key = evaluate(*key);
        entry.value = evaluate(*value);
        entries.push_back(entry);
      }
      return make_dict(entries);
    }
    case ExpressionKind::kAttribute: return evaluate_attribute(static_cast<const Attribute&>(expression));
    case ExpressionKind::kItem: {
      const auto& item = static_cast<const Item&>(expression);
      const Value object = evaluate(*item.object);
      return element(object, evaluate(*item.index));
    }
    case ExpressionKind::kSlice: return evaluate_slice(static_cast<const Slice&>(expression));
    case ExpressionKind::kCall: return evaluate_call(static_cast<const Call&>(expression));
    case ExpressionKind::kFilter:
    case ExpressionKind::kTest: return evaluate_builtin(static_cast<const BuiltinUse&>(expression));
    case ExpressionKind::kNot: return Value::boolean(!is_truthy(evaluate(*static_cast<const Unary&>(expression).operand)));
    case ExpressionKind::kNegate:
    case ExpressionKind::kPlus: {
      const Value operand = evaluate(*static_cast<const Unary&>(expression).operand);
      const bool negate = expression.kind == ExpressionKind::kNegate;
      if (operand.is_undefined()) fail_undefined(operand);
      if (operand.is_integral()) return Value::integer(negate ? -operand.as_integer() : operand.as_integer(), operand.origin());
      if (operand.is(Kind::kFloat)) return Value::floating(negate ? -operand.as_float() : operand.as_float(), operand.origin());
      fail("bad operand type for unary {}: '{}'", negate ? "-" : "+", type_name(operand));
    }
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr: {
      const auto& items = static_cast<const Items&>(expression).items;
      const Value left = evaluate(*items[0]);
      return is_truthy(left) == (expression.kind == ExpressionKind::kOr) ? left : evaluate(*items[1]);
    }
    case ExpressionKind::kBinary: {
      const auto& binary = static_cast<const Binary&>(expression);
      const Value left = evaluate(*binary.left);
      return evaluate_binary(binary.op, left, evaluate(*binary.right));
    }
    case ExpressionKind::kConcat: {
      TextBuilder text(arena_);
      for (const ExpressionPtr& item : static_cast<const Items&>(expression).items) append_str(text, evaluate(*item));
      return Value::string(text.finish());
    }
    case ExpressionKind::kCompare: return evaluate_compare(static_cast<const Compare&>(expression));
    case ExpressionKind::kConditional: {
      const auto& conditional = static_cast<const Conditional&>(expression);
      if (is_truthy(evaluate(*conditional.condition))) return evaluate(*conditional.then_value);
      if (conditional.else_value != nullptr) return evaluate(*conditional.else_value);
      return Value::undefined(Absence::kName, "the inline if-expression evaluated to false and no else section was defined.");
    }
  }
  fail("unknown expression");
}

Value Evaluation::evaluate_attribute(const Attribute& expression) { return attribute(evaluate(*expression.object), expression.name); }

Value Evaluation::evaluate_slice(const Slice& expression) {
  const Value object = evaluate(*expression.object);
  const auto bound = [&](const ExpressionPtr& part) -> std::optional<Integer> {
    if (part == nullptr) return std::nullopt;
    const Value value = evaluate(*part);
    if (value.is(Kind::kNone)) return std::nullopt;
    if (!value.is_integral()) fail("slice indices must be integers or None or have an __index__ method");
    return value.as_integer();
  };
  const std::optional<Integer> start = bound(expression.start), stop = bound(expression.stop);
  const Integer step_by = bound(expression.step).value_or(1);
  if (step_by == 0) fail("slice step cannot be zero");
  if (object.is_undefined()) fail_undefined(object);
  const bool text = object.is_string();
  if (!text && !(object.is(Kind::kSequence) && object.sequence_kind() <= SequenceKind::kTuple))
    fail("'{}' object is not subscriptable", type_name(object));
  std::vector<size_t> offsets;
  if (text) offsets = code_point_offsets(object.bytes());
  const auto size = static_cast<Integer>(text ? offsets.size() - 1 : object.items().size());
  const Integer stride = std::clamp<Integer>(step_by, -size - 1, size + 1);  // keeps the sums below within range
  // Python's slice.indices.
  const Integer low = step_by > 0 ? 0 : -1, high = step_by > 0 ? size : size - 1;
  const auto clamp = [&](std::optional<Integer> value, Integer missing) {
    if (!value.has_value()) return missing;
    return std::clamp(*value < 0 ? *value + size : *value, low, high);
  };
  const Integer begin = clamp(start, step_by > 0 ? low : high), end = clamp(stop, step_by > 0 ? high : low);
  if (text && step_by == 1) {
    if (begin >= end) return Value::string(Text{{}, object.origin(), nullptr});
    return Value::string(slice(arena_, object.text(), offsets[static_cast<size_t>(begin)], offsets[static_cast<size_t>(end)]));
  }
  TextBuilder built(arena_);
  std::vector<Value> items;
  for (Integer i = begin; step_by > 0 ? i < end : i > end; i += stride) {
    step();
    const auto at = static_cast<size_t>(i);
    if (text) {
      built.append(slice(arena_, object.text(), offsets[at], offsets[at + 1]));
    } else {
      items.push_back(object.items()[at]);
    }
  }
  return text ? Value::string(built.finish()) : make_list(items, object.sequence_kind());
}

Evaluation::EvaluatedArguments Evaluation::evaluate_arguments(const CallArguments& arguments) {
  EvaluatedArguments evaluated;
  for (const ExpressionPtr& argument : arguments.positional) evaluated.positional.push_back(evaluate(*argument));
  for (const auto& [name, argument] : arguments.named) evaluated.named.push_back({name, evaluate(*argument)});
  return evaluated;
}

Value Evaluation::evaluate_call(const Call& expression) {
  const Value callee = evaluate(*expression.callee);
  const EvaluatedArguments arguments = evaluate_arguments(expression.arguments);
  return call(callee, arguments.view());
}

Value Evaluation::call(const Value& callee, const Arguments& arguments) {
  switch (callee.kind()) {
    case Kind::kMethod: return apply_builtin(*this, *callee.as_method()->method, callee.as_method()->self, arguments);
    case Kind::kFunction: return apply_builtin(*this, *callee.as_function(), Value(), arguments);
    case Kind::kMacro: return call_macro(*callee.as_macro(), arguments, Value());
    case Kind::kJoiner: {
      JoinerState& joiner = *callee.as_joiner();
      if (joiner.used) return Value::string(joiner.separator);
      joiner.used = true;
      return Value::string("", Origin::kTemplate);
    }
    case Kind::kLoop: {
      LoopState& loop = *callee.as_loop();
      if (!loop.statement->recursive) fail("The loop must have the 'recursive' marker to be called recursively.");
      if (arguments.positional.size() != 1) fail("a recursive loop takes one argument");
      TextBuilder built(arena_);
      TextBuilder* const outer = std::exchange(output_, &built);
      Scope* const around = scope_;
      run_loop(*loop.statement, loop.scope, arguments.positional[0], loop.depth + 1);
      scope_ = around;
      output_ = outer;
      return Value::string(built.finish());
    }
    case Kind::kUndefined: fail_undefined(callee);
    default: fail("'{}' object is not callable", type_name(callee));
  }
}

Value Evaluation::evaluate_builtin(const BuiltinUse& expression, const Value* block_text) {
  const Value subject = expression.subject != nullptr ? evaluate_builtin_subject(expression, block_text) : *block_text;
  const EvaluatedArguments arguments = evaluate_arguments(expression.arguments);
  const Value result = apply_builtin(*this, *expression.builtin, subject, arguments.view());
  return expression.negated ? Value::boolean(!is_truthy(result)) : result;
}

// In the chain of a filter block the innermost filter has no subject: it takes the block's text.
Value Evaluation::evaluate_builtin_subject(const BuiltinUse& expression, const Value* block_text) {
  if (block_text != nullptr && expression.subject->kind == ExpressionKind::kFilter) {
    return evaluate_builtin(static_cast<const BuiltinUse&>(*expression.subject), block_text);
  }
  return evaluate(*expression.subject);
}

Value Evaluation::evaluate_compare(const Compare& expression) {
  Value left = evaluate(*expression.first);
  for (const auto& [comparison, operand] : expression.rest) {
    const Value right = evaluate(*operand);
    bool holds = false;
    switch (comparison) {
      case Comparison::kEqual: holds = equals(left, right); break;
      case Comparison::kNotEqual: holds = !equals(left, right); break;
      case Comparison::kLess: holds = compare(left, right, "<") == -1; break;
      case Comparison::kLessEqual: holds = compare(left, right, "<=") <= 0; break;
      case Comparison::kGreater: holds = compare(left, right, ">") == 1; break;
      case Comparison::kGreaterEqual: {
        const int order = compare(left, right, ">=");
        holds = order == 0 || order == 1;
        break;
      }
      case Comparison::kIn: holds = contains(right, left); break;
      case Comparison::kNotIn: holds = !contains(right, left); break;
    }
    if (!holds) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

namespace {

double as_double(const Value& value) { return value.is(Kind::kFloat) ? value.as_float() : static_cast<double>(value.as_integer()); }

[[noreturn]] void fail_operands(std::string_view sign, const Value& a, const Value& b) {
  fail("unsupported operand type(s) for {}: '{}' and '{}'", sign, type_name(a), type_name(b));
}

[[noreturn]] void fail_too_large() { throw TemplateError{Failure::kLimit, "an integer exceeds 128 bits"}; }

Integer floor_divide(Integer a, Integer b) {
  if (b == 0) fail("integer division or modulo by zero");
  const Integer quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

Integer power(Integer base, Integer exponent) {
  Integer result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) fail_too_large();
    if (result == 0 || (result == 1 && base == 1)) break;
  }
  return result;
}

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

}  // namespace

Value Evaluation::add(const Value& a, const Value& b) {
  if (a.is_string()) {
    if (!b.is_string()) fail("can only concatenate str (not \"{}\") to str", type_name(b));
    return Value::string(concat(arena_, a.text(), b.text()));
  }
  if (a.is(Kind::kSequence) && b.is(Kind::kSequence) && a.sequence_kind() == b.sequence_kind() &&
      a.sequence_kind() <= SequenceKind::kTuple) {
    const std::span<Value> items = arena_.array<Value>(a.items().size() + b.items().size());
    std::copy(b.items().begin(), b.items().end(), std::copy(a.items().begin(), a.items().end(), items.begin()));
    return Value::sequence(items, a.sequence_kind());
  }
  fail_operands("+", a, b);
}

Value Evaluation::repeat(const Value& value, Integer times) {
  const size_t length = value.is_string() ? value.bytes().size() : value.items().size();
  times = std::max<Integer>(times, 0);
  if (length != 0 && times > static_cast<Integer>(limits_.max_memory_bytes / length)) arena_.account(limits_.max_memory_bytes + 1);
  if (value.is_string()) {
    TextBuilder text(arena_);
    for (Integer i = 0; i < times && length != 0; ++i) text.append(value.text());
    return Value::string(text.finish());
  }
  const std::span<Value> items = arena_.array<Value>(length * static_cast<size_t>(times));
  for (size_t i = 0; i < items.size(); ++i) items[i] = value.items()[i % length];
  return Value::sequence(items, value.sequence_kind());
}

Value Evaluation::evaluate_binary(BinaryOperator op, const Value& a, const Value& b) {
  if (a.is_undefined()) fail_undefined(a);
  if (op == BinaryOperator::kModulo && a.is_string()) return Value::string(percent_format(*this, a.text(), b));
  if (b.is_undefined()) fail_undefined(b);
  const Origin origin = either(a.origin(), b.origin());
  const bool numbers = a.is_number() && b.is_number();
  if (!numbers) {
    if (op == BinaryOperator::kAdd) return add(a, b);
    const auto repeatable = [](const Value& v) {
      return v.is_string() || (v.is(Kind::kSequence) && v.sequence_kind() <= SequenceKind::kTuple);
    };
    if (op == BinaryOperator::kMultiply && repeatable(a) && b.is_integral()) return repeat(a, b.as_integer());
    if (op == BinaryOperator::kMultiply && repeatable(b) && a.is_integral()) return repeat(b, a.as_integer());
    fail_operands(kSigns[static_cast<size_t>(op)], a, b);
  }
  const bool integers = a.is_integral() && b.is_integral();
  if (integers && op != BinaryOperator::kDivide && !(op == BinaryOperator::kPower && b.as_integer() < 0)) {
    const Integer x = a.as_integer(), y = b.as_integer();
    Integer result = 0;
    bool overflow = false;
    switch (op) {
      case BinaryOperator::kAdd: overflow = __builtin_add_overflow(x, y, &result); break;
      case BinaryOperator::kSubtract: overflow = __builtin_sub_overflow(x, y, &result); break;
      case BinaryOperator::kMultiply: overflow = __builtin_mul_overflow(x, y, &result); break;
      case BinaryOperator::kFloorDivide: result = floor_divide(x, y); break;
      case BinaryOperator::kModulo: result = x - y * floor_divide(x, y); break;
      case BinaryOperator::kPower: result = power(x, y); break;
      case BinaryOperator::kDivide: break;
    }
    if (overflow) fail_too_large();
    return Value::integer(result, origin);
  }
  const double x = as_double(a), y = as_double(b);
  const auto divisor = [&](std::string_view what) {
    if (y == 0) fail("{}", what);
    return y;
  };
  switch (op) {
    case BinaryOperator::kAdd: return Value::floating(x + y, origin);
    case BinaryOperator::kSubtract: return Value::floating(x - y, origin);
    case BinaryOperator::kMultiply: return Value::floating(x * y, origin);
    case BinaryOperator::kDivide: return Value::floating(x / divisor(integers ? "division by zero" : "float division by zero"), origin);
    case BinaryOperator::kFloorDivide: return Value::floating(std::floor(x / divisor("float floor division by zero")), origin);
    case BinaryOperator::kModulo: return Value::floating(x - y * std::floor(x / divisor("float modulo")), origin);
    case BinaryOperator::kPower: return Value::floating(std::pow(x, y), origin);
  }
  fail("unknown operator");
}

// ---- macros

Value Evaluation::call_macro(const Macro& macro, const Arguments& arguments, const Value& caller) {
  const Depth depth(*this);
  const MacroStatement& statement = *macro.statement;
  Scope* const calling = scope_;
  Scope* const inner = open_scope(macro.scope);
  scope_ = inner;
  std::vector<bool> used(arguments.named.size(), false);
  for (size_t i = 0; i < statement.parameters.size(); ++i) {
    const auto& parameter = statement.parameters[i];
    Value value;
    if (i < arguments.positional.size()) value = arguments.positional[i];
    for (size_t j = 0; j < arguments.named.size(); ++j) {
      if (arguments.named[j].name != parameter.name) continue;
      if (i < arguments.positional.size()) fail("macro '{}' got multiple values for argument '{}'", statement.name, parameter.name);
      value = arguments.named[j].value;
      used[j] = true;
    }
    if (value.is_missing()) {
      value =
          parameter.default_value != nullptr ? evaluate(*parameter.default_value) : Value::undefined(Absence::kParameter, parameter.name);
    }
    assign(parameter.symbol, value);
  }
  const size_t taken = std::min(arguments.positional.size(), statement.parameters.size());
  if (statement.takes_varargs) {
    assign(kSymbolVarargs,
           make_list({arguments.positional.begin() + static_cast<ptrdiff_t>(taken), arguments.positional.end()}, SequenceKind::kTuple));
  } else if (arguments.positional.size() > taken) {
    fail("macro '{}' takes not more than {} argument(s)", statement.name, statement.parameters.size());
  }
  std::vector<Entry> extra;
  Value given_caller = caller;
  for (size_t j = 0; j < arguments.named.size(); ++j) {
    if (used[j]) continue;
    if (arguments.named[j].name == "caller" && statement.takes_caller) {
      given_caller = arguments.named[j].value;
    } else if (statement.takes_kwargs) {
      extra.push_back({Value::string(arguments.named[j].name, Origin::kTemplate), arguments.named[j].value});
    } else {
      fail("macro '{}' takes no keyword argument '{}'", statement.name, arguments.named[j].name);
    }
  }
  if (statement.takes_kwargs) assign(kSymbolKwargs, make_dict(extra));
  if (statement.takes_caller)
    assign(kSymbolCaller, given_caller.is_missing() ? Value::undefined(Absence::kName, "No caller defined") : given_caller);

  const Text text = capture(statement.body);
  scope_ = calling;
  return Value::string(text);
}

// ---- statements

Text Evaluation::capture(const Body& body) {
  TextBuilder built(arena_);
  TextBuilder* const outer = std::exchange(output_, &built);
  execute(body);
  output_ = outer;
  return built.finish();
}

void Evaluation::print(const Value& value) {
  append_str(*output_, value);
  if (output_->size() > limits_.max_output_bytes)
    throw TemplateError{Failure::kLimit, espalier::format("rendered more than {} bytes", limits_.max_output_bytes)};
}

Evaluation::Flow Evaluation::execute(const Body& body) {
  const Depth depth(*this);
  for (const StatementPtr& statement : body) {
    step();
    try {
      if (const Flow flow = execute(*statement); flow != Flow::kNormal) return flow;
    } catch (TemplateError& error) {
      if (error.line == 0) error.line = statement->line;
      throw;
    }
  }
  return Flow::kNormal;
}

Evaluation::Flow Evaluation::execute(const Statement& statement) {
  const auto in_scope = [&](auto&& work) {
    Scope* const outer = scope_;
    scope_ = open_scope(outer);
    auto result = work();
    scope_ = outer;
    return result;
  };
  switch (statement.kind) {
    case StatementKind::kText:
      print(Value::string(static_cast<const TextStatement&>(statement).text, Origin::kTemplate));
      return Flow::kNormal;
    case StatementKind::kPrint: print(evaluate(*static_cast<const Print&>(statement).value)); return Flow::kNormal;
    case StatementKind::kIf: {
      const auto& node = static_cast<const If&>(statement);
      for (const auto& [condition, body] : node.branches) {
        if (is_truthy(evaluate(*condition))) return execute(body);
      }
      return execute(node.otherwise);
    }
    case StatementKind::kFor: return execute_for(static_cast<const For&>(statement));
    case StatementKind::kSet: {
      const auto& node = static_cast<const Set&>(statement);
      assign(node.target, evaluate(*node.value));
      return Flow::kNormal;
    }
    case StatementKind::kSetBlock: {
      const auto& node = static_cast<const SetBlock&>(statement);
      Value value = in_scope([&] { return Value::string(capture(node.body)); });
      if (node.filter != nullptr) value = evaluate_builtin(static_cast<const BuiltinUse&>(*node.filter), &value);
      assign(node.target, value);
      return Flow::kNormal;
    }
    case StatementKind::kMacro: {
      const auto& node = static_cast<const MacroStatement&>(statement);
      assign(node.symbol, Value::object(static_cast<const Macro*>(arena_.create(Macro{&node, scope_}))));
      return Flow::kNormal;
    }
    case StatementKind::kCallBlock: {
      const auto& node = static_cast<const CallBlock&>(statement);
      const auto& call_expression = static_cast<const Call&>(*node.call);
      const Value callee = evaluate(*call_expression.callee);
      if (!callee.is(Kind::kMacro)) fail("a call block needs a macro, not '{}'", type_name(callee));
      const EvaluatedArguments arguments = evaluate_arguments(call_expression.arguments);
      const Value caller = Value::object(static_cast<const Macro*>(arena_.create(Macro{node.caller.get(), scope_})));
      print(call_macro(*callee.as_macro(), arguments.view(), caller));
      return Flow::kNormal;
    }
    case StatementKind::kFilterBlock: {
      const auto& node = static_cast<const FilterBlock&>(statement);
      const Value text = in_scope([&] { return Value::string(capture(node.body)); });
      print(evaluate_builtin(static_cast<const BuiltinUse&>(*node.filter), &text));
      return Flow::kNormal;
    }
    case StatementKind::kWith: {
      const auto& node = static_cast<const With&>(statement);
      std::vector<Value> values;
      for (const auto& [target, value] : node.assignments) values.push_back(evaluate(*value));  // all see the outer scope
      return in_scope([&] {
        for (size_t i = 0; i < values.size(); ++i) assign(node.assignments[i].first, values[i]);
        return execute(node.body);
      });
    }
    case StatementKind::kBreak: return Flow::kBreak;
    case StatementKind::kContinue: return Flow::kContinue;
    case StatementKind::kGroup: return execute(static_cast<const Group&>(statement).body);
  }
  return Flow::kNormal;
}

Evaluation::Flow Evaluation::execute_for(const For& statement) {
  Scope* const around = scope_;
  run_loop(statement, around, evaluate(*statement.iterable), 0);
  scope_ = around;
  return Flow::kNormal;
}

void Evaluation::run_loop(const For& statement, Scope* around, const Value& iterable, int64_t depth) {
  std::span<const Value> items = iterate(iterable);
  if (statement.condition != nullptr) {
    std::vector<Value> kept;
    for (const Value& item : items) {
      step();
      scope_ = open_scope(around);
      assign(statement.target, item);
      if (is_truthy(evaluate(*statement.condition))) kept.push_back(item);
    }
    items = make_list(kept).items();
  }
  LoopState* const loop = arena_.create(LoopState{&statement, around, items, 0, depth, {}, false});
  for (; loop->index < items.size(); ++loop->index) {
    step();
    scope_ = open_scope(around);
    assign(kSymbolLoop, Value::object(loop));
    assign(statement.target, items[loop->index]);
    if (execute(statement.body) == Flow::kBreak) break;
  }
  if (items.empty()) {
    scope_ = open_scope(around);
    execute(statement.otherwise);
  }
}

}  // namespace espalier::jinja
