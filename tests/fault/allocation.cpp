// SPDX-License-Identifier: Apache-2.0
// Memory runs out in a small training run, at each request in turn: a clean error, no leak, no inconsistent state.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "exec/registered.h"
#include "shortage.h"

namespace tenon {
namespace {

using test::shortage::device_memory;
using test::shortage::host_memory;
using test::shortage::Supply;

struct Setting {
  std::string backend;
  bool pool;
};

Context context_for(const Setting& setting) {
  const exec::BackendScope scope(setting.backend, test::shortage::query);
  Config config;
  config.backends.allow = {setting.backend};
  config.device = setting.backend + ":0";
  config.threads = 1;
  config.seed = 3;
  config.deterministic = true;
  config.memory.pool = setting.pool;
  config.logging.level = LogLevel::off;
  return Context(config);
}

std::shared_ptr<const Dataset> digits() {
  static const std::shared_ptr<const Dataset> data = generate_digits({.count = 40});
  return data;
}

/// A model with a convolution, running statistics, dropout, packed products, batches of two sizes and optimizer state.
Model new_model(const Context& context) {
  Model model({layers::Reshape{{1, 28, 28}}, layers::Conv2D{4, 5, 3}, layers::BatchNorm{}, layers::MaxPooling2D{2}, layers::Flatten{},
               layers::Dense{24, Activation::relu}, layers::Dropout{0.2}, layers::Dense{10, Activation::softmax}});
  model.compile(context, {.loss = {.loss = Loss::sparse_categorical_crossentropy}, .metrics = {Metric::accuracy}});
  return model;
}

using Weights = std::map<std::string, std::vector<float>>;

Weights weights_of(Model& model) {
  Weights all;
  for (const auto& [name, tensor] : model.parameters().all()) {
    if (tensor.dtype() == DType::f32) all[name] = tensor.to_host().to_vector<float>();
  }
  return all;
}

void fit(Model& model) {
  model.fit(digits(), {.batch_size = 16, .epochs = 2, .workers = 0});
}

/// The results of a run.
struct Outcome {
  Weights weights;
  std::vector<float> prediction, frozen;
  bool operator==(const Outcome&) const = default;
};
Outcome finish(Model& model) {
  fit(model);
  Tensor x = Tensor::full(DType::f32, {3, 28, 28}, 0.5);
  Outcome outcome{weights_of(model), model.predict(x).to_vector<float>(), {}};
  outcome.frozen = model.freeze(3).run({x})[0].to_host().to_vector<float>();
  return outcome;
}

bool finite(const Weights& weights) {
  for (const auto& [name, values] : weights) {
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) return false;
  }
  return true;
}

/// The first 200 requests, some in between, and the last 50; with reduced sizes a tenth of each.
std::vector<std::int64_t> requests_of(std::int64_t total) {
  const char* size = std::getenv("TENON_TEST_SIZE");
  const std::int64_t part = size != nullptr && std::string(size) == "small" ? 10 : 1;
  const std::int64_t first = 200 / part, last = 50 / part, between = 50 / part;
  std::vector<std::int64_t> chosen;
  const std::int64_t stride = std::max<std::int64_t>(1, (total - first - last) / between);
  for (std::int64_t n = 0; n < total;
       n += n < first || n >= total - last ? 1 : std::min(stride, std::max<std::int64_t>(1, total - last - n)))
    chosen.push_back(n);
  return chosen;
}

/// Runs with the n-th request of the supply refused, and with or without all later ones.
void check_shortage(Supply& supply, const Setting& setting) {
  test::shortage::use_backend(setting.backend);
  CAPTURE(setting.backend);
  CAPTURE(setting.pool);
  Outcome undisturbed;
  std::int64_t total = 0;
  std::uint64_t kept = 0;  // bytes that the context's one-op programs keep for the next model
  {
    supply.never_fail();
    supply.requests = 0;
    const Context context = context_for(setting);
    {
      Model model = new_model(context);
      undisturbed = finish(model);
      total = supply.requests;
    }
    kept = context.default_device().live_size_bytes();
  }
  REQUIRE(total > 10);
  std::int64_t refused = 0, survived = 0;
  for (const bool for_good : {false, true}) {
    for (const std::int64_t n : requests_of(total)) {
      CAPTURE(for_good);
      CAPTURE(n);
      {
        supply.never_fail();
        const Context context = context_for(setting);
        supply.fail_at(n, for_good);
        {
          Model model = new_model(context);
          bool failed = false;
          try {
            const Outcome outcome = finish(model);
            CHECK(outcome == undisturbed);  // a request that is refused once may succeed in another way
            ++survived;
          } catch (const Error& error) {
            failed = true;
            ++refused;
            CHECK_MESSAGE(error.status() == Status::out_of_memory, error.what());
            CHECK_MESSAGE(std::string(error.what()).find("memory") != std::string::npos, error.what());
          }
          supply.never_fail();
          CHECK(finite(weights_of(model)));
          if (failed) CHECK(finish(model) == undisturbed);  // the same model continues from its state
        }
        CHECK(context.default_device().live_size_bytes() <= kept);
        {
          Model another = new_model(context);  // the context still works
          CHECK(finish(another) == undisturbed);
        }
        CHECK(context.default_device().live_size_bytes() == kept);
      }
      CHECK(host_memory.held == 0);
      CHECK(device_memory.held == 0);
    }
  }
  CHECK(refused > 10);
  MESSAGE(setting.backend, std::string(setting.pool ? "" : ", without a pool"), ": ", total, " requests in a run; ", refused,
          " runs ended with an error, ", survived, " did without");
}

TEST_CASE("allocation: a refusal of host memory to a plugin is only an error") {
  for (const std::string backend : {"reference", "openblas"}) check_shortage(host_memory, {backend, true});
}

TEST_CASE("allocation: a refusal of host memory without a pool is only an error") {
  for (const std::string backend : {"reference", "openblas"}) check_shortage(host_memory, {backend, false});
}

TEST_CASE("allocation: device memory that runs out while a model is compiled or fitted is only an error") {
  for (const std::string backend : {"reference", "openblas"}) check_shortage(device_memory, {backend, false});
}

TEST_CASE("allocation: a copy that fails for lack of memory is only an error") {
  for (const std::string backend : {"reference", "openblas"}) check_shortage(test::shortage::copies, {backend, true});
}

}  // namespace
}  // namespace tenon
