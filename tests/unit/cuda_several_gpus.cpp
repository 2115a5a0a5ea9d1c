// SPDX-License-Identifier: Apache-2.0
// Several GPUs on the emulation: who can access the memory of a pool, copies between devices, and the buffers of collectives.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/device/device.h"
#include "cuda_emulation.h"
#include "cuda_host.h"
#include "cuda_testing.h"
#include "plugins/sdk/handles.h"

#ifdef TENON_HAS_NCCL
#include <dlfcn.h>
#include <nccl.h>

#include "backends/cuda/collectives/collectives.h"
#endif

namespace tenon::cuda {
namespace {

// The emulation reads it at its first call, which is in a test.
const bool has_two_gpus = ::setenv("TENON_CUDA_EMULATION_DEVICES", "2", 0) == 0;

/// During its lifetime no GPU can access the memory of another one.
struct WithoutPeerAccess {
  WithoutPeerAccess() { ::setenv("TENON_CUDA_EMULATION_PEER_ACCESS", "0", 1); }
  ~WithoutPeerAccess() { ::unsetenv("TENON_CUDA_EMULATION_PEER_ACCESS"); }
};

using CudaStream = emulation::testing::Stream;

/// Memory of a pool of GPU 1.
struct PoolMemory {
  PoolMemory() {
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 1;
    REQUIRE(cudaMemPoolCreate(&pool, &properties) == cudaSuccess);
    const CudaStream stream;
    REQUIRE(cudaMallocFromPoolAsync(&data, 64, pool, stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
  }
  ~PoolMemory() {
    cudaSetDevice(1);
    cudaFree(data);
    cudaMemPoolDestroy(pool);
    cudaSetDevice(0);
    cudaGetLastError();
  }
  cudaError_t give_access(int gpu, cudaMemAccessFlags flags) const {
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = gpu;
    access.flags = flags;
    return cudaMemPoolSetAccess(pool, &access, 1);
  }
  cudaMemPool_t pool = nullptr;
  void* data = nullptr;
};

TEST_CASE("cuda emulation: memory of a pool is copied on another device only where that has access, or where both are named") {
  REQUIRE(has_two_gpus);
  const PoolMemory memory;
  const CudaStream stream;
  const emulation::testing::Buffer<int> x(16);
  const auto copy = [&] { return cudaMemcpyAsync(x.data, memory.data, 64, cudaMemcpyDefault, stream); };
  CHECK(copy() == cudaErrorInvalidValue);
  CHECK(cudaMemcpyPeerAsync(x.data, 0, memory.data, 1, 64, stream) == cudaSuccess);
  CHECK(cudaMemcpyPeerAsync(x.data, 1, memory.data, 0, 64, stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyPeerAsync(x.data, 0, memory.data, 2, 64, stream) == cudaErrorInvalidDevice);
  CHECK(memory.give_access(0, cudaMemAccessFlagsProtReadWrite) == cudaSuccess);
  CHECK(copy() == cudaSuccess);
  CHECK(memory.give_access(0, cudaMemAccessFlagsProtNone) == cudaSuccess);
  CHECK(copy() == cudaErrorInvalidValue);
  int can_access = 0;
  CHECK(cudaDeviceCanAccessPeer(&can_access, 0, 1) == cudaSuccess);
  CHECK(can_access == 1);
  CHECK(cudaDeviceCanAccessPeer(&can_access, 1, 1) == cudaSuccess);
  CHECK(can_access == 0);
  const WithoutPeerAccess apart;
  CHECK(memory.give_access(0, cudaMemAccessFlagsProtReadWrite) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyPeerAsync(x.data, 0, memory.data, 1, 64, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

/// An open GPU with a stream, as the host of the backend has it.
struct Gpu {
  explicit Gpu(int index) : handle{nullptr, std::make_unique<Device>(sdk::Host(&host.table), index), nullptr, {}}, stream(device()) {}
  Device& device() { return static_cast<Device&>(*handle.device); }
  TestHost host;
  tenon_device handle;
  Stream stream;
};

void copy_from(Gpu& from, std::uint64_t source, Gpu& to, std::uint64_t destination, std::uint64_t bytes) {
  to.device().copy({sizeof(tenon_copy), TENON_COPY_DEVICE_TO_DEVICE, destination, source, bytes, &from.handle, 0, 0}, to.stream);
}

void check_copies() {
  Gpu first(0), second(1);
  DeviceBuffer x(first.device(), first.stream, std::vector<float>{1, 2, 3}), y(second.device(), second.stream, std::vector<float>(3));
  DeviceBuffer z(first.device(), first.stream, std::vector<float>(3));
  first.stream.synchronize();
  second.stream.synchronize();
  const auto address = [](const DeviceBuffer& buffer) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(buffer.at())); };
  copy_from(first, address(x), second, address(y), 12);
  CHECK(y.read<float>(3) == std::vector<float>{1, 2, 3});
  copy_from(second, address(y), first, address(z), 12);
  CHECK(z.read<float>(3) == std::vector<float>{1, 2, 3});
  CHECK(first.host.warnings.empty());
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("cuda device: memory is copied to another GPU and back, also where neither can access the other") {
  check_copies();
  const WithoutPeerAccess apart;
  check_copies();
}

TEST_CASE("cuda device: each of two open GPUs can access the memory of the other, whichever was opened first") {
  Gpu first(0), second(1);
  for (Gpu* const owner : {&first, &second}) {
    Gpu& other = owner == &first ? second : first;
    const DeviceBuffer x(owner->device(), owner->stream, std::vector<float>{1}), y(other.device(), other.stream, std::vector<float>{0});
    owner->stream.synchronize();
    other.device().enter();
    CHECK(cudaMemcpyAsync(y.at(), x.at(), 4, cudaMemcpyDefault, other.stream.handle()) == cudaSuccess);
    other.stream.synchronize();
  }
}

TEST_CASE("cuda device: a GPU that is not granted access leaves the other one usable, with a warning") {
  Gpu first(0);
  emulation::fail_next("cudaMemPoolSetAccess", cudaErrorNotSupported);
  Gpu second(1);
  REQUIRE(first.host.warnings.size() == 1);
  CHECK_MESSAGE(contains(first.host.warnings[0], "GPU 1 was not granted access to the memory of GPU 0"), first.host.warnings[0]);
  CHECK_MESSAGE(contains(first.host.warnings[0], "cudaErrorNotSupported"), first.host.warnings[0]);
  CHECK(second.host.warnings.empty());
  CHECK(cudaGetLastError() == cudaSuccess);
}

#ifdef TENON_HAS_NCCL
TEST_CASE("cuda device: ranks that are threads sum buffers of their devices by NCCL") {
  Gpu first(0), second(1);
  Gpu* const gpus[] = {&first, &second};
  sdk::GroupOptions options;
  options.size = 2;
  options.timeout_ms = 10000;
  options.id = make_group_id(first.device().host);
  std::vector<float> sums(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      errors[rank] = error_of([&] {
                       Gpu& gpu = *gpus[rank];
                       sdk::GroupOptions own = options;
                       own.rank = static_cast<std::uint32_t>(rank);
                       const auto group = gpu.device().join(own);
                       DeviceBuffer x(gpu.device(), gpu.stream, std::vector<float>{static_cast<float>(rank + 1)});
                       gpu.stream.synchronize();
                       sdk::Collective sum{};
                       sum.kind = TENON_COLLECTIVE_ALL_REDUCE;
                       sum.operation = TENON_REDUCE_SUM;
                       sum.dtype = TENON_DTYPE_F32;
                       sum.count = 1;
                       sum.source = sum.destination = reinterpret_cast<std::uintptr_t>(x.at());
                       group->submit({&sum, 1}, gpu.stream);
                       sums[rank] = x.read<float>(1)[0];
                     }).what();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(errors == std::vector<std::string>(2, "nothing was thrown"));
  CHECK(sums == std::vector<float>{3, 3});
}

TEST_CASE("cuda emulation: NCCL rejects a buffer of a pool to which another rank's device has no access") {
  const auto function = [](const char* name) {
    static void* const library = ::dlopen(TENON_EMULATED_LIBRARIES "/libraries/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library != nullptr, ::dlerror());
    return ::dlsym(library, name);
  };
  ncclUniqueId id{};
  REQUIRE(reinterpret_cast<decltype(&ncclGetUniqueId)>(function("ncclGetUniqueId"))(&id) == ncclSuccess);
  ncclComm_t ranks[2] = {};
  for (int rank = 0; rank < 2; ++rank) {
    REQUIRE(cudaSetDevice(rank) == cudaSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    REQUIRE(reinterpret_cast<decltype(&ncclCommInitRankConfig)>(function("ncclCommInitRankConfig"))(&ranks[rank], 2, id, rank, &config) ==
            ncclInProgress);
  }
  const PoolMemory memory;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const CudaStream stream;
  CHECK(reinterpret_cast<decltype(&ncclAllReduce)>(function("ncclAllReduce"))(memory.data, memory.data, 1, ncclFloat32, ncclSum, ranks[1],
                                                                              stream) == ncclUnhandledCudaError);
  for (ncclComm_t rank : ranks) reinterpret_cast<decltype(&ncclCommAbort)>(function("ncclCommAbort"))(rank);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}
#endif

}  // namespace
}  // namespace tenon::cuda
