// SPDX-License-Identifier: Apache-2.0
// The cuda backend's device on the emulation: memory, imports, recordings, and what happens when CUDA fails.
#include "backends/cuda/device/device.h"

#include <doctest/doctest.h>

#include <vector>

#include "backends/cuda/kernel/launch.h"
#include "control.h"
#include "cuda_testing.h"

namespace tenon::cuda {

namespace {

struct Bench {
  Device device{sdk::Host(), 0};
  Stream stream{device};
  ~Bench() { REQUIRE(cudaGetLastError() == cudaSuccess); }
};

__global__ void twice(float* x, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] *= 2;
}
__global__ void add_one(float* x) {
  if (threadIdx.x == 0) *x += 1;
}
__global__ void has_static_shared() {}
__global__ void has_dynamic_shared() {}
__global__ void find_fault(FaultRecord* record, std::uint64_t node_id) {
  *record = {fault_written, FaultKind::index, TENON_OP_Gather, node_id, 2, 9, -3, 3};
}

TEST_CASE("cuda device: written data is read back, kernels run in stream order") {
  Bench bench;
  DeviceBuffer x(bench.device, bench.stream, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  launch(bench.stream, {1, 32}, twice, x.at<float>(), 10);
  launch(bench.stream, {1, 32}, twice, x.at<float>(), 3);
  CHECK(x.read<float>(10) == std::vector<float>{4, 8, 12, 8, 10, 12, 14, 16, 18, 20});
}

TEST_CASE("cuda device: a recording runs nothing, each replay everything") {
  Bench bench;
  DeviceBuffer x(bench.device, bench.stream, std::vector<float>{1, 10});
  bench.stream.begin_capture();
  CHECK(bench.stream.capturing());
  launch(bench.stream, {1, 32}, twice, x.at<float>(), 2);
  const auto capture = bench.stream.end_capture();
  CHECK(x.read<float>(2) == std::vector<float>{1, 10});
  capture->replay(bench.stream);
  capture->replay(bench.stream);
  CHECK(x.read<float>(2) == std::vector<float>{4, 40});
  Stream other(bench.device);
  capture->replay(other);
  other.synchronize();
  CHECK(x.read<float>(2) == std::vector<float>{8, 80});
}

TEST_CASE("cuda device: a recording that waits for an event waits at each replay for what the event marks then") {
  Bench bench;
  DeviceBuffer x(bench.device, bench.stream, std::vector<float>{1});
  Stream other(bench.device);
  bench.stream.synchronize();
  const auto event = bench.device.make_event({});
  const auto mark_addition = [&] {
    launch(other, {1, 32}, add_one, x.at<float>());
    event->record(other);
  };
  mark_addition();
  other.synchronize();
  bench.stream.begin_capture();
  event->wait(bench.stream);
  launch(bench.stream, {1, 32}, twice, x.at<float>(), 1);
  const auto capture = bench.stream.end_capture();
  capture->replay(bench.stream);
  CHECK(x.read<float>(1) == std::vector<float>{4});
  mark_addition();
  capture->replay(bench.stream);
  CHECK(x.read<float>(1) == std::vector<float>{10});
}

TEST_CASE("cuda device: a recording waits for an event that is recorded for the first time afterwards, and for one of its own") {
  Bench bench;
  DeviceBuffer x(bench.device, bench.stream, std::vector<float>{1});
  bench.stream.synchronize();
  const auto later = bench.device.make_event({}), own = bench.device.make_event({});
  bench.stream.begin_capture();
  later->wait(bench.stream);
  own->record(bench.stream);
  own->wait(bench.stream);
  launch(bench.stream, {1, 32}, twice, x.at<float>(), 1);
  const auto capture = bench.stream.end_capture();
  capture->replay(bench.stream);
  CHECK(x.read<float>(1) == std::vector<float>{2});
  Stream other(bench.device);
  launch(other, {1, 32}, add_one, x.at<float>());
  later->record(other);
  capture->replay(bench.stream);
  CHECK(x.read<float>(1) == std::vector<float>{6});
}

TEST_CASE("cuda device: library state of a stream and of its recording are separate, and a recording outlives its stream") {
  Device device{sdk::Host(), 0};
  std::unique_ptr<sdk::Capture> capture;
  const auto kept = std::make_shared<int>(0);
  struct Workspace {
    std::shared_ptr<int> owner;
    int number;
    Workspace(std::shared_ptr<int> o, int n) : owner(std::move(o)), number(n) {}
  };
  {
    Stream stream(device);
    CHECK(stream.attached.get<Workspace>(kept, 1).number == 1);
    stream.begin_capture();
    CHECK(stream.attached.get<Workspace>(kept, 2).number == 2);
    capture = stream.end_capture();
    CHECK(stream.attached.get<Workspace>(kept, 3).number == 1);
  }
  CHECK(kept.use_count() == 2);
  capture.reset();
  CHECK(kept.use_count() == 1);
}

TEST_CASE("cuda device: a kernel's fault is thrown once, by the next wait, with its node") {
  Bench bench;
  launch(bench.stream, {1, 1}, find_fault, bench.stream.faults().get(), std::uint64_t{6});
  const sdk::Error found = error_of([&] { bench.stream.synchronize(); });
  CHECK(found.status() == TENON_INVALID_ARGUMENT);
  CHECK(found.node_id() == 6);
  CHECK(contains(found.what(), "gather: index 9 at position 2 is out of range [-3, 3)"));
  bench.stream.synchronize();

  const auto event = bench.device.make_event({});
  launch(bench.stream, {1, 1}, find_fault, bench.stream.faults().get(), std::uint64_t{4});
  event->record(bench.stream);
  CHECK(error_of([&] { event->synchronize(); }).node_id() == 4);
  event->synchronize();
}

TEST_CASE("cuda device: a fault of a recorded kernel is thrown on the stream of the replay") {
  Bench bench;
  bench.stream.begin_capture();
  launch(bench.stream, {1, 1}, find_fault, bench.stream.faults().get(), std::uint64_t{5});
  const auto capture = bench.stream.end_capture();
  Stream other(bench.device);
  capture->replay(other);
  CHECK(error_of([&] { other.synchronize(); }).node_id() == 5);
  bench.stream.synchronize();
}

TEST_CASE("cuda device: a failed allocation reports the requested and the free bytes") {
  Bench bench;
  const sdk::Error refused = error_of([&] { bench.device.allocate(TENON_MEMORY_DEVICE, std::uint64_t{1} << 45); });
  CHECK(refused.status() == TENON_OUT_OF_MEMORY);
  CHECK(contains(refused.what(), "35184372088832 bytes"));
  CHECK(contains(refused.what(), "free"));
  const std::uint64_t small = bench.device.allocate(TENON_MEMORY_DEVICE, 64);
  bench.device.deallocate(TENON_MEMORY_DEVICE, small, 64);
}

TEST_CASE("cuda device: borrowed host memory is used in place and released") {
  Bench bench;
  std::vector<float> mine{1, 2, 3};
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t address = bench.device.import_host(mine.data(), 12, TENON_IMPORT_BORROW_READ_WRITE);
    launch(bench.stream, {1, 32}, twice, reinterpret_cast<float*>(address), 3);
    bench.stream.synchronize();
    if (round == 0) {
      const sdk::Error again = error_of([&] { bench.device.import_host(mine.data(), 4, TENON_IMPORT_HOLD); });
      CHECK(again.status() == TENON_UNSUPPORTED);
      CHECK(contains(again.what(), "import by copy"));
    }
    bench.device.end_import(mine.data(), 12);
  }
  CHECK(mine == std::vector<float>{4, 8, 12});
}

TEST_CASE("cuda device: memory that CUDA cannot pin is not borrowed, whatever the reason, and the error says to copy") {
  Bench bench;
  std::vector<float> mine{1, 2, 3};
  const auto refusal_of = [&](const char* call, cudaError_t error) {
    emulation::fail_next(call, error);
    return error_of([&] { bench.device.import_host(mine.data(), 12, TENON_IMPORT_BORROW_READ_ONLY); });
  };
  for (const cudaError_t error : {cudaErrorInvalidValue, cudaErrorOperatingSystem, cudaErrorMemoryAllocation, cudaErrorNotSupported}) {
    for (const char* call : {"cudaHostRegister", "cudaHostGetDevicePointer"}) {
      const sdk::Error refused = refusal_of(call, error);
      CHECK(refused.status() == TENON_UNSUPPORTED);
      CHECK_MESSAGE(contains(refused.what(), std::string(call) + " fails with " + cudaGetErrorName(error)), refused.what());
      CHECK_MESSAGE(contains(refused.what(), "import by copy"), refused.what());
    }
  }
  CHECK(bench.device.import_host(mine.data(), 12, TENON_IMPORT_BORROW_READ_ONLY) != 0);
  bench.device.end_import(mine.data(), 12);
  Device device{sdk::Host(), 0};
  emulation::fail_next("cudaHostRegister", cudaErrorIllegalAddress);
  CHECK(error_of([&] { device.import_host(mine.data(), 12, TENON_IMPORT_BORROW_READ_ONLY); }).status() == TENON_DEVICE_LOST);
}

TEST_CASE("cuda device: a kernel with static shared memory has as much dynamic one as that leaves of a block's") {
  Bench bench;
  const std::size_t largest = bench.device.max_shared_bytes();
  CHECK(largest == 227 << 10);
  emulation::set_static_shared(reinterpret_cast<const void*>(&has_static_shared), 1 << 10);
  launch(bench.stream, {1, 32, 47 << 10}, has_static_shared);
  launch(bench.stream, {1, 32, 48 << 10}, has_static_shared);
  launch(bench.stream, {1, 32, largest - (1 << 10)}, has_static_shared);
  CHECK(error_of([&] { launch(bench.stream, {1, 32, largest}, has_static_shared); }).status() == TENON_INVALID_ARGUMENT);
  launch(bench.stream, {1, 32, largest}, has_dynamic_shared);
  bench.stream.synchronize();
}

TEST_CASE("cuda device: a failed call is reported by name, and the device stays usable") {
  Bench bench;
  emulation::fail_next("cudaStreamCreateWithPriority", cudaErrorUnknown);
  const sdk::Error refused = error_of([&] { bench.device.make_stream({}); });
  CHECK(refused.status() == TENON_VENDOR_ERROR);
  CHECK(contains(refused.what(), "cudaStreamCreateWithPriority: cudaErrorUnknown"));
  CHECK(bench.device.make_stream({}) != nullptr);
}

TEST_CASE("cuda device: an illegal access of a kernel makes the device unusable until it is closed") {
  {
    Device device{sdk::Host(), 0};
    Stream stream{device};
    const std::uint64_t x = device.allocate(TENON_MEMORY_DEVICE, 8);
    emulation::fault(cudaErrorIllegalAddress);
    launch(stream, {1, 32}, twice, reinterpret_cast<float*>(x), 2);
    const sdk::Error lost = error_of([&] { stream.synchronize(); });
    CHECK(lost.status() == TENON_DEVICE_LOST);
    CHECK(contains(lost.what(), "cudaErrorIllegalAddress"));
    const sdk::Error later = error_of([&] { device.allocate(TENON_MEMORY_DEVICE, 8); });
    CHECK(later.status() == TENON_DEVICE_LOST);
    CHECK(contains(later.what(), "close it"));
    device.deallocate(TENON_MEMORY_DEVICE, x, 8);  // freed with the context
  }
  Device again{sdk::Host(), 0};
  const std::uint64_t x = again.allocate(TENON_MEMORY_DEVICE, 8);
  CHECK(x != 0);
  again.deallocate(TENON_MEMORY_DEVICE, x, 8);
}

}  // namespace
}  // namespace tenon::cuda
