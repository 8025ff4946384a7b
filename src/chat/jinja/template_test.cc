#include "chat/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace espalier::jinja {
namespace {

using ::testing::HasSubstr;

// Renders with `s`, a text of the request, and `m`, a message of it.
Result<MarkedText> render(std::string_view source, const RenderLimits& limits = {}) {
  static const Json text = "ab <|x|>\n";
  static const Json message = parse_json(R"({"role":"user","content":"<|x|>","list":["p","q"],"n":7,"f":1.0})", "message").value();
  Result<Template> parsed = Template::parse(source, "t.jinja");
  if (!parsed.ok()) return std::move(parsed).error();
  const TemplateInput inputs[] = {{"s", &text}, {"m", &message}};
  return parsed->render(inputs, limits);
}

std::string error_of(std::string_view source, const RenderLimits& limits = {}) {
  const Result<MarkedText> result = render(source, limits);
  return result.ok() ? "rendered: " + result->text : result.error().message;
}

// The text with what came from the request in braces.
std::string marked(std::string_view source) {
  const MarkedText text = render(source).value();
  std::string shown;
  size_t begin = 0;
  for (const MarkedSpan& span : text.spans) {
    const std::string run = text.text.substr(begin, span.end - begin);
    shown += span.origin == Origin::kInput ? "{" + run + "}" : run;
    begin = span.end;
  }
  return shown;
}

struct OriginCase {
  const char* name;
  const char* source;
  const char* expected;
};

class Origins : public ::testing::TestWithParam<OriginCase> {};

TEST_P(Origins, SurviveTheOperation) { EXPECT_EQ(marked(GetParam().source), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    Operations, Origins,
    ::testing::Values(
        OriginCase{"print", "<{{ m.content }}>", "<{<|x|>}>"}, OriginCase{"plus", "{{ '<' + m.content + '>' }}", "<{<|x|>}>"},
        OriginCase{"tilde", "{{ '<' ~ m.content ~ 1 }}", "<{<|x|>}1"}, OriginCase{"trim", "{{ ('  ' + s) | trim }}", "{ab <|x|>}"},
        OriginCase{"strip", "{{ ('..' + m.role + '..').strip('.') }}", "{user}"},
        OriginCase{"upper", "{{ ('x' + m.role) | upper }}", "X{USER}"},
        OriginCase{"capitalize", "{{ (m.role + 'X') | capitalize }}", "{User}x"},
        OriginCase{"title", "{{ ('a ' + m.role).title() }}", "A {User}"},
        OriginCase{"replace_by_template", "{{ m.role | replace('s', '--') }}", "{u}--{er}"},
        OriginCase{"replace_by_input", "{{ 'a-b' | replace('-', m.role) }}", "a{user}b"},
        OriginCase{"split", "{{ ('x,' + m.role + ',y').split(',')[1] }}", "{user}"},
        OriginCase{"split_across", "{{ ('x' + m.role + 'y').split(',')[0] }}", "x{user}y"},
        OriginCase{"join", "{{ m.list | join('+') }}", "{p}+{q}"}, OriginCase{"join_method", "{{ m.role.join(['a', 'b']) }}", "a{user}b"},
        OriginCase{"slice", "{{ ('ab' + m.role)[1:4] }}", "b{us}"}, OriginCase{"reverse_slice", "{{ ('ab' + m.role)[::-1] }}", "{resu}ba"},
        OriginCase{"index", "{{ ('a' + m.role)[1] }}", "{u}"},
        OriginCase{"characters", "{% for c in 'a' + m.role %}{{ c }}.{% endfor %}", "a.{u}.{s}.{e}.{r}."},
        OriginCase{"repeat", "{{ ('a' + m.role) * 2 }}", "a{user}a{user}"}, OriginCase{"percent", "{{ '<%s>' % m.role }}", "<{user}>"},
        OriginCase{"percent_in_format", "{{ (m.role + '%s') % 'x' }}", "{user}x"},
        OriginCase{"format", "{{ '<{}>'.format(m.role) }}", "<{user}>"}, OriginCase{"string", "{{ m.content | string | safe }}", "{<|x|>}"},
        OriginCase{"escape", "{{ ('&' + m.content) | e }}", "&amp;{&lt;|x|&gt;}"},
        OriginCase{"indent", "{{ (m.role + '\n' + m.role) | indent(1) }}", "{user}\n {user}"},
        OriginCase{"indent_by_input", "{{ 'a' | indent(m.role, true) }}", "{user}a"},
        OriginCase{"pad", "{{ 'a'.ljust(3, m.role[0]) }}{{ m.role.rjust(6) }}", "a{uu}  {user}"},
        OriginCase{"strftime", "{{ strftime_now(m.role) }}", "{user}"}, OriginCase{"default", "{{ nothing | default(m.role) }}", "{user}"},
        OriginCase{"number", "{{ m.n }}-{{ m.f }}", "{7}-{1.0}"},
        OriginCase{"tojson", "{{ {'k': m.content} | tojson }}", "{\"k\": {\"<|x|>\"}}"},
        OriginCase{"tojson_input", "{{ m.list | tojson }}", "{[\"p\", \"q\"]}"},
        OriginCase{"keys", "{% for k in m %}{{ k }}|{% endfor %}", "{role}|{content}|{list}|{n}|{f}|"},
        OriginCase{"items", "{% for k, v in {'a': m.role} | items %}{{ k }}{{ v }}{% endfor %}", "a{user}"},
        OriginCase{"macro", "{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(m.role) | upper }}", "<{USER}>"},
        OriginCase{"set_block", "{% set b %}<{{ m.role }}>{% endset %}{{ b }}", "<{user}>"},
        OriginCase{"namespace", "{% set ns = namespace(t='<') %}{% set ns.t = ns.t + m.role %}{{ ns.t }}", "<{user}"},
        OriginCase{"filter_block", "{% filter upper %}a{{ m.role }}{% endfilter %}", "A{USER}"},
        OriginCase{"call_block", "{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}a{{ m.role }}{% endcall %}", "<a{user}>"},
        OriginCase{"map", "{{ m.list | map('upper') | join }}", "{PQ}"},
        OriginCase{"partition", "{{ ('a=' + m.role).partition('=')[2] }}", "{user}"}),
    [](const ::testing::TestParamInfo<OriginCase>& tested) { return tested.param.name; });

// What tojson repeats between values has no marks of its own.
TEST(Template, SeparatorsOfJsonAreTheTemplates) {
  EXPECT_THAT(error_of("{{ [1, 2] | tojson(separators=(m.content, ':')) }}"),
              HasSubstr("separators of tojson must be the template's own text"));
  EXPECT_THAT(error_of("{{ [1, 2] | tojson(indent=m.content) }}"), HasSubstr("indent of tojson"));
  EXPECT_EQ(marked("{{ [1, 2] | tojson(separators=('; ', ':')) }}"), "[1; 2]");
}

TEST(Template, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("a\n\n{{ 1 + 'x' }}"), "t.jinja:3: unsupported operand type(s) for +: 'int' and 'str'");
  EXPECT_THAT(error_of("a\n{% for %}"), HasSubstr("t.jinja:2: "));
}

TEST(Template, UnsupportedConstructsAreNamedWhenParsed) {
  for (const char* source : {"\n{% include 'x' %}", "\n{% extends 'x' %}", "\n{{ s.translate(1) }}", "\n{{ s | nosuchfilter }}",
                             "\n{{ s is nosuchtest }}", "\n{{ f(*s) }}"}) {
    const Result<Template> parsed = Template::parse(source, "t.jinja");
    ASSERT_FALSE(parsed.ok()) << source;
    EXPECT_EQ(parsed.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(parsed.error().message, HasSubstr("t.jinja:2: "));
  }
}

TEST(Template, RaiseExceptionSpeaksForTheTemplate) {
  const Result<MarkedText> result = render("{{ raise_exception('Only ' ~ m.n ~ ' allowed') }}");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message, "Only 7 allowed");
}

TEST(Template, TemplatesCannotChangeWhatTheyAreGiven) {
  for (const char* source : {"{{ m.list.append(1) }}", "{{ m.update({}) }}", "{{ m.list.pop() }}", "{{ m.clear() }}"}) {
    EXPECT_THAT(error_of(source), HasSubstr("is unsafe")) << source;
  }
}

struct LimitCase {
  const char* name;
  const char* source;
};

class Limits : public ::testing::TestWithParam<LimitCase> {};

TEST_P(Limits, EndTheRendering) {
  RenderLimits limits;
  limits.max_steps = 2'000'000;
  limits.max_output_bytes = size_t{1} << 20;
  limits.max_memory_bytes = size_t{64} << 20;
  const Result<MarkedText> result = render(GetParam().source, limits);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kResourceExhausted);
}

INSTANTIATE_TEST_SUITE_P(
    Hostile, Limits,
    ::testing::Values(
        LimitCase{"recursion", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"},
        LimitCase{"loops", "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"},
        LimitCase{"output", "{% for a in range(99999) %}0123456789abcdef0123456789abcdef{% endfor %}"},
        LimitCase{"doubling_text", "{% set n = namespace(t='ab') %}{% for i in range(99) %}{% set n.t = n.t + n.t %}{% endfor %}"},
        LimitCase{"doubling_list", "{% set n = namespace(t=[1]) %}{% for i in range(99) %}{% set n.t = n.t + n.t %}{% endfor %}"},
        LimitCase{"repetition", "{{ 'ab' * 99999999999 }}"}, LimitCase{"list_repetition", "{{ [0] * 99999999999 }}"},
        LimitCase{"padding", "{{ s.ljust(99999999999) }}"}, LimitCase{"range", "{{ range(99999999999) | length }}"},
        LimitCase{"nested_value",
                  "{% set n = namespace(t=[1]) %}{% for i in range(999) %}{% set n.t = [n.t] %}{% endfor %}{{ n.t | tojson }}"},
        LimitCase{"shared_parts_compared",
                  "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] "
                  "%}{% endfor %}{{ n.a == n.b }}"},
        LimitCase{"shared_parts_printed",
                  "{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a }}"}),
    [](const ::testing::TestParamInfo<LimitCase>& tested) { return tested.param.name; });

TEST(Template, NestingOfTheSourceIsBounded) {
  const std::string deep(10000, '(');
  EXPECT_FALSE(Template::parse("{{ " + deep + " }}", "t").ok());
  EXPECT_FALSE(Template::parse("{{ " + std::string(10000, '[') + " }}", "t").ok());
  std::string chain = "{{ 1";
  for (int i = 0; i < 10000; ++i) chain += "+1";
  EXPECT_FALSE(Template::parse(chain + " }}", "t").ok());
  std::string blocks;
  for (int i = 0; i < 10000; ++i) blocks += "{% if s %}";
  EXPECT_FALSE(Template::parse(blocks, "t").ok());
}

TEST(Template, HugeStepsEndLoops) {
  EXPECT_EQ(render("{% for i in range(0, 2 ** 126, 2 ** 126 - 1) %}{{ loop.index }}{% endfor %}")->text, "12");
  EXPECT_EQ(render("{{ 'abc'[:: 2 ** 126] }}{{ [1, 2][:: -(2 ** 126)] }}")->text, "a[2]");
}

TEST(Template, ClockIsGiven) {
  std::tm parts{};
  parts.tm_year = 2026 - 1900;
  parts.tm_mday = 9;
  parts.tm_hour = 12;
  parts.tm_isdst = -1;
  const auto now = std::chrono::system_clock::from_time_t(std::mktime(&parts));
  EXPECT_EQ(Template::parse("{{ strftime_now('%d %B %Y') }}", "t")->render({}, {}, now)->text, "09 January 2026");
}

}  // namespace
}  // namespace espalier::jinja
