// What the fuzz targets of replies share: one reply read whole and in pieces, whose sizes the input itself decides.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/utf8.h"
#include "chat/reply_parser.h"

namespace espalier::fuzz {

struct ReadReply {
  ParsedReply reply;
  std::string unplaced;
};

inline void add_deltas(const std::vector<ReplyDelta>& deltas, ParsedReply& reply) {
  for (const ReplyDelta& delta : deltas) {
    ESPALIER_CHECK(!delta.text.empty() || delta.kind == ReplyDelta::Kind::kCallEnd);
    ESPALIER_CHECK(is_valid_utf8(delta.text));
    reply.add(delta);
  }
}

// `longest` bytes a piece at most.
inline ReadReply read_in_pieces(std::string_view text, const ReplyParserOptions& options, size_t longest) {
  ReplyParser parser(options);
  ReadReply out;
  for (size_t at = 0; at < text.size();) {
    const size_t size = 1 + static_cast<unsigned char>(text[at]) * (at + 1) % longest;
    add_deltas(parser.feed(text.substr(at, size)), out.reply);
    at += size;
  }
  add_deltas(parser.finish(), out.reply);
  out.unplaced = parser.unplaced_text();
  return out;
}

inline void check_same(const ReadReply& a, const ReadReply& b) {
  ESPALIER_CHECK(a.reply.reasoning == b.reply.reasoning && a.reply.content == b.reply.content && a.unplaced == b.unplaced);
  ESPALIER_CHECK(a.reply.calls.size() == b.reply.calls.size());
  for (size_t i = 0; i < a.reply.calls.size(); ++i) {
    const ParsedCall &one = a.reply.calls[i], &other = b.reply.calls[i];
    ESPALIER_CHECK(one.name == other.name && one.arguments == other.arguments && one.complete == other.complete);
  }
}

// The reply, after a check that pieces give the same.
inline ReadReply read_reply(std::string_view text, const ReplyParserOptions& options) {
  ReplyParser parser(options);
  ReadReply whole;
  add_deltas(parser.feed(text), whole.reply);
  add_deltas(parser.finish(), whole.reply);
  whole.unplaced = parser.unplaced_text();
  for (const size_t longest : {1, 7, 61}) check_same(read_in_pieces(text, options, longest), whole);
  return whole;
}

}  // namespace espalier::fuzz
