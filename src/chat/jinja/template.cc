#include "chat/jinja/template.h"

#include "chat/jinja/parser.h"

namespace espalier::jinja {
namespace {

constexpr size_t kMaxSource = size_t{4} << 20;

Error to_error(const TemplateError& error, std::string_view name) {
  switch (error.failure) {
    case Failure::kRaised: return {ErrorCode::kInvalidArgument, error.message};
    case Failure::kRuntime: return make_error(ErrorCode::kInvalidArgument, "{}:{}: {}", name, error.line, error.message);
    case Failure::kLimit: return make_error(ErrorCode::kResourceExhausted, "{}:{}: {}", name, error.line, error.message);
    case Failure::kSyntax:
    case Failure::kUnsupported: break;
  }
  return make_error(ErrorCode::kUnsupported, "{}:{}: {}", name, error.line, error.message);
}

// JSON as the template sees it; strings are borrowed. Depth is bounded by the JSON reader's own limit.
Value to_value(Arena& arena, const Json& json, Origin origin) {
  switch (json.type()) {
    case Json::value_t::boolean: return Value::boolean(json.get<bool>(), origin);
    case Json::value_t::number_integer: return Value::integer(json.get<int64_t>(), origin);
    case Json::value_t::number_unsigned: return Value::integer(static_cast<Integer>(json.get<uint64_t>()), origin);
    case Json::value_t::number_float: return Value::floating(json.get<double>(), origin);
    case Json::value_t::string: return Value::string(json.get_ref<const std::string&>(), origin);
    case Json::value_t::array: {
      const std::span<Value> items = arena.array<Value>(json.size());
      for (size_t i = 0; i < items.size(); ++i) items[i] = to_value(arena, json[i], origin);
      return Value::sequence(items, SequenceKind::kList, origin);
    }
    case Json::value_t::object: {
      const std::span<Entry> entries = arena.array<Entry>(json.size());
      size_t i = 0;
      for (auto member = json.begin(); member != json.end(); ++member, ++i) {
        entries[i] = {Value::string(member.key(), origin), to_value(arena, member.value(), origin)};
      }
      return Value::dict(entries, origin);
    }
    default: return Value::none(origin);
  }
}

}  // namespace

Result<Template> Template::parse(std::string_view source, std::string_view name) {
  if (source.size() > kMaxSource)
    return make_error(ErrorCode::kResourceExhausted, "{}: {} bytes of template exceed the limit of {}", name, source.size(), kMaxSource);
  try {
    return Template(parse_program(source), std::string(name));
  } catch (const TemplateError& error) {
    return to_error(error, name);
  }
}

Result<MarkedText> Template::render(std::span<const TemplateInput> inputs, const RenderLimits& limits,
                                    std::chrono::system_clock::time_point now) const {
  try {
    Arena values(limits.max_memory_bytes);
    std::vector<NamedInput> named;
    for (const TemplateInput& input : inputs) named.push_back({input.name, to_value(values, *input.value, input.origin)});
    Evaluation evaluation(*program_, named, limits, now);
    return evaluation.run();
  } catch (const TemplateError& error) {
    return to_error(error, name_);
  }
}

}  // namespace espalier::jinja
