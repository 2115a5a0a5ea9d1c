// SPDX-License-Identifier: Apache-2.0
// ELF files, which the loader reads before the dynamic linker does.
#include "loader/image.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const std::string path = file_of("libtenon_backend_a.so", {data, size});
  const loader::BinaryImage image = loader::read_image(path);
  demand(image.kind != loader::BinaryImage::Kind::damaged || !image.fault.empty(), "a damaged file has a reason");
  std::size_t text = 0;
  for (const std::string& name : image.needed) text += name.size();
  demand(text <= loader::max_needed_bytes, "the names of needed libraries are bounded");
  demand(!loader::machine_name(image).empty(), "every machine has a name");
  text = 0;
  for (const std::string& name : loader::exported_symbols(path).value_or(std::vector<std::string>())) text += name.size();
  demand(text <= loader::max_symbol_bytes, "the names of symbols are bounded");
  return 0;
}
