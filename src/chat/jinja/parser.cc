#include "chat/jinja/parser.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "chat/jinja/builtin.h"
#include "chat/jinja/lexer.h"
#include "chat/jinja/printing.h"

namespace espalier::jinja {
namespace {

// Chains such as a + b + c nest to the left, so this also bounds their length.
constexpr int kMaxNesting = 250;

constexpr std::array<std::string_view, 15> kUnsupportedStatements = {"include",    "import",   "from",          "extends", "block",
                                                                     "autoescape", "trans",    "pluralize",     "do",      "debug",
                                                                     "scoped",     "endblock", "endautoescape", "require", "language"};

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize_template(source)) {
    for (const std::string_view name : {"loop", "caller", "varargs", "kwargs"}) symbol(name);
  }

  Program run() {
    Program program;
    program.body = parse_body({}, "");
    program.symbols = std::move(symbols_);
    return program;
  }

 private:
  // Counts nesting while it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) {
        throw TemplateError{Failure::kLimit, espalier::format("nested deeper than {} levels", kMaxNesting), parser_.line()};
      }
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  // ---- tokens

  const Token& current() const { return tokens_[position_]; }
  const Token& ahead() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  uint32_t line() const { return current().line; }
  Token take() {
    Token token = current();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  bool skip_operator(std::string_view op) { return current().is_operator(op) && (take(), true); }
  bool skip_name(std::string_view name) { return current().is_name(name) && (take(), true); }

  [[noreturn]] void syntax_error(std::string message) const { throw TemplateError{Failure::kSyntax, std::move(message), line()}; }
  [[noreturn]] void unsupported(std::string message) const { throw TemplateError{Failure::kUnsupported, std::move(message), line()}; }

  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kText: return "template data / text";
      case TokenKind::kPrintBegin: return "begin of print statement";
      case TokenKind::kPrintEnd: return "end of print statement";
      case TokenKind::kBlockBegin: return "begin of statement block";
      case TokenKind::kBlockEnd: return "end of statement block";
      case TokenKind::kEnd: return "end of template";
      default: return token.text.substr(0, 60);
    }
  }
  void expect_operator(std::string_view op) {
    if (!skip_operator(op)) syntax_error(espalier::format("expected token '{}', got '{}'", op, describe(current())));
  }
  void expect_kind(TokenKind kind, std::string_view what) {
    if (current().kind != kind) syntax_error(espalier::format("expected token '{}', got '{}'", what, describe(current())));
    take();
  }
  std::string expect_name() {
    if (current().kind != TokenKind::kName) syntax_error(espalier::format("expected token 'name', got '{}'", describe(current())));
    return take().text;
  }
  void end_block() { expect_kind(TokenKind::kBlockEnd, "end of statement block"); }

  Symbol symbol(std::string_view name) {
    const auto [entry, is_new] = symbol_of_.emplace(std::string(name), static_cast<Symbol>(symbols_.size()));
    if (is_new) symbols_.emplace_back(name);
    return entry->second;
  }

  // ---- statements

  // Statements up to a block tag whose name is in `ends`; that name stays the current token. No `ends`: up to the end of the template.
  Body parse_body(std::initializer_list<std::string_view> ends, std::string_view block) {
    const Nesting nesting(*this);
    Body body;
    for (;;) {
      switch (current().kind) {
        case TokenKind::kEnd:
          if (ends.size() != 0) missing_end(ends, block);
          return body;
        case TokenKind::kText: {
          auto text = std::make_unique<TextStatement>(StatementKind::kText, line());
          text->text = take().text;
          body.push_back(std::move(text));
          break;
        }
        case TokenKind::kPrintBegin: {
          auto print = std::make_unique<Print>(StatementKind::kPrint, line());
          take();
          print->value = parse_tuple(true);
          expect_kind(TokenKind::kPrintEnd, "end of print statement");
          body.push_back(std::move(print));
          break;
        }
        case TokenKind::kBlockBegin:
          take();
          if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return current().is_name(end); })) return body;
          body.push_back(parse_statement());
          break;
        default: syntax_error(espalier::format("unexpected '{}'", describe(current())));
      }
    }
  }

  [[noreturn]] void missing_end(std::initializer_list<std::string_view> ends, std::string_view block) const {
    std::string expected;
    for (const std::string_view end : ends) expected += espalier::format("{}'{}'", expected.empty() ? "" : " or ", end);
    syntax_error(espalier::format(
        "Unexpected end of template. Jinja was looking for the following tags: {}. The innermost block that needs to be closed is '{}'.",
        expected, block));
  }

  StatementPtr parse_statement() {
    const Token tag = current();
    if (tag.kind != TokenKind::kName) syntax_error("tag name expected");
    take();
    if (tag.text == "if") return parse_if(tag.line);
    if (tag.text == "for") return parse_for(tag.line);
    if (tag.text == "set") return parse_set(tag.line);
    if (tag.text == "macro") return parse_macro(tag.line);
    if (tag.text == "call") return parse_call_block(tag.line);
    if (tag.text == "filter") return parse_filter_block(tag.line);
    if (tag.text == "with") return parse_with(tag.line);
    if (tag.text == "generation") return parse_generation(tag.line);
    if (tag.text == "break" || tag.text == "continue") {
      if (loop_nesting_ == 0) syntax_error(espalier::format("'{}' outside of a loop", tag.text));
      end_block();
      return std::make_unique<Statement>(tag.text == "break" ? StatementKind::kBreak : StatementKind::kContinue, tag.line);
    }
    if (std::find(kUnsupportedStatements.begin(), kUnsupportedStatements.end(), tag.text) != kUnsupportedStatements.end()) {
      throw TemplateError{Failure::kUnsupported, espalier::format("the statement '{}' is not supported", tag.text), tag.line};
    }
    throw TemplateError{Failure::kSyntax, espalier::format("Encountered unknown tag '{}'.", tag.text.substr(0, 60)), tag.line};
  }

  StatementPtr parse_if(uint32_t at) {
    auto node = std::make_unique<If>(StatementKind::kIf, at);
    for (;;) {
      ExpressionPtr condition = parse_tuple(false);
      end_block();
      node->branches.emplace_back(std::move(condition), parse_body({"elif", "else", "endif"}, "if"));
      if (skip_name("elif")) continue;
      if (skip_name("else")) {
        end_block();
        node->otherwise = parse_body({"endif"}, "if");
      }
      take();
      end_block();
      return node;
    }
  }

  StatementPtr parse_for(uint32_t at) {
    auto node = std::make_unique<For>(StatementKind::kFor, at);
    node->target = parse_target(false);
    if (!skip_name("in")) syntax_error(espalier::format("expected token 'in', got '{}'", describe(current())));
    node->iterable = parse_tuple(false);
    if (skip_name("if")) node->condition = parse_expression();
    node->recursive = skip_name("recursive");
    end_block();
    ++loop_nesting_;
    node->body = parse_body({"endfor", "else"}, "for");
    --loop_nesting_;
    if (skip_name("else")) {
      end_block();
      node->otherwise = parse_body({"endfor"}, "for");
    }
    take();
    end_block();
    return node;
  }

  StatementPtr parse_set(uint32_t at) {
    Target target = parse_target(true);
    if (skip_operator("=")) {
      auto node = std::make_unique<Set>(StatementKind::kSet, at);
      node->target = std::move(target);
      node->value = parse_tuple(true);
      end_block();
      return node;
    }
    auto node = std::make_unique<SetBlock>(StatementKind::kSetBlock, at);
    node->target = std::move(target);
    if (current().is_operator("|")) node->filter = parse_filters(nullptr);
    end_block();
    node->body = parse_body({"endset"}, "set");
    take();
    end_block();
    return node;
  }

  void parse_parameters(MacroStatement& macro) {
    expect_operator("(");
    while (!current().is_operator(")")) {
      if (!macro.parameters.empty()) expect_operator(",");
      MacroStatement::Parameter parameter;
      parameter.name = expect_name();
      parameter.symbol = symbol(parameter.name);
      if (skip_operator("=")) {
        parameter.default_value = parse_expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().default_value != nullptr) {
        syntax_error("non-default argument follows default argument");
      }
      macro.parameters.push_back(std::move(parameter));
    }
    expect_operator(")");
  }

  // Body of a macro; notes which of the special names it uses.
  void parse_macro_body(MacroStatement& macro, std::string_view end, std::string_view block) {
    const std::array<bool, kNumWellKnownSymbols> outer = std::exchange(uses_, {});
    const int outer_loops = std::exchange(loop_nesting_, 0);
    macro.body = parse_body({end}, block);
    take();
    end_block();
    macro.takes_caller = uses_[kSymbolCaller];
    macro.takes_varargs = uses_[kSymbolVarargs];
    macro.takes_kwargs = uses_[kSymbolKwargs];
    uses_ = outer;
    loop_nesting_ = outer_loops;
  }

  StatementPtr parse_macro(uint32_t at) {
    auto node = std::make_unique<MacroStatement>(StatementKind::kMacro, at);
    node->name = expect_name();
    node->symbol = symbol(node->name);
    parse_parameters(*node);
    end_block();
    parse_macro_body(*node, "endmacro", "macro");
    return node;
  }

  StatementPtr parse_call_block(uint32_t at) {
    auto node = std::make_unique<CallBlock>(StatementKind::kCallBlock, at);
    node->caller = std::make_unique<MacroStatement>(StatementKind::kMacro, at);
    node->caller->name = "caller";
    if (current().is_operator("(")) parse_parameters(*node->caller);
    node->call = parse_expression();
    if (node->call->kind != ExpressionKind::kCall) syntax_error("expected call");
    end_block();
    parse_macro_body(*node->caller, "endcall", "call");
    return node;
  }

  StatementPtr parse_filter_block(uint32_t at) {
    auto node = std::make_unique<FilterBlock>(StatementKind::kFilterBlock, at);
    node->filter = parse_filters(nullptr, /*bar_read=*/true);
    end_block();
    node->body = parse_body({"endfilter"}, "filter");
    take();
    end_block();
    return node;
  }

  StatementPtr parse_with(uint32_t at) {
    auto node = std::make_unique<With>(StatementKind::kWith, at);
    while (current().kind != TokenKind::kBlockEnd) {
      if (!node->assignments.empty()) expect_operator(",");
      Target target = parse_target(false);
      expect_operator("=");
      node->assignments.emplace_back(std::move(target), parse_expression());
    }
    end_block();
    node->body = parse_body({"endwith"}, "with");
    take();
    end_block();
    return node;
  }

  StatementPtr parse_generation(uint32_t at) {
    auto node = std::make_unique<Group>(StatementKind::kGroup, at);
    end_block();
    node->body = parse_body({"endgeneration"}, "generation");
    take();
    end_block();
    return node;
  }

  // One name, a tuple of names, or (where namespaces may be assigned) name.attribute.
  Target parse_target(bool with_attribute) {
    Target first = parse_single_target(with_attribute);
    if (!current().is_operator(",")) return first;
    Target tuple;
    tuple.parts.push_back(std::move(first));
    while (skip_operator(",")) {
      if (current().kind != TokenKind::kName && !current().is_operator("(")) break;
      tuple.parts.push_back(parse_single_target(with_attribute));
    }
    return tuple;
  }

  Target parse_single_target(bool with_attribute) {
    const Nesting nesting(*this);
    if (skip_operator("(")) {
      Target inner = parse_target(with_attribute);
      expect_operator(")");
      return inner;
    }
    const std::string name = expect_name();
    for (const std::string_view reserved : {"true", "false", "none", "True", "False", "None"}) {
      if (name == reserved) syntax_error(espalier::format("can't assign to '{}'", name));
    }
    Target target;
    target.symbol = symbol(name);
    if (with_attribute && skip_operator(".")) target.attribute = expect_name();
    return target;
  }

  // ---- expressions, loosest binding first

  ExpressionPtr parse_expression() { return parse_conditional(); }

  ExpressionPtr parse_conditional() {
    const Nesting nesting(*this);
    ExpressionPtr value = parse_or();
    int links = 0;
    while (skip_name("if")) {
      check_chain(++links);
      auto node = std::make_unique<Conditional>(ExpressionKind::kConditional, line());
      node->then_value = std::move(value);
      node->condition = parse_or();
      if (skip_name("else")) node->else_value = parse_conditional();
      value = std::move(node);
    }
    return value;
  }

  void check_chain(int links) const {
    if (links + nesting_ > kMaxNesting) {
      throw TemplateError{Failure::kLimit, espalier::format("an expression chains more than {} operations", kMaxNesting), line()};
    }
  }

  template <typename Operand>
  ExpressionPtr parse_logical(std::string_view word, ExpressionKind kind, Operand&& operand) {
    ExpressionPtr left = operand();
    int links = 0;
    while (current().is_name(word)) {
      check_chain(++links);
      auto node = std::make_unique<Items>(kind, line());
      take();
      node->items.push_back(std::move(left));
      node->items.push_back(operand());
      left = std::move(node);
    }
    return left;
  }
  ExpressionPtr parse_or() {
    return parse_logical("or", ExpressionKind::kOr, [this] { return parse_and(); });
  }
  ExpressionPtr parse_and() {
    return parse_logical("and", ExpressionKind::kAnd, [this] { return parse_not(); });
  }

  ExpressionPtr parse_not() {
    if (!current().is_name("not")) return parse_compare();
    const Nesting nesting(*this);
    auto node = std::make_unique<Unary>(ExpressionKind::kNot, line());
    take();
    node->operand = parse_not();
    return node;
  }

  std::optional<Comparison> take_comparison() {
    static constexpr std::array<std::pair<std::string_view, Comparison>, 6> kSigns = {{{"==", Comparison::kEqual},
                                                                                        {"!=", Comparison::kNotEqual},
                                                                                        {"<", Comparison::kLess},
                                                                                        {"<=", Comparison::kLessEqual},
                                                                                        {">", Comparison::kGreater},
                                                                                        {">=", Comparison::kGreaterEqual}}};
    for (const auto& [sign, comparison] : kSigns) {
      if (skip_operator(sign)) return comparison;
    }
    if (skip_name("in")) return Comparison::kIn;
    if (current().is_name("not") && ahead().is_name("in")) {
      take();
      take();
      return Comparison::kNotIn;
    }
    return std::nullopt;
  }

  ExpressionPtr parse_compare() {
    ExpressionPtr first = parse_sum();
    const uint32_t at = line();
    std::optional<Comparison> comparison = take_comparison();
    if (!comparison) return first;
    auto node = std::make_unique<Compare>(ExpressionKind::kCompare, at);
    node->first = std::move(first);
    for (; comparison; comparison = take_comparison()) node->rest.emplace_back(*comparison, parse_sum());
    return node;
  }

  using OperatorTable = std::initializer_list<std::pair<std::string_view, BinaryOperator>>;
  std::optional<BinaryOperator> take_binary(OperatorTable table) {
    for (const auto& [sign, op] : table) {
      if (skip_operator(sign)) return op;
    }
    return std::nullopt;
  }
  template <typename Operand>
  ExpressionPtr parse_binary(OperatorTable table, Operand&& operand) {
    ExpressionPtr left = operand();
    int links = 0;
    for (;;) {
      const uint32_t at = line();
      const std::optional<BinaryOperator> op = take_binary(table);
      if (!op) return left;
      check_chain(++links);
      auto node = std::make_unique<Binary>(ExpressionKind::kBinary, at);
      node->op = *op;
      node->left = std::move(left);
      node->right = operand();
      left = std::move(node);
    }
  }
  ExpressionPtr parse_sum() {
    return parse_binary({{"+", BinaryOperator::kAdd}, {"-", BinaryOperator::kSubtract}}, [this] { return parse_concat(); });
  }
  ExpressionPtr parse_concat() {
    ExpressionPtr first = parse_product();
    if (!current().is_operator("~")) return first;
    auto node = std::make_unique<Items>(ExpressionKind::kConcat, line());
    node->items.push_back(std::move(first));
    while (skip_operator("~")) node->items.push_back(parse_product());
    return node;
  }
  ExpressionPtr parse_product() {
    return parse_binary({{"*", BinaryOperator::kMultiply},
                         {"//", BinaryOperator::kFloorDivide},
                         {"/", BinaryOperator::kDivide},
                         {"%", BinaryOperator::kModulo}},
                        [this] { return parse_power(); });
  }
  ExpressionPtr parse_power() {
    return parse_binary({{"**", BinaryOperator::kPower}}, [this] { return parse_unary(true); });
  }

  ExpressionPtr parse_unary(bool with_filter) {
    const Nesting nesting(*this);
    ExpressionPtr node;
    if (current().is_operator("-") || current().is_operator("+")) {
      auto unary = std::make_unique<Unary>(current().is_operator("-") ? ExpressionKind::kNegate : ExpressionKind::kPlus, line());
      take();
      unary->operand = parse_unary(false);
      node = std::move(unary);
    } else {
      node = parse_primary();
    }
    node = parse_postfix(std::move(node));
    return with_filter ? parse_filters_and_tests(std::move(node)) : std::move(node);
  }

  std::unique_ptr<Literal> literal(Value value) const {
    auto node = std::make_unique<Literal>(ExpressionKind::kLiteral, line());
    node->value = value;
    return node;
  }

  ExpressionPtr parse_primary() {
    const Token token = current();
    switch (token.kind) {
      case TokenKind::kName: return parse_name(token);
      case TokenKind::kString: return parse_string();
      case TokenKind::kInteger: return parse_integer_literal(token);
      case TokenKind::kFloat: {
        const std::optional<double> value = parse_float(token.text);
        if (!value) syntax_error(espalier::format("not a number: '{}'", token.text.substr(0, 60)));
        ExpressionPtr node = literal(Value::floating(*value));
        take();
        return node;
      }
      case TokenKind::kOperator:
        if (token.text == "(") {
          take();
          ExpressionPtr node = parse_tuple(true, /*in_parentheses=*/true);
          expect_operator(")");
          return node;
        }
        if (token.text == "[") return parse_list();
        if (token.text == "{") return parse_dict();
        [[fallthrough]];
      default: syntax_error(espalier::format("unexpected '{}'", describe(token)));
    }
  }

  ExpressionPtr parse_name(const Token& token) {
    const std::string& name = token.text;
    ExpressionPtr node;
    if (name == "true" || name == "True") {
      node = literal(Value::boolean(true));
    } else if (name == "false" || name == "False") {
      node = literal(Value::boolean(false));
    } else if (name == "none" || name == "None") {
      node = literal(Value::none());
    } else {
      auto variable = std::make_unique<Name>(ExpressionKind::kName, line());
      variable->symbol = symbol(name);
      if (variable->symbol < kNumWellKnownSymbols) uses_[variable->symbol] = true;
      node = std::move(variable);
    }
    take();
    return node;
  }

  ExpressionPtr parse_string() {
    auto node = literal(Value::none());
    while (current().kind == TokenKind::kString) node->text += take().text;
    node->value = Value::string(node->text, Origin::kTemplate);
    return node;
  }

  ExpressionPtr parse_integer_literal(const Token& token) {
    const std::optional<Integer> value = parse_integer(token.text, 0);
    if (!value) syntax_error(espalier::format("not an integer of 128 bits: '{}'", token.text.substr(0, 60)));
    ExpressionPtr node = literal(Value::integer(*value));
    take();
    return node;
  }

  // a, b, c: a tuple if there is a comma. `with_condition`: whether "x if y" belongs to it (not in the head of a for or if).
  ExpressionPtr parse_tuple(bool with_condition, bool in_parentheses = false) {
    const uint32_t at = line();
    std::vector<ExpressionPtr> items;
    bool is_tuple = false;
    while (!at_tuple_end()) {
      items.push_back(with_condition ? parse_expression() : parse_or());
      if (!skip_operator(",")) break;
      is_tuple = true;
    }
    if (items.empty() && !in_parentheses) syntax_error(espalier::format("unexpected '{}'", describe(current())));
    if (!is_tuple && items.size() == 1) return std::move(items.front());
    auto node = std::make_unique<Items>(ExpressionKind::kTuple, at);
    node->items = std::move(items);
    return node;
  }
  bool at_tuple_end() const {
    return current().kind == TokenKind::kPrintEnd || current().kind == TokenKind::kBlockEnd || current().is_operator(")") ||
           current().is_name("recursive");
  }

  ExpressionPtr parse_list() {
    auto node = std::make_unique<Items>(ExpressionKind::kList, line());
    expect_operator("[");
    while (!current().is_operator("]")) {
      if (!node->items.empty()) {
        expect_operator(",");
        if (current().is_operator("]")) break;
      }
      node->items.push_back(parse_expression());
    }
    expect_operator("]");
    return node;
  }

  ExpressionPtr parse_dict() {
    auto node = std::make_unique<DictLiteral>(ExpressionKind::kDict, line());
    expect_operator("{");
    while (!current().is_operator("}")) {
      if (!node->entries.empty()) {
        expect_operator(",");
        if (current().is_operator("}")) break;
      }
      ExpressionPtr key = parse_expression();
      expect_operator(":");
      node->entries.emplace_back(std::move(key), parse_expression());
    }
    expect_operator("}");
    return node;
  }

  ExpressionPtr parse_postfix(ExpressionPtr node) {
    for (int links = 1;; ++links) {
      check_chain(links);
      if (current().is_operator(".")) {
        node = parse_attribute(std::move(node));
      } else if (current().is_operator("[")) {
        node = parse_subscript(std::move(node));
      } else if (current().is_operator("(")) {
        node = parse_call(std::move(node));
      } else {
        return node;
      }
    }
  }

  ExpressionPtr parse_attribute(ExpressionPtr object) {
    const uint32_t at = line();
    take();
    if (current().kind == TokenKind::kInteger) {
      auto node = std::make_unique<Item>(ExpressionKind::kItem, at);
      node->object = std::move(object);
      node->index = parse_integer_literal(current());
      return node;
    }
    auto node = std::make_unique<Attribute>(ExpressionKind::kAttribute, at);
    node->object = std::move(object);
    node->name = expect_name();
    node->string_method = find_string_method(node->name);
    node->dict_method = find_dict_method(node->name);
    node->sequence_method = find_sequence_method(node->name);
    if (current().is_operator("(") && is_unsupported_method(node->name))
      unsupported(espalier::format("the method '{}' is not supported", node->name));
    return node;
  }

  ExpressionPtr parse_subscript(ExpressionPtr object) {
    const uint32_t at = line();
    take();
    ExpressionPtr start = current().is_operator(":") ? nullptr : parse_expression();
    if (!current().is_operator(":")) {
      if (current().is_operator(",")) unsupported("subscripts of several values are not supported");
      expect_operator("]");
      auto node = std::make_unique<Item>(ExpressionKind::kItem, at);
      node->object = std::move(object);
      node->index = std::move(start);
      return node;
    }
    auto node = std::make_unique<Slice>(ExpressionKind::kSlice, at);
    node->object = std::move(object);
    node->start = std::move(start);
    take();
    if (!current().is_operator(":") && !current().is_operator("]")) node->stop = parse_expression();
    if (skip_operator(":") && !current().is_operator("]")) node->step = parse_expression();
    expect_operator("]");
    return node;
  }

  CallArguments parse_arguments() {
    CallArguments arguments;
    expect_operator("(");
    bool first = true;
    while (!current().is_operator(")")) {
      if (!first) {
        expect_operator(",");
        if (current().is_operator(")")) break;
      }
      first = false;
      if (current().is_operator("*") || current().is_operator("**"))
        unsupported("unpacking of arguments (*args, **kwargs) is not supported");
      if (current().kind == TokenKind::kName && ahead().is_operator("=")) {
        std::string name = take().text;
        take();
        arguments.named.emplace_back(std::move(name), parse_expression());
      } else {
        if (!arguments.named.empty()) syntax_error("invalid syntax for function call expression");
        arguments.positional.push_back(parse_expression());
      }
    }
    expect_operator(")");
    return arguments;
  }

  ExpressionPtr parse_call(ExpressionPtr callee) {
    auto node = std::make_unique<Call>(ExpressionKind::kCall, line());
    node->callee = std::move(callee);
    node->arguments = parse_arguments();
    return node;
  }

  ExpressionPtr parse_filters_and_tests(ExpressionPtr node) {
    for (int links = 1;; ++links) {
      check_chain(links);
      if (current().is_operator("|")) {
        node = parse_filters(std::move(node));
      } else if (current().is_name("is")) {
        node = parse_test(std::move(node));
      } else if (current().is_operator("(")) {
        node = parse_call(std::move(node));
      } else {
        return node;
      }
    }
  }

  std::string dotted_name() {
    std::string name = expect_name();
    while (skip_operator(".")) name.append(".").append(expect_name());
    return name;
  }

  // `subject` | name(arguments) | ...; in a filter block there is no subject and the first bar is not written.
  ExpressionPtr parse_filters(ExpressionPtr subject, bool bar_read = false) {
    for (int links = 1; bar_read || current().is_operator("|"); ++links) {
      check_chain(links);
      if (!bar_read) take();
      bar_read = false;
      auto node = std::make_unique<BuiltinUse>(ExpressionKind::kFilter, line());
      const std::string name = dotted_name();
      node->builtin = find_filter(name);
      if (node->builtin == nullptr)
        throw TemplateError{Failure::kUnsupported, espalier::format("No filter named '{}'.", name.substr(0, 60)), node->line};
      node->subject = std::move(subject);
      if (current().is_operator("(")) node->arguments = parse_arguments();
      subject = std::move(node);
    }
    return subject;
  }

  ExpressionPtr parse_test(ExpressionPtr subject) {
    auto node = std::make_unique<BuiltinUse>(ExpressionKind::kTest, line());
    take();
    node->negated = skip_name("not");
    const std::string name = dotted_name();
    node->builtin = find_test(name);
    if (node->builtin == nullptr)
      throw TemplateError{Failure::kUnsupported, espalier::format("No test named '{}'.", name.substr(0, 60)), node->line};
    node->subject = std::move(subject);
    if (current().is_operator("(")) {
      node->arguments = parse_arguments();
    } else if (starts_test_argument()) {
      if (current().is_name("is")) syntax_error("You cannot chain multiple tests with is");
      const Nesting nesting(*this);
      node->arguments.positional.push_back(parse_postfix(parse_primary()));
    }
    return node;
  }
  bool starts_test_argument() const {
    switch (current().kind) {
      case TokenKind::kName: return !current().is_name("else") && !current().is_name("or") && !current().is_name("and");
      case TokenKind::kString:
      case TokenKind::kInteger:
      case TokenKind::kFloat: return true;
      case TokenKind::kOperator: return current().is_operator("[") || current().is_operator("{");
      default: return false;
    }
  }

  std::vector<Token> tokens_;
  size_t position_ = 0;
  int nesting_ = 0;
  int loop_nesting_ = 0;
  std::array<bool, kNumWellKnownSymbols> uses_ = {};
  std::vector<std::string> symbols_;
  std::unordered_map<std::string, Symbol> symbol_of_;
};

}  // namespace

Program parse_program(std::string_view source) { return Parser(source).run(); }

}  // namespace espalier::jinja
