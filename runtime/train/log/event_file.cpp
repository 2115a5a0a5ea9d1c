// SPDX-License-Identifier: Apache-2.0
#include "train/log/event_file.h"

#include <array>
#include <bit>

namespace tenon::train {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0x82F63B78u ^ (c >> 1) : c >> 1;  // 0x1EDC6F41 reflected
    table[i] = c;
  }
  return table;
}
constexpr auto table = make_table();

/// Masks a CRC, since the CRC of bytes that contain their own CRC is degenerate.
std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

template <class Unsigned>
void put_fixed(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

enum WireType : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_key(std::string& out, std::uint64_t field, WireType wire) {
  put_varint(out, field << 3 | wire);
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view value) {
  put_key(out, field, WireType::bytes);
  put_varint(out, value.size());
  out += value;
}

std::string event(double wall_time) {
  std::string out;
  put_key(out, 1, WireType::fixed64);
  put_fixed(out, std::bit_cast<std::uint64_t>(wall_time));
  return out;
}

}  // namespace

std::uint32_t crc32c(std::string_view text) {
  std::uint32_t c = 0xFFFFFFFFu;
  for (const char ch : text) c = table[(c ^ static_cast<unsigned char>(ch)) & 0xFF] ^ (c >> 8);
  return c ^ 0xFFFFFFFFu;
}

std::string tf_record(std::string_view text) {
  std::string out;
  put_fixed(out, static_cast<std::uint64_t>(text.size()));
  put_fixed(out, masked(crc32c(out)));
  out += text;
  put_fixed(out, masked(crc32c(text)));
  return out;
}

std::string version_event(double wall_time) {
  std::string out = event(wall_time);
  put_bytes(out, 3, "brain.Event:2");
  return out;
}

std::string scalars_event(double wall_time, std::int64_t step, std::span<const std::pair<std::string, double>> scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, 1, tag);
    put_key(value, 2, WireType::fixed32);
    put_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    put_bytes(summary, 1, value);
  }
  std::string out = event(wall_time);
  put_key(out, 2, WireType::varint);
  put_varint(out, static_cast<std::uint64_t>(step));
  put_bytes(out, 5, summary);
  return out;
}

}  // namespace tenon::train
