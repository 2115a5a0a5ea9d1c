// SPDX-License-Identifier: Apache-2.0
// train/log/event_file.h - writes TensorBoard event files: records of a few protobuf fields with masked CRC32C.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tenon::train {

/// CRC-32C (Castagnoli) with the polynomial 0x1EDC6F41, bits reflected. "123456789" gives 0xE3069283.
std::uint32_t crc32c(std::string_view bytes);

/// A record of a TFRecord file: u64 length, masked CRC of the length, the bytes, masked CRC of the bytes; all little-endian.
std::string tf_record(std::string_view bytes);

/// Protobuf messages tensorflow.Event: {wall_time = 1, file_version = 3} and {wall_time = 1, step = 2, summary = 5: {value = 1: {tag = 1,
/// simple_value = 2}...}}.
std::string version_event(double wall_time);
std::string scalars_event(double wall_time, std::int64_t step, std::span<const std::pair<std::string, double>> scalars);

}  // namespace tenon::train
