// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's records of 3073 bytes, plain and gzip. The pixels of a record do not matter and are zeros.
#include <tenon/data.h>

#include <vector>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  if (size == 0) return 0;
  std::vector<std::uint8_t> content(data + 1, data + size);
  const std::size_t records = data[0] % 4;
  for (std::size_t r = 0; r < records; ++r) {
    content.push_back(r < size ? data[r] : std::uint8_t{0});
    content.resize(content.size() + 3072);
  }
  file_of("test_batch.bin", content);
  accepts([] { load_cifar10(scratch_folder(), Split::test); });
  return 0;
}
