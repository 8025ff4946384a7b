#include "server/completion_reply.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace espalier {

CompletionReply::CompletionReply(CompletionReplyOptions options, std::shared_ptr<const Tokenizer> tokenizer)
    : options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      choices_(options_.num_prompts * static_cast<size_t>(options_.num_choices)),
      unfinished_(choices_.size()) {}

std::string CompletionReply::on_event(size_t prompt, const TokenEvent& event) {
  const size_t index = prompt * static_cast<size_t>(options_.num_choices) + static_cast<size_t>(event.choice);
  Choice& choice = choices_.at(index);
  add_logprobs(choice, event);
  choice.text += event.text;
  const bool over = event.finish.has_value() && choice.finish_reason.empty();
  std::string frames;
  if (options_.form.stream && !event.text.empty()) frames = sse_frame(document(Json::array({choice_json(index, event.text)})));
  if (!over) return frames;
  choice.finish_reason = event.finish == FinishReason::kLength ? "length" : "stop";
  last_finished_ = index;
  if (--unfinished_ > 0 && options_.form.stream) frames += sse_frame(document(Json::array({choice_json(index, "")})));
  return frames;
}

void CompletionReply::add_logprobs(Choice& choice, const TokenEvent& event) {
  if (!options_.form.logprobs) return;
  choice.logprobs.show(event.tokens_shown);
  if (event.token < 0) return;
  Json entry = logprob_json(*tokenizer_, event.token, event.logprob);
  Json top = Json::object();
  for (const TokenLogprob& candidate : event.top) {
    const Json other = logprob_json(*tokenizer_, candidate.token, candidate.logprob);
    top[other["token"].get<std::string>()] = other["logprob"];
  }
  entry["top_logprobs"] = std::move(top);
  entry["text_offset"] = choice.token_bytes;
  choice.logprobs.add(std::move(entry));
  choice.token_bytes += tokenizer_->token_bytes(event.token).size();
}

// In the API's older shape: four lists of the same length.
Json CompletionReply::logprobs_json(Choice& choice) {
  Json lists = {{"tokens", Json::array()}, {"token_logprobs", Json::array()}, {"top_logprobs", Json::array()}, {"text_offset", Json::array()}};
  for (Json& entry : choice.logprobs.take()) {
    lists["tokens"].push_back(std::move(entry["token"]));
    lists["token_logprobs"].push_back(std::move(entry["logprob"]));
    lists["top_logprobs"].push_back(std::move(entry["top_logprobs"]));
    lists["text_offset"].push_back(std::move(entry["text_offset"]));
  }
  return lists;
}

Json CompletionReply::choice_json(size_t index, const std::string& text) {
  Choice& choice = choices_[index];
  return {{"index", index},
          {"text", text},
          {"logprobs", options_.form.logprobs ? logprobs_json(choice) : Json(nullptr)},
          {"finish_reason", choice.finish_reason.empty() ? Json(nullptr) : Json(choice.finish_reason)}};
}

Json CompletionReply::document(Json choices) const {
  return reply_document(options_.head, "text_completion", std::move(choices));
}

std::string CompletionReply::finish(const RequestStats& stats) {
  if (options_.form.stream) {
    Json last = document(Json::array({choice_json(last_finished_, "")}));
    last["espalier"] = details_json(stats);
    std::string frames = sse_frame(last);
    if (options_.form.include_usage) {
      Json usage = document(Json::array());
      usage["usage"] = usage_json(stats);
      frames += sse_frame(usage);
    }
    frames += kSseDone;
    return frames;
  }
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(choice_json(i, choices_[i].text));
  Json body = document(std::move(choices));
  body["usage"] = usage_json(stats);
  body["espalier"] = details_json(stats);
  return dump_json(body);
}

bool CompletionReply::empty() const {
  return std::all_of(choices_.begin(), choices_.end(), [](const Choice& choice) { return choice.text.empty(); });
}

}  // namespace espalier
