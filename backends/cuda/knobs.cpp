#include "knobs.h"

#include <charconv>
#include <string_view>

#include <tenon/sdk/error.h>

namespace tenon::cuda {

std::optional<std::int64_t> engine_number(const std::string& text) {
  constexpr std::string_view word = "engine ";
  if (!text.starts_with(word)) return std::nullopt;
  std::int64_t number = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + word.size(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

Knobs::Knobs(const sdk::Host& host) {
  const auto text = [&](const char* knob) -> std::string {
    const char* const value = host.option(knob);
    return value == nullptr ? "" : value;
  };
  naive = text("kernels") == "naive";
  const std::string algorithm = text("algorithm");
  measures = algorithm == "measure";
  engine = engine_number(algorithm);
  if (!algorithm.empty() && algorithm != "heuristic" && !measures && !engine) {
    throw sdk::Error(
        TENON_INVALID_ARGUMENT,
        "backends.options.cuda.algorithm: wanted heuristic, measure or an engine's name such as \"engine 37\", got \"" + algorithm + "\"");
  }
  if (const std::string limit = text("workspace_limit_mib"); !limit.empty()) {
    std::size_t mebibytes = 0;
    std::from_chars(limit.data(), limit.data() + limit.size(), mebibytes);  // the host has checked that it is a number in range
    workspace_limit = mebibytes << 20;
  }
}

}  // namespace tenon::cuda
