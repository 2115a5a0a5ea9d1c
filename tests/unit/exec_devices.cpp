// SPDX-License-Identifier: Apache-2.0
// Choosing devices: lists, scopes, errors and immediate ops on any device.
#include "dlpack_exporter.h"
#include "testing.h"

#include <cstdlib>
#include <thread>

#include "exec/context_state.h"
#include "platform/environment.h"

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

/// Without the CPUs that an OpenCL driver of this machine offers.
Config on_cpus() {
  Config config = test_config("auto");
  config.backends.use = {"openblas", "reference"};
  return config;
}

}  // namespace

TEST_CASE("devices: an immediate op runs on any of them") {
  const Context context(on_cpus());
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
  const Context context(on_cpus());
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
  platform::set_environment_variable("TENON_CONFIG", "/nonexistent/tenon.yaml");
  CHECK(default_gpu().empty());
  CHECK_THROWS_AS(list_devices(), Error);
  platform::remove_environment_variable("TENON_CONFIG");
  const std::vector<DeviceInfo> devices = list_devices();
  REQUIRE_FALSE(devices.empty());
  CHECK(devices.back().name == "reference:0");  // the oracle is last
  CHECK_FALSE(devices.back().ops.empty());
}
