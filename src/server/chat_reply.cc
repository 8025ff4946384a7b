#include "server/chat_reply.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/hash.h"

namespace espalier {
namespace {

constexpr std::string_view kChunk = "chat.completion.chunk";

bool only_whitespace(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

}  // namespace

ChatReply::ChatReply(ChatReplyOptions options, std::shared_ptr<const Tokenizer> tokenizer)
    : options_(std::move(options)), tokenizer_(std::move(tokenizer)), unfinished_(static_cast<size_t>(options_.num_choices)) {
  choices_.reserve(unfinished_);
  for (size_t i = 0; i < unfinished_; ++i) choices_.emplace_back(options_.parser);
}

std::string ChatReply::on_event(size_t, const TokenEvent& event) {
  const auto index = static_cast<size_t>(event.choice);
  Choice& choice = choices_.at(index);
  if (!choice.finish_reason.empty()) return {};  // it ended with its first call; what the model still said is not wanted
  add_logprobs(choice, event);
  std::vector<ReplyDelta> deltas = choice.parser.feed(event.text);
  if (event.finish.has_value()) {
    for (ReplyDelta& delta : choice.parser.finish()) deltas.push_back(std::move(delta));
  }
  std::string frames;
  bool ended_by_call = false;
  for (const ReplyDelta& delta : deltas) {
    choice.whole.add(delta);
    if (options_.form.stream) frames += delta_frame(index, delta);
    ended_by_call = !options_.parallel_tool_calls && delta.kind == ReplyDelta::Kind::kCallEnd;
    if (ended_by_call) break;
  }
  if (!ended_by_call && !event.finish.has_value()) return frames;

  const bool cut = event.finish == FinishReason::kLength && !ended_by_call;
  choice.finish_reason = cut ? "length" : choice.whole.calls.empty() ? "stop" : "tool_calls";
  last_finished_ = index;
  if (--unfinished_ > 0 && options_.form.stream) frames += sse_frame(finish_chunk(index));
  return frames;
}

void ChatReply::add_logprobs(Choice& choice, const TokenEvent& event) {
  if (!options_.form.logprobs) return;
  choice.logprobs.show(event.tokens_shown);
  if (event.token < 0) return;
  Json entry = logprob_json(*tokenizer_, event.token, event.logprob);
  Json top = Json::array();
  for (const TokenLogprob& candidate : event.top) top.push_back(logprob_json(*tokenizer_, candidate.token, candidate.logprob));
  entry["top_logprobs"] = std::move(top);
  choice.logprobs.add(std::move(entry));
}

Json ChatReply::chunk(size_t index, Json delta) {
  Choice& choice = choices_[index];
  Json entry = {{"index", index}, {"delta", std::move(delta)}};
  if (options_.form.logprobs) entry["logprobs"] = {{"content", choice.logprobs.take()}};
  entry["finish_reason"] = choice.finish_reason.empty() ? Json(nullptr) : Json(choice.finish_reason);
  Json document = reply_document(options_.head, kChunk, Json::array({std::move(entry)}));
  if (options_.form.include_usage) document["usage"] = nullptr;
  return document;
}

std::string ChatReply::delta_frame(size_t index, const ReplyDelta& delta) {
  Choice& choice = choices_[index];
  Json fields = Json::object();
  if (!choice.begun) fields["role"] = "assistant";
  const auto call = static_cast<size_t>(std::max(delta.call, 0));
  switch (delta.kind) {
    case ReplyDelta::Kind::kReasoning: fields["reasoning_content"] = delta.text; break;
    case ReplyDelta::Kind::kContent: fields["content"] = delta.text; break;
    case ReplyDelta::Kind::kCallBegin:
      fields["tool_calls"] = Json::array(
          {{{"index", call}, {"id", call_id(index, call)}, {"type", "function"}, {"function", {{"name", delta.text}, {"arguments", ""}}}}});
      break;
    case ReplyDelta::Kind::kCallArguments:
      fields["tool_calls"] = Json::array({{{"index", call}, {"function", {{"arguments", delta.text}}}}});
      break;
    case ReplyDelta::Kind::kCallEnd: return {};
  }
  choice.begun = true;
  return sse_frame(chunk(index, std::move(fields)));
}

Json ChatReply::finish_chunk(size_t index) {
  Json delta = Json::object();
  if (!choices_[index].begun) delta = {{"role", "assistant"}, {"content", ""}};
  return chunk(index, std::move(delta));
}

// The same for every frame that speaks of the call, and different for every call of every reply.
std::string ChatReply::call_id(size_t choice, size_t call) const {
  const Hash128 hash = hash128(format("{} {} {}", options_.head.id, choice, call));
  return format("call_{:016x}{:08x}", hash.low, hash.high & 0xffffffff);
}

Json ChatReply::details(const RequestStats& stats) const {
  Json json = details_json(stats);
  const auto cut = [](const Choice& choice) {
    return std::any_of(choice.whole.calls.begin(), choice.whole.calls.end(), [](const ParsedCall& call) { return !call.complete; });
  };
  if (std::any_of(choices_.begin(), choices_.end(), cut)) json["incomplete_tool_call"] = true;
  return json;
}

Json ChatReply::choice_json(size_t index) {
  Choice& choice = choices_[index];
  const ParsedReply& whole = choice.whole;
  Json message = {{"role", "assistant"}};
  message["content"] = !whole.calls.empty() && only_whitespace(whole.content) ? Json(nullptr) : Json(whole.content);
  if (!whole.reasoning.empty()) message["reasoning_content"] = whole.reasoning;
  Json calls = Json::array();
  for (size_t i = 0; i < whole.calls.size(); ++i) {
    calls.push_back({{"id", call_id(index, i)},
                     {"type", "function"},
                     {"function", {{"name", whole.calls[i].name}, {"arguments", whole.calls[i].arguments}}}});
  }
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  Json json = {{"index", index}, {"message", std::move(message)}};
  json["logprobs"] = options_.form.logprobs ? Json{{"content", choice.logprobs.take()}} : Json(nullptr);
  json["finish_reason"] = choice.finish_reason.empty() ? "stop" : choice.finish_reason;
  return json;
}

std::string ChatReply::finish(const RequestStats& stats) {
  if (options_.form.stream) {
    Json last = finish_chunk(last_finished_);
    last["espalier"] = details(stats);
    std::string frames = sse_frame(last);
    if (options_.form.include_usage) {
      Json usage = reply_document(options_.head, kChunk, Json::array());
      usage["usage"] = usage_json(stats);
      frames += sse_frame(usage);
    }
    frames += kSseDone;
    return frames;
  }
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(choice_json(i));
  Json body = reply_document(options_.head, "chat.completion", std::move(choices));
  body["usage"] = usage_json(stats);
  body["espalier"] = details(stats);
  return dump_json(body);
}

bool ChatReply::empty() const {
  return std::all_of(choices_.begin(), choices_.end(),
                     [](const Choice& choice) { return choice.whole.reasoning.empty() && choice.whole.content.empty() && choice.whole.calls.empty(); });
}

int64_t ChatReply::num_tool_calls() const {
  int64_t calls = 0;
  for (const Choice& choice : choices_) calls += static_cast<int64_t>(choice.whole.calls.size());
  return calls;
}

bool ChatReply::has_stray_call() const {
  if (options_.parser.tools == nullptr) return false;
  return std::any_of(choices_.begin(), choices_.end(), [](const Choice& choice) {
    return choice.whole.content.find("<tool_call>") != std::string::npos || choice.whole.content.find("<function=") != std::string::npos;
  });
}

}  // namespace espalier
