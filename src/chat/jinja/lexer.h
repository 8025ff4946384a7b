// Splits a template into tokens as Jinja does with trim_blocks and lstrip_blocks on: text between tags, and the names, literals and
// operators inside them. Whitespace control, comments and raw blocks are resolved here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::jinja {

enum class TokenKind : uint8_t { kText, kPrintBegin, kPrintEnd, kBlockBegin, kBlockEnd, kName, kString, kInteger, kFloat, kOperator, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // kText, kString: the characters meant; others: the source, with digit separators removed
  uint32_t line = 1;

  bool is_operator(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// Throws TemplateError (kSyntax) with the line.
std::vector<Token> tokenize_template(std::string_view source);

}  // namespace espalier::jinja
