// Errors as values. An outside fault (a file, a request, a limit of the machine) travels as Error inside a Result<T>; a broken
// invariant of our own is ESPALIER_CHECK, which prints and aborts. Thread-compatible, no global state.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace espalier {

enum class ErrorCode {
  kInvalidArgument,    // a request, flag or value that is wrong by itself
  kNotFound,           // a file or name that does not exist
  kCorrupt,            // a file whose content contradicts itself or its format
  kUnsupported,        // valid, but something this build does not do
  kResourceExhausted,  // a limit or budget that cannot be met
  kContextLength,      // a prompt longer than the context allows
  kIo,                 // the operating system refused
  kCancelled,
  kInternal,
};

std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one line; names the thing, the value found and the value expected
};

// Either a T or an Error. `value()` on an error aborts: test `ok()` first or use ESPALIER_TRY.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}      // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { require_ok(); return *std::get_if<0>(&state_); }
  const T& value() const& { require_ok(); return *std::get_if<0>(&state_); }
  T&& value() && { require_ok(); return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  void require_ok() const;
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

[[noreturn]] void check_failed(const char* file, int line, std::string_view what);

template <typename T>
void Result<T>::require_ok() const {
  if (!ok()) check_failed(__FILE__, __LINE__, "value() of an error: " + error().message);
}

}  // namespace espalier

// Aborts with file, line and the failed expression. For our own bugs only.
#define ESPALIER_CHECK(condition)                                         \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::espalier::check_failed(__FILE__, __LINE__, #condition);           \
  } while (false)

#define ESPALIER_CONCAT_INNER(a, b) a##b
#define ESPALIER_CONCAT(a, b) ESPALIER_CONCAT_INNER(a, b)

// ESPALIER_TRY(expr): returns the error of a Status. ESPALIER_ASSIGN(lhs, expr): assigns the value or returns the error.
#define ESPALIER_TRY(expr)                                                \
  do {                                                                    \
    auto espalier_status = (expr);                                        \
    if (!espalier_status.ok()) return std::move(espalier_status).error(); \
  } while (false)
#define ESPALIER_ASSIGN(lhs, expr) ESPALIER_ASSIGN_INNER(ESPALIER_CONCAT(espalier_result_, __LINE__), lhs, expr)
#define ESPALIER_ASSIGN_INNER(tmp, lhs, expr)        \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return std::move(tmp).error();      \
  lhs = std::move(tmp).value()
