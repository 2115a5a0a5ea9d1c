// SPDX-License-Identifier: Apache-2.0
// .npy: an array that is read can be written, and reads the same again.
#include <tenon/npy.h>

#include "fuzz.h"
#include "same.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  Tensor first;
  const std::string path = file_of("a.npy", {data, size});
  if (!accepts([&] { first = load_npy(path); })) return 0;
  demand(static_cast<std::uint64_t>(first.size_bytes()) <= size, "an array is no larger than its file");
  const std::string again = scratch_folder() + "/b.npy";
  save_npy(again, first);
  demand(same(first, load_npy(again)), "an array that was written reads as it was");
  return 0;
}
