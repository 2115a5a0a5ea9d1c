// SPDX-License-Identifier: Apache-2.0
// Mistakes of kernels and of their host code, which the emulation finds (tests/cuda_emulation/mutants).
#include "mutants/mutants.h"

#include <cublas_v2.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdio>

#include "cuda_emulation.h"
#include "sanitizers.h"

namespace tenon::emulation::testing {
namespace {

using mutants::Mutant;

/// The function of a library in the folder of the emulation.
template <class Signature>
Signature* function(const char* file, const char* name) {
  const std::string path = std::string(TENON_EMULATED_LIBRARIES) + "/" + file;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: its kernels may be in a queue
  REQUIRE_MESSAGE(library != nullptr, ::dlerror());
  void* const symbol = ::dlsym(library, name);
  REQUIRE_MESSAGE(symbol != nullptr, ::dlerror());
  return reinterpret_cast<Signature*>(symbol);
}

/// What the kernel computes of 1 to 64.
std::vector<float> results_of(const char* kernel, Mutant mutant) {
  const auto run = function<mutants::Run>("libtenon_cuda_mutants.so", kernel);
  const Stream stream;
  std::vector<float> numbers(mutants::elements + 1);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  const Buffer<float> x(numbers), y(std::vector<float>(std::size_t{mutants::elements}));
  run(stream, x.data, y.data, mutant);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  return y.read();
}

std::vector<float> numbers(float from, float step) {
  std::vector<float> made;
  for (int i = 0; i < mutants::elements; ++i) made.push_back(from + step * static_cast<float>(i));
  return made;
}

TEST_CASE("cuda emulation: a kernel without a barrier reads what no thread has written yet") {
  CHECK(results_of("reverse", Mutant::none) == numbers(64, -1));
  CHECK(results_of("reverse", Mutant::missing_barrier) != numbers(64, -1));
}

TEST_CASE("cuda emulation: a misaligned vector ends the process and is reported with its line and thread") {
  CHECK(results_of("copy", Mutant::none) == numbers(1, 1));
  if (address_sanitized) return;  // a sanitizer reports it
  const auto ended = in_child([] { results_of("copy", Mutant::misaligned_vector); });
  const std::string& text = ended.second;
  CHECK(ended.first == SIGABRT);
  CHECK_MESSAGE(text.find("cuda emulation: block (0, 0, 0), thread (0, 0, 0): ") == 0, text);
  CHECK_MESSAGE(text.find("mutants.cu:") != std::string::npos, text);
  CHECK_MESSAGE(text.find("is not a multiple of 16") != std::string::npos, text);
}

TEST_CASE("cuda emulation: static shared memory holds NaN where the first blocks of a kernel have not written it") {
  CHECK(results_of("sum", Mutant::none)[0] == 64 * 65 / 2);
  if (address_sanitized) return;  // it has guards around static shared memory instead
  CHECK(std::isnan(results_of("sum", Mutant::reads_unwritten_elements)[0]));
}

TEST_CASE("cuda emulation: static shared memory in a cooperative launch ends the process") {
  CHECK(results_of("scale", Mutant::none) == numbers(2, 2));
  if (address_sanitized) return;  // its static shared memory is not that of a thread
  const auto ended = in_child([] { results_of("scale", Mutant::static_shared_memory); });
  CHECK(ended.first == SIGABRT);
  CHECK_MESSAGE(ended.second.find("cuda emulation: static shared memory in a cooperative launch") == 0, ended.second);
}

/// What ends a capture in which body() is called, by name. In a process of its own: later tests open NVIDIA's libraries by these names.
template <class Body>
std::string end_of_capture(const Body& body) {
  const auto ended = in_child([&] {
    const Stream stream;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    body();
    cudaGraph_t graph = nullptr;
    std::fputs(cudaGetErrorName(cudaStreamEndCapture(stream, &graph)), stderr);
  });
  CHECK(ended.first == 0);
  return ended.second;
}

TEST_CASE("cuda emulation: handles of libraries cannot be made in a capture") {
  CHECK(end_of_capture([] {}) == "cudaSuccess");
  CHECK(end_of_capture([] {
          cublasHandle_t handle = nullptr;
          function<cublasStatus_t(cublasHandle_t*)>("libraries/libcublas.so", "cublasCreate_v2")(&handle);
        }) == "cudaErrorStreamCaptureInvalidated");
  CHECK(end_of_capture([] {
          cudnnHandle_t handle = nullptr;
          function<cudnnStatus_t(cudnnHandle_t*)>("libraries/libcudnn.so", "cudnnCreate")(&handle);
        }) == "cudaErrorStreamCaptureInvalidated");
}

}  // namespace
}  // namespace tenon::emulation::testing
