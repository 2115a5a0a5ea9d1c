// SPDX-License-Identifier: Apache-2.0
// Which attention cuDNN's fused engines run: on an emulated library and device and, if NVIDIA's library is installed, on a device that only
// a description defines.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cuda/attention/fused_attention.h"
#include "cuda_described.h"
#include "cuda_host.h"
#include "cuda_testing.h"
#include "sanitizers.h"

namespace tenon::cuda {
namespace {

AttentionProblem problem(bool gradient, bool causal) {
  return {.dtype = TENON_DTYPE_BF16,
          .gradient = gradient,
          .causal = causal,
          .log_sum = !gradient,
          .batch = 2,
          .heads = 4,
          .groups = 4,
          .queries = 300,
          .keys = 300,
          .size = 64,
          .result = 64,
          .workspace_limit = std::size_t{1} << 30};
}

const AttentionPlan& choose(Device& device, const AttentionProblem& problem) {
  return device.attached.get<AttentionDevice>(device).choose(problem);
}

}  // namespace

TEST_CASE("cuda attention: NVIDIA's library, if installed, accepts our graphs for a described H200") {
  if (emulation::address_sanitized) return;  // the library keeps memory until the process ends
  const std::optional<Cudnn> functions = installed_cudnn();
  if (!functions) return;
  // The engines are compiled for a device through its driver, for whose absence they are not proposed. The toolkit's stub of the driver is
  // enough for that.
  if (::dlopen(TENON_CUDA_LIBRARIES "/stubs/libcuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    MESSAGE("skipped, because the toolkit has no stub of the driver: " << ::dlerror());
    return;
  }
  const Descriptor device = described(*functions, h200);
  const GraphTarget target{nullptr, &device};
  for (const tenon_dtype dtype : {TENON_DTYPE_F16, TENON_DTYPE_BF16}) {
    for (int variant = 0; variant < 32; ++variant) {
      AttentionProblem asked = problem((variant & 1) != 0, (variant & 2) != 0);
      asked.dtype = dtype;
      if ((variant & 4) != 0) asked.groups = 2;
      if ((variant & 8) != 0) (asked.gradient ? asked.deterministic : asked.log_sum) = asked.gradient;
      if ((variant & 16) != 0) {  // heads where the products before and after have them
        asked.q_strides = {300 * 4 * 64, 64, 4 * 64};
        asked.k_strides = asked.v_strides = {300 * asked.groups * 64, 64, asked.groups * 64};
        if (asked.gradient) asked.dy_strides = asked.y_strides = asked.q_strides;
        asked.merged_heads = true;
      }
      OperationGraph graph = attention_graph(*functions, asked);
      graph.finalize(target);
      CHECK_MESSAGE(!candidates(graph, target, CUDNN_HEUR_MODE_A).empty(), text_of(asked));
    }
  }
}

TEST_CASE("cuda attention: an engine is chosen once, and one log line says which") {
  Bench bench;
  const AttentionPlan& plan = choose(bench.device, problem(false, true));
  REQUIRE(plan.plan.has_value());
  CHECK(plan.engine.index == 2);
  CHECK(&choose(bench.device, problem(false, true)) == &plan);
  REQUIRE(bench.host.lines.size() == 1);
  CHECK_MESSAGE(
      contains(bench.host.lines[0], "attention of bf16 q (2,4,300,64), k (2,4,300,64), v (2,4,300,64), causal, log_sum: engine 2"),
      bench.host.lines[0]);
}

TEST_CASE("cuda attention: without a usable engine there is no plan, and the log says why") {
  const Engines engines("6");
  Bench bench;
  AttentionProblem limited = problem(true, false);
  limited.workspace_limit = 1000;
  CHECK_FALSE(choose(bench.device, limited).plan.has_value());
  REQUIRE(bench.host.warnings.size() == 1);
  CHECK_MESSAGE(contains(bench.host.warnings[0], "no cuDNN engine runs it"), bench.host.warnings[0]);
  CHECK_MESSAGE(contains(bench.host.warnings[0], "engine 6: it needs a workspace of 4096 bytes"), bench.host.warnings[0]);
  CHECK(choose(bench.device, problem(true, false)).engine.index == 6);
}

TEST_CASE("cuda attention: without cuDNN other kernels run it, and one warning says so") {
  Bench bench;
  AttentionDevice chooser(bench.device, [](const sdk::Host&) -> const Cudnn& {
    static const Cudnn none(Search{"/nowhere", {}});  // throws
    return none;
  });
  CHECK_FALSE(chooser.choose(problem(false, false)).plan.has_value());
  CHECK_FALSE(chooser.choose(problem(false, true)).plan.has_value());
  REQUIRE(bench.host.warnings.size() == 1);
  CHECK_MESSAGE(contains(bench.host.warnings[0], "attention in 16 bits runs without tensor cores"), bench.host.warnings[0]);
  CHECK_MESSAGE(contains(bench.host.warnings[0], "backends.options.cuda.libraries"), bench.host.warnings[0]);
}

TEST_CASE("cuda attention: a plan is recorded and replayed with the scalars of the recording") {
  Bench bench;
  AttentionProblem one = problem(false, false);
  one.batch = one.heads = one.groups = one.queries = 1;
  one.keys = 2;
  one.size = one.result = 8;
  const AttentionPlan& plan = choose(bench.device, one);
  REQUIRE(plan.plan.has_value());
  Stream stream(bench.device);
  DeviceBuffer memory(bench.device, stream, 1024);
  const std::uint16_t bf16_one = 0x3f80, bf16_two = 0x4000;
  std::vector<std::uint16_t> q(8, bf16_one), k(16, 0), v(16, bf16_one);
  for (std::size_t i = 0; i < 8; ++i) k[i] = bf16_one, v[i] = bf16_two;  // scores 8 and 0, values 2 and 1
  memory.write(q);
  memory.write(k, 256);
  memory.write(v, 512);
  stream.begin_capture();
  {
    float scale = 0.125f;  // gone when the recording is replayed
    const GraphPointer pointers[] = {{attention_q, memory.at()},    {attention_k, memory.at(256)},       {attention_v, memory.at(512)},
                                     {attention_y, memory.at(768)}, {attention_log_sum, memory.at(896)}, {attention_scale, &scale}};
    bench.device.attached.get<AttentionDevice>(bench.device).run(stream, plan, pointers, nullptr);
    scale = 1000;
  }
  stream.end_capture()->replay(stream);
  const float total = std::exp(1.0f) + 1;
  CHECK(memory.read<float>(1, 896)[0] == doctest::Approx(std::log(total)).epsilon(1e-6));
  const std::uint32_t bits = static_cast<std::uint32_t>(memory.read<std::uint16_t>(1, 768)[0]) << 16;
  float y;
  static_assert(sizeof y == sizeof bits);
  std::memcpy(&y, &bits, sizeof y);
  CHECK(y == doctest::Approx((2 * std::exp(1.0f) + 1) / total).epsilon(0.01));
}

}  // namespace tenon::cuda
