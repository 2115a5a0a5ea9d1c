// SPDX-License-Identifier: Apache-2.0
#include "libraries/library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <system_error>

#include "device/status.h"

namespace tenon::cuda {
namespace fs = std::filesystem;
namespace {

/// Subfolders with this prefix, in descending order, comparing numbers by value: cuda-13.0 before cuda-9.2.
std::vector<fs::path> subfolders(const fs::path& folder, const std::string& beginning = "") {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->path().filename().string().starts_with(beginning) && at->is_directory(ignored)) found.push_back(at->path());
  }
  const auto key = [](const fs::path& path) { return std::pair(path.filename().string().size(), path.filename().string()); };
  std::sort(found.begin(), found.end(), [&](const fs::path& a, const fs::path& b) { return key(a) > key(b); });
  return found;
}

/// Adds the folders of NVIDIA's wheels in a folder of Python packages.
void add_wheels(const fs::path& nvidia, std::vector<fs::path>& out) {
  std::vector<fs::path> packages = subfolders(nvidia);
  std::sort(packages.begin(), packages.end());
  for (const fs::path& package : packages) out.push_back(package / "lib");
}

/// The folder of a CUDA runtime that the process has already loaded, as PyTorch does; empty: none.
fs::path folder_of_loaded_runtime() {
  const std::string file = "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
  void* const handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  fs::path folder;
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) folder = fs::path(map->l_name).parent_path();
  dlclose(handle);
  return folder;
}

}  // namespace

std::string LibrarySpec::file() const {
  return std::string(stem) + ".so." + std::to_string(major);
}

std::vector<fs::path> library_folders(const fs::path& root, const fs::path& loaded_runtime) {
  const fs::path local = root / "usr/local";
  std::vector<fs::path> all{local / "cuda/lib64"};
  for (const fs::path& toolkit : subfolders(local, "cuda-")) all.push_back(toolkit / "lib64");
  for (const fs::path& libraries : {root / "usr/lib", local / "lib"}) {
    for (const fs::path& python : subfolders(libraries, "python3")) {
      for (const char* packages : {"site-packages", "dist-packages"}) add_wheels(python / packages / "nvidia", all);
    }
  }
  if (!loaded_runtime.empty()) add_wheels(loaded_runtime.parent_path().parent_path(), all);
  std::erase_if(all, [](const fs::path& folder) {
    std::error_code error;
    return !fs::is_directory(folder, error);
  });
  return all;
}

std::vector<std::string> Search::candidates(const LibrarySpec& spec) const {
  std::vector<std::string> all;
  if (!option.empty()) {
    for (std::size_t begin = 0; begin <= option.size();) {
      const std::size_t end = std::min(option.find(':', begin), option.size());
      if (end > begin) all.push_back((fs::path(option.substr(begin, end - begin)) / spec.file()).string());
      begin = end + 1;
    }
    return all;
  }
  all.push_back(spec.file());
  for (const fs::path& folder : folders) {
    std::error_code error;
    if (fs::exists(folder / spec.file(), error)) all.push_back((folder / spec.file()).string());
  }
  return all;
}

std::string Search::not_found(const LibrarySpec& spec, const std::string& loader_said) const {
  std::string text = std::string(spec.name) + " " + std::to_string(spec.major) + " (" + spec.file() + ") cannot be opened; looked in ";
  if (option.empty()) {
    text += "the loader's own folders";
    for (const fs::path& folder : folders) text += ", " + folder.string();
  } else {
    text += option + " (backends.options.cuda.libraries)";
  }
  if (!loader_said.empty()) text += "; the loader says: " + loader_said;
  return text + "; install it, or name its folder in backends.options.cuda.libraries";
}

Library::Library(const LibrarySpec& spec, const Search& search) : spec_(spec) {
  std::string loader_said;
  for (const std::string& candidate : search.candidates(spec)) {
    handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) break;
    if (const char* text = dlerror(); text != nullptr) loader_said = text;
  }
  if (handle_ == nullptr) throw sdk::Error(TENON_INCOMPATIBLE, search.not_found(spec, loader_said));
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) file_ = map->l_name;
}

void* Library::address(const char* symbol) const {
  void* const found = dlsym(handle_, symbol);
  if (found != nullptr) return found;
  throw sdk::Error(TENON_INCOMPATIBLE, std::string(spec_.name) + ": " + file_ + " lacks " + symbol + ", which " + spec_.name + " " +
                                           std::to_string(spec_.major) +
                                           " has; name the folder of a complete one in backends.options.cuda.libraries");
}

void Library::check_version(int major_of_library) const {
  if (major_of_library == spec_.major) return;
  throw sdk::Error(TENON_INCOMPATIBLE, std::string(spec_.name) + ": " + file_ + " is version " + std::to_string(major_of_library) +
                                           ", this backend was built for " + std::to_string(spec_.major) +
                                           "; name the folder of that one in backends.options.cuda.libraries");
}

Search search_here(const char* option) {
  return {option == nullptr ? "" : option, library_folders("/", folder_of_loaded_runtime())};
}

}  // namespace tenon::cuda
