// SPDX-License-Identifier: Apache-2.0
#include "loader/dependencies.h"

#include "platform/conventions.h"
#include "platform/library.h"
#include "platform/system.h"

namespace tenon::loader {

LibrarySearch library_search() {
  return {platform::system_library_folders(), platform::loaded_modules(), platform::environment_variable("LD_LIBRARY_PATH").value_or("")};
}

Missing find_missing(const std::filesystem::path& file, const LibrarySearch& search) {
  switch (read_image(file).format) {
    case BinaryImage::Format::elf:
      return find_missing_of_elf(file, search);
    case BinaryImage::Format::pe:
      return find_missing_of_pe(file, search);
    case BinaryImage::Format::none:
      break;
  }
  return {};
}

}  // namespace tenon::loader
