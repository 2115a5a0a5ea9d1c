// tenon bench nets - the nets of published benchmarks on made-up data: forward, and forward with gradients, with the optimizer's step where
// the benchmark has one. Beside them PyTorch and ONNX Runtime in the same run, what was published, and where the time goes by layer.
#include <fmt/core.h>

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

#include "bench/benchmarks.h"
#include "bench/child.h"
#include "bench/machine.h"
#include "bench/nets_json.h"
#include "bench/nets_list.h"
#include "bench/roofs.h"
#include "bench/statistics.h"
#include "config/model_yaml.h"
#include "train/builder.h"
#include "train/initializers.h"
#include "train/objective.h"

namespace tenon::bench {
namespace {

using Json = nlohmann::ordered_json;

/// A net, ready to be built for a batch.
struct Subject {
  const Net* net;
  config::TrainDefinition definition;
  std::int64_t batch = 0;

  bool single() const { return definition.model.layers.size() == 1; }  ///< a layer alone, without a loss
  Shape x_shape() const {
    Shape shape{batch};
    for (const std::int64_t size : *definition.model.input_shape) shape.push_back(size);
    return shape;
  }
  DType x_dtype() const { return train::input_dtype(definition.model); }
};

Subject load(const Net& net, const Options& options) {
  const std::string file = options.models + "/" + net.file + ".yaml";
  Subject subject{&net, {}, net.batch};
  if (options.tiny) {
    subject.definition = config::load_cut(file);
    subject.batch = subject.definition.batch_size;
  } else if (config::load_yaml(file).find("layers") != nullptr) {
    subject.definition.model = config::load_model(file);
  } else {
    subject.definition = config::load_train(file);
  }
  if (options.batch > 0) subject.batch = options.batch;
  return subject;
}

/// Numbers that look like data to arithmetic.
Tensor made_up(DType dtype, const Shape& shape) {
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

/// Classes below the size of the last axis.
Tensor made_up_labels(const Shape& output) {
  Shape shape;
  for (std::size_t i = 0; i + 1 < output.rank(); ++i) shape.push_back(output[i]);
  Tensor labels = Tensor::zeros(DType::i64, shape);
  const std::int64_t classes = output[output.rank() - 1];
  for (std::int64_t i = 0; i < labels.count(); ++i) labels.data<std::int64_t>()[i] = i * 7919 % classes;
  return labels;
}

/// A program of one phase with its inputs, and the layers that its nodes are named after.
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

/// The gradients of a single convolution for a given dy, its input's too: what benchmarks of layers measure.
void add_layer_gradients(Graph& graph, const train::Forward& forward, Value x, Workload& out_workload) {
  const NodeInfo* node = nullptr;
  for (const NodeInfo& candidate : graph.nodes()) {
    if (candidate.op == TENON_OP_Conv) node = &candidate;
  }
  if (node == nullptr) throw Error("bench nets: a net of one layer that is no convolution");
  const auto attributes = node->attributes.as<tenon_attributes_conv>();
  const Value dy = graph.input("dy", forward.output.dtype(), forward.output.shape());
  out_workload.inputs.push_back(made_up(DType::f32, dy.shape()));
  const Value w = forward.parameters.at(0);
  graph.output("dx", ops::conv_input_grad(dy, w, x.shape(), attributes));
  graph.output("dw", ops::conv_weight_grad(dy, x, w.shape(), attributes));
  graph.output("db", ops::reduce_sum(dy, {0, 2, 3}));
}

Workload make_workload(const Subject& subject, const Context& context, bool training) {
  Workload workload;
  Graph graph;
  const Value x = graph.input("x", subject.x_dtype(), subject.x_shape());
  workload.inputs.push_back(made_up(x.dtype(), x.shape()));
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
    graph.output("output", forward.output);
  } else if (subject.single()) {
    graph.output("output", forward.output);
    add_layer_gradients(graph, forward, x, workload);
  } else {
    const Tensor labels = made_up_labels(forward.output.shape());
    const Value y = graph.input("y", DType::i64, labels.shape());
    workload.inputs.push_back(labels);
    const train::Objective objective = train::build_objective(forward, y, subject.definition.loss, {});
    const std::vector<Value> gradient_of = gradients(objective.loss, forward.parameters);
    graph.output("loss", objective.loss);
    if (subject.net->steps) {
      const Value rate = graph.input("learning_rate", DType::f64, {});
      const Value step = graph.input("step", DType::i64, {});
      workload.inputs.push_back(Tensor::scalar(1e-4));  // so small that made-up data leads nowhere far
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
  return workload;
}

/// Bytes that a prediction cannot do without: what plans hold of weights, and the most activations that one node reads and makes.
double least_memory(const Program& program) {
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
  std::int64_t most = 0;
  for (const NodeInfo& node : graph.nodes()) most = std::max(most, bytes_of(node.inputs) + bytes_of(node.outputs));
  return static_cast<double>(program.placement().packed_size_bytes) + static_cast<double>(most);
}

// ---------------------------------------------------------------- by layer

struct LayerTime {
  std::string name;
  double flops = 0, bytes = 0, ns = 0;
};

/// Whose work a node is: the longest name of a layer that its own begins with.
std::string layer_of(std::string node, const std::vector<std::string>& layers) {
  const bool gradient = node.starts_with("gradient/");
  if (gradient) node.erase(0, std::string("gradient/").size());
  std::string best;
  for (const std::string& layer : layers) {
    if (layer.size() > best.size() && (node == layer || node.starts_with(layer + "/"))) best = layer;
  }
  if (best.empty()) return node.find("Step") != std::string::npos || node.starts_with("sgd") ? "optimizer" : "loss";
  return gradient ? best + " gradient" : best;
}

std::vector<LayerTime> time_layers(const Workload& workload, int runs) {
  workload.program->enable_profile(true);
  std::vector<LayerTime> layers;
  std::map<std::string, std::size_t> position;
  std::vector<std::vector<double>> times;  // per kernel
  std::vector<Program::KernelTime> kernels;
  for (int run = 0; run < runs; ++run) {
    workload.run();
    kernels = workload.program->profile();
    times.resize(kernels.size());
    for (std::size_t k = 0; k < kernels.size(); ++k) times[k].push_back(static_cast<double>(kernels[k].duration_ns));
  }
  workload.program->enable_profile(false);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::string name = layer_of(kernels[k].node, workload.layers);
    const auto [found, inserted] = position.try_emplace(name, layers.size());
    if (inserted) layers.push_back({name});
    LayerTime& layer = layers[found->second];
    layer.flops += static_cast<double>(kernels[k].flops);
    layer.bytes += static_cast<double>(kernels[k].size_bytes);
    layer.ns += median(times[k]);
  }
  return layers;
}

struct Roofs {
  std::optional<double> gflops;
  double gb_per_s = 0;

  /// In nanoseconds; nothing where there is no roof.
  std::optional<double> least(double flops, double bytes) const {
    if (!gflops || gb_per_s <= 0) return std::nullopt;
    return std::max(flops / *gflops, bytes / gb_per_s);
  }
};

// ---------------------------------------------------------------- peers

struct Peer {
  std::string name, absent;
  Samples samples;
};

void read_answer(const ChildResult& result, const std::string& script, Peer& out_peer) {
  const Json answer = Json::parse(result.output, nullptr, false);
  if (answer.is_object() && answer.contains("absent")) {
    out_peer.absent = answer["absent"].get<std::string>();
  } else if (answer.is_object() && answer.contains("seconds")) {
    out_peer.name = answer["name"].get<std::string>();
    for (const double seconds : answer["seconds"]) out_peer.samples.ns.push_back(seconds * 1e9);
    for (const double seconds : answer["cpu_seconds"]) out_peer.samples.cpu_ns.push_back(seconds * 1e9);
  } else {
    out_peer.absent = fmt::format("{} ended with exit code {} and no result", script, result.exit_code);
  }
}

/// Files of one net for its peers, gone with this.
class PeerFiles {
 public:
  PeerFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-nets-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Error("bench nets: cannot make a folder like " + pattern);
    folder_ = pattern;
  }
  ~PeerFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  PeerFiles(const PeerFiles&) = delete;
  PeerFiles& operator=(const PeerFiles&) = delete;
  std::string path(const char* name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

const std::string peers = TENON_BENCH_PEERS;

std::vector<std::string> torch_command(const Subject& subject, const Options& options, const std::string& net, bool training) {
  return {options.python,
          peers + "/nets_torch.py",
          net,
          "--phase",
          training ? "train" : "infer",
          "--batch",
          std::to_string(subject.batch),
          "--threads",
          std::to_string(options.threads)};
}

Peer run_torch(const Subject& subject, const Options& options, const std::string& net, bool training, int runs) {
  std::vector<std::string> command = torch_command(subject, options, net, training);
  command.insert(command.end(), {"--runs", std::to_string(runs)});
  if (subject.net->steps) command.emplace_back("--optimizer");
  if (subject.single()) command.emplace_back("--sum");
  Peer peer;
  read_answer(run_child(command), command[1], peer);
  return peer;
}

/// The net goes there as ONNX, which PyTorch writes.
Peer run_onnxruntime(const Subject& subject, const Options& options, const std::string& net, const std::string& onnx, int runs) {
  const std::string script = peers + "/nets_onnxruntime.py";
  Peer peer;
  const Json there = Json::parse(run_child({options.onnxruntime_python, script, "-"}).output, nullptr, false);
  if (!there.is_object() || !there.contains("name")) {
    peer.absent = there.is_object() && there.contains("absent") ? there["absent"].get<std::string>()
                                                                : fmt::format("'{}' runs no ONNX Runtime", options.onnxruntime_python);
    return peer;
  }
  std::vector<std::string> command = torch_command(subject, options, net, false);
  command.insert(command.end(), {"--export", onnx});
  run_child(command);
  std::error_code ignored;
  if (!std::filesystem::exists(onnx, ignored)) {
    peer.absent = fmt::format("ONNX Runtime: '{} {}' wrote no ONNX file of {}", options.python, command[1], subject.net->name);
    return peer;
  }
  read_answer(
      run_child({options.onnxruntime_python, script, onnx, "--threads", std::to_string(options.threads), "--runs", std::to_string(runs)}),
      script, peer);
  return peer;
}

// ---------------------------------------------------------------- what was published

/// The figures of a net and phase; those that two phases of ours have no place for are left to the table.
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

/// Of one hardware, where it is published: the extra columns of the main table.
std::optional<double> published_on(const Subject& subject, bool training, const std::string& hardware) {
  std::optional<double> best;
  for (const Published& figure : published_figures()) {
    if (std::string(figure.set) != subject.net->set || std::string(figure.net) != subject.net->name) continue;
    if (std::string(figure.phase) != (training ? "train" : "infer") || !std::string(figure.hardware).starts_with(hardware)) continue;
    if (!best || figure.ms < *best) best = figure.ms;
  }
  return best;
}

bool wanted(const Net& net, const Options& options) {
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
    if (wanted(net, options)) chosen.push_back(&net);
  }
  if (chosen.empty()) {
    std::string known;
    for (const Net& net : benchmark_nets()) known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", net.name, net.set);
    throw Error(fmt::format("bench nets: no net '{}' in the set '{}'; there are {}", options.net, options.set, known));
  }
  std::vector<bool> phases;
  for (const std::string& phase : options.phases) {
    if (phase != "infer" && phase != "train") throw Error(fmt::format("--phase {}: wanted infer, train or both, as in infer,train", phase));
    phases.push_back(phase == "train");
  }
  const Context context = options.make_context(options.threads);
  auto machine = describe_machine(context, options.threads);
  Roofs roofs;
  if (context.default_device().info().kind == DeviceKind::cpu) {
    roofs.gflops = peak_gflops(DType::f32, options.threads);
    roofs.gb_per_s = memory_roofs(options.threads, options.tiny ? 1 << 20 : std::int64_t{128} << 20).triad;
    if (roofs.gflops) machine["roofs"]["f32_gflop_per_s"] = std::round(*roofs.gflops * 10) / 10;
    machine["roofs"]["memory_gb_per_s"] = std::round(roofs.gb_per_s * 10) / 10;
  }
  auto report = std::make_unique<Report>("tenon bench nets", std::move(machine));
  std::vector<std::vector<std::string>> published;
  for (const Net* net : chosen) {
    const Subject subject = load(*net, options);
    for (const bool training : phases) {
      say(fmt::format("{} ({}), {}, batch {}", net->name, net->set, training ? "train" : "infer", subject.batch));
      Entry entry{.name = fmt::format("{} {} {} batch {}", net->set, net->name, training ? "train" : "infer", subject.batch)};
      std::vector<LayerTime> layers;
      {
        const std::uint64_t before = context.default_device().live_size_bytes();
        const Workload workload = make_workload(subject, context, training);
        Protocol protocol = options.protocol();
        if (options.runs == 0) protocol.runs = 10;
        entry.samples = measure({[&](std::int64_t repetitions) {
                                  for (std::int64_t i = 0; i < repetitions; ++i) workload.run();
                                }},
                                protocol)[0];
        layers = time_layers(workload, options.tiny ? 1 : 3);
        const PlacementReport& placement = workload.program->placement();
        entry.extra.emplace_back("workspace_mb", static_cast<double>(placement.workspace_size_bytes) / 1e6);
        entry.extra.emplace_back("packed_mb", static_cast<double>(placement.packed_size_bytes) / 1e6);
        entry.extra.emplace_back("memory_mb", static_cast<double>(context.default_device().live_size_bytes() - before) / 1e6);
        if (!training) entry.extra.emplace_back("least_memory_mb", least_memory(*workload.program) / 1e6);
      }
      double flops = 0, least = 0;
      std::vector<std::vector<std::string>> rows;
      for (const LayerTime& layer : layers) {
        const std::optional<double> roof = roofs.least(layer.flops, layer.bytes);
        flops += layer.flops;
        least += roof.value_or(0);
        rows.push_back({layer.name, fmt::format("{:.4g}", layer.flops / 1e9), fmt::format("{:.4g}", layer.bytes / 1e6),
                        fmt::format("{:.4g}", layer.ns / 1e6), layer.ns > 0 ? fmt::format("{:.4g}", layer.flops / layer.ns) : "",
                        roof && layer.ns > 0 ? fmt::format("{:.0f}", 100 * *roof / layer.ns) : ""});
      }
      entry.extra.emplace_back("gflop", flops / 1e9);
      entry.extra.emplace_back("gflop_per_s", flops / entry.median_ns());
      if (least > 0) entry.percent_of_roof = 100 * least / entry.median_ns();

      std::vector<Peer> others;
      const int runs = options.runs > 0 ? options.runs : 10;
      const PeerFiles files;
      const std::string json = files.path("net.json");
      std::ofstream(json) << to_json(subject.definition.model, subject.x_dtype() == DType::i64).dump();
      others.push_back(run_torch(subject, options, json, training, runs));
      if (!training && !options.tiny) others.push_back(run_onnxruntime(subject, options, json, files.path("net.onnx"), runs));
      const char* const columns[] = {"pytorch_ms", "onnxruntime_ms"};
      for (std::size_t i = 0; i < others.size(); ++i) {
        const Peer& other = others[i];
        if (other.name.empty()) {
          report->note("no peer: " + other.absent);
          if (entry.peer.empty() && entry.peer_absent.empty()) entry.peer_absent = other.absent;
          continue;
        }
        report->note("peer: " + other.name);
        entry.extra.emplace_back(columns[i], median(other.samples.ns) / 1e6);
        if (entry.peer.empty() || median(other.samples.ns) < median(entry.peer_samples.ns)) {
          entry.peer = other.name;
          entry.peer_samples = other.samples;
          entry.peer_absent.clear();
        }
      }
      for (const auto& [column, hardware] : {std::pair{"published_cpu_ms", "2 x Xeon"}, std::pair{"published_gpu_ms", "Ti"}}) {
        if (const auto ms = published_on(subject, training, hardware)) entry.extra.emplace_back(column, *ms);
      }
      add_published(subject, training, entry, published);
      report->table(fmt::format("layers of {}", entry.name), {"layer", "GFLOP", "MB", "ms", "GFLOP/s", "% of roof"}, rows,
                    options.layers || chosen.size() == 1);
      report->add(std::move(entry));
    }
  }
  if (!options.tiny) {
    report->table("published", {"net", "phase", "batch", "tool", "hardware", "published", "ours ms", "times ours", "source"}, published,
                  true);
  }
  report->note("peer: the faster one of those measured; ratio: its median over ours");
  report->note(
      "% of roof: the sum over kernels of the longer of work / peak and bytes / bandwidth, over the median; work as a direct "
      "convolution does it, so that Winograd's may be above 100");
  report->note("infer: parameters are constants of the program (ProgramOptions::freeze), as they are in ONNX Runtime's sessions");
  report->note("published figures in ms unless they say s; published_gpu_ms: the fastest of its Titan X");
  return report;
}

}  // namespace tenon::bench
