// SPDX-License-Identifier: Apache-2.0
// .npz: archives of arrays, plain and deflated.
#include <tenon/npy.h>

#include "fuzz.h"
#include "same.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  std::vector<NamedTensor> first;
  const std::string path = file_of("a.npz", {data, size});
  if (!accepts([&] { first = load_npz(path); })) return 0;
  std::uint64_t bytes = 0;
  for (const NamedTensor& entry : first) bytes += static_cast<std::uint64_t>(entry.tensor.size_bytes());
  demand(bytes <= 1032 * size, "an archive holds no more than deflate can pack into its file");
  const std::string again = scratch_folder() + "/b.npz";
  // Some names of an archive are refused by save_npz: duplicates, an empty one.
  if (!accepts([&] { save_npz(again, first, size % 2 == 0 ? NpzCompression::none : NpzCompression::deflate); })) return 0;
  const std::vector<NamedTensor> second = load_npz(again);
  demand(first.size() == second.size(), "an archive that was written has as many members");
  for (std::size_t i = 0; i < first.size(); ++i) {
    demand(first[i].name == second[i].name && same(first[i].tensor, second[i].tensor), "a member that was written reads as it was");
  }
  return 0;
}
