// SPDX-License-Identifier: Apache-2.0
#include "platform/library.h"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

namespace tenon::platform {

void* open_library(const std::filesystem::path& file, std::string& out_reason) {
  void* const library = dlopen(file.c_str(), load_flags());
  if (library == nullptr) out_reason = load_failure(0).text;
  return library;
}

int load_flags() {
  return RTLD_NOW | RTLD_LOCAL;
}

void* find_symbol(void* library, const char* name) {
  return dlsym(library, name);
}

std::filesystem::path module_of(const void* address) {
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return {};
  // The name of a program is argv[0], which need not be a path: the system knows its file.
  const std::filesystem::path file = map->l_name[0] == '\0' ? "/proc/self/exe" : info.dli_fname;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  return error ? file : real;
}

std::vector<std::filesystem::path> loaded_modules() {
  std::vector<std::filesystem::path> modules;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* out) {
        static_cast<std::vector<std::filesystem::path>*>(out)->emplace_back(library->dlpi_name);
        return 0;
      },
      &modules);
  return modules;
}

LoadFailure load_failure(int) {
  LoadFailure failure;
  if (const char* const reason = dlerror()) failure.text = reason;
  if (failure.text.find("undefined symbol") != std::string::npos) failure.kind = LoadFailure::Kind::missing_symbol;
  return failure;
}

}  // namespace tenon::platform
