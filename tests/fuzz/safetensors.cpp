// SPDX-License-Identifier: Apache-2.0
// safetensors: a file that is read can be written, and reads the same again.
#include <tenon/safetensors.h>

#include "fuzz.h"
#include "same.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  Safetensors first;
  const std::string path = file_of("a.safetensors", {data, size});
  if (!accepts([&] { first = load_safetensors(path); })) return 0;
  const std::string again = scratch_folder() + "/b.safetensors";
  save_safetensors(again, first.tensors, first.metadata);
  const Safetensors second = load_safetensors(again);
  demand(first.metadata == second.metadata, "metadata that was written reads as it was");
  demand(first.tensors.size() == second.tensors.size(), "a file that was written has as many tensors");
  for (const NamedTensor& entry : first.tensors) {
    const Tensor* const other = second.find(entry.name);
    demand(other != nullptr && same(entry.tensor, *other), "a tensor that was written reads as it was");
  }
  return 0;
}
