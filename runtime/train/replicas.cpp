// SPDX-License-Identifier: Apache-2.0
#include "train/replicas.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "train/random_key.h"

namespace tenon::train {
namespace {

/// Whether each device has its own: they begin with the first batch of a step.
bool is_gradient(const std::string& parameter) {
  return is_training_state(parameter) && !parameter.starts_with("optimizer/");
}

}  // namespace

void add_report(PlacementReport& all, const PlacementReport& one, const std::string& prefix) {
  for (Placement node : one.nodes) {
    node.node = prefix + node.node;
    for (std::string& input : node.inputs) input = prefix + input;
    all.nodes.push_back(std::move(node));
  }
  for (PlannedCopy copy : one.copies) {
    copy.value = prefix + copy.value;
    all.copies.push_back(std::move(copy));
  }
  for (DenseCopy copy : one.dense_copies) {
    copy.value = prefix + copy.value;
    all.dense_copies.push_back(std::move(copy));
  }
  all.partitions += one.partitions;
  all.kernels += one.kernels;
  all.copies_inserted += one.copies_inserted;
  all.bytes_copied_per_run += one.bytes_copied_per_run;
  all.workspace_size_bytes += one.workspace_size_bytes;
  all.packed_size_bytes += one.packed_size_bytes;
  all.shared_packed_size_bytes += one.shared_packed_size_bytes;
  all.collectives = std::max(all.collectives, one.collectives);
  all.bytes_reduced_per_run = std::max(all.bytes_reduced_per_run, one.bytes_reduced_per_run);
  all.broadcasts = std::max(all.broadcasts, one.broadcasts);
  all.bytes_broadcast_per_run = std::max(all.bytes_broadcast_per_run, one.bytes_broadcast_per_run);
  all.reduced_by = one.reduced_by;
  if (all.replay.empty()) all.replay = one.replay;
}

/// One device.
struct Replicas::Rank {
  Rank(const ModelSetup& all, int device) : setup(all.for_device(device)) { programs.clear(); }

  ModelSetup setup;
  Parameters parameters{setup};
  Programs programs{setup, parameters};
  // Of the run in progress.
  std::vector<Tensor> inputs;
  Tensor key = Tensor::zeros(DType::u64, {2});
  Program* program = nullptr;
};

Replicas::Replicas(const ModelSetup& setup, Parameters& parameters, Programs& programs)
    : setup_(setup), parameters_(parameters), programs_(programs) {
  for (int device = 0; device < setup.device_count(); ++device) ranks_.push_back(std::make_unique<Rank>(setup, device));
  for (const auto& rank : ranks_) devices_.push_back(rank->setup.device());
}

Replicas::~Replicas() = default;

std::vector<const Parameters*> Replicas::others() const {
  std::vector<const Parameters*> all;
  for (std::size_t r = 1; r < ranks_.size(); ++r) all.push_back(&ranks_[r]->parameters);
  return all;
}

void Replicas::give_optimizer_state(const std::map<std::string, Tensor>& values) {
  for (std::size_t r = 1; r < ranks_.size(); ++r) ranks_[r]->parameters.give_optimizer_state(values);
  followed_ = 0;
}

void Replicas::follow() {
  const ParameterStore& from = *parameters_.store();
  if (followed_ == from.epoch()) return;
  followed_ = 0;
  std::vector<Shape> samples;
  for (const SampleType& input : parameters_.inputs()) samples.push_back(input.shape);
  const auto has = [&](const char* prefix) {
    return std::ranges::any_of(from.all(), [&](const auto& entry) { return entry.first.starts_with(prefix); });
  };
  const bool has_gradients = from.has(gradient_weight_name), has_state = has("optimizer/") || parameters_.has_optimizer_state();
  for (std::size_t r = 1; r < ranks_.size(); ++r) {
    Parameters& own = ranks_[r]->parameters;
    own.build(samples);
    if (has_state) own.make_optimizer_state();
    if (has_gradients) own.make_gradients();
    for (const auto& [name, tensor] : from.all()) {
      if (own.store()->has(name) && !from.unset().contains(name) && !is_gradient(name)) own.store()->set(name, tensor);
    }
  }
  followed_ = from.epoch();
}

RunOptions Replicas::options_of(std::size_t rank, const RunOptions& options) const {
  return shared_threads(devices_, rank, options);
}

void Replicas::run_all(const std::function<void(int rank)>& body) {
  exec::LocalGroup& group = *setup_.group;
  const std::vector<std::exception_ptr>& failures = RankThreads::of(threads_, setup_.device_count()).run_all([&](int rank) {
    try {
      body(rank);
    } catch (const std::exception& failure) {
      group.abort(rank, failure.what());  // the others would wait for this rank
      throw;
    }
  });
  if (std::ranges::none_of(failures, [](const std::exception_ptr& failure) { return failure != nullptr; })) return;
  followed_ = 0;
  const int first = group.aborted_by();
  group.restart();
  std::rethrow_exception(failures[static_cast<std::size_t>(std::max(first, 0))]);
}

const std::vector<Tensor>& Replicas::run_programs(const RunOptions& options) {
  std::vector<const std::vector<Tensor>*> results(ranks_.size());
  run_all([&](int r) {
    const auto at = static_cast<std::size_t>(r);
    results[at] = &ranks_[at]->program->run(ranks_[at]->inputs, options_of(at, options));
  });
  for (const auto& rank : ranks_) rank->inputs.clear();
  followed_ = parameters_.store()->epoch();
  return *results[0];
}

const std::vector<Tensor>& Replicas::run(Phase phase, const BatchTensors& batch, const StepInputs& inputs, const RunOptions& options) {
  follow();
  const std::int64_t size = batch.inputs[0].shape()[0];
  if (size < 1) throw Error("data parallelism: expected a batch of at least 1 sample, got 0");
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = *ranks_[r];
    const RankBatch own(batch, rank.setup.part_within(size, batch.share));
    const BatchTensors tensors = own.tensors();
    rank.program = &(r == 0 ? programs_ : rank.programs).get(phase, tensors, options_of(r, options));
    const auto key = random_key(inputs.seed, inputs.step, inputs.batch, static_cast<std::uint64_t>(rank.setup.rank()));
    std::copy(key.begin(), key.end(), rank.key.data<std::uint64_t>());
    rank.inputs.assign(tensors.inputs.begin(), tensors.inputs.end());
    rank.inputs.push_back(rank.key);
    rank.inputs.insert(rank.inputs.end(), tensors.targets.begin(), tensors.targets.end());
    if (tensors.sample_weights.defined()) rank.inputs.push_back(tensors.sample_weights);
    if (phase == Phase::train) rank.inputs.insert(rank.inputs.end(), {inputs.learning_rate, inputs.step_number});
  }
  return run_programs(options);
}

const std::vector<Tensor>& Replicas::apply(const StepInputs& inputs, const RunOptions& options) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = *ranks_[r];
    rank.program = &(r == 0 ? programs_ : rank.programs).apply(options_of(r, options));
    rank.inputs.assign({inputs.learning_rate, inputs.step_number});
  }
  return run_programs(options);
}

PlacementReport Replicas::explain(Phase phase, const BatchType& batch) {
  follow();
  PlacementReport all;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Programs& programs = r == 0 ? programs_ : ranks_[r]->programs;
    const PlacementReport& own = programs.get(phase, batch.part_of(ranks_[r]->setup), options_of(r, {})).placement();
    add_report(all, own, fmt::format("replica_{}/", ranks_[r]->setup.rank()));
  }
  return all;
}

}  // namespace tenon::train
