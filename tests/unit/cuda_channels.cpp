// SPDX-License-Identifier: Apache-2.0
// The cuda backend's passes over channels on the emulation: plans, and batch normalisation beyond the conformance cases.
#include "backends/cuda/norm/channel_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "backends/cuda/ops/batch_norm.cu"
#include "backends/cuda/reduce/reduction_plan.h"
#include "cuda_testing.h"
#include "handles.h"

namespace tenon::cuda {
namespace {

TEST_CASE("cuda channels: every unit of every channel belongs to one block, and few blocks get much work") {
  for (const Channels& at : std::vector<Channels>{{1, 1, 1},
                                                  {2, 3, 1},
                                                  {1, 7, 1000},
                                                  {5003, 3, 1},
                                                  {700, 100, 1},
                                                  {4, 64, 49},
                                                  {64, 64, 3136},
                                                  {200704, 64, 1},
                                                  {3136, 2048, 1},
                                                  {2, 100000, 2},
                                                  {0, 3, 1},
                                                  {0, 3, 8}}) {
    for (const int widest : {1, 4, 8}) {
      CAPTURE(at.outer);
      CAPTURE(at.count);
      CAPTURE(at.inner);
      CAPTURE(widest);
      const ChannelPlan plan = plan_channels(at, widest);
      CHECK(plan.columns == (at.inner == 1));
      CHECK((plan.columns ? at.count : at.inner) % plan.width == 0);
      CHECK(plan.units * plan.width == at.of_each() * (plan.columns ? plan.width : 1));
      CHECK(plan.part * plan.splits >= plan.units);
      CHECK(plan.part * (plan.splits - 1) <= plan.units);
      CHECK(plan.lanes * plan.groups <= reduction_threads);
      const std::int64_t of_tile = plan.columns ? plan.lanes * plan.width : plan.groups;
      CHECK(plan.tiles * of_tile >= at.count);
      CHECK((plan.tiles - 1) * of_tile < at.count);
      CHECK((plan.splits == 1 || plan.blocks() <= 1056));
      CHECK(partials_of(at, widest) >= plan.partials());
    }
  }
}

/// Values in device memory, as elements of T.
template <class T>
class Memory {
 public:
  Memory(Device& device, Stream& stream, const std::vector<double>& values)
      : count_(values.size()), buffer_(device, stream, stored(values)) {}
  void* at() const { return buffer_.at(); }
  std::vector<double> get() {
    std::vector<double> list;
    for (const T value : buffer_.template read<T>(count_)) list.push_back(static_cast<double>(widen(value)));
    return list;
  }

 private:
  static std::vector<T> stored(const std::vector<double>& values) {
    std::vector<T> list;
    for (const double value : values) list.push_back(narrow<T>(static_cast<Wide<T>>(value)));
    return list;
  }
  std::size_t count_;
  DeviceBuffer buffer_;
};

std::vector<double> some(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = (static_cast<double>(random() % 129) - 64) / 32;  // exact in every dtype
  return values;
}

/// activation(batch norm in training + bias + residual), by definition.
std::vector<double> by_definition(const Channels& at, const std::vector<double>& x, const std::vector<double>& scale,
                                  const std::vector<double>& bias, double epsilon, const std::vector<double>& residual,
                                  const std::vector<double>& columns, sdk::Activation activation) {
  std::vector<double> y(x.size());
  const auto channel = [&](std::size_t i) { return i / static_cast<std::size_t>(at.inner) % static_cast<std::size_t>(at.count); };
  for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c) {
    double sum = 0, squares = 0;
    const auto n = static_cast<double>(at.of_each());
    for (std::size_t i = 0; i < x.size(); ++i) sum += channel(i) == c ? x[i] : 0;
    for (std::size_t i = 0; i < x.size(); ++i) squares += channel(i) == c ? (x[i] - sum / n) * (x[i] - sum / n) : 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (channel(i) != c) continue;
      const double value = (x[i] - sum / n) / std::sqrt(squares / n + epsilon) * scale[c] + bias[c] + (residual.empty() ? 0 : residual[i]) +
                           (columns.empty() ? 0 : columns[i % columns.size()]);
      y[i] = activation == sdk::Activation::relu ? std::max(value, 0.0) : activation == sdk::Activation::tanh ? std::tanh(value) : value;
    }
  }
  return y;
}

template <class T>
void check_epilogues(double tolerance, double first = 0) {
  Device device{sdk::Host(), 0};
  tenon_stream abi_stream{std::make_unique<Stream>(device)};
  auto& stream = static_cast<Stream&>(*abi_stream.stream);
  struct Case {
    std::vector<std::int64_t> shape;  // the shape in memory order
    bool channels_last;
  };
  for (const Case& at : std::vector<Case>{{{3, 5, 7}, false},
                                          {{2, 16, 4, 6}, false},
                                          {{2, 4, 6, 16}, true},
                                          {{3, 5, 6}, true},
                                          {{2, 3, 2, 3, 5}, false},
                                          {{200, 24}, false},
                                          {{3000, 8}, false},
                                          {{2300, 128}, false},
                                          {{1, 2, 9000}, false}}) {
    std::int64_t count = 1, strides[TENON_MAX_RANK] = {};
    for (std::size_t d = at.shape.size(); d-- > 0; count *= at.shape[d]) strides[d] = count;
    const auto rank = static_cast<std::uint32_t>(at.shape.size());
    tenon_attributes_batch_norm attributes{};
    attributes.axis = 1;
    attributes.epsilon = 0.5;
    sdk::Call call;
    call.attributes = &attributes;
    call.channels_last = at.channels_last;
    call.device = &device;
    call.stream = &abi_stream;
    sdk::Operand x{nullptr, at.shape.data(), strides, count, rank, sdk::dtype_of<T>, true};
    const Channels channels = channels_around(call, x, 1);
    const auto per_channel = static_cast<std::size_t>(channels.count);
    std::vector<double> values = some(static_cast<std::size_t>(count), 1);
    values[0] = first;
    const std::vector<double> scales = some(per_channel, 2), offsets = some(per_channel, 3), sums = some(values.size(), 4),
                              last = some(static_cast<std::size_t>(at.shape.back()), 5), none;
    Memory<T> in(device, stream, values), residual(device, stream, sums), columns(device, stream, last), out(device, stream, values);
    Memory<Wide<T>> scale(device, stream, scales), bias(device, stream, offsets), numbers(device, stream, some(6 * per_channel, 6));
    const std::int64_t dims[] = {channels.count}, dense[] = {1};
    const auto list = [&](void* data) { return sdk::Operand{data, dims, dense, channels.count, 1, sdk::dtype_of<Wide<T>>, true}; };
    const auto number = [&](std::size_t i) { return list(static_cast<Wide<T>*>(numbers.at()) + i * per_channel); };
    x.data = in.at();
    sdk::Operand y = x, addend = x, of_columns = list(columns.at());
    y.data = out.at();
    addend.data = residual.at();
    of_columns.count = at.shape.back();
    of_columns.dtype = x.dtype;
    const sdk::Operand inputs[] = {x, list(scale.at()), list(bias.at()), number(0), number(1)};
    const sdk::Operand outputs[] = {y, number(2), number(3), number(4), number(5)};
    call.inputs = inputs;
    call.outputs = outputs;
    call.input_count = call.output_count = 5;
    Memory<double> scratch(device, stream, std::vector<double>(kernel_batch_norm_train.traits.scratch(call) / sizeof(double) + 1));
    call.scratch = scratch.at();
    for (const bool adds : {false, true}) {
      for (const bool has_columns : {false, true}) {
        for (const sdk::Activation activation : {sdk::Activation::none, sdk::Activation::relu, sdk::Activation::tanh}) {
          call.epilogue = {has_columns ? &of_columns : nullptr, adds ? &addend : nullptr, activation};
          kernel_batch_norm_train.functions[sdk::dtype_of<T>](call);
          const std::vector<double> got = out.get();
          const std::vector<double> expected = by_definition(channels, values, scales, offsets, attributes.epsilon, adds ? sums : none,
                                                             has_columns ? last : none, activation);
          double worst = 0;
          for (std::size_t i = 0; i < got.size(); ++i)
            worst = std::max(worst, std::fabs(got[i] - expected[i]) / (1 + std::fabs(expected[i])));
          CAPTURE(rank);
          CAPTURE(at.shape[0]);
          CAPTURE(adds);
          CAPTURE(has_columns);
          CHECK(worst <= tolerance);
        }
      }
    }
  }
}

TEST_CASE("cuda batch norm: bias, residual and activation are part of the pass in every layout") {
  check_epilogues<float>(1e-5);
  check_epilogues<double>(1e-13);
  check_epilogues<sdk::Half>(1e-3);
  check_epilogues<sdk::BFloat16>(8e-3);
}

TEST_CASE("cuda batch norm: a first element far from the others costs no precision, although distances are relative to it") {
  check_epilogues<float>(1e-5, 1000);
  check_epilogues<float>(1e-5, -30000);
}

}  // namespace
}  // namespace tenon::cuda
