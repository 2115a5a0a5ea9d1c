// SPDX-License-Identifier: Apache-2.0
#include "io/limits.h"

#include <charconv>
#include <new>
#include <stdexcept>

#include <tenon/error.h>

#include "platform/system.h"

namespace tenon::io {
namespace {

struct Row {
  const char* name;
  std::uint64_t value;
  const char* what;
};

constexpr Row rows[] = {
#define TENON_LIMIT_ROW(name, value, what) {#name, value, what},
    TENON_LIMITS(TENON_LIMIT_ROW)
#undef TENON_LIMIT_ROW
};

const Row& row_of(Limit which) {
  return rows[static_cast<std::size_t>(which)];
}

std::string variable_of(const Row& row) {
  std::string text = std::string("TENON_LIMIT_") + row.name;
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

}  // namespace

std::uint64_t limit(Limit which) {
  const std::string variable = variable_of(row_of(which));
  const std::string text = platform::environment_variable(variable).value_or("");
  if (text.empty()) return row_of(which).value;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0)
    throw Error("environment " + variable + ": expected a positive integer, got '" + text + "'");
  return value;
}

void fail_limit(const std::string& where, Limit which, const std::string& got) {
  const Row& row = row_of(which);
  throw Error(where + ": expected at most " + std::to_string(limit(which)) + " " + row.what + ", got " + got + "; the environment's " +
              variable_of(row) + " raises this limit for files that you trust");
}

void check_limit(const std::string& where, Limit which, std::uint64_t got) {
  if (got > limit(which)) fail_limit(where, which, std::to_string(got));
}

std::vector<std::uint8_t> new_buffer(const std::string& path, std::uint64_t size_bytes) {
  try {
    return std::vector<std::uint8_t>(static_cast<std::size_t>(size_bytes));
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(Status::out_of_memory, path + ": out of memory: its content needs " + std::to_string(size_bytes) + " bytes");
}

}  // namespace tenon::io
