// SPDX-License-Identifier: Apache-2.0
// Copies and fills: all directions, any alignment, no writes out of range, and impossible ranges.
#include <algorithm>
#include <limits>

#include "core.h"

namespace tenon::conformance {
namespace {

void round_trip(CaseContext& context) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{1000003}}) {
    const Memory memory(context, size);
    upload(context, memory.address, pattern(size, size));
    expect_bytes(pattern(size, size), download(context, memory.address, size), "copied to the device and back");
  }
}

void device_to_device(CaseContext& context) {
  const Memory a(context, 5000), b(context, 5000);
  upload(context, a.address, pattern(5000, 1));
  upload(context, b.address, pattern(5000, 2));
  const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, b.address + 8, a.address + 16, 4000);
  expect_ok("copy", context.device.table().copy, context.device.handle(), &copy, context.device.stream());
  synchronize(context);
  std::vector<unsigned char> expected = pattern(5000, 2);
  const std::vector<unsigned char> source = pattern(5000, 1);
  std::copy_n(source.begin() + 16, 4000, expected.begin() + 8);
  expect_bytes(expected, download(context, b.address, 5000), "device to device, inside both");
  expect_bytes(source, download(context, a.address, 5000), "the source of a copy");
}

/// From any byte to any byte of one block, with the other bytes unchanged.
void unaligned(CaseContext& context) {
  constexpr std::uint64_t size = 4096, half = size / 2;
  const Memory memory(context, size);
  const tenon_backend_table& table = context.device.table();
  for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{64}, std::uint64_t{129}, std::uint64_t{1000}}) {
    for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{63}}) {
      for (const std::uint64_t to : {half, half + 1, half + 13, size - length}) {
        std::vector<unsigned char> expected = pattern(size, from * 100 + length);
        upload(context, memory.address, expected);
        const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, memory.address + to, memory.address + from, length);
        expect_ok("copy", table.copy, context.device.handle(), &copy, context.device.stream());
        synchronize(context);
        std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(from), length, expected.begin() + static_cast<std::ptrdiff_t>(to));
        expect_bytes(expected, download(context, memory.address, size),
                     fmt::format("{} bytes copied within a block, from {} to {}", length, from, to).c_str());
      }
    }
  }
  // Adjacent ranges do not overlap.
  std::vector<unsigned char> expected = pattern(size, 1);
  upload(context, memory.address, expected);
  const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, memory.address + 1500, memory.address + 500, 1000);
  expect_ok("copy", table.copy, context.device.handle(), &copy, context.device.stream());
  synchronize(context);
  std::copy_n(expected.begin() + 500, 1000, expected.begin() + 1500);
  expect_bytes(expected, download(context, memory.address, size), "bytes copied to the range right after them");
}

/// Host memory at odd addresses, both ways, into the middle of a block.
void unaligned_host(CaseContext& context) {
  constexpr std::size_t size = 3000;
  const Memory memory(context, size);
  const std::vector<unsigned char> clean = pattern(size, 21);
  for (const std::size_t skew : {std::size_t{1}, std::size_t{3}, std::size_t{17}}) {
    upload(context, memory.address, clean);
    const std::vector<unsigned char> host = pattern(skew + 1501, 22);
    expect_ok("a copy from an odd host address", &Device::upload, context.device, memory.address + skew, host.data() + skew, 1501);
    std::vector<unsigned char> expected = clean;
    std::copy(host.begin() + static_cast<std::ptrdiff_t>(skew), host.end(), expected.begin() + static_cast<std::ptrdiff_t>(skew));
    expect_bytes(expected, download(context, memory.address, size), "a block after a copy from an odd host address");
    std::vector<unsigned char> back(skew + 1501 + 64, 0xA5);
    expect_ok("a copy to an odd host address", &Device::download, context.device, back.data() + skew, memory.address + skew, 1501);
    std::vector<unsigned char> expected_host(back.size(), 0xA5);
    std::copy(host.begin() + static_cast<std::ptrdiff_t>(skew), host.end(), expected_host.begin() + static_cast<std::ptrdiff_t>(skew));
    expect_bytes(expected_host, back, "host memory around a copy to an odd address");
  }
}

/// Ranges that run past the end of the address space, and an unknown direction.
void impossible(CaseContext& context) {
  constexpr std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  const Memory memory(context, 4096);
  upload(context, memory.address, pattern(4096, 23));
  std::vector<unsigned char> host(64);
  const tenon_backend_table& table = context.device.table();
  const auto refuse = [&](const tenon_copy& copy, const char* what, tenon_status status = TENON_INVALID_ARGUMENT) {
    ErrorText error;
    expect_refusal(table.copy(context.device.handle(), &copy, context.device.stream(), error), error, {status}, what);
  };
  refuse(copy_of(TENON_COPY_HOST_TO_DEVICE, memory.address, address_of(host.data()), max - 100),
         "a copy to the device that runs past the end of the address space");
  refuse(copy_of(TENON_COPY_DEVICE_TO_HOST, address_of(host.data()), memory.address, max - 100),
         "a copy from the device that runs past the end of the address space");
  refuse(copy_of(TENON_COPY_DEVICE_TO_DEVICE, memory.address, memory.address + 2048, max),
         "a copy within the device that runs past the end of the address space");
  refuse(copy_of(77, memory.address, memory.address + 2048, 16), "a copy in direction 77", TENON_UNSUPPORTED);
  ErrorText error;
  expect_refusal(table.fill(context.device.handle(), memory.address, max - 100, 1, context.device.stream(), error), error,
                 {TENON_INVALID_ARGUMENT}, "a fill that runs past the end of the address space");
  expect_bytes(pattern(4096, 23), download(context, memory.address, 4096), "after copies that were refused");
  expect_sane(context);
}

void copy_of_nothing(CaseContext& context) {
  const Memory memory(context, 16);
  upload(context, memory.address, pattern(16, 3));
  unsigned char byte = 0;
  for (const std::uint32_t direction : {TENON_COPY_HOST_TO_DEVICE, TENON_COPY_DEVICE_TO_HOST, TENON_COPY_DEVICE_TO_DEVICE}) {
    const bool down = direction == TENON_COPY_DEVICE_TO_HOST, up = direction == TENON_COPY_HOST_TO_DEVICE;
    const auto host = address_of(&byte);
    const tenon_copy copy = copy_of(direction, down ? host : memory.address, up ? host : memory.address, 0);
    expect_ok("a copy of 0 bytes", context.device.table().copy, context.device.handle(), &copy, context.device.stream());
  }
  expect_ok("a fill of 0 bytes", context.device.table().fill, context.device.handle(), memory.address, 0, 0xEE, context.device.stream());
  expect_bytes(pattern(16, 3), download(context, memory.address, 16), "after copies of 0 bytes");
}

void fill_bytes(CaseContext& context) {
  const Memory memory(context, 4099);
  for (const std::uint8_t value : std::initializer_list<std::uint8_t>{0x5C, 0x00, 0xFF, 0x80}) {
    upload(context, memory.address, pattern(4099, 4));
    expect_ok("fill", context.device.table().fill, context.device.handle(), memory.address + 3, 4001, value, context.device.stream());
    synchronize(context);
    std::vector<unsigned char> expected = pattern(4099, 4);
    std::fill_n(expected.begin() + 3, 4001, static_cast<unsigned char>(value));
    expect_bytes(expected, download(context, memory.address, 4099), "fill");
  }
}

}  // namespace

std::vector<Case> core_copy_cases() {
  return core_cases({
      {"copy/round_trip", round_trip},
      {"copy/device_to_device", device_to_device},
      {"copy/unaligned", unaligned},
      {"copy/unaligned_host", unaligned_host},
      {"copy/impossible", impossible},
      {"copy/nothing", copy_of_nothing},
      {"copy/fill", fill_bytes},
  });
}

}  // namespace tenon::conformance
