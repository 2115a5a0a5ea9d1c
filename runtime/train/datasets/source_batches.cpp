// SPDX-License-Identifier: Apache-2.0
#include "train/datasets/source_batches.h"

#include <fmt/format.h>

#include <tenon/error.h>

#include "text/counted.h"

namespace tenon {

BatchSource::~BatchSource() = default;

namespace train {

void SourceBatches::start(std::uint64_t epoch, std::int64_t first_batch) {
  source_.start(epoch);
  index_ = 0;
  while (index_ < first_batch && next() != nullptr) {
  }
}

const Batch* SourceBatches::next() {
  batch_.inputs.clear();
  batch_.targets.clear();
  batch_.sample_weights = {};
  batch_.indices = {};
  if (!source_.next(batch_)) return nullptr;
  batch_.index = index_;
  const std::int64_t rows =
      !batch_.inputs.empty() && batch_.inputs[0].defined() && batch_.inputs[0].shape().rank() > 0 ? batch_.inputs[0].shape()[0] : 0;
  check(source_.inputs(), batch_.inputs, rows);
  check(source_.targets(), batch_.targets, rows);
  if (batch_.sample_weights.defined()) check({{DType::f32, {}, "sample weights"}}, {batch_.sample_weights}, rows);
  ++index_;
  return &batch_;
}

void SourceBatches::check(const std::vector<SampleType>& types, const std::vector<Tensor>& tensors, std::int64_t rows) const {
  const std::string where = fmt::format("{}, batch {}", source_.name(), index_);
  if (tensors.size() != types.size())
    throw Error(fmt::format("{}: expected {}, got {}", where, counted(types.size(), "tensor"), tensors.size()));
  if (rows == 0) throw Error(fmt::format("{}: expected at least 1 sample", where));
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Tensor& tensor = tensors[i];
    const Shape shape = types[i].shape.with_batch(rows);
    if (!tensor.defined() || tensor.dtype() != types[i].dtype || !(tensor.shape() == shape)) {
      throw Error(fmt::format("{}: '{}': expected {}{}, got {}", where, types[i].name, name_of(types[i].dtype), shape.str(),
                              tensor.defined() ? tensor.str() : "an undefined tensor"));
    }
  }
}

}  // namespace train
}  // namespace tenon
