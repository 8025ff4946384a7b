// The parsed template: a tree of expressions and statements. Immutable after parsing, shared by all renderings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chat/jinja/value.h"

namespace espalier::jinja {

using Symbol = uint32_t;  // index into the template's table of variable names
struct Builtin;

enum class ExpressionKind : uint8_t {
  kLiteral, kName, kList, kTuple, kDict, kAttribute, kItem, kSlice, kCall, kFilter, kTest, kNot, kNegate, kPlus, kAnd, kOr, kBinary,
  kConcat, kCompare, kConditional,
};

enum class BinaryOperator : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

struct Expression {
  Expression(ExpressionKind k, uint32_t l) : kind(k), line(l) {}
  virtual ~Expression() = default;
  ExpressionKind kind;
  uint32_t line;
};
using ExpressionPtr = std::unique_ptr<Expression>;

struct Literal : Expression {
  using Expression::Expression;
  std::string text;  // backs `value` when it is a string or digits
  Value value;
};
struct Name : Expression {
  using Expression::Expression;
  Symbol symbol = 0;
};
struct Items : Expression {  // kList, kTuple, kAnd, kOr (two items), kConcat
  using Expression::Expression;
  std::vector<ExpressionPtr> items;
};
struct DictLiteral : Expression {
  using Expression::Expression;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute : Expression {
  using Expression::Expression;
  ExpressionPtr object;
  std::string name;
  const Builtin* string_method = nullptr;  // methods of that name, resolved once
  const Builtin* dict_method = nullptr;
  const Builtin* sequence_method = nullptr;
};
struct Item : Expression {
  using Expression::Expression;
  ExpressionPtr object;
  ExpressionPtr index;
};
struct Slice : Expression {
  using Expression::Expression;
  ExpressionPtr object;
  ExpressionPtr start, stop, step;  // null where left out
};
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};
struct Call : Expression {
  using Expression::Expression;
  ExpressionPtr callee;
  CallArguments arguments;
};
struct BuiltinUse : Expression {  // kFilter, kTest
  using Expression::Expression;
  ExpressionPtr subject;  // null in a filter block, where the block's text is filtered
  const Builtin* builtin = nullptr;
  CallArguments arguments;
  bool negated = false;
};
struct Unary : Expression {  // kNot, kNegate, kPlus
  using Expression::Expression;
  ExpressionPtr operand;
};
struct Binary : Expression {
  using Expression::Expression;
  BinaryOperator op = BinaryOperator::kAdd;
  ExpressionPtr left, right;
};
struct Compare : Expression {
  using Expression::Expression;
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
struct Conditional : Expression {
  using Expression::Expression;
  ExpressionPtr condition, then_value, else_value;  // else_value may be null
};

enum class StatementKind : uint8_t {
  kText, kPrint, kIf, kFor, kSet, kSetBlock, kMacro, kCallBlock, kFilterBlock, kWith, kBreak, kContinue, kGroup,
};

struct Statement {
  Statement(StatementKind k, uint32_t l) : kind(k), line(l) {}
  virtual ~Statement() = default;
  StatementKind kind;
  uint32_t line;
};
using StatementPtr = std::unique_ptr<Statement>;
using Body = std::vector<StatementPtr>;

// Where an assignment goes: a name, name.attribute of a namespace, or a tuple of targets.
struct Target {
  Symbol symbol = 0;
  std::string attribute;
  std::vector<Target> parts;
};

struct TextStatement : Statement {
  using Statement::Statement;
  std::string text;
};
struct Print : Statement {
  using Statement::Statement;
  ExpressionPtr value;
};
struct If : Statement {
  using Statement::Statement;
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For : Statement {
  using Statement::Statement;
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr condition;  // may be null
  bool recursive = false;
  Body body;
  Body otherwise;
};
struct Set : Statement {
  using Statement::Statement;
  Target target;
  ExpressionPtr value;
};
struct SetBlock : Statement {
  using Statement::Statement;
  Target target;
  ExpressionPtr filter;  // chain of BuiltinUse over the block's text, or null
  Body body;
};
struct MacroStatement : Statement {  // kMacro; also the body of a call block
  using Statement::Statement;
  Symbol symbol = 0;
  std::string name;
  struct Parameter {
    Symbol symbol = 0;
    std::string name;
    ExpressionPtr default_value;  // may be null
  };
  std::vector<Parameter> parameters;
  bool takes_varargs = false;  // the body names `varargs`
  bool takes_kwargs = false;
  bool takes_caller = false;
  Body body;
};
struct CallBlock : Statement {
  using Statement::Statement;
  ExpressionPtr call;
  std::unique_ptr<MacroStatement> caller;
};
struct FilterBlock : Statement {
  using Statement::Statement;
  ExpressionPtr filter;
  Body body;
};
struct With : Statement {
  using Statement::Statement;
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body;
};
struct Group : Statement {  // a block that adds nothing of its own: {% generation %}
  using Statement::Statement;
  Body body;
};

// Names every template knows without assigning them have fixed symbols.
enum WellKnownSymbol : Symbol { kSymbolLoop, kSymbolCaller, kSymbolVarargs, kSymbolKwargs, kNumWellKnownSymbols };

struct Program {
  std::vector<std::string> symbols;
  Body body;
};

}  // namespace espalier::jinja
