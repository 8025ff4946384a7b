// Values of the template language, with Python's meaning: one 32-byte copyable cell that borrows its parts from the arena, the
// template or the request. Every value carries an origin: that of its text once it is printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "chat/jinja/text.h"

namespace espalier::jinja {

// The integers computed with; Python's have no bound, results beyond these are errors.
__extension__ using Integer = __int128;

enum class Kind : uint8_t {
  kMissing,    // internal: no value at all; a template never sees it
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kSequence,
  kDict,
  kNamespace,
  kLoop,
  kMacro,
  kFunction,   // a global such as range
  kMethod,     // a method bound to its object
  kCycler,
  kJoiner,
};

enum class SequenceKind : uint8_t {
  kList,
  kTuple,
  kView,       // dict.keys() and friends: a length, no index
  kGenerator,  // result of map, select, items ...: always true, no length
};

// What makes an undefined value: decides the message of the error that using it raises.
enum class Absence : uint8_t { kName, kAttribute, kElement, kUnsafe, kParameter };

class Value;
struct Entry;
struct NamespaceObject;
struct LoopState;
struct Macro;
struct BoundMethod;
struct CyclerState;
struct JoinerState;
struct Builtin;

class Value {
 public:
  Value() : kind_(Kind::kMissing) { payload_.integer = 0; }

  static Value none(Origin origin = Origin::kTemplate) { return Value(Kind::kNone, origin); }
  static Value boolean(bool value, Origin origin = Origin::kTemplate);
  static Value integer(Integer value, Origin origin = Origin::kTemplate);
  static Value floating(double value, Origin origin = Origin::kTemplate);
  static Value string(const Text& text);
  static Value string(std::string_view bytes, Origin origin) { return string(Text{bytes, origin, nullptr}); }
  static Value markup(const Text& text);  // a string that `escape` and concatenation leave as it is
  static Value sequence(std::span<const Value> items, SequenceKind kind, Origin origin = Origin::kTemplate);
  static Value dict(std::span<const Entry> entries, Origin origin = Origin::kTemplate);
  // `owner_type` is the Python type whose attribute or element was asked for, empty for a plain name.
  static Value undefined(Absence absence, std::string_view name, const char* owner_type = "");
  static Value object(NamespaceObject* value) { return pointer(Kind::kNamespace, value); }
  static Value object(LoopState* value) { return pointer(Kind::kLoop, value); }
  static Value object(const Macro* value) { return pointer(Kind::kMacro, value); }
  static Value object(const Builtin* value) { return pointer(Kind::kFunction, value); }
  static Value object(const BoundMethod* value) { return pointer(Kind::kMethod, value); }
  static Value object(CyclerState* value) { return pointer(Kind::kCycler, value); }
  static Value object(JoinerState* value) { return pointer(Kind::kJoiner, value); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_missing() const { return kind_ == Kind::kMissing; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_markup() const { return kind_ == Kind::kString && detail_ != 0; }
  bool is_number() const { return kind_ == Kind::kInt || kind_ == Kind::kFloat || kind_ == Kind::kBool; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }

  // Origin of the value's own printed characters; of a string: kInput if any byte is.
  Origin origin() const;

  bool as_bool() const { return payload_.boolean; }
  Integer as_integer() const { return kind_ == Kind::kBool ? Integer{payload_.boolean} : payload_.integer; }
  double as_float() const { return payload_.floating; }
  Text text() const { return {bytes(), origin_, marks_}; }
  std::string_view bytes() const { return {payload_.range.data, payload_.range.size}; }
  std::span<const Value> items() const { return {payload_.items.data, payload_.items.size}; }
  SequenceKind sequence_kind() const { return static_cast<SequenceKind>(detail_); }
  std::span<const Entry> entries() const;
  Absence absence() const { return static_cast<Absence>(detail_); }
  const char* owner_type() const { return owner_type_; }
  NamespaceObject* as_namespace() const { return static_cast<NamespaceObject*>(payload_.object); }
  LoopState* as_loop() const { return static_cast<LoopState*>(payload_.object); }
  const Macro* as_macro() const { return static_cast<const Macro*>(payload_.object); }
  const Builtin* as_function() const { return static_cast<const Builtin*>(payload_.object); }
  const BoundMethod* as_method() const { return static_cast<const BoundMethod*>(payload_.object); }
  CyclerState* as_cycler() const { return static_cast<CyclerState*>(payload_.object); }
  JoinerState* as_joiner() const { return static_cast<JoinerState*>(payload_.object); }

 private:
  Value(Kind kind, Origin origin) : kind_(kind), origin_(origin) { payload_.integer = 0; }
  template <typename T>
  static Value pointer(Kind kind, T* object) {
    Value value(kind, Origin::kTemplate);
    value.payload_.object = const_cast<void*>(static_cast<const void*>(object));
    return value;
  }

  Kind kind_;
  Origin origin_ = Origin::kTemplate;
  uint8_t detail_ = 0;  // string: markup; sequence: SequenceKind; undefined: Absence
  union {
    const Marks* marks_ = nullptr;  // string
    const char* owner_type_;        // undefined
  };
  union {
    bool boolean;
    Integer integer;
    double floating;
    struct {
      const char* data;
      size_t size;
    } range;
    struct {
      const Value* data;
      size_t size;
    } items;
    struct {
      const Entry* data;
      size_t size;
    } entries;
    void* object;
  } payload_;
};
static_assert(sizeof(Value) == 32);

struct Entry {
  Value key;
  Value value;
};

// namespace(...): the only object a template can change.
struct NamespaceObject {
  std::span<Entry> entries;  // first `count` in use
  size_t count = 0;
};

// Name of the value's type as Python prints it: "str", "int", "dict", "list", "NoneType", ...
const char* type_name(const Value& value);
// The same as Jinja words it in messages about attributes: "str object", "None", "jinja2.utils.Namespace object".
const char* type_phrase(const Value& value);
bool is_truthy(const Value& value);
// Python's ==. `depth` guards against values nested without end.
bool equals(const Value& a, const Value& b, int depth = 0);
// -1, 0 or 1; fails with Python's message (naming `operation`) for values that have no order.
int compare(const Value& a, const Value& b, std::string_view operation, int depth = 0);
// nullptr if the dictionary has no such key.
const Value* find_key(std::span<const Entry> entries, const Value& key);
const Value* find_key(std::span<const Entry> entries, std::string_view key);
// Raises the error that Jinja raises when an undefined value is used.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace espalier::jinja
