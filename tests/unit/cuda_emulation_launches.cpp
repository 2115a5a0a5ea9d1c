// SPDX-License-Identifier: Apache-2.0
// Launches on the emulation: those that no GPU accepts, and those with programmatic stream serialization.
#include "cuda_emulation.h"

#include "sanitizers.h"

namespace tenon::emulation::testing {
namespace {

TEST_CASE("cuda emulation: an invalid launch is rejected, and its error is returned once") {
  const Stream stream;
  for (const auto& [grid, block] : {std::pair(dim3(1), dim3(1025)),
                                    {dim3(0), dim3(1)},
                                    {dim3(1), dim3(1, 0)},
                                    {dim3(1, 65536), dim3(1)},
                                    {dim3(1), dim3(1, 1, 65)},
                                    {dim3(0x80000000u), dim3(1)}}) {
    launch(stream, grid, block, [] {});
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
}

TEST_CASE("cuda emulation: a kernel that was launched early accesses memory when it has waited for the previous kernel") {
  const Stream stream;
  const Buffer<int> x(std::vector<int>{1}), y(std::vector<int>(8, 0));
  launch(stream, 1, 1, [p = x.data] { *p = 2; });
  launch_early(stream, 2, 4, [from = x.data, to = y.data] {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaGridDependencySynchronize();
    to[i] = *from + static_cast<int>(i);
  });
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(y.read() == std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("cuda emulation: a kernel that was launched early and does not wait ends the process") {
  const auto [signal, text] = in_child([] {
    const Stream stream;
    launch_early(stream, 2, 4, [] {
      if (blockIdx.x == 0 || threadIdx.x != 2) cudaGridDependencySynchronize();
    });
    cudaStreamSynchronize(stream);
  });
  CHECK(signal == SIGABRT);
  CHECK(text.find("block (1, 0, 0): thread (2, 0, 0) of a kernel that was launched early ends without a wait") != std::string::npos);
  if (address_sanitized) return;  // device memory is ordinary memory then, in exchange for bounds
  const Buffer<int> x(std::vector<int>{1});
  CHECK(in_child([&] {
          const Stream stream;
          launch_early(stream, 1, 1, [p = x.data] {
            *p = 2;
            cudaGridDependencySynchronize();
          });
          cudaStreamSynchronize(stream);
        }).first == SIGSEGV);
}

}  // namespace
}  // namespace tenon::emulation::testing
