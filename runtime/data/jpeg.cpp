// SPDX-License-Identifier: Apache-2.0
// data/jpeg.cpp - reads JPEG with libjpeg.
#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <limits>
#include <vector>

#include <jpeglib.h>

#include <tenon/error.h>

#include "data/image_file.h"
#include "io/gzip.h"
#include "io/limits.h"

namespace tenon::data {
namespace {

/// libjpeg reports errors by a call that must not return.
struct Errors : jpeg_error_mgr {
  std::jmp_buf failed;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr state) {
  auto* const errors = static_cast<Errors*>(state->err);
  errors->format_message(state, errors->text);
  std::longjmp(errors->failed, 1);
}

/// A warning tells of damaged data, which libjpeg would replace by grey; a trace message is ignored.
void fail_if_damaged(j_common_ptr state, int level) {
  if (level < 0) fail(state);
}

/// Decodes into `out_pixels`, interleaved. The function has no object with a destructor, which longjmp would skip.
bool decode(jpeg_decompress_struct& state, Errors& errors, const std::vector<std::uint8_t>& bytes, std::uint64_t max_pixels,
            std::vector<std::uint8_t>& out_pixels) {
  if (setjmp(errors.failed) != 0) return false;
  jpeg_create_decompress(&state);
  // On Windows the type has 32 bits. An image of 65500 x 65500 pixels, libjpeg's largest, ends before.
  constexpr std::size_t max_size = std::numeric_limits<unsigned long>::max();
  jpeg_mem_src(&state, bytes.data(), static_cast<unsigned long>(std::min(bytes.size(), max_size)));
  jpeg_read_header(&state, TRUE);
  state.out_color_space = state.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  // A block of 64 pixels of each channel takes at least a bit, so larger claims are rejected before memory is allocated.
  const auto pixels = static_cast<std::uint64_t>(state.image_width) * state.image_height;
  if (pixels > max_pixels) return false;
  if (pixels / 64 / 8 > bytes.size()) {
    std::snprintf(errors.text, sizeof errors.text, "%u x %u pixels do not fit its %zu bytes", state.image_width, state.image_height,
                  bytes.size());
    return false;
  }
  jpeg_start_decompress(&state);
  const std::size_t stride = static_cast<std::size_t>(state.output_width) * static_cast<std::size_t>(state.output_components);
  out_pixels.resize(stride * state.output_height);
  while (state.output_scanline < state.output_height) {
    JSAMPROW row = out_pixels.data() + stride * state.output_scanline;
    jpeg_read_scanlines(&state, &row, 1);
  }
  jpeg_finish_decompress(&state);
  return true;
}

}  // namespace

Tensor read_jpeg(const std::string& path) {
  const std::vector<std::uint8_t> bytes = io::read_file(path);
  Errors errors{};
  jpeg_decompress_struct state{};
  state.err = jpeg_std_error(&errors);
  errors.error_exit = fail;
  errors.emit_message = fail_if_damaged;
  std::vector<std::uint8_t> pixels;
  const bool read = decode(state, errors, bytes, io::limit(io::Limit::image_pixels), pixels);
  const std::int64_t channels = state.output_components, height = state.output_height, width = state.output_width;
  jpeg_destroy_decompress(&state);
  if (!read) check_pixels(path, state.image_width, state.image_height);
  if (!read) throw Error(path + ": cannot be read as JPEG: " + errors.text);
  return planes_of(pixels.data(), channels, height, width);
}

}  // namespace tenon::data
