// SPDX-License-Identifier: Apache-2.0
// Images: the first byte chooses between PGM and PPM, PNG, NumPy arrays, and JPEG.
#include "data/image_file.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  if (size == 0) return 0;
  static const char* const names[] = {"a.pgm", "a.png", "a.npy", "a.jpg"};
  const std::string path = file_of(names[data[0] % 4], {data + 1, size - 1});
  Tensor image;
  if (!accepts([&] { image = data::read_image(path); })) return 0;
  demand(image.dtype() == DType::u8 && image.shape().rank() == 3, "an image is u8(channels, height, width)");
  demand(static_cast<std::uint64_t>(image.count()) <= 8 * 1032 * 3 * size, "an image is no larger than its format can pack into its file");
  return 0;
}
