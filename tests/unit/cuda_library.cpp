// SPDX-License-Identifier: Apache-2.0
// Where the cuda backend looks for NVIDIA's libraries, and its errors for missing or mismatched ones.
#include "backends/cuda/libraries/library.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "backends/cuda/libraries/cublas.h"
#include "backends/cuda/libraries/cublas_lt.h"
#include "cuda_testing.h"
#include "temporary_folder.h"

namespace tenon::cuda {
namespace {
namespace fs = std::filesystem;

constexpr LibrarySpec cublas_13{"cuBLAS", "libcublas", 13};
constexpr LibrarySpec cublas_of_build{"cuBLAS", "libcublas", CUBLAS_VER_MAJOR};

/// A root of a file system.
struct Root : test::TemporaryFolder {
  fs::path folder(const fs::path& path) const {
    fs::create_directories(file(path));
    return file(path);
  }
};

template <class Body>
std::string message_of(const Body& body) {
  const sdk::Error error = error_of(body);
  CHECK(error.status() == TENON_INCOMPATIBLE);
  return error.what();
}

// This test is first because the dynamic loader returns an already loaded library for every later request by its name.
TEST_CASE("cuda libraries: NVIDIA's libraries, if installed, have every listed function") {
  const Search here = search_here(nullptr);
  bool there = true;
  try {
    Library(cublas_of_build, here);
    Library({"cuBLASLt", "libcublasLt", CUBLAS_VER_MAJOR}, here);
  } catch (const sdk::Error& e) {
    there = false;
    MESSAGE("skipped, because there are none: " << e.what());
  }
  if (!there) return;
  const Cublas cublas(here);
  const CublasLt cublas_lt(here);
  MESSAGE(cublas.library.file() << ", " << cublas_lt.library.file());
}

TEST_CASE("cuda libraries: toolkits come before wheels, the default one first, then the newest") {
  const Root root;
  const fs::path old = root.folder("usr/local/cuda-9.2/lib64"), newer = root.folder("usr/local/cuda-12.8/lib64"),
                 newest = root.folder("usr/local/cuda-13.0/lib64"), usual = root.folder("usr/local/cuda/lib64");
  const fs::path of_system = root.folder("usr/lib/python3/dist-packages/nvidia/cu13/lib"),
                 of_local = root.folder("usr/local/lib/python3.12/site-packages/nvidia/cublas/lib");
  root.folder("usr/local/cuda-11.0");  // has no lib64
  CHECK(library_folders(root.path(), {}) == std::vector<fs::path>{usual, newest, newer, old, of_system, of_local});
}

TEST_CASE("cuda libraries: the wheels next to a loaded runtime are searched") {
  const Root root;
  const fs::path runtime = root.folder("venv/lib/python3.12/site-packages/nvidia/cuda_runtime/lib"),
                 blas = root.folder("venv/lib/python3.12/site-packages/nvidia/cublas/lib");
  CHECK(library_folders(root.path(), runtime) == std::vector<fs::path>{blas, runtime});
}

TEST_CASE("cuda libraries: the loader's own order comes first, then folders that have the file") {
  const Root root;
  const fs::path with = root.folder("a"), without = root.folder("b");
  const std::string file = root.write("a/libcublas.so.13", "not a library");
  const Search search{"", {without, with}};
  CHECK(search.candidates(cublas_13) == std::vector<std::string>{"libcublas.so.13", file});
}

TEST_CASE("cuda libraries: only the folders of the option are searched, if it is given") {
  const Search search{"/first:/second", {"/usr"}};
  CHECK(search.candidates(cublas_13) == std::vector<std::string>{"/first/libcublas.so.13", "/second/libcublas.so.13"});
}

TEST_CASE("cuda libraries: a missing library is reported with its version, the folders and the remedy") {
  const Root root;
  const LibrarySpec nothing{"cuNothing", "libcunothing", 3};
  const std::string by_default = message_of([&] { Library(nothing, {"", {root.path()}}); });
  CHECK_MESSAGE(contains(by_default, "cuNothing 3 (libcunothing.so.3)"), by_default);
  CHECK_MESSAGE(contains(by_default, "looked in the loader's own folders, " + root.path()), by_default);
  CHECK_MESSAGE(contains(by_default, "backends.options.cuda.libraries"), by_default);
  const std::string by_option = message_of([&] { Library(nothing, {root.path(), {}}); });
  CHECK_MESSAGE(contains(by_option, "looked in " + root.path() + " (backends.options.cuda.libraries)"), by_option);
}

TEST_CASE("cuda libraries: a file that is no library is rejected with the loader's message") {
  const Root root;
  const std::string file = root.write("libcublas.so.13", "not a library");
  const std::string text = message_of([&] { Library(cublas_13, {root.path(), {}}); });
  CHECK_MESSAGE(contains(text, "the loader says: " + file), text);
}

TEST_CASE("cuda libraries: a version that differs from the file name is a mismatch that states both") {
  const std::string text = message_of([&] { Cublas(Search{TENON_EMULATED_LIBRARIES "/another_version", {}}); });
  CHECK_MESSAGE(contains(text, "is version " + std::to_string(CUBLAS_VER_MAJOR - 1)), text);
  CHECK_MESSAGE(contains(text, "built for " + std::to_string(CUBLAS_VER_MAJOR)), text);
}

TEST_CASE("cuda libraries: a missing function is reported by name") {
  const Library library(cublas_of_build, {TENON_EMULATED_LIBRARIES "/another_version", {}});
  const std::string text = message_of([&] { library.function<void (*)()>("cublasCreate_v2"); });
  CHECK_MESSAGE(contains(text, "lacks cublasCreate_v2"), text);
}

TEST_CASE("cuda libraries: every function of the list is in a complete library") {
  const Cublas cublas(Search{TENON_EMULATED_LIBRARIES "/libraries", {}});
  CHECK((cublas.gemm.of<std::complex<double>>() != nullptr));
  CHECK(std::string(cublas.asum.routine) == "asum");
  CHECK(contains(cublas.library.file(), "/libraries/libcublas.so"));
}

}  // namespace
}  // namespace tenon::cuda
