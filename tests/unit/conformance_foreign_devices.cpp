// SPDX-License-Identifier: Apache-2.0
// Devices unlike the host pass the kit, and every model trains on them: one that does not compute with f64, and one with its own memory and
// operands at multiples of 256 bytes.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tenon/blas.h>
#include <tenon/error.h>

#include "config/model_yaml.h"
#include "conformance/case.h"
#include "conformance/training_run.h"
#include "dlpack_exporter.h"
#include "exec/device_state.h"
#include "exec/registered.h"
#include "foreign_device.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;
using conformance::Class;

namespace {

const std::string models = std::string(TENON_SOURCE_DIRECTORY) + "/models";

/// The failed and refused cases, one a line; empty: there are none.
std::string complaints(const conformance::Report& report) {
  std::string text;
  for (const conformance::Result& result : report.results) {
    if (result.outcome == Class::fail || (result.outcome == Class::unsupported && result.mandatory))
      text += result.name + ": " + result.text + "\n";
  }
  return text;
}

template <class Form>
void passes_kit(const std::string& profile, const std::string& filter) {
  const conformance::Report report = conformance::judge(Form::options(profile, filter));
  CHECK(report.count(Class::pass) > 0);
  CHECK(complaints(report) == "");
}

/// Two steps, whose losses are numbers. With reduced sizes every fourth model: the others train there on the backends themselves.
template <class Form>
void trains_every_model() {
  conformance::Source source;
  source.name = Form::name;
  source.query = Form::query;
  const conformance::Device device(source);
  const Context context = conformance::context_on(device, 1, true);
  const int apart = small_sizes() ? 4 : 1;
  int seen = 0, trained = 0;
  for (const conformance::TrainingModel& model : conformance::training_models(models)) {
    if (!model.has_cut || seen++ % apart != 0) continue;
    CAPTURE(model.name);
    TrainDefinition cut = config::load_cut(model.file.string());
    cut.optimizer.schedule = {};
    if (!context.devices()[0].holds(cut.model.dtype)) cut.model.dtype = DType::f32;
    const conformance::TrainingBatch batch = conformance::batch_for(cut, 1);
    conformance::TrainingRun run(context, cut);
    for (int step = 0; step < 2; ++step) CHECK(std::isfinite(run.step(batch)));
    ++trained;
  }
  CHECK(seen > 30);
  CHECK(trained == (seen + apart - 1) / apart);
}

TEST_CASE("a device without f64 passes the kit in its dtypes") {
  for (const char* const filter : {"core/*", "sgd_step/*", "adam_step/*", "random_normal/*", "relu/*", "cast/*", "matmul/*"}) {
    passes_kit<WithoutF64>("full", filter);
  }
  conformance::Report report = conformance::judge(WithoutF64::options("full", "sgd_step/*"));
  CHECK(report.count(Class::not_run) > 0);
  CHECK_FALSE(contains(conformance::to_text(report), "certified"));
  report.filter = "*";  // as if these were all cases
  CHECK(contains(conformance::to_text(report), "certified for f16, bf16, f32\n"));
}

TEST_CASE("a device with operands at 256 bytes in memory of its own passes the kit") {
  for (const char* const filter : {"core/*", "add/f32*", "softmax/f32*", "matmul/f32*", "conv/f32*", "adam_step/f32*"}) {
    passes_kit<Aligned256>("full", filter);
  }
  for (const char* const filter : {"axpy/*", "dot/*", "rotg/*", "gemv/*", "gemm/f32*", "gemm_batched/f32*", "gemm_strided_batched/f64*"}) {
    passes_kit<Aligned256>("blas", filter);
  }
}

TEST_CASE("a device without large allocations passes the kit where that needs none") {
  for (const char* const filter : {"core/device/*", "core/memory/*"}) passes_kit<SmallAllocations>("full", filter);
}

/// A context whose default device is a form of the reference backend.
template <class Form>
struct On {
  static Context made() {
    Config config = test_config(std::string(Form::name) + ":0");
    const exec::BackendScope scope(Form::name, Form::query);
    return Context(config);
  }
  const Context context = made();
  const Device device = context.default_device();
};

TEST_CASE_FIXTURE(On<WithoutF64>, "a device without f64 says so, and what it takes") {
  CHECK_FALSE(device.info().holds(DType::f64));
  Graph graph;
  graph.output("y", ops::relu(graph.input("x", DType::f64, {2})));
  CHECK_ERROR_CONTAINS("without_f64:0 does not compute with f64: expected one of f16, bf16, f32, ", Program(context, graph));
  CHECK_ERROR_CONTAINS("devices that can: ", Program(context, graph));
}

TEST_CASE_FIXTURE(On<Aligned256>, "parts of tensors off the device's alignment are copied to where it holds") {
  const Tensor x = Tensor::of<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {10}).to(device);
  for (const std::int64_t first : {0, 1, 3}) {
    const Tensor y = immediate::mul(x.slice(0, first, first + 4), x.slice(0, 2, 6));
    const auto f = static_cast<float>(first);
    CHECK(floats(y) == std::vector<float>{f * 2, (f + 1) * 3, (f + 2) * 4, (f + 3) * 5});
  }
  const Tensor matrix = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3}).to(device);
  CHECK(floats(immediate::relu(matrix.transpose(0, 1))) == std::vector<float>{1, 4, 2, 5, 3, 6});

  Graph graph;
  graph.output("y", ops::relu(graph.input("x", DType::f32, {4})));
  Program program(context, graph);
  CHECK(floats(program.run({x.slice(0, 1, 5)})[0]) == std::vector<float>{1, 2, 3, 4});
  std::vector<Tensor> outputs{x.slice(0, 1, 5)};
  CHECK_ERROR_CONTAINS("output 'y': expected memory at a multiple of 256 bytes, as aligned_256:0 needs it, got address 0x",
                       program.run(std::vector<Tensor>{x.slice(0, 0, 4)}, outputs));
}

TEST_CASE_FIXTURE(On<Aligned256>, "BLAS on a device with an alignment names the operand that lies elsewhere") {
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {4}).to(device);
  const auto at = [&](std::uint64_t offset) { return reinterpret_cast<float*>(static_cast<std::uintptr_t>(x.address() + offset)); };
  blas::scal<float>(device, {.n = 4, .alpha = 2.0F, .x = at(0)});
  CHECK(floats(x) == std::vector<float>{2, 4, 6, 8});
  CHECK_ERROR_CONTAINS("expected a multiple of 256 bytes, which the device needs; copy it to the start of an allocation of its own",
                       blas::scal<float>(device, {.n = 2, .alpha = 2.0F, .x = at(4)}));
  CHECK_ERROR_CONTAINS("scal: argument 3, x, is 0x", blas::scal<float>(device, {.n = 2, .alpha = 2.0F, .x = at(4)}));
}

TEST_CASE_FIXTURE(On<SmallAllocations>, "a device without large allocations is asked for none, and a tensor that needs one is refused") {
  SmallAllocations::refused = 0;
  std::vector<Tensor> held;
  for (int i = 0; i < 20; ++i) held.push_back(device.zeros(DType::f32, {100 * (i + 1)}));
  held.push_back(device.empty(DType::u8, {1 << 20}));
  CHECK_ERROR_CONTAINS("expected at most 1048576 bytes in one allocation, the most that the device takes (max_allocation_size_bytes)",
                       device.empty(DType::f32, {1 << 20}));
  CHECK(floats(immediate::relu(Tensor::of<float>({-1, 2}, {2}).to(device))) == std::vector<float>{0, 2});
  CHECK(SmallAllocations::refused == 0);
}

TEST_CASE_FIXTURE(On<Aligned256>, "a tensor of another library is copied to a device that does not read host memory in place") {
  Exporter exporter;
  const Tensor x = from_dlpack(&exporter.managed, device);
  CHECK(exporter.deleted == 1);
  CHECK((x.storage()->device == device.state()));
  CHECK(floats(immediate::neg(x)) == std::vector<float>{-0.0F, -1, -2, -3, -4, -5});
  CHECK(floats(device.zeros(DType::f32, {3})) == std::vector<float>(3));
}

TEST_CASE("every model trains without f64") {
  trains_every_model<WithoutF64>();
}

TEST_CASE("every model trains with operands at 256 bytes in memory of the device") {
  trains_every_model<Aligned256>();
}

}  // namespace
