// SPDX-License-Identifier: Apache-2.0
// The C API: data from arrays, readers, and functions of the caller.
#include "capi_testing.h"

#include <atomic>

using namespace tenon::test;
using nlohmann::json;

namespace {

json described(const TenonData* data) {
  char* text = nullptr;
  REQUIRE_OK(tenon_data_describe(data, &text));
  return parsed(text);
}

/// A model y = w x + b and the loss after three epochs of this data.
json history_on(const TenonContext* context, const TenonData* data) {
  Owned<TenonModel> model;
  REQUIRE_OK(tenon_model_create("layers: [{dense: {units: 1, kernel_initializer: zeros}}]", model.out()));
  REQUIRE_OK(tenon_model_compile(model, context, "{loss: mse, optimizer: {name: sgd, learning_rate: 0.01}}"));
  char* text = nullptr;
  REQUIRE_OK(tenon_model_fit(model, data, nullptr, "{epochs: 3, batch_size: 2, shuffle: false}", nullptr, nullptr, &text));
  json history = parsed(text);
  for (json& epoch : history["epochs"]) epoch.erase("seconds");
  return history;
}

constexpr float xs[] = {1, 2, 3, 4, 5};
constexpr float ys[] = {3, 5, 7, 9, 11};

/// The pairs (xs, ys) as functions of the caller.
struct Pairs {
  std::atomic<int> gathered{0}, released{0}, started{0};
  std::int64_t at = 0;
  std::int64_t fail_at = -1;
  bool wrong_type = false;
  std::int64_t one = 1;
  TenonSampleType type{nullptr, &one, 1, TENON_DTYPE_F32};

  TenonSampleSource samples() {
    TenonSampleSource s{};
    s.struct_size = sizeof s;
    s.name = "pairs";
    s.size = 5;
    s.inputs = s.targets = &type;
    s.input_count = s.target_count = 1;
    s.user = this;
    s.gather = [](void* user, const std::int64_t* indices, std::uint64_t count, void* const* inputs, void* const* targets) -> TenonError* {
      Pairs& own = *static_cast<Pairs*>(user);
      ++own.gathered;
      for (std::uint64_t i = 0; i < count; ++i) {
        if (indices[i] == own.fail_at) return tenon_error_create(TENON_NOT_READY, "sample 3 is not there yet");
        static_cast<float*>(inputs[0])[i] = xs[indices[i]];
        static_cast<float*>(targets[0])[i] = ys[indices[i]];
      }
      return nullptr;
    };
    s.release = [](void* user) { ++static_cast<Pairs*>(user)->released; };
    return s;
  }
  TenonBatchSource batches() {
    TenonBatchSource s{};
    s.struct_size = sizeof s;
    s.name = "pairs";
    s.inputs = s.targets = &type;
    s.input_count = s.target_count = 1;
    s.user = this;
    s.start = [](void* user, std::uint64_t) -> TenonError* {
      static_cast<Pairs*>(user)->at = 0;
      ++static_cast<Pairs*>(user)->started;
      return nullptr;
    };
    s.next = [](void* user, TenonTensor** inputs, TenonTensor** targets, TenonTensor**, std::uint32_t* has_batch) -> TenonError* {
      Pairs& own = *static_cast<Pairs*>(user);
      if (own.at == own.fail_at) return tenon_error_create(TENON_NOT_READY, "no batch yet");
      const std::int64_t rows = std::min<std::int64_t>(2, 5 - own.at), shape[] = {rows, 1};
      *has_batch = rows > 0 ? 1 : 0;
      if (rows == 0) return nullptr;
      TenonError* error = tenon_tensor_copy_of(xs + own.at, TENON_DTYPE_F32, 2, shape, nullptr, inputs);
      if (error == nullptr)
        error = tenon_tensor_copy_of(ys + own.at, own.wrong_type ? TENON_DTYPE_I32 : TENON_DTYPE_F32, 2, shape, nullptr, targets);
      own.at += rows;
      return error;
    };
    s.release = [](void* user) { ++static_cast<Pairs*>(user)->released; };
    return s;
  }
};

}  // namespace

TEST_CASE("C API: arrays, samples and batches of the same numbers train alike") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  const Owned<TenonTensor> x = make_tensor({xs, xs + 5}, {5, 1}), y = make_tensor({ys, ys + 5}, {5, 1});
  const TenonTensor *inputs[] = {x}, *targets[] = {y};
  Owned<TenonData> arrays;
  REQUIRE_OK(tenon_data_arrays(nullptr, inputs, 1, nullptr, targets, 1, nullptr, nullptr, arrays.out()));
  CHECK(described(arrays)["size"] == 5);
  CHECK(described(arrays)["inputs"][0]["name"] == "x");
  const json expected = history_on(context, arrays);
  CHECK(expected["epochs"].size() == 3);
  Pairs pairs;
  {
    Owned<TenonData> samples, batches;
    const TenonSampleSource of_samples = pairs.samples();
    const TenonBatchSource of_batches = pairs.batches();
    REQUIRE_OK(tenon_data_samples(&of_samples, samples.out()));
    REQUIRE_OK(tenon_data_batches(&of_batches, batches.out()));
    CHECK(described(samples)["name"] == "pairs");
    CHECK(described(batches)["size"] == nullptr);
    CHECK(history_on(context, samples) == expected);
    CHECK(history_on(context, batches) == expected);
    CHECK(pairs.gathered == 9);
    CHECK(pairs.started == 3);
    CHECK(pairs.released == 0);
  }
  CHECK(pairs.released == 2);
}

TEST_CASE("C API: errors of the caller's data end a fit with their status and text, and are released") {
  const NoLeaks none;
  const Owned<TenonContext> context = make_context();
  Pairs pairs;
  pairs.fail_at = 3;
  const TenonSampleSource of_samples = pairs.samples();
  const TenonBatchSource of_batches = pairs.batches();
  Owned<TenonData> samples, batches;
  REQUIRE_OK(tenon_data_samples(&of_samples, samples.out()));
  REQUIRE_OK(tenon_data_batches(&of_batches, batches.out()));
  Owned<TenonModel> model;
  REQUIRE_OK(tenon_model_create("layers: [{dense: {units: 1}}]", model.out()));
  REQUIRE_OK(tenon_model_compile(model, context, "loss: mse"));
  const char* options = "{batch_size: 2, shuffle: false}";
  CHECK_FAILS_WITH("NOT_READY: sample 3 is not there yet (sample 3, batch 2 of 3, epoch 1)",
                   tenon_model_fit(model, samples, nullptr, options, nullptr, nullptr, nullptr));
  pairs.fail_at = 2;
  CHECK_FAILS_WITH("NOT_READY: no batch yet", tenon_model_fit(model, batches, nullptr, options, nullptr, nullptr, nullptr));
  pairs.fail_at = -1;
  pairs.wrong_type = true;
  char* text = nullptr;
  CHECK_FAILS_WITH("pairs, batch 0: 'y': expected f32(2,1), got i32(2,1)", tenon_model_evaluate(model, batches, 0, nullptr, &text));
  TenonTensor *x = nullptr, *y = nullptr;
  const std::int64_t indices[] = {0};
  CHECK_FAILS_WITH("data: expected numbered samples, got batches", tenon_data_gather(batches, indices, 1, &x, 1, &y, 1));
  CHECK_FAILS_WITH("data: expected numbered samples, got batches", tenon_model_confusion_matrix(model, batches, 0, &x));
}

TEST_CASE("C API: several inputs and targets by name, sample weights and options of arrays") {
  const NoLeaks none;
  const Owned<TenonTensor> a = make_tensor({1, 2}, {2}), b = make_tensor({3, 4, 5, 6}, {2, 2}), w = make_tensor({1, 0}, {2});
  const Owned<TenonTensor> labels = make_labels({1, 0});
  const char *names[] = {"a", "b"}, *target[] = {"t"};
  const TenonTensor *inputs[] = {a, b}, *targets[] = {labels};
  Owned<TenonData> data;
  REQUIRE_OK(tenon_data_arrays(names, inputs, 2, target, targets, 1, w, "{name: mine, num_classes: 2}", data.out()));
  const json about = described(data);
  CHECK(about["name"] == "mine");
  CHECK(about["num_classes"] == 2);
  CHECK(about["inputs"][1] == json({{"name", "b"}, {"dtype", "f32"}, {"shape", {2}}}));
  const std::int64_t indices[] = {1, 1, 0};
  TenonTensor *in[2] = {}, *out[1] = {};
  REQUIRE_OK(tenon_data_gather(data, indices, 3, in, 2, out, 1));
  CHECK(values_of(in[1]) == std::vector<float>{5, 6, 5, 6, 3, 4});
  CHECK(values_of<std::int64_t>(out[0]) == std::vector<std::int64_t>{0, 0, 1});
  for (TenonTensor* t : {in[0], in[1], out[0]}) tenon_release(t);

  REQUIRE_OK(tenon_data_arrays(nullptr, inputs + 1, 1, nullptr, targets, 1, nullptr,
                               "{scale: 2, offset: 1, num_classes: 3, targets: one_hot}", data.out()));
  REQUIRE_OK(tenon_data_gather(data, indices, 1, in, 1, out, 1));
  CHECK(values_of(in[0]) == std::vector<float>{11, 13});
  CHECK(values_of(out[0]) == std::vector<float>{1, 0, 0});
  tenon_release(in[0]);
  tenon_release(out[0]);
}

TEST_CASE("C API: wrong data is an error") {
  const NoLeaks none;
  const Owned<TenonTensor> a = make_tensor({1, 2}, {2}), c = make_tensor({1, 2, 3}, {3});
  const TenonTensor *inputs[] = {a}, *targets[] = {c};
  TenonData* data = nullptr;
  CHECK_FAILS_WITH("2", tenon_data_arrays(nullptr, inputs, 1, nullptr, targets, 1, nullptr, nullptr, &data));
  CHECK_FAILS_WITH("unknown key 'scal'; did you mean 'scale'?",
                   tenon_data_arrays(nullptr, inputs, 1, nullptr, inputs, 1, nullptr, "{scal: 2}", &data));
  CHECK_FAILS_WITH("part: expected a TENON_DATA_* value, got 9", tenon_data_load("{source: digits}", 9, &data));
  CHECK_FAILS_WITH("no validation part; set validation_split", tenon_data_load("{source: digits}", TENON_DATA_VALIDATION, &data));
  CHECK_FAILS_WITH("expected", tenon_data_load("{source: digitz}", 0, &data));
  CHECK_FAILS_WITH("nowhere: folder not found", tenon_data_load("{source: mnist, directory: /nowhere}", 0, &data));
  Pairs pairs;
  TenonSampleSource samples = pairs.samples();
  samples.gather = nullptr;
  CHECK_FAILS_WITH("source.gather: expected a function, got NULL", tenon_data_samples(&samples, &data));
  samples = pairs.samples();
  samples.size = -1;
  CHECK_FAILS_WITH("source.size: expected 0 or more samples, got -1", tenon_data_samples(&samples, &data));
  samples = pairs.samples();
  samples.input_count = 2;
  const TenonSampleType two[] = {pairs.type, pairs.type};
  samples.inputs = two;
  CHECK_FAILS_WITH("inputs: expected names, since there are several", tenon_data_samples(&samples, &data));
  TenonBatchSource batches = pairs.batches();
  batches.input_count = 0;
  CHECK_FAILS_WITH("source: expected at least one input and one target", tenon_data_batches(&batches, &data));
  CHECK_FAILS_WITH("source: expected an address, got NULL", tenon_data_batches(nullptr, &data));
  CHECK(pairs.released == 0);
  CHECK(data == nullptr);
}
