// SPDX-License-Identifier: Apache-2.0
#include "device/options.h"

#include <charconv>
#include <string_view>

#include <tenon/sdk/error.h>

namespace tenon::cuda {

std::optional<std::int64_t> engine_index(const std::string& text) {
  constexpr std::string_view word = "engine ";
  if (!text.starts_with(word)) return std::nullopt;
  std::int64_t index = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + word.size(), end, index);
  if (error != std::errc() || stop != end || index < 0) return std::nullopt;
  return index;
}

Options::Options(const sdk::Host& host) {
  const auto text = [&](const char* option) -> std::string {
    const char* const value = host.option(option);
    return value == nullptr ? "" : value;
  };
  naive = text("kernels") == "naive";
  nvtx = text("nvtx") == "on";
  small_products = !naive && text("products") != "library";
  programmatic_launch = text("programmatic_launch") == "on";
  if (text("recurrent") == "cooperative") recurrence = Recurrence::cooperative;
  if (naive || text("recurrent") == "library") recurrence = Recurrence::library;
  if (text("fp8") == "auto") fp8 = Fp8::automatic;
  if (text("fp8") == "all") fp8 = Fp8::all;
  kernel_cache = text("kernel_cache");
  if (text("elementwise") == "compiled") elementwise = Elementwise::compiled;
  if (text("elementwise") == "interpreted") elementwise = Elementwise::interpreted;
  const std::string algorithm = text("algorithm");
  measures = algorithm == "measure";
  engine = engine_index(algorithm);
  if (!algorithm.empty() && algorithm != "heuristic" && !measures && !engine) {
    throw sdk::Error(TENON_INVALID_ARGUMENT,
                     "backends.options.cuda.algorithm: expected heuristic, measure or an engine's name such as \"engine 37\", got \"" +
                         algorithm + "\"");
  }
  if (const std::string limit = text("workspace_limit_mib"); !limit.empty()) {
    std::size_t mebibytes = 0;
    std::from_chars(limit.data(), limit.data() + limit.size(), mebibytes);  // the host has validated the range
    workspace_limit = mebibytes << 20;
  }
}

}  // namespace tenon::cuda
