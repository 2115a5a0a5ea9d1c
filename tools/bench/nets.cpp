// SPDX-License-Identifier: Apache-2.0
// tenon bench nets - the nets of published benchmarks on synthetic data: forward, and forward with gradients, with an optimizer step if the
// benchmark has one. Several devices, kinds of kernels and precisions take turns. Reports include PyTorch and ONNX Runtime in the same run,
// the published figures, and the time per layer.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/model.h>
#include <tenon/program.h>
#include <tenon/train_definition.h>

#include "bench/bar_chart.h"
#include "bench/benchmarks.h"
#include "bench/child.h"
#include "bench/comparison.h"
#include "bench/layer_times.h"
#include "bench/machine.h"
#include "bench/nets_json.h"
#include "bench/nets_list.h"
#include "bench/onnx_peer.h"
#include "bench/statistics.h"
#include "bench/temporary_folder.h"
#include "bench/torch_peer.h"
#include "bench/variants.h"
#include "config/model_yaml.h"
#include "train/program/builder.h"
#include "train/program/initializers.h"
#include "train/program/objective.h"
#include "yaml/suggest.h"

namespace tenon::bench {
namespace {

using Json = nlohmann::ordered_json;

/// A net, ready to be built for a batch.
struct Subject {
  const Net* net;
  TrainDefinition definition;
  std::int64_t batch = 0;

  bool single() const { return definition.model.layers.size() == 1; }  ///< a single layer, without a loss
  Shape x_shape() const { return Shape(std::span<const std::int64_t>(*definition.model.input_shape)).with_batch(batch); }
  DType x_dtype() const { return train::input_dtype(definition.model); }
};

Subject load(const Net& net, const Options& options) {
  const std::string file = options.models + "/" + net.file + ".yaml";
  if (!options.tiny) return {&net, load_definition(file), net.batch};
  TrainDefinition cut = config::load_cut(file);
  const std::int64_t batch = cut.fit.batch_size;
  return {&net, std::move(cut), batch};
}

/// Samples in [0, 1), or integers below 50.
Tensor synthetic(DType dtype, const Shape& shape) {
  Tensor t = Tensor::zeros(dtype, shape);
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < t.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(state >> 8) * 0x1p-24f;
    if (dtype == DType::f32) t.data<float>()[i] = value;
    if (dtype == DType::i64) t.data<std::int64_t>()[i] = static_cast<std::int64_t>(value * 50);
  }
  return t;
}

/// Labels below the size of the last axis.
Tensor synthetic_labels(const Shape& output) {
  Shape shape;
  for (std::size_t i = 0; i + 1 < output.rank(); ++i) shape.push_back(output[i]);
  Tensor labels = Tensor::zeros(DType::i64, shape);
  const std::int64_t classes = output[output.rank() - 1];
  for (std::int64_t i = 0; i < labels.count(); ++i) labels.data<std::int64_t>()[i] = i * 7919 % classes;
  return labels;
}

/// A program of one phase, its inputs, and the names of its layers.
struct Workload {
  std::unique_ptr<Program> program;
  std::vector<Tensor> inputs;
  std::vector<std::string> layers;

  void run() const { program->run(inputs); }
};

void make_parameters(const Context& context, const train::Forward& forward, ParameterStore& out_store) {
  const Device device = context.default_device();
  std::uint32_t stream = 0;
  const auto make = [&](const train::ParameterSpec& spec) {
    out_store.create(spec.name, device, spec.dtype, spec.shape);
    out_store.set(spec.name, train::initialize(context, device, spec, 1, stream++));
  };
  for (const train::ParameterSpec& spec : forward.specs) make(spec);
  for (const train::LayerState& state : forward.states) make(state.spec);
}

/// Adds the gradients of a single convolution for a given dy, including its input gradient, as layer benchmarks do.
void add_layer_gradients(Graph& graph, const train::Forward& forward, Value x, Workload& out_workload) {
  const NodeInfo* node = nullptr;
  for (const NodeInfo& candidate : graph.nodes()) {
    if (candidate.op == TENON_OP_Conv) node = &candidate;
  }
  if (node == nullptr) throw Error("bench nets: expected the only layer of a net to be a convolution");
  const auto attributes = node->attributes.as<tenon_attributes_conv>();
  const Value dy = graph.input("dy", forward.outputs[0].output.dtype(), forward.outputs[0].output.shape());
  out_workload.inputs.push_back(synthetic(DType::f32, dy.shape()));
  const Value w = forward.parameters.at(0);
  graph.output("dx", ops::conv_input_grad(dy, w, x.shape(), attributes));
  graph.output("dw", ops::conv_weight_grad(dy, x, w.shape(), attributes));
  graph.output("db", ops::reduce_sum(dy, {0, 2, 3}));
}

Workload make_workload(const Subject& subject, const Context& context, bool training) {
  Workload workload;
  Graph graph;
  const Value x = graph.input("x", subject.x_dtype(), subject.x_shape());
  workload.inputs.push_back(synthetic(x.dtype(), x.shape()));
  Value key;
  if (training) {
    key = graph.input("key", DType::u64, {2});
    workload.inputs.push_back(Tensor::of<std::uint64_t>({1, 1}, {2}));
  }
  const train::Forward forward = train::build(graph, subject.definition.model, x, key);
  for (const LayerSummary& row : forward.layers) workload.layers.push_back(row.name);
  const auto store = std::make_shared<ParameterStore>();
  make_parameters(context, forward, *store);
  if (!training) {
    graph.output("output", forward.outputs[0].output);
  } else if (subject.single()) {
    graph.output("output", forward.outputs[0].output);
    add_layer_gradients(graph, forward, x, workload);
  } else {
    const Tensor labels = synthetic_labels(forward.outputs[0].output.shape());
    const Value y = graph.input("y", DType::i64, labels.shape());
    workload.inputs.push_back(labels);
    const train::Objective objective = train::build_objective(forward, y, subject.definition.loss, {});
    const std::vector<Value> gradient_of = gradients(objective.loss, forward.parameters);
    graph.output("loss", objective.loss);
    if (subject.net->steps) {
      const Value rate = graph.input("learning_rate", DType::f64, {});
      const Value step = graph.input("step", DType::i64, {});
      workload.inputs.push_back(Tensor::scalar(1e-4));  // small, so that training on synthetic data does not diverge
      workload.inputs.push_back(Tensor::scalar<std::int64_t>(1));
      OptimizerDefinition sgd;
      sgd.kind = OptimizerDefinition::Kind::sgd;
      train::build_step(graph, forward, gradient_of, sgd, rate, step);
    } else {
      for (std::size_t i = 0; i < gradient_of.size(); ++i) graph.output("gradient/" + forward.specs[i].name, gradient_of[i]);
    }
    train::update_states(graph, forward);
  }
  workload.program = std::make_unique<Program>(context, graph, ProgramOptions{.device = {}, .parameters = store, .freeze = !training});
  // Inputs are in device memory: `bench pipeline` measures the copies of batches.
  const Device device = context.default_device();
  if ((device.info().flags & TENON_DEVICE_HOST_ADDRESSABLE) == 0) {
    for (Tensor& input : workload.inputs) input = input.to(device);
  }
  return workload;
}

/// Lower bound of the memory for inference in bytes: the packed weights, and the largest activations of a single node.
double min_memory(const Program& program) {
  const Graph& graph = program.graph();
  const auto bytes_of = [&](const std::vector<ValueId>& list) {
    std::int64_t bytes = 0;
    for (const ValueId v : list) {
      if (v == no_id) continue;
      const ValueInfo& info = graph.info(v);
      if (info.kind != ValueKind::constant) bytes += info.shape.count() * size_of(info.dtype);
    }
    return bytes;
  };
  std::int64_t max_bytes = 0;
  for (const NodeInfo& node : graph.nodes()) max_bytes = std::max(max_bytes, bytes_of(node.inputs) + bytes_of(node.outputs));
  return static_cast<double>(program.placement().packed_size_bytes) + static_cast<double>(max_bytes);
}

// ---------------------------------------------------------------- by layer

std::vector<LayerTime> time_layers(const Workload& workload, const Roofs& roofs, int runs) {
  workload.program->enable_profile(true);
  std::vector<std::vector<double>> times;  // per kernel
  std::vector<Program::KernelTime> kernels;
  for (int run = 0; run < runs; ++run) {
    workload.run();
    kernels = workload.program->profile();
    times.resize(kernels.size());
    for (std::size_t k = 0; k < kernels.size(); ++k) times[k].push_back(static_cast<double>(kernels[k].duration_ns));
  }
  workload.program->enable_profile(false);
  std::vector<double> medians;
  for (const std::vector<double>& samples : times) medians.push_back(median(samples));
  return sum_layers(kernels, medians, workload.layers, [&](double flops, double bytes) { return roofs.min_ns(flops, bytes); });
}

// ---------------------------------------------------------------- peers

std::vector<std::string> torch_command(const Subject& subject, const Options& options, const std::string& net, bool training) {
  return {options.python,
          peer_script("nets_torch.py"),
          net,
          "--phase",
          training ? "train" : "infer",
          "--batch",
          std::to_string(subject.batch),
          "--threads",
          std::to_string(options.threads)};
}

Peer run_torch(const Subject& subject, const Options& options, const Variant& variant, const std::string& net, bool training, int runs,
               bool compiled) {
  std::vector<std::string> command = torch_command(subject, options, net, training);
  command.insert(command.end(), {"--runs", std::to_string(runs)});
  if (subject.net->steps) command.emplace_back("--optimizer");
  if (subject.single()) command.emplace_back("--sum");
  if (compiled) command.emplace_back("--compile");
  return run_torch_peer(std::move(command), variant);
}

/// Runs ONNX Runtime on the net as ONNX, which PyTorch exports.
Peer run_onnxruntime(const Subject& subject, const Options& options, const TemporaryFolder& files, const std::string& net, int runs) {
  const auto peer_of = [&](const std::string& model) {
    return OnnxPeer(options.onnxruntime_python, "onnxruntime", model, options.threads);
  };
  if (const OnnxPeer installed = peer_of("-"); !installed.absent().empty()) return {.name = {}, .absent = installed.absent()};
  const std::string onnx = files.path("net.onnx");
  std::vector<std::string> command = torch_command(subject, options, net, false);
  command.insert(command.end(), {"--export", onnx});
  run_child(command);
  std::error_code ignored;
  if (!std::filesystem::exists(onnx, ignored))
    return {.name = {},
            .absent = fmt::format("ONNX Runtime: '{} {}' wrote no ONNX file of {}", options.python, command[1], subject.net->name)};
  OnnxPeerInputs inputs;
  inputs.add("x", synthetic(subject.x_dtype(), subject.x_shape()));
  OnnxPeer peer = peer_of(onnx);
  peer.run(inputs, 1);  // warm-up
  Samples samples = peer.run(inputs, runs);
  if (!peer.absent().empty()) return {.name = {}, .absent = peer.absent()};
  return {.name = peer.name(), .absent = {}, .samples = std::move(samples)};
}

// ---------------------------------------------------------------- what was published

/// Adds the published figures of a net and phase.
void add_published(const Subject& subject, bool training, const Entry& entry, std::vector<std::vector<std::string>>& out_rows) {
  for (const Published& figure : published_figures()) {
    const bool phase = std::string(figure.phase) == (training ? "train" : "infer");
    if (std::string(figure.set) != subject.net->set || std::string(figure.net) != subject.net->name || !phase) continue;
    const bool same_batch = subject.batch == subject.net->batch;
    out_rows.push_back({subject.net->name, figure.phase, std::to_string(subject.net->batch), figure.tool, figure.hardware, figure.figure,
                        same_batch ? fmt::format("{:.4g}", entry.median_ns() / 1e6) : "",
                        same_batch ? fmt::format("{:.3g}", figure.ms / (entry.median_ns() / 1e6)) : "", figure.source});
  }
}

/// The best published time on one hardware, for the extra columns of the main table.
std::optional<double> published_on(const Subject& subject, bool training, const std::string& hardware) {
  std::optional<double> best;
  for (const Published& figure : published_figures()) {
    if (std::string(figure.set) != subject.net->set || std::string(figure.net) != subject.net->name) continue;
    if (std::string(figure.phase) != (training ? "train" : "infer") || !std::string(figure.hardware).starts_with(hardware)) continue;
    if (!best || figure.ms < *best) best = figure.ms;
  }
  return best;
}

// ---------------------------------------------------------------- one net

/// Adds the fields of an entry other than its time, and the table of its layers.
void describe_entry(const Subject& subject, const Options& options, const Contender& contender, const Workload& workload,
                    std::uint64_t memory_size_bytes, bool training, bool single, Entry& entry, Report& out_report) {
  const PlacementReport& placement = workload.program->placement();
  entry.extra.emplace_back("workspace_mb", static_cast<double>(placement.workspace_size_bytes) / 1e6);
  entry.extra.emplace_back("packed_mb", static_cast<double>(placement.packed_size_bytes) / 1e6);
  entry.extra.emplace_back("memory_mb", static_cast<double>(memory_size_bytes) / 1e6);
  if (!training) entry.extra.emplace_back("min_memory_mb", min_memory(*workload.program) / 1e6);
  if (subject.batch == 1 && !training) {
    const Latency latency = latency_of([&] { workload.run(); }, options.tiny ? 3 : 200);
    entry.extra.emplace_back("p50_ms", latency.p50_ms);
    entry.extra.emplace_back("p99_ms", latency.p99_ms);
  }
  double flops = 0, min_ns = 0;
  std::vector<std::vector<std::string>> rows;
  for (const LayerTime& layer : time_layers(workload, contender.roofs, options.tiny ? 1 : 3)) {
    flops += layer.flops;
    min_ns += layer.min_ns.value_or(0);
    rows.push_back({layer.name, fmt::format("{:.4g}", layer.flops / 1e9), fmt::format("{:.4g}", layer.bytes / 1e6),
                    fmt::format("{:.4g}", layer.ns / 1e6), layer.ns > 0 ? fmt::format("{:.4g}", layer.flops / layer.ns) : "",
                    layer.min_ns && layer.ns > 0 ? fmt::format("{:.0f}", 100 * *layer.min_ns / layer.ns) : ""});
  }
  entry.extra.emplace_back("samples_per_s", static_cast<double>(subject.batch) / entry.median_ns() * 1e9);
  entry.extra.emplace_back("gflop", flops / 1e9);
  entry.extra.emplace_back("gflop_per_s", flops / entry.median_ns());
  if (min_ns > 0) entry.percent_of_roof = 100 * min_ns / entry.median_ns();
  out_report.table(fmt::format("layers of {}", entry.name), {"layer", "GFLOP", "MB", "ms", "GFLOP/s", "% of roof"}, rows,
                   options.layers || single);
}

void add_peers(const Subject& subject, const Options& options, const Contender& contender, bool training, Entry& entry,
               Report& out_report) {
  if (!contender.variant.is_tuned() || contender.variant.device().info().backend == "reference") {
    entry.peer_absent = "naive kernels are compared only with tuned ones";
    return;
  }
  const int runs = options.runs > 0 ? options.runs : 10;
  const TemporaryFolder files;
  const std::string json = files.path("net.json");
  std::ofstream(json) << to_json(subject.definition.model, subject.x_dtype() == DType::i64).dump();
  std::vector<std::pair<const char*, Peer>> others;
  others.emplace_back("pytorch_ms", run_torch(subject, options, contender.variant, json, training, runs, false));
  if (options.torch_compile) {
    others.emplace_back("pytorch_compiled_ms", run_torch(subject, options, contender.variant, json, training, runs, true));
  }
  if (!training && !options.tiny && contender.variant.on_cpu()) {
    others.emplace_back("onnxruntime_ms", run_onnxruntime(subject, options, files, json, runs));
  }
  for (const auto& [column, other] : others) {
    if (other.name.empty()) {
      out_report.note("no peer: " + other.absent);
      if (entry.peer.empty() && entry.peer_absent.empty()) entry.peer_absent = other.absent;
      continue;
    }
    out_report.note("peer: " + other.name);
    entry.extra.emplace_back(column, median(other.samples.ns) / 1e6);
    if (entry.peer.empty() || median(other.samples.ns) < median(entry.peer_samples.ns)) {
      entry.peer = other.name;
      entry.peer_samples = other.samples;
      entry.peer_absent.clear();
    }
  }
}

/// Returns an entry for each contender, in order. All contenders hold the net at the same time and take turns.
std::vector<Entry> measure_subject(const Subject& subject, const Options& options, const std::vector<Contender>& contenders, bool training,
                                   const std::string& name, bool single, Report& out_report) {
  std::vector<Entry> entries(contenders.size());
  {
    std::vector<Workload> workloads;
    std::vector<Body> bodies;
    std::vector<std::uint64_t> memory;
    workloads.reserve(contenders.size());
    for (const Contender& contender : contenders) {
      const Device device = contender.variant.device();
      const std::uint64_t before = device.live_size_bytes();
      workloads.push_back(make_workload(subject, contender.variant.context, training));
      workloads.back().run();
      memory.push_back(device.live_size_bytes() - before);
      bodies.emplace_back(repeat([&workload = workloads.back()] { workload.run(); }));
    }
    Protocol protocol = options.protocol();
    if (options.runs == 0) protocol.runs = 10;
    std::vector<Samples> samples = measure(bodies, protocol);
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      entries[i].name = name + suffix_of(contenders[i].variant, contenders.size());
      entries[i].samples = std::move(samples[i]);
      describe_entry(subject, options, contenders[i], workloads[i], memory[i], training, single, entries[i], out_report);
    }
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    add_peers(subject, options, contenders[i], training, entries[i], out_report);
    for (const auto& [column, hardware] : {std::pair{"published_cpu_ms", "2 x Xeon"}, std::pair{"published_gpu_ms", "Ti"}}) {
      if (const auto ms = published_on(subject, training, hardware)) entries[i].extra.emplace_back(column, *ms);
    }
  }
  return entries;
}

bool is_selected(const Net& net, const Options& options) {
  const auto lower = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
  };
  if (!options.set.empty() && options.set != net.set) return false;
  return options.net.empty() || lower(options.net) == lower(net.name) || options.net == net.file;
}

}  // namespace

std::unique_ptr<Report> nets(const Options& options) {
  std::vector<const Net*> chosen;
  for (const Net& net : benchmark_nets()) {
    if (is_selected(net, options)) chosen.push_back(&net);
  }
  if (chosen.empty()) {
    std::vector<std::string> known;
    for (const Net& net : benchmark_nets()) {
      if (options.set.empty() || options.set == net.set) known.emplace_back(net.name);
    }
    throw Error(fmt::format("--net: expected a net{}, one of {}, got '{}'{}", options.set.empty() ? "" : " of --set " + options.set,
                            fmt::join(known, ", "), options.net, yaml::did_you_mean(options.net, known)));
  }
  std::vector<bool> phases;
  for (const std::string& phase : options.phases) {
    if (phase != "infer" && phase != "train")
      throw Error(fmt::format("--phase {}: expected infer, train or both, as in infer,train", phase));
    if (phase == "train" && std::find(options.precisions.begin(), options.precisions.end(), "mixed_float16") != options.precisions.end()) {
      throw Error(
          "--precision mixed_float16: f16 training needs loss scaling, which this benchmark lacks; expected mixed_bfloat16, or "
          "--phase infer");
    }
    phases.push_back(phase == "train");
  }
  Json machine;
  const std::vector<Contender> contenders = make_contenders(options, machine);
  auto report = std::make_unique<Report>("tenon bench nets", std::move(machine));
  Comparison comparison(contenders);
  std::vector<std::vector<std::string>> published;
  std::vector<BarGroup> bars;
  const bool single = chosen.size() * contenders.size() == 1 && options.batches.size() < 2;
  for (const Net* net : chosen) {
    Subject subject = load(*net, options);
    const std::vector<std::int64_t> batches = options.batches.empty() ? std::vector{subject.batch} : options.batches;
    for (const bool training : phases) {
      for (const std::int64_t batch : batches) {
        subject.batch = batch;
        const std::string name = fmt::format("{} {} {} batch {}", net->set, net->name, training ? "train" : "infer", batch);
        say(name);
        std::vector<Entry> entries = measure_subject(subject, options, contenders, training, name, single, *report);
        BarGroup group{name + ": ms", {}};
        for (std::size_t i = 0; i < entries.size(); ++i) {
          group.bars.push_back({contenders[i].variant.name, entries[i].median_ns() / 1e6, {}});
          if (!entries[i].peer.empty()) {
            group.bars.push_back({contenders[i].variant.name + " peer", median(entries[i].peer_samples.ns) / 1e6, entries[i].peer});
          }
        }
        bars.push_back(std::move(group));
        comparison.add(net->name, training ? "train" : "infer", batch, entries);
        for (Entry& entry : entries) {
          add_published(subject, training, entry, published);
          report->add(std::move(entry));
        }
      }
    }
  }
  if (!options.tiny) {
    report->table("published", {"net", "phase", "batch", "tool", "hardware", "published", "ours ms", "times ours", "source"}, published,
                  true);
  }
  comparison.add_to(*report);
  report->note("peer: the fastest one measured; ratio: its median over ours");
  report->note(
      "% of roof: sum over kernels of max(work / peak, bytes / bandwidth), over the median; work is that of a direct convolution, "
      "so Winograd's may be above 100, as may data that stays in the caches");
  report->note("infer: parameters are constants of the program (ProgramOptions::freeze), as in ONNX Runtime's sessions");
  report->note("published figures are in ms unless marked s; published_gpu_ms: the fastest of its Titan X");
  write_chart(options.html, "tenon bench nets", bars);
  return report;
}

}  // namespace tenon::bench
