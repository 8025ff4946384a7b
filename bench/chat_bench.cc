// Time from a request's messages to its prompt, on a made conversation of an agent (121 messages, about 110 KB) with this project's
// default template and, where ../shared lies beside the checkout, on the longest prompt of the agent workload with Qwen3.6's: promised
// are 3 ms for rendering it and 5 ms with branch points. And the speed at which a reply is parsed, in pieces as long as a token.
//   build/release/chat_bench
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "base/file.h"
#include "chat/messages.h"
#include "chat/prompt.h"
#include "chat/reply_parser.h"
#include "chat/tool_schemas.h"

#ifdef ESPALIER_BENCH_SHARED
#include "replay/workload.h"
#include "tests/support/oracle.h"
#endif

namespace espalier {
namespace {

struct Conversation {
  std::shared_ptr<const ChatTemplate> chat_template;
  Json messages;
  Json tools;
  ChatInput input;
};

std::shared_ptr<const Conversation> conversation(std::shared_ptr<const ChatTemplate> chat_template, Json messages, Json tools) {
  ChatInput input = normalise_messages(messages, tools).value();
  return std::make_shared<Conversation>(Conversation{std::move(chat_template), std::move(messages), std::move(tools), std::move(input)});
}

// A question, then sixty calls of one tool and their results.
std::shared_ptr<const Conversation> agent_conversation(std::shared_ptr<const ChatTemplate> chat_template) {
  std::string output;
  while (output.size() < 1700)
    output += "src/model/decoder_layer.cc:" + std::to_string(output.size()) + ": const auto& mixer = layer.mixer;\n";
  Json messages = Json::array({Json::object({{"role", "user"}, {"content", "Find where the mixer of a layer is chosen."}})});
  for (int i = 0; i < 60; ++i) {
    const std::string id = "call_" + std::to_string(i);
    const Json arguments = Json::object({{"command", "grep -rn mixer src | sed -n " + std::to_string(i) + ",+20p"}});
    const Json function = Json::object({{"name", "bash"}, {"arguments", dump_json(arguments)}});
    const Json call = Json::object({{"id", id}, {"type", "function"}, {"function", function}});
    messages.push_back(Json::object({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}}));
    messages.push_back(Json::object({{"role", "tool"}, {"tool_call_id", id}, {"content", output}}));
  }
  const Json parameters =
      Json::object({{"type", "object"}, {"properties", Json::object({{"command", Json::object({{"type", "string"}})}})}});
  const Json function = Json::object({{"name", "bash"}, {"description", "Run a command"}, {"parameters", parameters}});
  return conversation(std::move(chat_template), std::move(messages),
                      Json::array({Json::object({{"type", "function"}, {"function", function}})}));
}

void normalise(benchmark::State& state, const Conversation& c) {
  for (auto _ : state) benchmark::DoNotOptimize(normalise_messages(c.messages, c.tools).value());
}

void render(benchmark::State& state, const Conversation& c) {
  size_t bytes = 0;
  for (auto _ : state) bytes = c.chat_template->render(c.input, {}).value().size();
  state.counters["messages"] = static_cast<double>(c.input.messages.size());
  state.counters["bytes"] = static_cast<double>(bytes);
}

void render_with_branch_points(benchmark::State& state, const Conversation& c) {
  for (auto _ : state) benchmark::DoNotOptimize(c.chat_template->render_with_branch_points(c.input, {}).value());
}

void register_benches(const std::string& name, const std::shared_ptr<const Conversation>& c) {
  const auto add = [&](const std::string& what, void (*bench)(benchmark::State&, const Conversation&)) {
    benchmark::RegisterBenchmark((name + "/" + what).c_str(), [c, bench](benchmark::State& state) { bench(state, *c); })
        ->Unit(benchmark::kMillisecond);
  };
  add("normalise", normalise);
  add("render", render);
  add("render_with_branch_points", render_with_branch_points);
}

// Reasoning, prose and forty calls that write files.
std::string agent_reply() {
  std::string source;
  while (source.size() < 4000) source += "  if (a < b && c > d) return std::vector<int>{1, 2, 3};\n";
  std::string reply = "I need to write the files, one by one.\n</think>\n\nWriting them now.\n\n";
  for (int i = 0; i < 40; ++i) {
    reply += "<tool_call>\n<function=write>\n<parameter=path>\nsrc/part_" + std::to_string(i) + ".cc\n</parameter>\n";
    reply += "<parameter=text>\n" + source + "</parameter>\n<parameter=mode>\n420\n</parameter>\n</function>\n</tool_call>\n";
  }
  return reply;
}

void parse_replies(benchmark::State& state) {
  const std::string reply = agent_reply();
  const Json tools = parse_json(R"([{"type":"function","function":{"name":"write","parameters":{"properties":{
      "path":{"type":"string"},"text":{"type":"string"},"mode":{"type":"integer"}}}}}])",
                                "tools")
                         .value();
  const ReplyParserOptions options{.format = ToolCallFormat::kXmlFunction, .tools = std::make_shared<const ToolSchemas>(tools), .starts_in_reasoning = true};
  const auto piece_bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    ReplyParser parser(options);
    ParsedReply whole;
    for (size_t at = 0; at < reply.size(); at += piece_bytes) {
      for (const ReplyDelta& delta : parser.feed(std::string_view(reply).substr(at, piece_bytes))) whole.add(delta);
    }
    for (const ReplyDelta& delta : parser.finish()) whole.add(delta);
    benchmark::DoNotOptimize(whole);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * reply.size()));
}

bool register_all() {
  benchmark::RegisterBenchmark("reply/parse", parse_replies)
      ->ArgName("piece_bytes")
      ->Arg(4)
      ->Arg(64)
      ->Arg(1 << 20)
      ->Unit(benchmark::kMillisecond);
  register_benches("nano/agent", agent_conversation(ChatTemplate::load(ESPALIER_SOURCE_DIR "/models/espalier-nano").value()));
#ifdef ESPALIER_BENCH_SHARED
  if (!testing::shared_available()) return true;
  const std::string source = read_file(testing::shared_path("oracle/chat/chat_template.jinja"), size_t{1} << 20).value();
  const std::shared_ptr<const ChatTemplate> qwen = ChatTemplate::parse(source, "chat_template.jinja").value();
  benchmark::RegisterBenchmark("qwen3.6/parse", [source](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ChatTemplate::parse(source, "chat_template.jinja").value());
  })->Unit(benchmark::kMillisecond);
  register_benches("qwen3.6/agent", agent_conversation(qwen));
  const Result<Workload> workload = load_workload(testing::shared_path("data/mlperf/agentic_coding_2.5h.jsonl"));
  if (!workload.ok()) return true;
  std::shared_ptr<const Conversation> longest;
  size_t longest_bytes = 0;
  for (const auto& recorded : workload->conversations) {
    Json messages = Json::array();
    for (size_t i = 0; i < recorded.turns.back().num_messages; ++i) messages.push_back(recorded.messages[i]);
    const std::shared_ptr<const Conversation> c = conversation(qwen, std::move(messages), recorded.tools);
    const size_t bytes = qwen->render(c->input, {}).value().size();
    if (bytes <= longest_bytes) continue;
    longest_bytes = bytes;
    longest = c;
  }
  register_benches("qwen3.6/longest", longest);
#endif
  return true;
}

const bool registered = register_all();

}  // namespace
}  // namespace espalier
