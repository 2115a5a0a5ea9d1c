// SPDX-License-Identifier: Apache-2.0
#include "data/image_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <png.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tenon/data.h>
#include <tenon/npy.h>

#include "core/log.h"
#include "io/gzip.h"
#include "io/limits.h"
#include "platform/folder.h"
#include "platform/path.h"

namespace tenon::data {
namespace {

// PNM states sides as text of any length; this keeps their product in 64 bits.
constexpr std::int64_t max_side = 1 << 16;

std::string ending_of(const std::string& path) {
  std::string ending = platform::text_of(platform::path_of(path).extension());
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

/// Reads the numbers of a PNM header, separated by white space and comments.
class Header {
 public:
  explicit Header(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  /// The position after the last number read.
  std::size_t position() const { return at_; }
  std::optional<std::int64_t> number() {
    for (bool comment = false; at_ < bytes_.size() && (comment || bytes_[at_] == '#' || std::isspace(bytes_[at_])); ++at_) {
      comment = (comment || bytes_[at_] == '#') && bytes_[at_] != '\n';
    }
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < bytes_.size() && std::isdigit(bytes_[at_]) && value <= max_side; ++at_) value = value * 10 + bytes_[at_] - '0';
    return at_ > begin ? std::optional(value) : std::nullopt;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 2;  // after the magic
};

Tensor read_pnm(const std::string& path) {
  const std::vector<std::uint8_t> bytes = io::read_file(path);
  if (bytes.size() < 2 || bytes[0] != 'P' || (bytes[1] != '5' && bytes[1] != '6')) {
    throw Error(path + ": expected a binary PGM (P5) or PPM (P6)" +
                (bytes.size() > 1 && bytes[0] == 'P' ? ", got another PNM format" : ""));
  }
  const std::int64_t channels = bytes[1] == '5' ? 1 : 3;
  Header header(bytes);
  const auto width = header.number(), height = header.number(), highest = header.number();
  if (!width || !height || !highest || *width < 1 || *height < 1 || *width > max_side || *height > max_side) {
    throw Error(path + ": expected width, height and maximum value after P" + static_cast<char>(bytes[1]) + ", sides of 1 to " +
                std::to_string(max_side));
  }
  check_pixels(path, *width, *height);
  if (*highest != 255) throw Error(path + ": expected values up to 255, got up to " + std::to_string(*highest));
  const std::size_t begin = header.position() + 1;  // skip one white space
  const auto size_bytes = static_cast<std::size_t>(channels * *height * *width);
  if (bytes.size() < begin || bytes.size() - begin < size_bytes) {
    throw Error(path + ": expected " + std::to_string(size_bytes) + " bytes of pixels for " + std::to_string(*width) + " x " +
                std::to_string(*height) + ", got " + std::to_string(bytes.size() - std::min(bytes.size(), begin)));
  }
  return planes_of(bytes.data() + begin, channels, *height, *width);
}

Tensor read_png(const std::string& path) {
  const std::vector<std::uint8_t> bytes = io::read_file(path);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto fail = [&]() -> Error { return Error(path + ": cannot be read as PNG: " + image.message); };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) throw fail();  // frees what it allocated
  const bool has_colour = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  const std::int64_t channels = has_colour ? 3 : 1, height = image.height, width = image.width;
  const std::unique_ptr<png_image, void (*)(png_image*)> cleanup(&image, png_image_free);
  check_pixels(path, width, height);
  // deflate expands a byte to at most 1032, and a byte holds at most eight pixels: reject larger claims before allocating.
  if (static_cast<std::uint64_t>(height * width) / 8 / 1032 > bytes.size()) {
    throw Error(path + ": " + std::to_string(width) + " x " + std::to_string(height) + " pixels do not fit its " +
                std::to_string(bytes.size()) + " bytes");
  }
  // Read with alpha: otherwise libpng would blend transparent pixels with a background.
  image.format = has_colour ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;
  const std::int64_t stride = channels + 1;
  std::vector<std::uint8_t> pixels = io::new_buffer(path, static_cast<std::uint64_t>(height * width * stride));
  if (png_image_finish_read(&image, nullptr, pixels.data(), static_cast<png_int_32>(width * stride), nullptr) == 0) throw fail();
  std::uint8_t* to = pixels.data();
  for (std::int64_t i = 0; i < height * width; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) *to++ = pixels[static_cast<std::size_t>(i * stride + c)];
  }
  return planes_of(pixels.data(), channels, height, width);
}

Tensor read_array(const std::string& path) {
  const Tensor image = load_npy(path);
  const Shape& shape = image.shape();
  if (image.dtype() != DType::u8 || shape.rank() < 2 || shape.rank() > 3 || image.count() == 0) {
    throw Error(path + ": expected an image u8(height, width) or u8(channels, height, width), got " + image.str());
  }
  return shape.rank() == 3 ? image : image.reshape({1, shape[0], shape[1]});
}

}  // namespace

void check_pixels(const std::string& path, std::int64_t width, std::int64_t height) {
  io::check_limit(path + ": " + std::to_string(width) + " x " + std::to_string(height), io::Limit::image_pixels,
                  static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height));
}

namespace {

struct Format {
  const char* ending;
  Tensor (*read)(const std::string& path);
};
constexpr Format formats[] = {{".jpg", read_jpeg}, {".jpeg", read_jpeg}, {".png", read_png},
                              {".pgm", read_pnm},  {".ppm", read_pnm},   {".npy", read_array}};

const Format* format_of(const std::string& path) {
  const std::string ending = ending_of(path);
  for (const Format& format : formats) {
    if (ending == format.ending) return &format;
  }
  return nullptr;
}

}  // namespace

Tensor planes_of(const std::uint8_t* pixels, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Tensor image = Tensor::empty(DType::u8, {channels, height, width});
  auto* const to = image.data<std::uint8_t>();
  const std::int64_t count = height * width;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) to[c * count + i] = *pixels++;
  }
  return image;
}

bool is_image_file(const std::string& path) {
  return format_of(path) != nullptr;
}

Tensor read_image(const std::string& path) {
  const Format* const format = format_of(path);
  if (format == nullptr) throw Error(fmt::format("{}: expected an image, {}", path, image_endings));
  return format->read(path);
}

std::vector<std::string> images_in(const std::string& folder) {
  std::vector<std::string> images, others;
  std::error_code error;
  for (const auto& [name, kind] : platform::entries_of(folder, error)) {
    if (name.front() == '.' || kind == platform::FileKind::folder) continue;
    (is_image_file(name) ? images : others).push_back(name);
  }
  if (error) throw Error(folder + ": cannot be read: " + error.message());
  std::sort(images.begin(), images.end());
  std::sort(others.begin(), others.end());
  if (!others.empty()) {
    constexpr std::size_t shown = 3;
    const std::vector<std::string> first(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(std::min(shown, others.size())));
    log::warning("{}: {} of {} files are left out, expected {}: {}{}", folder, others.size(), images.size() + others.size(), image_endings,
                 fmt::join(first, ", "), others.size() > shown ? ", ..." : "");
  }
  for (std::string& image : images) image = platform::text_of(platform::path_of(folder) / platform::path_of(image));
  return images;
}

}  // namespace tenon::data

namespace tenon {

Tensor load_image(const std::string& path, const ImageOptions& options) {
  const Tensor image = data::read_image(path);
  if (options.is_identity()) return image;
  try {
    return transform_image(image, options);
  } catch (const Error& problem) {
    throw Error(problem.status(), path + ": " + problem.what());
  }
}

}  // namespace tenon
