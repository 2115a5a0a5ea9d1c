// SPDX-License-Identifier: Apache-2.0
#include "train/pipeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "exec/device_state.h"
#include "exec/program_cache.h"
#include "train/program/stages.h"
#include "train/random_key.h"

namespace tenon::train {
namespace {

/// Sets of programs for types of micro-batches: two sizes, of the batches of a fit and of its last one, with some to spare.
constexpr std::size_t max_compiled = 8;

/// How far the micro-batches of a run are, and whether a stage has failed.
class Progress {
 public:
  explicit Progress(std::size_t pieces) : done_(pieces, 0) {}

  /// Returns when the piece has done that many micro-batches. Errors  another stage has failed.
  void wait_for(std::size_t piece, std::int64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || done_[piece] >= count; });
    if (failed_) throw Error(Status::cancelled, "another stage has failed");
  }
  void finish(std::size_t piece) {
    {
      const std::lock_guard lock(mutex_);
      ++done_[piece];
    }
    changed_.notify_all();
  }
  /// Whether this failure is the first one.
  bool fail() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return !std::exchange(failed_, true);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> done_;  ///< per piece
  bool failed_ = false;
};

}  // namespace

struct Pipeline::Stage {
  std::string device;
  std::shared_ptr<ParameterStore> store = std::make_shared<ParameterStore>();
  std::set<std::string> copied = {};     ///< parameters of other stages, which it reads
  std::set<std::string> gradients = {};  ///< the accumulated ones that it updates
};

struct Pipeline::Compiled {
  struct Piece {
    PipelinePiece piece;
    Program program;
    /// Results by micro-batch, as many as there are under way, and where other stages read them.
    std::vector<std::vector<Tensor>> outputs, sent;
    std::vector<Tensor> inputs;  ///< of the run in progress
  };
  std::vector<Piece> pieces;
  std::vector<std::string> updated;  ///< parameters
  bool has_weight = false;           ///< the last result of the forward pass is the weight of the micro-batch
};

struct Pipeline::Run {
  struct MicroBatch {
    Compiled* compiled;
    std::map<std::string, Tensor> inputs;
    std::int64_t samples;
  };
  std::vector<MicroBatch> micro_batches;
  Progress progress;
  bool first;
  std::vector<RunOptions> options;  ///< per stage
  RunningMeans& means;
  std::vector<double> values;  ///< of a micro-batch
};

Pipeline::Pipeline(const ModelSetup& setup, Parameters& parameters, Programs& programs)
    : setup_(setup), parameters_(parameters), programs_(programs) {
  for (const std::string& device : setup.options.parallel.devices) {
    stages_.push_back(std::make_unique<Stage>(Stage{.device = device}));
    devices_.push_back(setup.device(device));
  }
}

Pipeline::~Pipeline() = default;

void Pipeline::share(Stage& stage, const Graph& graph) {
  const Device device = setup_.device(stage.device);
  ParameterStore& all = *parameters_.store();
  std::set<std::string> updated;
  for (const GraphUpdate& update : graph.updates()) updated.insert(graph.info(update.parameter).name);
  for (const ValueInfo& info : graph.values()) {
    if (info.kind != ValueKind::parameter) continue;
    if (is_training_state(info.name) && updated.contains(info.name)) stage.gradients.insert(info.name);
    if (stage.store->has(info.name)) continue;
    const Tensor& tensor = all.get(info.name);
    if (tensor.storage()->device == device.state()) {
      stage.store->adopt(info.name, tensor);
    } else if (updated.contains(info.name)) {
      throw Error(Status::internal,
                  fmt::format("mode pipeline: '{}' is updated on '{}', but is on another device", info.name, stage.device));
    } else {
      stage.store->create(info.name, device, info.dtype, info.shape);
      stage.copied.insert(info.name);
    }
  }
}

void Pipeline::follow() {
  const ParameterStore& all = *parameters_.store();
  if (followed_ == all.epoch()) return;
  for (const auto& stage : stages_) {
    for (const std::string& name : stage->copied) stage->store->set(name, all.get(name));
    stage->store->touch();
  }
  followed_ = all.epoch();
}

std::unique_ptr<Pipeline::Compiled> Pipeline::compile(const BatchType& type, const RunOptions& options) {
  std::set<std::string> fixed;
  const Graph graph = programs_.graph_of(Phase::backward_more, type, &fixed);
  parameters_.make_gradients();
  auto compiled = std::make_unique<Compiled>();
  compiled->has_weight = graph.outputs().size() > setup_.logged.size();
  for (const GraphUpdate& update : graph.updates()) {
    const std::string& name = graph.info(update.parameter).name;
    if (setup_.scales_loss() && !is_training_state(name)) {
      throw Error(
          fmt::format("mode pipeline: precision mixed_float16 is not available for a model with running statistics ('{}'), which every "
                      "stage would have to wait for; use precision: mixed_bfloat16, or one device",
                      name));
    }
    compiled->updated.push_back(name);
  }
  for (PipelinePiece& piece : divide_into_pieces(graph, setup_.options.parallel.devices)) {
    Stage& stage = *stages_[piece.stage];
    share(stage, piece.graph);
    ProgramOptions chosen{.device = stage.device, .parameters = stage.store, .fixed = fixed, .run = options};
    Program program(setup_.need_context(), piece.graph, chosen);
    compiled->pieces.push_back({std::move(piece), std::move(program), {}, {}, {}});
  }
  followed_ = 0;
  return compiled;
}

Pipeline::Compiled& Pipeline::get(const BatchType& type, const RunOptions& options) {
  exec::ProgramKey key;
  for (const auto* parts : {&type.inputs, &type.targets}) {
    for (const BatchType::Part& part : *parts) key.add(part.dtype, part.shape);
  }
  key.add(type.weights.dtype, type.weights.shape);
  if (const auto found = compiled_.find(key.bytes()); found != compiled_.end()) return *found->second;
  std::unique_ptr<Compiled> made = compile(type, options);
  return *(compiled_[key.bytes()] = std::move(made));
}

void Pipeline::run_piece(std::size_t index, std::int64_t m, Run& run) {
  Run::MicroBatch& batch = run.micro_batches[static_cast<std::size_t>(m)];
  const std::size_t under_way = std::min(stages_.size(), run.micro_batches.size()), slot = static_cast<std::size_t>(m) % under_way;
  Compiled::Piece& own = batch.compiled->pieces[index];
  own.inputs.clear();
  for (const PipelinePiece::Source& source : own.piece.sources) {
    if (!source.input.empty()) {
      own.inputs.push_back(batch.inputs.at(source.input));
      continue;
    }
    const Compiled::Piece& from = batch.compiled->pieces[source.piece];
    own.inputs.push_back((from.piece.stage == own.piece.stage ? from.outputs : from.sent)[slot][source.output]);
  }
  std::vector<Tensor>& outputs = own.outputs[slot];
  std::vector<Tensor>& sent = own.sent[slot];
  while (outputs.size() < own.program.output_count()) outputs.push_back(own.program.make_output(outputs.size()));
  own.program.run(own.inputs, std::span(outputs), run.options[own.piece.stage]);
  // Only the thread of a stage uses its device: others read what is in the memory of the host.
  sent.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (own.piece.sent[i]) sent[i] = devices_[own.piece.stage].state()->host_addressable() ? outputs[i] : outputs[i].to_host();
  }
  own.inputs.clear();
  if (index + 1 == stages_.size()) {
    const std::size_t count = setup_.logged.size();
    const auto value = [&](std::size_t i) { return outputs[i].to_host().item(); };
    run.values.resize(count);
    for (std::size_t i = 0; i < count; ++i) run.values[i] = value(i);
    run.means.add(run.values, batch.compiled->has_weight ? value(count) : static_cast<double>(batch.samples));
  }
  run.progress.finish(index);
}

void Pipeline::run_stage(std::size_t stage, Run& run) {
  const auto count = static_cast<std::int64_t>(run.micro_batches.size());
  const std::size_t last = stages_.size() - 1;
  if (run.first) {
    for (const std::string& name : stages_[stage]->gradients) stages_[stage]->store->fill(name, 0);
  }
  const auto forward = [&](std::int64_t m) {
    if (stage > 0) run.progress.wait_for(stage - 1, m + 1);
    run_piece(stage, m, run);
  };
  const auto backward = [&](std::int64_t m) {
    if (stage == last) return;  // with the forward pass
    run.progress.wait_for(2 * last - stage - 1, m + 1);
    run_piece(2 * last - stage, m, run);
  };
  const std::int64_t ahead = std::min(count, static_cast<std::int64_t>(last - stage));
  for (std::int64_t m = 0; m < ahead; ++m) forward(m);
  for (std::int64_t m = 0; m < count; ++m) {
    if (m + ahead < count) forward(m + ahead);
    backward(m);
  }
}

void Pipeline::run(const BatchTensors& batch, bool first, const StepInputs& inputs, const RunOptions& options, RunningMeans& out_means) {
  if (options.stop.stop_requested()) throw Error(Status::cancelled, "the step was cancelled before its first micro-batch");
  const std::int64_t size = batch.inputs[0].shape()[0];
  if (size < 1) throw Error("mode pipeline: expected a batch of at least 1 sample, got 0");
  const std::int64_t count = std::min(setup_.options.parallel.micro_batches, size);
  out_means.reset(setup_.logged.size());
  Run run{
      .micro_batches = {}, .progress = Progress(2 * stages_.size() - 1), .first = first, .options = {}, .means = out_means, .values = {}};
  RunOptions unstopped = options;
  unstopped.stop = {};
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) run.options.push_back(shared_threads(devices_, stage, unstopped));
  if (compiled_.size() > max_compiled) compiled_.clear();
  for (std::int64_t m = 0; m < count; ++m) {
    const BatchPart part{.begin = size * m / count, .end = size * (m + 1) / count, .share = {}};
    const RankBatch rows(batch, part);
    const BatchTensors tensors = rows.tensors();
    BatchType type;
    type.assign(tensors);
    Run::MicroBatch& micro = run.micro_batches.emplace_back(Run::MicroBatch{&get(type, unstopped), {}, part.size()});
    for (Compiled::Piece& piece : micro.compiled->pieces) {  // before the threads read them
      const std::size_t under_way = std::max(piece.outputs.size(), std::min(stages_.size(), static_cast<std::size_t>(count)));
      piece.outputs.resize(under_way);
      piece.sent.resize(under_way);
    }
    for (std::size_t i = 0; i < tensors.inputs.size(); ++i) micro.inputs[setup_.input_name(i)] = tensors.inputs[i];
    for (std::size_t i = 0; i < tensors.targets.size(); ++i) micro.inputs[setup_.target_name(i)] = tensors.targets[i];
    if (tensors.sample_weights.defined()) micro.inputs["sample_weights"] = tensors.sample_weights;
    const auto random = random_key(inputs.seed, inputs.step, inputs.batch, static_cast<std::uint64_t>(m));
    Tensor key = Tensor::zeros(DType::u64, {2});
    std::copy(random.begin(), random.end(), key.data<std::uint64_t>());
    micro.inputs["key"] = key;
  }
  follow();
  std::size_t failed = 0;
  const auto& failures = RankThreads::of(threads_, static_cast<int>(stages_.size())).run_all([&](int rank) {
    const auto stage = static_cast<std::size_t>(rank);
    try {
      run_stage(stage, run);
    } catch (...) {
      if (run.progress.fail()) failed = stage;
      throw;
    }
  });
  for (const std::string& name : run.micro_batches[0].compiled->updated) parameters_.store()->touch(name);
  followed_ = parameters_.store()->epoch();
  if (failures[failed] == nullptr) return;
  const std::string where = fmt::format("stage {} ('{}')", failed + 1, stages_[failed]->device);
  try {
    std::rethrow_exception(failures[failed]);
  } catch (const Error& failure) {
    throw Error(failure.status(), fmt::format("{}: {}", where, failure.what()));
  } catch (const std::exception& failure) {
    throw Error(Status::internal, fmt::format("{}: {}", where, failure.what()));
  }
}

PlacementReport Pipeline::explain(const BatchType& batch) {
  const std::int64_t size = batch.size(), count = std::min(setup_.options.parallel.micro_batches, size);
  BatchType type = batch;
  const auto cut = [&](BatchType::Part& part) {
    if (part.shape.rank() > 0) part.shape = Shape(part.shape.dims().subspan(1)).with_batch(size / count);
  };
  for (auto* parts : {&type.inputs, &type.targets}) std::ranges::for_each(*parts, cut);
  cut(type.weights);
  const Compiled& compiled = get(type, {});
  PlacementReport all;
  for (std::size_t index = 0; index < compiled.pieces.size(); ++index) {
    const Compiled::Piece& own = compiled.pieces[index];
    const char* const part = index + 1 < stages_.size() ? "forward/" : index + 1 > stages_.size() ? "backward/" : "";
    add_report(all, own.program.placement(), fmt::format("stage_{}/{}", own.piece.stage + 1, part));
  }
  return all;
}

}  // namespace tenon::train
