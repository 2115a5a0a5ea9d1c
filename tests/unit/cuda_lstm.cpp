// SPDX-License-Identifier: Apache-2.0
// lstm of the cuda backend on emulated devices with little shared memory, layers of several sizes in one recording, and layers whose units
// are in several blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/ops/lstm.cu"
#include "cuda_emulation.h"
#include "cuda_host.h"
#include "cuda_testing.h"
#include "handles.h"

namespace tenon::cuda {
namespace {

/// A property of the emulated device, during the lifetime of this.
class Property {
 public:
  Property(const char* variable, int value) : variable_(variable) { ::setenv(variable, std::to_string(value).c_str(), 1); }
  ~Property() { ::unsetenv(variable_); }

 private:
  const char* const variable_;
};

/// A stream of a device, as kernels get it.
struct Queue {
  explicit Queue(Device& a_device) : device(a_device) {}
  Device& device;
  tenon_stream handle{std::make_unique<Stream>(device)};
  Stream& stream = static_cast<Stream&>(*handle.stream);
};

/// A forward layer without bias and initial states: x (3, 3, 2), w (1, 4 H, 2), r (1, 4 H, H), y (3, 1, 3, H).
struct Layer {
  static constexpr std::size_t steps = 3, batch = 3, features = 2;
  std::size_t units;
  std::array<std::int64_t, 3> x_shape, w_shape, r_shape;
  std::array<std::int64_t, 4> y_shape;
  std::vector<float> x, w, r;
  DeviceBuffer at_x, at_w, at_r, at_y;
  std::array<sdk::Operand, 3> inputs;
  sdk::Operand output;
  tenon_attributes_recurrent attributes{};
  sdk::Call call;
  std::unique_ptr<DeviceBuffer> scratch;

  /// The inputs of two layers differ if `start` does.
  Layer(Queue& queue, std::size_t unit_count, std::size_t start = 0)
      : units(unit_count),
        x_shape{steps, batch, features},
        w_shape{1, static_cast<std::int64_t>(4 * units), features},
        r_shape{1, static_cast<std::int64_t>(4 * units), static_cast<std::int64_t>(units)},
        y_shape{steps, 1, batch, static_cast<std::int64_t>(units)},
        x(some(steps * batch * features, 1, start)),
        w(some(4 * units * features, 1)),
        r(some(4 * units * units, 1 / std::sqrt(static_cast<float>(units)))),
        at_x(queue.device, queue.stream, x),
        at_w(queue.device, queue.stream, w),
        at_r(queue.device, queue.stream, r),
        at_y(queue.device, queue.stream, steps * batch * units * sizeof(float)),
        inputs{operand(at_x, x_shape), operand(at_w, w_shape), operand(at_r, r_shape)},
        output(operand(at_y, y_shape)) {
    attributes.direction = TENON_DIRECTION_FORWARD;
    call.inputs = inputs.data();
    call.input_count = 3;
    call.outputs = &output;
    call.output_count = 1;
    call.attributes = &attributes;
    call.device = &queue.device;
    scratch = std::make_unique<DeviceBuffer>(queue.device, queue.stream, scratch_of_layer<LstmCells>(call));
    call.scratch = scratch->at<void>();
    call.stream = &queue.handle;
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  static std::vector<float> some(std::size_t count, float limit, std::size_t start = 0) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = limit * (static_cast<float>((start + i) * 37 % 101) / 50 - 1);
    return values;
  }
  template <std::size_t rank>
  static sdk::Operand operand(const DeviceBuffer& buffer, const std::array<std::int64_t, rank>& shape) {
    sdk::Operand operand{};
    operand.data = buffer.at<void>();
    operand.shape = shape.data();
    operand.rank = rank;
    operand.count = 1;
    for (const std::int64_t size : shape) operand.count *= size;
    operand.dtype = TENON_DTYPE_F32;
    return operand;
  }
  PersistentPlan plan() const { return Recurrent(call, 0, gate_count).persistent_plan(2, 1, false); }
  bool in_one_kernel() const { return static_cast<bool>(plan()); }

  std::vector<float> expected() const {
    std::vector<float> y;
    std::vector<double> h(batch * units), c(batch * units);
    for (std::size_t t = 0; t < steps; ++t) {
      const std::vector<double> before = h;
      for (std::size_t i = 0; i < batch * units; ++i) {
        const std::size_t row = i / units, unit = i % units;
        double sum[gate_count] = {};
        for (std::size_t g = 0; g < gate_count; ++g) {
          const std::size_t line = g * units + unit;
          for (std::size_t k = 0; k < features; ++k) sum[g] += double{x[(t * batch + row) * features + k]} * double{w[line * features + k]};
          for (std::size_t k = 0; k < units; ++k) sum[g] += before[row * units + k] * double{r[line * units + k]};
        }
        const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
        c[i] = sigmoid(sum[forget_gate]) * c[i] + sigmoid(sum[in_gate]) * std::tanh(sum[candidate]);
        h[i] = sigmoid(sum[out_gate]) * std::tanh(c[i]);
        y.push_back(static_cast<float>(h[i]));
      }
    }
    return y;
  }
  void check() {
    const std::vector<float> y = at_y.read<float>(steps * batch * units), wanted = expected();
    float worst = 0;
    for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::isnan(y[i]) ? 1.0f : std::abs(y[i] - wanted[i]));
    CHECK(worst < 1e-5f);
  }
};

TEST_CASE("cuda lstm: devices with less shared memory have smaller layers in one kernel") {
  struct Case {
    int kilobytes;
    std::size_t units;
    bool in_one_kernel;
  };
  for (const Case& c : {Case{48, 64, true}, Case{48, 65, false}, Case{99, 64, true}, Case{99, 80, true}, Case{99, 128, false}}) {
    CAPTURE(c.kilobytes);
    CAPTURE(c.units);
    const Property limit("TENON_CUDA_EMULATION_SHARED_KB", c.kilobytes);
    Bench bench;
    REQUIRE(bench.device.max_shared_bytes() == static_cast<std::size_t>(c.kilobytes) << 10);
    Queue queue(bench.device);
    Layer layer(queue, c.units);
    CHECK(layer.in_one_kernel() == c.in_one_kernel);
    lstm<float>(layer.call);
    layer.check();
  }
}

TEST_CASE("cuda lstm: one recording has layers whose kernel is the same and needs more shared memory for one than for the other") {
  Bench bench;
  Queue queue(bench.device);
  Layer large(queue, 128), small(queue, 96);
  REQUIRE(large.in_one_kernel());
  REQUIRE(small.in_one_kernel());
  queue.stream.begin_capture();
  lstm<float>(large.call);
  lstm<float>(small.call);
  const auto capture = queue.stream.end_capture();
  capture->replay(queue.stream);
  large.check();
  small.check();
}

TEST_CASE("cuda lstm: larger layers have their units in several blocks, one launch after the other, in every order of threads") {
  for (const char* order : {"ascending", "descending", "1"}) {
    CAPTURE(order);
    const emulation::testing::Order chosen(order);
    Bench bench("recurrent", "cooperative");
    Queue queue(bench.device);
    Layer first(queue, 150, 0), second(queue, 150, 17), uneven(queue, 133, 3);
    for (Layer* layer : {&first, &second, &uneven}) {
      REQUIRE(layer->plan().members > 1);
      lstm<float>(layer->call);
    }
    for (Layer* layer : {&first, &second, &uneven}) layer->check();
  }
}

TEST_CASE("cuda lstm: a layer in several blocks is recorded, and has the same bits at each replay") {
  Bench bench("recurrent", "cooperative");
  Queue queue(bench.device);
  Layer layer(queue, 256);
  CHECK(layer.plan().members > 1);
  queue.stream.begin_capture();
  lstm<float>(layer.call);
  const auto capture = queue.stream.end_capture();
  capture->replay(queue.stream);
  layer.check();
  const std::vector<float> first = layer.at_y.read<float>(Layer::steps * Layer::batch * layer.units);
  // All bits of a NaN: what the replay does not write is not equal.
  queue.device.fill(reinterpret_cast<std::uint64_t>(layer.at_y.at<void>()), first.size() * sizeof(float), 0xff, queue.stream);
  CHECK(std::isnan(layer.at_y.read<float>(first.size()).back()));
  capture->replay(queue.stream);
  CHECK(layer.at_y.read<float>(first.size()) == first);
}

TEST_CASE("cuda lstm: devices that cannot run all blocks at once have a product and a kernel for each step of a larger layer") {
  for (const auto& wanted : {std::pair("TENON_CUDA_EMULATION_COOPERATIVE", 0), {"TENON_CUDA_EMULATION_MULTIPROCESSORS", 2}}) {
    CAPTURE(wanted.first);
    const Property property(wanted.first, wanted.second);
    Bench bench("recurrent", "cooperative");
    Queue queue(bench.device);
    Layer layer(queue, 256);
    CHECK_FALSE(layer.in_one_kernel());
    lstm<float>(layer.call);
    layer.check();
  }
}

TEST_CASE("cuda lstm: backends.options.cuda.recurrent chooses, and only cooperative has groups of blocks") {
  struct Choice {
    const char* option;
    std::size_t units;
    int members;  ///< 0: each step is launched; 2: at least so many
  };
  for (const Choice& choice : {Choice{"auto", 32, 1}, Choice{"auto", 150, 0}, Choice{"cooperative", 32, 2}, Choice{"cooperative", 150, 2},
                               Choice{"library", 32, 0}, Choice{"library", 150, 0}}) {
    CAPTURE(choice.option);
    CAPTURE(choice.units);
    Bench bench("recurrent", choice.option);
    Queue queue(bench.device);
    Layer layer(queue, choice.units);
    const PersistentPlan plan = layer.plan();
    CHECK((plan ? std::min(plan.members, 2) : 0) == choice.members);
    lstm<float>(layer.call);
    layer.check();
  }
}

}  // namespace
}  // namespace tenon::cuda
