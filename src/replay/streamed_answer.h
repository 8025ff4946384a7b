// A streamed chat completion, put together from its chunks the way the official harness does, but stricter: what the harness skips with a
// line in its log, or takes for a normal end, is an error here. A pure function of the chunks so far. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace espalier {

struct AnswerCall {
  int64_t index = 0;
  std::string id = {};
  std::string type = "function";
  std::string name = {};
  std::string arguments = {};  // as they came: JSON text where the server did its work
};

// What an answer, or a part of it, consists of.
struct AnswerParts {
  std::string content = {};
  std::string reasoning = {};
  std::vector<AnswerCall> calls = {};  // by ascending index

  bool empty() const { return content.empty() && reasoning.empty() && calls.empty(); }
};

// What the server itself said about an answer; its own object "espalier" goes before "usage".
struct AnswerCounts {
  std::optional<int64_t> prompt_tokens = {};
  std::optional<int64_t> cached_tokens = {};
  std::optional<int64_t> completion_tokens = {};
  std::string cold_reason = {};
};

class StreamedAnswer {
 public:
  // One chunk, as JSON. Returns what it adds, for somebody who watches: reasoning and content as they are, a call as a line with its name
  // in brackets and its arguments. Errors: kIo with the server's own words for {"error": ...}, kCorrupt for what is no chunk of this API.
  Result<std::string> add(std::string_view chunk);

  // Something that counts as the first chunk has come: content, reasoning or a part of a call. A role alone does not.
  bool begun() const { return !whole_.empty(); }
  // Calls of the same index are merged: texts of arguments are joined, other strings replace what was there where they are not empty.
  const AnswerParts& whole() const { return whole_; }
  // The divisor of TPOT counts the tokens of this: without the first piece of reasoning; where there is none, without the first piece of
  // content; where there is neither, without the first piece of the calls.
  AnswerParts after_first_chunk() const;
  const std::string& finish_reason() const { return finish_reason_; }  // the last one given; empty: none
  const AnswerCounts& counts() const { return counts_; }
  size_t num_chunks() const { return num_chunks_; }

 private:
  Result<std::string> add_delta(const Json& delta);
  void show(std::string& shown, std::string_view text);
  Status read_counts(const Json& chunk);

  AnswerParts whole_;
  size_t first_reasoning_bytes_ = 0;
  size_t first_content_bytes_ = 0;
  std::vector<AnswerCall> calls_after_first_;  // merged from all pieces but the first
  bool any_calls_ = false;
  bool at_line_start_ = true;  // of what was shown
  std::string finish_reason_;
  AnswerCounts counts_;
  bool has_own_counts_ = false;
  size_t num_chunks_ = 0;
};

// The words of an error answer: error.message of a JSON body, or what there is, in one line of bounded length.
std::string error_words(std::string_view body);

}  // namespace espalier
