// SPDX-License-Identifier: Apache-2.0
// bench/memory_bus.h - the theoretical peak of a memory: 2 x clock x width / 8 x channels.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

namespace tenon::bench {

/// A memory as its data sheet describes it.
struct MemoryBus {
  double clock_mhz = 0;       ///< data moves twice per cycle: DDR4-2933 has 1466.67 MHz
  std::int64_t bits = 64;     ///< width of a channel; of a GPU: of the whole bus
  std::int64_t channels = 1;  ///< of a GPU: 1

  double peak_gb_per_s() const { return 2 * clock_mhz * 1e6 * static_cast<double>(bits) / 8 * static_cast<double>(channels) / 1e9; }
  /// "2 x 1466.67 MHz x 64 bits / 8 x 4 channels = 93.87 GB/s"
  std::string str() const {
    const std::string factor = channels == 1 ? "" : fmt::format(" x {} channels", channels);
    return fmt::format("2 x {:g} MHz x {} bits / 8{} = {:.2f} GB/s", clock_mhz, bits, factor, peak_gb_per_s());
  }
};

/// The memory that a backend tells of in the description of a device: "..., memory 2619 MHz x 5120 bits".
inline std::optional<MemoryBus> bus_of_description(const std::string& description) {
  static const std::regex pattern("\\bmemory ([0-9]{1,6}) MHz x ([0-9]{1,6}) bits");
  std::smatch match;
  if (!std::regex_search(description, match, pattern)) return std::nullopt;
  return MemoryBus{.clock_mhz = std::stod(match[1]), .bits = std::stoll(match[2])};
}

/// The main memory by the firmware's SMBIOS table: speed and width of its modules, one channel for each. Empty if it does not tell.
/// Source  DMTF: System Management BIOS Reference Specification, section 7.18, Memory Device (type 17).
inline std::optional<MemoryBus> bus_of_smbios(std::string_view table) {
  const auto byte = [&](std::size_t at) { return at < table.size() ? static_cast<unsigned char>(table[at]) : 0U; };
  const auto word = [&](std::size_t at) { return byte(at) | byte(at + 1) << 8; };
  MemoryBus bus{.channels = 0};
  for (std::size_t at = 0; at + 4 <= table.size() && byte(at + 1) >= 4;) {
    const std::size_t length = byte(at + 1);
    // Bytes beyond `length` belong to a later version of the table, or to the strings.
    const auto field = [&](std::size_t offset) { return offset + 2 <= length ? word(at + offset) : 0U; };
    constexpr std::size_t data_width = 0x0a, size = 0x0c, speed = 0x15, configured_speed = 0x20;
    if (byte(at) == 17 && field(size) != 0) {  // 0: an empty socket
      const unsigned transfers = field(configured_speed) != 0 ? field(configured_speed) : field(speed);
      if (transfers == 0 || transfers == 0xffff || field(data_width) == 0 || field(data_width) == 0xffff) return std::nullopt;
      bus.clock_mhz = transfers / 2.0;  // in millions of transfers per second
      bus.bits = field(data_width);
      ++bus.channels;
    }
    const std::size_t end = table.find(std::string_view("\0\0", 2), at + length);  // of the strings that follow each structure
    if (end == std::string_view::npos) break;
    at = end + 2;
  }
  return bus.channels > 0 ? std::optional(bus) : std::nullopt;
}

}  // namespace tenon::bench
