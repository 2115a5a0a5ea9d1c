// Copies and fills: all directions, any alignment, nothing beside them, and ranges that cannot be.
#include <algorithm>
#include <limits>

#include "core.h"

namespace tenon::conformance {
namespace {

void round_trip(Kit& kit) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{1000003}}) {
    const Memory memory(kit, size);
    upload(kit, memory.address, pattern(size, size));
    expect_bytes(pattern(size, size), download(kit, memory.address, size), "there and back");
  }
}

void device_to_device(Kit& kit) {
  const Memory a(kit, 5000), b(kit, 5000);
  upload(kit, a.address, pattern(5000, 1));
  upload(kit, b.address, pattern(5000, 2));
  ErrorText error;
  const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, b.address + 8, a.address + 16, 4000);
  expect_ok(kit.device.table().copy(kit.device.handle(), &copy, kit.device.stream(), error), error, "copy");
  expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
  std::vector<unsigned char> want = pattern(5000, 2);
  const std::vector<unsigned char> source = pattern(5000, 1);
  std::copy_n(source.begin() + 16, 4000, want.begin() + 8);
  expect_bytes(want, download(kit, b.address, 5000), "device to device, inside both");
  expect_bytes(source, download(kit, a.address, 5000), "the source of a copy");
}

/// From any byte to any byte of one block, the bytes beside them untouched.
void unaligned(Kit& kit) {
  constexpr std::uint64_t size = 4096, half = size / 2;
  const Memory memory(kit, size);
  const tenon_backend_table& table = kit.device.table();
  ErrorText error;
  for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{64}, std::uint64_t{129}, std::uint64_t{1000}}) {
    for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{63}}) {
      for (const std::uint64_t to : {half, half + 1, half + 13, size - length}) {
        std::vector<unsigned char> want = pattern(size, from * 100 + length);
        upload(kit, memory.address, want);
        const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, memory.address + to, memory.address + from, length);
        expect_ok(table.copy(kit.device.handle(), &copy, kit.device.stream(), error), error, "copy");
        expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
        std::copy_n(want.begin() + static_cast<std::ptrdiff_t>(from), length, want.begin() + static_cast<std::ptrdiff_t>(to));
        expect_bytes(want, download(kit, memory.address, size),
                     fmt::format("{} bytes copied within a block, from {} to {}", length, from, to).c_str());
      }
    }
  }
  // Side by side is no overlap.
  std::vector<unsigned char> want = pattern(size, 1);
  upload(kit, memory.address, want);
  const tenon_copy copy = copy_of(TENON_COPY_DEVICE_TO_DEVICE, memory.address + 1500, memory.address + 500, 1000);
  expect_ok(table.copy(kit.device.handle(), &copy, kit.device.stream(), error), error, "copy");
  expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
  std::copy_n(want.begin() + 500, 1000, want.begin() + 1500);
  expect_bytes(want, download(kit, memory.address, size), "bytes copied to just behind themselves");
}

/// Host memory at odd addresses, both ways, into the middle of a block.
void unaligned_host(Kit& kit) {
  constexpr std::size_t size = 3000;
  const Memory memory(kit, size);
  const std::vector<unsigned char> clean = pattern(size, 21);
  for (const std::size_t skew : {std::size_t{1}, std::size_t{3}, std::size_t{17}}) {
    upload(kit, memory.address, clean);
    const std::vector<unsigned char> host = pattern(skew + 1501, 22);
    ErrorText error;
    expect_ok(kit.device.upload(memory.address + skew, host.data() + skew, 1501, error), error, "a copy from an odd host address");
    std::vector<unsigned char> want = clean;
    std::copy(host.begin() + static_cast<std::ptrdiff_t>(skew), host.end(), want.begin() + static_cast<std::ptrdiff_t>(skew));
    expect_bytes(want, download(kit, memory.address, size), "a block after a copy from an odd host address");
    std::vector<unsigned char> back(skew + 1501 + 64, 0xA5);
    expect_ok(kit.device.download(back.data() + skew, memory.address + skew, 1501, error), error, "a copy to an odd host address");
    std::vector<unsigned char> wanted(back.size(), 0xA5);
    std::copy(host.begin() + static_cast<std::ptrdiff_t>(skew), host.end(), wanted.begin() + static_cast<std::ptrdiff_t>(skew));
    expect_bytes(wanted, back, "host memory around a copy to an odd address");
  }
}

/// A range that runs over the end of the address space, and a direction that is none.
void impossible(Kit& kit) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const Memory memory(kit, 4096);
  upload(kit, memory.address, pattern(4096, 23));
  std::vector<unsigned char> host(64);
  const tenon_backend_table& table = kit.device.table();
  const auto refuse = [&](const tenon_copy& copy, const char* what) {
    ErrorText error;
    expect_refusal(table.copy(kit.device.handle(), &copy, kit.device.stream(), error), error, {TENON_INVALID_ARGUMENT}, what);
  };
  refuse(copy_of(TENON_COPY_HOST_TO_DEVICE, memory.address, address_of(host.data()), most - 100),
         "a copy to the device that runs over the end of all addresses");
  refuse(copy_of(TENON_COPY_DEVICE_TO_HOST, address_of(host.data()), memory.address, most - 100),
         "a copy from the device that runs over the end of all addresses");
  refuse(copy_of(TENON_COPY_DEVICE_TO_DEVICE, memory.address, memory.address + 2048, most),
         "a copy within the device that runs over the end of all addresses");
  refuse(copy_of(77, memory.address, memory.address + 2048, 16), "a copy in direction 77");
  ErrorText error;
  expect_refusal(table.fill(kit.device.handle(), memory.address, most - 100, 1, kit.device.stream(), error), error,
                 {TENON_INVALID_ARGUMENT}, "a fill that runs over the end of all addresses");
  expect_bytes(pattern(4096, 23), download(kit, memory.address, 4096), "after copies that were refused");
  expect_sane(kit);
}

void copy_of_nothing(Kit& kit) {
  const Memory memory(kit, 16);
  upload(kit, memory.address, pattern(16, 3));
  ErrorText error;
  unsigned char byte = 0;
  for (const std::uint32_t direction : {TENON_COPY_HOST_TO_DEVICE, TENON_COPY_DEVICE_TO_HOST, TENON_COPY_DEVICE_TO_DEVICE}) {
    const bool down = direction == TENON_COPY_DEVICE_TO_HOST, up = direction == TENON_COPY_HOST_TO_DEVICE;
    const auto host = address_of(&byte);
    const tenon_copy copy = copy_of(direction, down ? host : memory.address, up ? host : memory.address, 0);
    expect_ok(kit.device.table().copy(kit.device.handle(), &copy, kit.device.stream(), error), error, "a copy of no bytes");
  }
  expect_ok(kit.device.table().fill(kit.device.handle(), memory.address, 0, 0xEE, kit.device.stream(), error), error, "a fill of no bytes");
  expect_bytes(pattern(16, 3), download(kit, memory.address, 16), "after copies of no bytes");
}

void fill_bytes(Kit& kit) {
  const Memory memory(kit, 4099);
  for (const std::uint8_t value : std::initializer_list<std::uint8_t>{0x5C, 0x00, 0xFF, 0x80}) {
    upload(kit, memory.address, pattern(4099, 4));
    ErrorText error;
    expect_ok(kit.device.table().fill(kit.device.handle(), memory.address + 3, 4001, value, kit.device.stream(), error), error, "fill");
    expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
    std::vector<unsigned char> want = pattern(4099, 4);
    std::fill_n(want.begin() + 3, 4001, static_cast<unsigned char>(value));
    expect_bytes(want, download(kit, memory.address, 4099), "fill");
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
