#include "data/image_file.h"

#include <png.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include <tenon/npy.h>

#include "io/gzip.h"

namespace tenon::data {
namespace {

// A side of a picture: what has more is no picture, and its pixels would not fit memory.
constexpr std::int64_t most_side = 1 << 16;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

/// Pixels side by side become planes.
Tensor planes_of(const std::uint8_t* pixels, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Tensor image = Tensor::empty(DType::u8, {channels, height, width});
  auto* const to = image.data<std::uint8_t>();
  const std::int64_t count = height * width;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) to[c * count + i] = *pixels++;
  }
  return image;
}

/// The words of a PNM header: white space and comments between them.
class Header {
 public:
  explicit Header(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  /// Where the last word read ends.
  std::size_t position() const { return at_; }
  std::optional<std::int64_t> number() {
    for (bool comment = false; at_ < bytes_.size() && (comment || bytes_[at_] == '#' || std::isspace(bytes_[at_])); ++at_) {
      comment = (comment || bytes_[at_] == '#') && bytes_[at_] != '\n';
    }
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < bytes_.size() && std::isdigit(bytes_[at_]) && value <= most_side; ++at_) value = value * 10 + bytes_[at_] - '0';
    return at_ > begin ? std::optional(value) : std::nullopt;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 2;  // behind the magic
};

Tensor read_pnm(const std::string& path) {
  const std::vector<std::uint8_t> bytes = io::read_file(path, most_bytes);
  if (bytes.size() < 2 || bytes[0] != 'P' || (bytes[1] != '5' && bytes[1] != '6')) {
    throw Error(path + ": wanted a binary PGM (P5) or PPM (P6)" + (bytes.size() > 1 && bytes[0] == 'P' ? ", got one of another kind" : ""));
  }
  const std::int64_t channels = bytes[1] == '5' ? 1 : 3;
  Header header(bytes);
  const auto width = header.number(), height = header.number(), highest = header.number();
  if (!width || !height || !highest || *width < 1 || *height < 1 || *width > most_side || *height > most_side) {
    throw Error(path + ": wanted width, height and the highest value behind P" + static_cast<char>(bytes[1]) + ", sides of 1 to " +
                std::to_string(most_side));
  }
  if (*highest != 255) throw Error(path + ": wanted values up to 255, got up to " + std::to_string(*highest));
  const std::size_t begin = header.position() + 1;  // one white space
  const auto wanted = static_cast<std::size_t>(channels * *height * *width);
  if (bytes.size() < begin || bytes.size() - begin < wanted) {
    throw Error(path + ": wanted " + std::to_string(wanted) + " bytes of pixels for " + std::to_string(*width) + " x " +
                std::to_string(*height) + ", got " + std::to_string(bytes.size() - std::min(bytes.size(), begin)));
  }
  return planes_of(bytes.data() + begin, channels, *height, *width);
}

Tensor read_png(const std::string& path) {
  const std::vector<std::uint8_t> bytes = io::read_file(path, most_bytes);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto fail = [&]() -> Error {
    const std::string why = image.message;
    png_image_free(&image);
    return Error(path + ": cannot be read as PNG: " + why);
  };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) throw fail();
  const bool coloured = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  const std::int64_t channels = coloured ? 3 : 1, height = image.height, width = image.width;
  // deflate makes at most 1032 bytes of one, and a byte holds at most eight pixels: a small file that promises more is not believed
  if (height > most_side || width > most_side || static_cast<std::uint64_t>(height * width) / 8 / 1032 > bytes.size()) {
    png_image_free(&image);
    throw Error(path + ": " + std::to_string(width) + " x " + std::to_string(height) + " pixels do not fit its " +
                std::to_string(bytes.size()) + " bytes");
  }
  // the four channels that every PNG can be read as: without a background of their own, pixels keep the colour that they have
  image.format = coloured ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;
  const std::int64_t stride = channels + 1;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height * width * stride));
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
    throw Error(path + ": wanted a picture u8(height, width) or u8(channels, height, width), got " + image.str());
  }
  return shape.rank() == 3 ? image : image.reshape({1, shape[0], shape[1]});
}

}  // namespace

bool is_image_file(const std::string& path) {
  const std::string ending = ending_of(path);
  return ending == ".pgm" || ending == ".ppm" || ending == ".png" || ending == ".npy";
}

Tensor read_image(const std::string& path) {
  const std::string ending = ending_of(path);
  if (ending == ".png") return read_png(path);
  return ending == ".npy" ? read_array(path) : read_pnm(path);
}

}  // namespace tenon::data
