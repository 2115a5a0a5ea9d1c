// SPDX-License-Identifier: Apache-2.0
// PE files, the DLLs of Windows, which the loader reads before the system does.
#include "fuzz.h"
#include "loader/dependencies.h"
#include "loader/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const std::string path = file_of("tenon_backend_a.dll", {data, size});
  const loader::BinaryImage image = loader::read_image(path);
  demand(image.kind != loader::BinaryImage::Kind::damaged || !image.fault.empty(), "a damaged file has a reason");
  std::size_t text = 0;
  for (const auto* names : {&image.needed, &image.delayed}) {
    for (const std::string& name : *names) text += name.size();
  }
  demand(text <= loader::max_needed_bytes, "the names of needed libraries are bounded");
  demand(!loader::machine_name(image).empty(), "every machine has a name");
  text = 0;
  for (const std::string& name : loader::exported_symbols(path).value_or(std::vector<std::string>())) text += name.size();
  for (const loader::ImportedSymbol& symbol : loader::imported_symbols(path)) text += symbol.library.size() + symbol.name.size();
  demand(text <= 2 * loader::max_symbol_bytes, "the names of symbols are bounded");
  if (image.format == loader::BinaryImage::Format::pe) {
    demand(loader::find_missing(path, {}).versions.empty(), "no symbol version is missing");
  }
  return 0;
}
