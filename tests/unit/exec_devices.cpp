// SPDX-License-Identifier: Apache-2.0
// Choosing devices: lists, scopes, errors, immediate ops on any device, and behaviour after a fork.
#include "dlpack_exporter.h"
#include "testing.h"

#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <cstdlib>
#include <thread>

#include "exec/context_state.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Floats = std::vector<float>;

Tensor product_of_two(const Context& context) {
  return context.apply(TENON_OP_Mul, {Tensor::of<float>({1, 2, 3}, {3}), Tensor::of<float>({4, 5, 6}, {3})})[0];
}

const std::string& device_of(const Tensor& t) {
  return static_cast<const exec::DeviceState&>(*t.storage()->device).info.name;
}

}  // namespace

TEST_CASE("devices: an immediate op runs on any of them") {
  const Context context(test_config("auto"));
  REQUIRE(context.devices().size() == 2);
  for (const DeviceInfo& info : context.devices()) {
    const PlacementScope here(context, info.name);
    const Tensor product = product_of_two(context);
    CHECK(device_of(product) == info.name);
    CHECK(floats(product) == Floats{4, 10, 18});
  }
}

TEST_CASE_FIXTURE(OnReference, "placement scope: the inner one wins, its end restores the outer one") {
  CHECK(context.default_device().name() == "reference:0");
  {
    const PlacementScope outer(context, "openblas:0");
    CHECK(context.default_device().name() == "openblas:0");
    {
      const PlacementScope inner(context, "reference");
      CHECK(device_of(product_of_two(context)) == "reference:0");
    }
    CHECK(device_of(product_of_two(context)) == "openblas:0");
    // An explicit device is not overridden.
    CHECK(device_of(context.apply(context.device("reference:0"), TENON_OP_Neg, {Tensor::scalar(1.0f)})[0]) == "reference:0");
  }
  CHECK(context.default_device().name() == "reference:0");
}

TEST_CASE_FIXTURE(OnReference, "placement scope: programs made inside it run there, and copied inputs are counted") {
  Graph graph;
  graph.output("y", ops::neg(graph.input("x", DType::f32, {2})));
  const PlacementScope scope(context, "openblas:0");
  Program program(context, graph);
  CHECK(program.placement().nodes[0].device == "openblas:0");
  CHECK(floats(program.run({Tensor::of<float>({1, 2}, {2})})[0]) == Floats{-1, -2});
}

TEST_CASE("placement scope: applies only to its thread and its context") {
  const Context context(test_config("reference:0")), other(test_config("reference:0"));
  const PlacementScope scope(context, "openblas:0");
  CHECK(other.default_device().name() == "reference:0");
  std::string elsewhere;
  std::thread([&] { elsewhere = context.default_device().name(); }).join();
  CHECK(elsewhere == "reference:0");
}

TEST_CASE("devices: a missing device is an error that lists the available ones") {
  const Context context(test_config("auto"));
  const std::string message = "device 'gpu:1' not found; available: openblas:0 (cpu:0), reference:0 (cpu:1)";
  CHECK_ERROR(message, (void)context.device("gpu:1"));
  CHECK_ERROR(message, const PlacementScope scope(context, "gpu:1"));
  try {
    (void)context.device("/device:GPU:1");
    FAIL("found a GPU");
  } catch (const Error& error) {
    CHECK(error.status() == Status::device_not_found);
  }
  CHECK(context.default_device().name() == "openblas:0");  // a failed scope has no effect
}

TEST_CASE("devices: a query for a GPU never throws") {
  CHECK(default_gpu().empty());
  ::setenv("TENON_CONFIG", "/nonexistent/tenon.yaml", 1);
  CHECK(default_gpu().empty());
  CHECK_THROWS_AS(list_devices(), Error);
  ::unsetenv("TENON_CONFIG");
  const std::vector<DeviceInfo> devices = list_devices();
  REQUIRE_FALSE(devices.empty());
  CHECK(devices.back().name == "reference:0");  // the oracle is last
  CHECK_FALSE(devices.back().ops.empty());
}

#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_FORK 1
#endif
#endif
#ifndef NO_FORK
namespace {

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
