// SPDX-License-Identifier: Apache-2.0
// IDX, plain and gzip.
#include "data/idx.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const std::string path = file_of("a.idx", {data, size});
  Tensor any, images;
  const bool read = accepts([&] { any = data::read_idx(path, std::nullopt); });
  if (read)
    demand(static_cast<std::uint64_t>(any.size_bytes()) <= 1032 * size, "an array is no larger than deflate can pack into its file");
  const bool read_images = accepts([&] { images = data::read_idx(path, data::magic_of_images); });
  demand(!read_images || (read && any.dtype() == DType::u8 && any.shape().rank() == 3), "images are u8 with three dimensions");
  return 0;
}
