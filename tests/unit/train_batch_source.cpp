// SPDX-License-Identifier: Apache-2.0
// fit and evaluate on sources of whole batches.
#include <cmath>

#include "train_testing.h"

namespace tenon::test {
namespace {

/// The batches of a data set in its order, as a source.
class OfDataset : public BatchSource {
 public:
  OfDataset(std::shared_ptr<const Dataset> data, std::int64_t batch_size, bool knows_length)
      : data_(std::move(data)), batch_size_(batch_size), knows_length_(knows_length) {}
  const std::string& name() const override { return data_->name(); }
  const std::vector<SampleType>& inputs() const override { return data_->inputs(); }
  const std::vector<SampleType>& targets() const override { return data_->targets(); }
  std::int64_t batches() const override { return knows_length_ ? (data_->size() + batch_size_ - 1) / batch_size_ : 0; }
  void start(std::uint64_t epoch) override { epochs.push_back(epoch), at_ = 0; }
  bool next(Batch& out_batch) override {
    const std::int64_t end = std::min(at_ + batch_size_, data_->size());
    if (at_ == end) return false;
    std::vector<std::int64_t> indices;
    for (; at_ < end; ++at_) indices.push_back(at_);
    const auto rows = static_cast<std::int64_t>(indices.size());
    for (const SampleType& type : data_->inputs()) out_batch.inputs.push_back(Tensor::empty(type.dtype, type.shape.with_batch(rows)));
    for (const SampleType& type : data_->targets()) out_batch.targets.push_back(Tensor::empty(type.dtype, type.shape.with_batch(rows)));
    data_->gather(indices, out_batch.inputs, out_batch.targets);
    if (weighted) out_batch.sample_weights = Tensor::full(DType::f32, {rows}, 2);
    change(out_batch);
    return true;
  }
  std::vector<std::uint64_t> epochs;
  bool weighted = false;
  std::function<void(Batch&)> change = [](Batch&) {};

 private:
  std::shared_ptr<const Dataset> data_;
  std::int64_t batch_size_, at_ = 0;
  bool knows_length_;
};

std::vector<LayerDefinition> small() {
  return {layers::Flatten{}, layers::Dense{16, Activation::relu}, layers::Dense{10, Activation::softmax}};
}

TEST_CASE_FIXTURE(Deterministic, "fit: a source of batches trains as a data set of the same batches does") {
  for (const std::int64_t accumulate : {1, 3}) {
    for (const bool knows_length : {true, false}) {
      CAPTURE(accumulate);
      CAPTURE(knows_length);
      Model on_data = compiled(context, small()), on_source = compiled(context, small());
      const auto data = digits(100);
      FitOptions options{.batch_size = 32, .epochs = 3, .shuffle = false, .accumulate = accumulate, .validation = digits(50, Split::test)};
      const History expected = on_data.fit(data, options);
      OfDataset source(data, 32, knows_length);
      const History history = on_source.fit(source, options);
      REQUIRE(history.size() == 3);
      CHECK(history[2].logs == expected[2].logs);
      CHECK(history[2].samples == 100);
      CHECK(source.epochs == std::vector<std::uint64_t>{0, 1, 2});
      CHECK(on_source.step() == on_data.step());
      CHECK(weights(on_source) == weights(on_data));
    }
  }
}

TEST_CASE_FIXTURE(Deterministic, "fit: a source may be longer than an epoch, be resumed within one, and validate") {
  Model model = compiled(context, small());
  OfDataset source(digits(100), 10, false), validation(digits(50, Split::test), 25, true);
  std::int64_t batches = -1, seen = 0;
  LambdaCallback watch({.train_begin = [&](std::int64_t, std::int64_t n) { batches = n; },
                        .batch_end =
                            [&](std::int64_t batch, const Logs&, const BatchResult&) {
                              ++seen;
                              if (batch == 1 && seen == 2) model.stop("enough");
                            }});
  FitOptions options{.epochs = 1, .steps_per_epoch = 4, .validation_batches = &validation, .callbacks = {&watch}};
  CHECK(model.fit(source, options).empty());
  CHECK(batches == 4);
  const History history = model.fit(source, options);
  CHECK(seen == 4);
  REQUIRE(history.size() == 1);
  CHECK(history[0].samples == 20);
  CHECK(history[0].logs[2].first == "val_loss");
  CHECK(model.evaluate(validation) == model.evaluate(digits(50, Split::test), 25));
}

TEST_CASE_FIXTURE(Deterministic, "fit: equal sample weights of a source change nothing") {
  Model plain = compiled(context, small()), weighted = compiled(context, small());
  OfDataset source(digits(64), 32, true);
  const History expected = plain.fit(source);
  source.weighted = true;
  const History history = weighted.fit(source);
  CHECK(history[0].logs[0].second == doctest::Approx(expected[0].logs[0].second));
}

TEST_CASE_FIXTURE(Deterministic, "fit: batches that are not as the source says are errors that name them") {
  Model model = compiled(context, small());
  OfDataset source(digits(20), 10, true);
  source.change = [](Batch& batch) { batch.targets[0] = batch.targets[0].to(DType::f32); };
  CHECK_ERROR_CONTAINS("batch 0: 'y': expected i64(10), got f32(10)", model.fit(source));
  source.change = [](Batch& batch) { batch.targets.clear(); };
  CHECK_ERROR_CONTAINS("batch 0: expected 1 tensor, got 0", model.fit(source));
  source.change = [](Batch& batch) { batch.inputs[0] = {}; };
  CHECK_ERROR_CONTAINS("batch 0: expected at least 1 sample", model.fit(source));
  source.change = [](Batch& batch) { batch.inputs[0] = batch.inputs[0].slice(0, 0, 5); };
  CHECK_ERROR_CONTAINS("batch 0: 'y': expected i64(5), got i64(10)", model.fit(source));
  OfDataset none(digits(20).get()->size() > 0 ? std::make_shared<ArrayDataset>(digits(20)->slice(0, 0, "none")) : nullptr, 10, false);
  CHECK_ERROR("fit: expected at least 1 batch in epoch 1, got none", model.fit(none));
  CHECK_ERROR("evaluate: none: expected at least 1 batch, got none", model.evaluate(none));
  source.change = [](Batch&) {};
  CHECK_ERROR_CONTAINS("validation_split divides samples", model.fit(source, {.validation_split = 0.5}));
  CHECK_ERROR("fit: validation and validation_batches are both given; expected one of them",
              model.fit(source, {.validation = digits(5), .validation_batches = &source}));
}

}  // namespace
}  // namespace tenon::test
