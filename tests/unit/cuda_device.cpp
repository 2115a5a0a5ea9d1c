// The cuda backend's device on the emulation: memory, imports, recordings, and what happens when CUDA fails.
#include "backends/cuda/device.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "backends/cuda/launch.h"
#include "control.h"

namespace tenon::cuda {
namespace {

struct Bench {
  Device device{sdk::Host(), 0};
  Stream stream{device};
  ~Bench() { REQUIRE(cudaGetLastError() == cudaSuccess); }

  void copy(std::uint32_t direction, std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    device.copy({sizeof(tenon_copy), direction, destination, source, size, nullptr}, stream);
  }
  std::vector<float> read(std::uint64_t address, std::size_t count) {
    std::vector<float> values(count);
    copy(TENON_COPY_DEVICE_TO_HOST, reinterpret_cast<std::uintptr_t>(values.data()), address, 4 * count);
    stream.synchronize();
    return values;
  }
  void write(std::uint64_t address, const std::vector<float>& values) {
    copy(TENON_COPY_HOST_TO_DEVICE, address, reinterpret_cast<std::uintptr_t>(values.data()), 4 * values.size());
  }
};

template <class Body>
sdk::Error error_of(Body&& body) {
  try {
    body();
  } catch (const sdk::Error& e) {
    return e;
  }
  return {TENON_OK, "nothing was thrown"};
}
bool says(const sdk::Error& error, const char* part) {
  return std::strstr(error.what(), part) != nullptr;
}

__global__ void twice(float* x, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] *= 2;
}
__global__ void find_fault(FaultRecord* record, std::uint32_t node) {
  *record = {fault_written, FaultKind::index, TENON_OP_Gather, node, 2, 9, -3, 3};
}

TEST_CASE("cuda device: what is written is read, kernels work on it in stream order") {
  Bench bench;
  const std::uint64_t x = bench.device.allocate(TENON_MEMORY_DEVICE, 40);
  bench.write(x, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  launch(bench.stream, {1, 32}, twice, reinterpret_cast<float*>(x), 10);
  launch(bench.stream, {1, 32}, twice, reinterpret_cast<float*>(x), 3);
  CHECK(bench.read(x, 10) == std::vector<float>{4, 8, 12, 8, 10, 12, 14, 16, 18, 20});
  bench.device.deallocate(TENON_MEMORY_DEVICE, x, 40);
}

TEST_CASE("cuda device: a recording runs nothing, each replay all of it") {
  Bench bench;
  const std::uint64_t x = bench.device.allocate(TENON_MEMORY_DEVICE, 8);
  bench.write(x, {1, 10});
  bench.stream.begin_capture();
  CHECK(bench.stream.capturing());
  launch(bench.stream, {1, 32}, twice, reinterpret_cast<float*>(x), 2);
  const auto capture = bench.stream.end_capture();
  CHECK(bench.read(x, 2) == std::vector<float>{1, 10});
  capture->replay(bench.stream);
  capture->replay(bench.stream);
  CHECK(bench.read(x, 2) == std::vector<float>{4, 40});
  Stream other(bench.device);
  capture->replay(other);
  other.synchronize();
  CHECK(bench.read(x, 2) == std::vector<float>{8, 80});
  bench.device.deallocate(TENON_MEMORY_DEVICE, x, 8);
}

TEST_CASE("cuda device: what libraries keep for a stream is not what they keep for its recording, which outlives the stream") {
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

TEST_CASE("cuda device: what a kernel finds wrong is thrown once, by whoever waits, with its node") {
  Bench bench;
  launch(bench.stream, {1, 1}, find_fault, bench.stream.faults().get(), 6u);
  const sdk::Error found = error_of([&] { bench.stream.synchronize(); });
  CHECK(found.status() == TENON_INVALID_ARGUMENT);
  CHECK(found.node() == 6);
  CHECK(says(found, "gather: index 9 at position 2 is out of range [-3, 3)"));
  bench.stream.synchronize();

  const auto event = bench.device.make_event();
  launch(bench.stream, {1, 1}, find_fault, bench.stream.faults().get(), 4u);
  event->record(bench.stream);
  CHECK(error_of([&] { event->synchronize(); }).node() == 4);
  event->synchronize();
}

TEST_CASE("cuda device: a fault of a recorded kernel is thrown where it was replayed") {
  Bench bench;
  bench.stream.begin_capture();
  launch(bench.stream, {1, 1}, find_fault, bench.stream.faults().get(), 5u);
  const auto capture = bench.stream.end_capture();
  Stream other(bench.device);
  capture->replay(other);
  CHECK(error_of([&] { other.synchronize(); }).node() == 5);
  bench.stream.synchronize();
}

TEST_CASE("cuda device: memory that is not there is refused with what was asked for and what is free") {
  Bench bench;
  const sdk::Error refused = error_of([&] { bench.device.allocate(TENON_MEMORY_DEVICE, std::uint64_t{1} << 45); });
  CHECK(refused.status() == TENON_OUT_OF_MEMORY);
  CHECK(says(refused, "35184372088832 bytes"));
  CHECK(says(refused, "free"));
  const std::uint64_t small = bench.device.allocate(TENON_MEMORY_DEVICE, 64);
  bench.device.deallocate(TENON_MEMORY_DEVICE, small, 64);
}

TEST_CASE("cuda device: borrowed host memory is used in place, and given back") {
  Bench bench;
  std::vector<float> mine{1, 2, 3};
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t address = bench.device.import_host(mine.data(), 12, TENON_IMPORT_BORROW_READ_WRITE);
    launch(bench.stream, {1, 32}, twice, reinterpret_cast<float*>(address), 3);
    bench.stream.synchronize();
    if (round == 0) {
      const sdk::Error again = error_of([&] { bench.device.import_host(mine.data(), 4, TENON_IMPORT_HOLD); });
      CHECK(again.status() == TENON_UNSUPPORTED);
      CHECK(says(again, "import by copy"));
    }
    bench.device.end_import(mine.data(), 12);
  }
  CHECK(mine == std::vector<float>{4, 8, 12});
}

TEST_CASE("cuda device: a call that fails is named, and the device goes on") {
  Bench bench;
  emulation::fail_next("cudaStreamCreateWithFlags", cudaErrorUnknown);
  const sdk::Error refused = error_of([&] { bench.device.make_stream(); });
  CHECK(refused.status() == TENON_VENDOR_ERROR);
  CHECK(says(refused, "cudaStreamCreateWithFlags: cudaErrorUnknown"));
  CHECK(bench.device.make_stream() != nullptr);
}

TEST_CASE("cuda device: a kernel's illegal access loses the device until it is closed") {
  {
    Device device{sdk::Host(), 0};
    Stream stream{device};
    const std::uint64_t x = device.allocate(TENON_MEMORY_DEVICE, 8);
    emulation::fault(cudaErrorIllegalAddress);
    launch(stream, {1, 32}, twice, reinterpret_cast<float*>(x), 2);
    const sdk::Error lost = error_of([&] { stream.synchronize(); });
    CHECK(lost.status() == TENON_DEVICE_LOST);
    CHECK(says(lost, "cudaErrorIllegalAddress"));
    const sdk::Error later = error_of([&] { device.allocate(TENON_MEMORY_DEVICE, 8); });
    CHECK(later.status() == TENON_DEVICE_LOST);
    CHECK(says(later, "close it"));
    device.deallocate(TENON_MEMORY_DEVICE, x, 8);  // went with the context
  }
  Device again{sdk::Host(), 0};
  const std::uint64_t x = again.allocate(TENON_MEMORY_DEVICE, 8);
  CHECK(x != 0);
  again.deallocate(TENON_MEMORY_DEVICE, x, 8);
}

}  // namespace
}  // namespace tenon::cuda
