// SPDX-License-Identifier: Apache-2.0
// The theoretical peak of a memory, and where the system tells of it.
#include <doctest/doctest.h>

#include <string>

#include "../../tools/bench/memory_bus.h"

using namespace tenon::bench;

namespace {

/// An SMBIOS structure with its strings.
std::string structure(unsigned char type, std::string body, const std::string& strings = "DIMM 0") {
  std::string text{static_cast<char>(type), static_cast<char>(body.size() + 4), '\1', '\0'};
  return text + body + strings + std::string(2, '\0');
}

/// A memory module: 64 bits wide, with `size` in MiB and `speed` in millions of transfers per second.
std::string memory_module(unsigned size, unsigned speed) {
  std::string body(0x22 - 4, '\0');
  const auto put = [&](std::size_t offset, unsigned value) {
    body[offset - 4] = static_cast<char>(value & 0xff);
    body[offset - 3] = static_cast<char>(value >> 8);
  };
  put(0x0a, 64);
  put(0x0c, size);
  put(0x15, 3200);
  put(0x20, speed);
  return structure(17, body);
}

}  // namespace

TEST_CASE("memory bus: DDR4-2933 on four channels moves 93.87 GB/s, and a GPU 2 x clock x width / 8") {
  const MemoryBus ddr4{.clock_mhz = 1466.67, .bits = 64, .channels = 4};
  CHECK(ddr4.str() == "2 x 1466.67 MHz x 64 bits / 8 x 4 channels = 93.87 GB/s");
  const MemoryBus v100{.clock_mhz = 877, .bits = 4096};
  CHECK(v100.str() == "2 x 877 MHz x 4096 bits / 8 = 898.05 GB/s");
}

TEST_CASE("memory bus: a device's description and the firmware's table tell of it") {
  const auto gpu = bus_of_description("CUDA 13.0, 132 multiprocessors, memory 2619 MHz x 5120 bits");
  REQUIRE(gpu);
  CHECK(gpu->peak_gb_per_s() == doctest::Approx(3352.32));
  CHECK(!bus_of_description("plain C++ loops"));

  const std::string others = structure(1, "body", ""), empty_socket = memory_module(0, 0);
  const auto modules = bus_of_smbios(others + memory_module(16384, 2933) + empty_socket + memory_module(16384, 2933) + structure(127, ""));
  REQUIRE(modules);
  CHECK(modules->channels == 2);
  CHECK(modules->peak_gb_per_s() == doctest::Approx(46.928));
  CHECK(bus_of_smbios(memory_module(8192, 0))->clock_mhz == 1600);  // only the highest speed is known
}

TEST_CASE("memory bus: a table that is damaged or tells nothing gives none") {
  CHECK(!bus_of_smbios(""));
  CHECK(!bus_of_smbios(memory_module(0, 2933)));
  CHECK(!bus_of_smbios(memory_module(8192, 0xffff)));
  CHECK(!bus_of_smbios(std::string(100, '\0')));
  const std::string whole = memory_module(8192, 2933);
  for (std::size_t length = 0; length < 0x22; ++length) static_cast<void>(bus_of_smbios(std::string_view(whole).substr(0, length)));
}
