// SPDX-License-Identifier: Apache-2.0
// ELF files, which the loader reads before the dynamic linker does.
#include "loader/elf.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const std::string path = file_of("libtenon_backend_a.so", {data, size});
  const loader::Elf elf = loader::read_elf(path);
  demand(elf.kind != loader::Elf::Kind::damaged || !elf.fault.empty(), "a damaged file has a reason");
  std::size_t text = 0;
  for (const std::string& name : elf.needed) text += name.size();
  demand(text <= loader::max_needed_bytes, "the names of needed libraries are bounded");
  demand(!loader::machine_name(elf.machine).empty(), "every machine has a name");
  return 0;
}
