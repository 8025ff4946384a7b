#include "cli/serve_flags.h"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/format.h"

namespace espalier {
namespace {

constexpr size_t kMaxKeyFileBytes = 1 << 20;

// One key a line; empty lines and lines that begin with # say nothing.
Result<std::vector<std::string>> read_keys(const std::string& path) {
  ESPALIER_ASSIGN(const std::string text, read_file(path, kMaxKeyFileBytes));
  std::vector<std::string> keys;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(std::move(line));
  }
  if (keys.empty()) return make_error(ErrorCode::kInvalidArgument, "--api-key-file {}: holds no key", path);
  return keys;
}

void add_size(CLI::App& app, const std::string& name, size_t& value, const std::string& help) {
  app.add_option(name, value, help)->transform(CLI::Validator(refuse_negative, "SIZE"))->transform(CLI::AsSizeValue(false))->capture_default_str();
}

void add_count(CLI::App& app, const std::string& name, size_t& value, const std::string& help) {
  app.add_option(name, value, help)->check(CLI::Range(size_t{1}, size_t{1} << 40))->capture_default_str();
}

void add_seconds(CLI::App& app, const std::string& name, std::chrono::milliseconds& value, const std::string& help) {
  const double seconds = static_cast<double>(value.count()) / 1000.0;
  app.add_option_function<double>(
         name, [&value](double wanted) { value = std::chrono::milliseconds(static_cast<int64_t>(wanted * 1000.0)); }, help)
      ->check(CLI::Range(0.001, 1e6))
      ->default_str(format("{}", seconds));
}

}  // namespace

void ServeFlags::add_to(CLI::App& app) {
  app.add_option("model", engine.model, "Directory of the checkpoint; the default model otherwise");
  app.add_option("--host", server.http.host, "Address to listen on")->capture_default_str();
  app.add_option("--port", server.http.port, "Port; 0: any free one")->capture_default_str();
  app.add_option("--served-model-name", server.served_model_name, "Name of the model in answers; otherwise that of its directory");
  app.add_flag("--strict-model", server.strict_model, "Refuse requests that name another model");
  app.add_option("--thinking", thinking, "Whether the model reasons first where a request does not say: on, off, template")
      ->check(CLI::IsMember({"on", "off", "template"}))
      ->capture_default_str();
  engine.add_to(app);

  CLI::Option_group* access = app.add_option_group("Access");
  access->add_option("--api-key", api_key, "Key that every route but /health asks for (also ESPALIER_API_KEY)");
  access->add_option("--api-key-file", api_key_file, "Such keys, one a line");
  access->add_option("--tls-cert", server.http.tls_certificate, "Certificate chain, PEM: serve HTTPS");
  access->add_option("--tls-key", server.http.tls_key, "Its key, PEM");
  // One value for each flag: the model may stand behind it.
  access->add_option("--allowed-host", server.access.allowed_hosts, "Also answer to this host name; * answers to any")->allow_extra_args(false);
  access->add_option("--cors-origin", server.access.cors_origins, "Let pages of this origin use the server; * lets all")->allow_extra_args(false);

  CLI::Option_group* log = app.add_option_group("Log");
  log->add_flag("--log-json", log_json, "Log lines as JSON objects");
  log->add_flag("--log-prompts", server.log_prompts, "Also log what is asked and answered");

  CLI::Option_group* limits = app.add_option_group("Limits");
  HttpLimits& http = server.http.limits;
  add_size(*limits, "--max-body-bytes", http.max_body_bytes, "Body of a request");
  add_size(*limits, "--max-header-bytes", http.max_header_bytes, "Head of a request");
  add_count(*limits, "--max-connections", http.max_connections, "Connections at once");
  add_size(*limits, "--max-unsent-bytes", http.max_unsent_bytes, "Of an answer that its client does not read");
  add_seconds(*limits, "--header-timeout", http.header_timeout, "Seconds for the head of a request");
  add_seconds(*limits, "--body-timeout", http.body_timeout, "Seconds for its body");
  add_seconds(*limits, "--idle-timeout", http.idle_timeout, "Seconds between two requests of a connection");
  add_seconds(*limits, "--send-timeout", http.send_timeout, "Seconds without progress in sending");
  add_seconds(*limits, "--ping-after", server.ping_after, "Seconds of silence in a stream before a comment is sent");
  limits->add_option("--max-queue", engine.engine.max_queue, "Replies that may wait; more are answered 429")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  limits->add_option("--max-n", server.limits.max_choices, "Replies to one request (n)")->check(CLI::Range(int64_t{1}, int64_t{kMaxChoices}))->capture_default_str();
  add_count(*limits, "--max-prompts", server.limits.max_prompts, "Prompts of a completion request");
  limits->add_option("--max-stops", server.limits.max_stops, "Stop strings")->check(CLI::Range(size_t{0}, kMaxStops))->capture_default_str();
  limits->add_option("--max-logit-bias", server.limits.max_logit_bias, "Entries of logit_bias")->check(CLI::Range(size_t{0}, kMaxLogitBias))->capture_default_str();
  add_count(*limits, "--max-messages", server.limits.messages.max_messages, "Messages of a request");
  add_count(*limits, "--max-tools", server.limits.messages.max_tools, "Tools of a request");
  limits->add_option("--max-json-depth", server.limits.max_json_depth, "Nesting of a body")->check(CLI::Range(4, 1000))->capture_default_str();
  add_count(*limits, "--max-template-steps", server.limits.max_template_steps, "Work of rendering a prompt");
}

Result<ApiServerOptions> ServeFlags::server_options() const {
  ApiServerOptions options = server;
  options.thinking = thinking == "on" ? Thinking::kOn : thinking == "template" ? Thinking::kTemplate : Thinking::kOff;
  if (!api_key_file.empty()) {
    ESPALIER_ASSIGN(options.access.api_keys, read_keys(api_key_file));
  }
  const char* from_environment = std::getenv("ESPALIER_API_KEY");
  if (!api_key.empty()) {
    options.access.api_keys.push_back(api_key);
  } else if (api_key_file.empty() && from_environment != nullptr && *from_environment != '\0') {
    options.access.api_keys.emplace_back(from_environment);
  }
  if (options.http.tls_certificate.empty() != options.http.tls_key.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "--tls-cert and --tls-key belong together");
  }
  return options;
}

}  // namespace espalier
