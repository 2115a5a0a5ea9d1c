// SPDX-License-Identifier: Apache-2.0
// Devices and host memory after fork().
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "dlpack_exporter.h"
#include "exec/context_state.h"
#include "host_memory_use.h"
#include "sanitized.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("fork: host memory is usable in the child of a process whose threads allocate") {
  std::vector<std::thread> threads;
  std::atomic<int> intact = 0;
  // A lock that one of the threads held at fork() must not stay locked. AddressSanitizer's own allocator does not keep that promise.
  for (std::uint64_t seed = 1; !TENON_IS_SANITIZED && seed <= 3; ++seed)
    threads.emplace_back([&, seed] { intact += use_host_memory(seed) ? 1 : 0; });
  const pid_t child = ::fork();
  if (child == 0) ::_exit(use_host_memory(4) ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (std::thread& thread : threads) thread.join();
  CHECK(intact == static_cast<int>(threads.size()));
}

#if !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_FORK 1
#endif
#endif
#ifndef NO_FORK
namespace {

using Floats = std::vector<float>;

Tensor product_of_two(const Context& context) {
  return context.apply(TENON_OP_Mul, {Tensor::of<float>({1, 2, 3}, {3}), Tensor::of<float>({4, 5, 6}, {3})})[0];
}

/// The return value of the body in a child process; -1 if the child crashed.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a child that hangs fails
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE_FIXTURE(OnOpenblas, "fork: a CPU device stays usable in the child, with its own threads") {
  // Large enough that the loops use the pool's threads, before the fork and after.
  const Tensor ones = Tensor::full(DType::f32, {1 << 20}, 1);
  const Tensor twos = Tensor::full(DType::f32, {1 << 20}, 2);
  const auto adds_up = [&] { return equal(context.apply(TENON_OP_Add, {ones, ones})[0], twos); };
  CHECK(adds_up());
  CHECK(in_child([&] { return adds_up() ? 0 : 1; }) == 0);
  CHECK(adds_up());
}

TEST_CASE_FIXTURE(OnReference, "fork: a device with state is rejected in the child; a new context works") {
  const exec::DeviceEntry& entry = context.state()->entries.back();
  DeviceInfo info = entry.info;
  info.flags &= ~(TENON_DEVICE_HOST_ADDRESSABLE | TENON_DEVICE_INLINE_STREAMS);
  const Device device(std::make_shared<exec::DeviceState>(entry.loaded, entry.index, info));
  const Tensor there = Tensor::scalar(1.0f).to(device);
  Exporter exporter;
  Tensor imported = from_dlpack(&exporter.managed, device);
  const int code = in_child([&] {
    const std::string message = "device 'reference:0' was opened before fork(); a child process opens its own context";
    if (message_of([&] { (void)there.to_host(); }) != message) return 1;
    if (message_of([&] { (void)device.empty(DType::f32, {1}); }) != message) return 2;
    if (message_of([&] { (void)Stream(device); }) != message) return 3;
    if (message_of([&] { (void)device.zeros(DType::f32, {1}); }) != message) return 4;
    if (message_of([&] { (void)from_dlpack(&exporter.managed, device); }) != message) return 5;
    imported = {};  // without a call of the parent's device
    if (exporter.deleted != 1) return 6;
    return floats(product_of_two(Context(test_config()))) == Floats{4, 10, 18} ? 0 : 7;
  });
  CHECK(code == 0);
  CHECK(there.item() == 1.0);
  CHECK(exporter.deleted == 0);
}
#endif
#endif
