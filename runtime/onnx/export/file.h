// SPDX-License-Identifier: Apache-2.0
// onnx/export/file.h - writes a model, its weights next to it if they are large.
#pragma once

#include <cstdint>
#include <filesystem>

#include "onnx/records.h"

namespace tenon::onnx::exporting {

/// Writes the file atomically. If its initializers have more bytes than `external_above` in all, those of at least 1 KiB go to
/// `<path>.data`, which is written first, at multiples of 4096 bytes.
/// Errors  those of io::AtomicFile; a file of 2 GiB or more, which protobuf does not read.
void write_model(const std::filesystem::path& path, ModelRecord model, std::uint64_t external_above);

}  // namespace tenon::onnx::exporting
