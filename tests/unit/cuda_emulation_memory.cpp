// SPDX-License-Identifier: Apache-2.0
// Memory and copies on the emulation: when bytes are read and written, bounds, pools, and who can access what.
#include "cuda_emulation.h"

#include <cstdint>

#include "sanitizers.h"

namespace tenon::emulation::testing {
namespace {

TEST_CASE("cuda emulation: a copy from pageable memory reads the bytes in the call, from pinned memory later") {
  const Stream stream;
  Buffer<int> x(1), y(1);
  const Buffer<int> fixed = pinned<int>(1);
  int pageable = 1;
  *fixed.data = 1;
  REQUIRE(cudaMemcpyAsync(x.data, &pageable, sizeof(int), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(y.data, fixed.data, sizeof(int), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  pageable = *fixed.data = 2;
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read()[0] == 1);
  CHECK(y.read()[0] == 2);
}

TEST_CASE("cuda emulation: a copy to pageable memory is done when the call returns, to pinned memory later") {
  const Stream stream;
  Buffer<int> x(std::vector<int>{7});
  const Buffer<int> fixed = pinned<int>(1);
  *fixed.data = 0;
  REQUIRE(cudaMemcpyAsync(fixed.data, x.data, sizeof(int), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(*fixed.data == 0);
  int pageable = 0;
  REQUIRE(cudaMemcpyAsync(&pageable, x.data, sizeof(int), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(pageable == 7);
  CHECK(*fixed.data == 7);
}

TEST_CASE("cuda emulation: a copy out of bounds or of a wrong kind is rejected") {
  const Stream stream;
  Buffer<int> x(4);
  std::vector<int> host(8);
  CHECK(cudaMemcpyAsync(x.data, host.data(), 5 * sizeof(int), cudaMemcpyHostToDevice, stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(x.data, host.data(), sizeof(int), cudaMemcpyDeviceToDevice, stream) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(x.data + 1, 0, 4 * sizeof(int), stream) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("cuda emulation: new and freed memory is filled with 0xFF") {
  const Stream stream, other;
  void *first = nullptr, *second = nullptr;
  REQUIRE(cudaMallocAsync(&first, 256, stream) == cudaSuccess);
  unsigned value = 0;
  REQUIRE(cudaMemcpyAsync(&value, first, sizeof value, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(value == 0xffffffffu);
  REQUIRE(cudaMemsetAsync(first, 0, 256, stream) == cudaSuccess);
  REQUIRE(cudaFreeAsync(first, stream) == cudaSuccess);
  CHECK(cudaFreeAsync(first, stream) == cudaErrorInvalidValue);
  REQUIRE(cudaMallocAsync(&second, 256, stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(&value, second, sizeof value, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(value == 0xffffffffu);
  REQUIRE(cudaFreeAsync(second, stream) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("cuda emulation: more memory than the device has is rejected, and freed memory is available again") {
  std::size_t before = 0, total = 0, after = 0;
  REQUIRE(cudaMemGetInfo(&before, &total) == cudaSuccess);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, total + 1) == cudaErrorMemoryAllocation);
  CHECK(memory == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  REQUIRE(cudaMalloc(&memory, 1 << 20) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(after == before - (1 << 20));
  REQUIRE(cudaFree(memory) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(after == before);
}

TEST_CASE("cuda emulation: a pool counts its allocations") {
  const Stream stream;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  REQUIRE(cudaMemPoolCreate(&pool, &properties) == cudaSuccess);
  void* memory = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&memory, 1000, pool, stream) == cudaSuccess);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);
  std::uint64_t used = 0;
  REQUIRE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 1000);
  REQUIRE(cudaFreeAsync(memory, stream) == cudaSuccess);
  REQUIRE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 0);
  CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
}

TEST_CASE("cuda emulation: the host cannot read device memory, nor can a host function") {
  if (address_sanitized) return;  // device memory is ordinary memory then, in exchange for bounds
  Buffer<int> x(std::vector<int>{1});
  CHECK(in_child([&] { _exit(*static_cast<volatile int*>(x.data)); }).first == SIGSEGV);
  CHECK(in_child([&] {
          const Stream stream;
          launch(stream, 1, 1, [p = x.data] { *p = 2; });
          cudaLaunchHostFunc(
              stream, [](void* p) { _exit(*static_cast<volatile int*>(p)); }, x.data);
          cudaStreamSynchronize(stream);
        }).first == SIGSEGV);
  CHECK(x.read()[0] == 1);
}

}  // namespace
}  // namespace tenon::emulation::testing
