// SPDX-License-Identifier: Apache-2.0
// tenon-bench, the program of the verbs that measure: tenon bench FILE.onnx | crossing | gemm | blas | elementwise | memory | fusion | nets
// | conv | mnist | pipeline | mnist_mlp | fashion_mnist | generate | scaling | serve FILE | compare OLD NEW; tenon bandwidth
#include <CLI/CLI.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>

#include <tenon/error.h>

#include "bench/benchmarks.h"
#include "bench/nets_list.h"
#include "cli/common.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "exec/thread_pool.h"
#include "platform/path.h"
#include "platform/process.h"
#include "yaml/tree.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  bench::Options options;
  std::string json, format = "text";
};

Context make_context(const Common& common, int threads, const std::vector<std::string>& own_sets = {}) {
  ConfigSources sources;
  sources.file = common.config_file;
  sources.command_line = common.overrides();
  if (common.device.empty()) sources.command_line.push_back({"device", "openblas:0", "the default of tenon bench"});
  sources.command_line.push_back({"threads", std::to_string(threads), "--threads " + std::to_string(threads)});
  for (ConfigOverride& change : common.set_overrides()) sources.command_line.push_back(std::move(change));
  for (const std::string& set : own_sets) {
    const yaml::Assignment assignment = yaml::parse_assignment(set);
    // The value of --precision is the user's, which may be wrong; other values are the benchmark's own.
    const std::string origin = assignment.key == "precision" ? "--precision " + assignment.value : "the benchmark's " + set;
    sources.command_line.push_back({assignment.key, assignment.value, origin});
  }
  return Context(resolve_config(sources), {}, common.plugins);
}

/// Errors  --set or --config with a number of threads; the environment's and TENON_CONFIG's, which are not meant for this command, are a
///         warning.
void expect_threads_by_option(const Arguments& arguments) {
  const Config config = arguments.common.resolve();
  if (!config.origins.contains("threads")) return;
  const std::string origin = config.origin_of("threads"),
                    text = fmt::format("--threads {}, which peers and roofs have, too", config.threads);
  const bool is_by_set = config.origins.at("threads").kind == Origin::Kind::command_line;
  if (is_by_set || !arguments.common.config_file.empty()) throw Error(fmt::format("{}: expected {}", origin, text));
  print_message(fmt::format("{}: threads: {} is not used; give {}\n", origin, config.threads, text));
}

void run(Arguments& arguments, std::unique_ptr<bench::Report> (*benchmark)(const bench::Options&)) {
  arguments.options.make_context = [&arguments](int threads) { return make_context(arguments.common, threads); };
  arguments.options.make_context_with = [&arguments](int threads, const std::string& set) {
    return make_context(arguments.common, threads, {set});
  };
  arguments.options.make_context_on = [&arguments](int threads, const std::string& device, const std::vector<std::string>& sets) {
    Common common = arguments.common;
    if (!device.empty()) common.device = device;
    return make_context(common, threads, sets);
  };
  expect_threads_by_option(arguments);
  if (arguments.options.threads == 0) arguments.options.threads = static_cast<int>(exec::available_threads());
  arguments.options.common = arguments.common.arguments();
  const auto report = benchmark(arguments.options);
  if (report == nullptr) return;  // one process of several, whose results another one reports
  arguments.format == "json" ? write_output(report->json()) : report->print();
  if (!arguments.json.empty()) report->write_json(arguments.json);
}

/// The model definitions that the benchmarks train.
std::string models_folder() {
  return platform::text_of(installation_prefix() / "share/tenon/models/bench");
}

/// `--set cnn` selects a set of nets; `--set key=value` overrides a key, as in other subcommands.
void take_set(Arguments& arguments) {
  std::vector<std::string> keys;
  for (const std::string& text : arguments.common.sets) {
    if (text.find('=') != std::string::npos) {
      keys.push_back(text);
    } else if (std::ranges::any_of(bench::benchmark_nets(), [&](const bench::Net& net) { return text == net.set; })) {
      arguments.options.set = text;
    } else {
      throw Error(fmt::format("--set {}: expected hkbu, cnn, convnet, layers, own or key=value", text));
    }
  }
  arguments.common.sets = std::move(keys);
}

/// `--device cuda,openblas` names several devices, each with its own context.
void take_devices(Arguments& arguments) {
  std::string& list = arguments.common.device;
  if (list.find(',') == std::string::npos) return;
  arguments.options.devices = CLI::detail::split(list, ',');
  if (std::ranges::find(arguments.options.devices, "") != arguments.options.devices.end()) {
    throw Error(fmt::format("--device {}: expected comma-separated names, for example cuda,openblas", list));
  }
  list = arguments.options.devices.front();
}

/// Adds the options of benchmarks that compare devices.
void add_variant_options(CLI::App& command, bench::Options& options) {
  command.get_option("--device")->description("device to run on, or several to compare: cuda,openblas");
  command.add_option("--kernels", options.kernels, "tuned, naive or both, for backends with the option 'kernels'")
      ->delimiter(',')
      ->type_name("KIND,...");
  command.add_option("--precision", options.precisions, "float32, tf32, mixed_bfloat16, mixed_float16; one run each")
      ->delimiter(',')
      ->type_name("NAME,...");
  command.add_option("--batch", options.batches, "batch sizes, run one after another (default: the benchmark's own)")
      ->check(CLI::PositiveNumber)
      ->delimiter(',')
      ->type_name("N,...");
}

void add_html_option(CLI::App& command, bench::Options& options) {
  command.add_option("--html", options.html, "write a bar chart of the results")->type_name("FILE");
}

void add_phase_option(CLI::App& command, bench::Options& options) {
  command.add_option("--phase", options.phases, "infer, train or both (default: both)")->delimiter(',')->type_name("PHASE,...");
}

void add_net_options(CLI::App& command, bench::Options& options) {
  options.models = models_folder();
  command.get_option("--set")->description("hkbu, cnn, convnet, layers or own: run only these nets; key=value: override a YAML key");
  command.add_option("--net", options.net, "run one net, by its table name or its file name")->type_name("NAME");
  add_phase_option(command, options);
  command.add_flag("--torch-compile", options.torch_compile, "also compare with PyTorch's torch.compile, whose compilation takes a minute");
  command.add_flag("--layers", options.layers, "print the time per layer of each net, not only when a single net runs");
  command.add_option("--models", options.models, "folder of the model definitions")->type_name("DIR");
  command.add_option("--onnxruntime", options.onnxruntime_python, "Python interpreter with ONNX Runtime (default: python3 on PATH)")
      ->type_name("FILE");
}

void add_onnx_options(CLI::App& command, Arguments& arguments) {
  bench::Options& options = arguments.options;
  command.add_option("file", options.model, "ONNX model")->required()->type_name("FILE");
  options.inputs.add_to(command, 2);
  command.add_option("--compare", options.runtimes, "peers: onnxruntime, openvino")->delimiter(',')->type_name("NAME,...");
  options.python = "python3";
  command.get_option("--python")->description("Python interpreter with the peers (default: python3 on PATH)");
  add_format(command, arguments.format, {"text", "json"});
}

void add_serve_options(CLI::App& command, bench::Options& options) {
  command.add_option("file", options.model, "ONNX model, model.yaml or train.yaml")->required()->type_name("FILE");
  options.inputs.add_to(command);
  command.add_option("--clients", options.clients, "threads that send requests, each the next one when it has a result (default: 8)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  command.add_option("--seconds", options.seconds, "time for each way of serving (default: 5)")->check(CLI::PositiveNumber)->type_name("S");
  command.add_option("--max-batch", options.max_batch, "most samples of a batch (default: 8)")->check(CLI::Range(1, 65536))->type_name("N");
  command.add_option("--max-delay-us", options.max_delay_us, "longest wait of a request for others to join its batch (default: 1000)")
      ->check(CLI::Range(0, 1000000000))
      ->type_name("US");
  command.get_option("--runs")->description("rounds, in which the ways of serving take turns (default: 5)");
}

void add_scaling_options(CLI::App& command, bench::Options& options) {
  options.models = models_folder();
  options.threads = 1;
  command.get_option("--threads")->description("threads of each device (default: 1)");
  command.add_option("--net", options.net, "a net of models/ or a train.yaml (default: mnist_mlp)")->type_name("NAME");
  command.add_option("--batch", options.batches, "samples of a batch, which the devices share (default: 512)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command.add_option("--devices", options.device_counts, "numbers of virtual devices (default: 1,2)")
      ->check(CLI::Range(1, 64))
      ->delimiter(',')
      ->type_name("N,...");
  command.add_option("--ranks", options.rank_counts, "numbers of processes, which mpirun starts: 1,2,4")
      ->check(CLI::Range(1, 1024))
      ->delimiter(',')
      ->type_name("N,...");
  command
      .add_option("--simulate", options.simulated,
                  "in place of devices and processes, predict for so many machines like this one, each with a batch of its own: 1,2,4,1024")
      ->check(CLI::Range(1, 1 << 20))
      ->delimiter(',')
      ->excludes("--ranks")
      ->excludes("--devices")
      ->type_name("N,...");
  command.add_option("--mpirun", options.mpirun, "program that starts them, with its options (default: mpirun)")->type_name("COMMAND");
  command.add_flag("--as-rank", options.as_rank, "be one of these processes")->group("");
  command.add_option("--link", options.link_gb_per_s, "simulate links of this bandwidth between the devices")
      ->check(CLI::PositiveNumber)
      ->type_name("GB/S");
  command.add_option("--link-latency-us", options.link_latency_us, "latency of these links (default: 0)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("US");
  command.add_option("--bucket-mb", options.bucket_mb, "MiB of gradients that are summed together (default: as suits the link)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("MIB");
  add_html_option(command, options);
}

void add_verbs(CLI::App& app) {
  using Benchmark = std::unique_ptr<bench::Report> (*)(const bench::Options&);
  const auto add_benchmark = [](CLI::App* command, Benchmark benchmark) {
    auto arguments = std::make_shared<Arguments>();
    arguments->common.add_to(*command);
    bench::Options& options = arguments->options;
    command->add_option("--threads", options.threads, "threads of the device and its peers; 0: all (default: 2)")
        ->check(CLI::NonNegativeNumber)
        ->type_name("N");
    command->add_option("--runs", options.runs, "samples per measurement (default: chosen by the benchmark, at least 10)")
        ->check(CLI::PositiveNumber)
        ->type_name("N");
    command->add_option("--json", arguments->json, "write the report as JSON")->type_name("FILE");
    command->add_option("--python", options.python, "Python interpreter with PyTorch (default: /usr/bin/python3)")->type_name("FILE");
    command->add_flag("--tiny", options.tiny, "tiny sizes: test that the benchmark runs, not how fast");
    command->callback([arguments, benchmark] { run(*arguments, benchmark); });
    return std::pair{command, arguments};
  };
  CLI::App* bench = add_external_verb(app, "bench");
  bench->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Benchmark benchmark) {
    return add_benchmark(bench->add_subcommand(name, help), benchmark);
  };
  add("crossing", "overhead of a plan and of a node beyond their kernels", bench::crossing);
  add("gemm", "matrix products through a plan, compared with direct OpenBLAS calls", bench::gemm);
  const std::pair<CLI::App*, std::shared_ptr<Arguments>> blas_command =
      add("blas", "BLAS calls of each level through the API and the drop-in library, compared with direct OpenBLAS calls", bench::blas);
  blas_command.first->add_option("--compare", blas_command.second->options.compare, "peer: openblas or none (default: openblas)")
      ->check(CLI::IsMember({"openblas", "none"}))
      ->type_name("PEER");
  blas_command.first->add_option("--html", blas_command.second->options.html, "write a roofline chart: rate over flops per byte")
      ->type_name("FILE");
  const auto elementwise_command =
      add("elementwise", "elementwise ops and reductions by size and threads, compared with PyTorch", bench::elementwise);
  elementwise_command.first->add_option("--op", elementwise_command.second->options.ops, "run only these ops: sum,log (default: all)")
      ->delimiter(',')
      ->type_name("NAME,...");
  add("memory", "cost of access patterns: sequential, strided, random, transposed", bench::memory);
  add("fusion", "a chain of ten ops and a training step with fusion off, elementwise and full", bench::fusion);
  const std::pair<CLI::App*, std::shared_ptr<Arguments>> nets_command =
      add("nets", "nets of published benchmarks, inference and training, compared with PyTorch and ONNX Runtime", bench::nets);
  const std::shared_ptr<Arguments> nets_arguments = nets_command.second;
  add_net_options(*nets_command.first, nets_arguments->options);
  add_variant_options(*nets_command.first, nets_arguments->options);
  add_html_option(*nets_command.first, nets_arguments->options);
  nets_command.first->callback([nets_arguments] {
    take_set(*nets_arguments);
    take_devices(*nets_arguments);
    run(*nets_arguments, bench::nets);
  });
  const auto add_compared = [&](const char* name, const char* help, Benchmark benchmark) {
    const std::pair<CLI::App*, std::shared_ptr<Arguments>> added = add(name, help, benchmark);
    const std::shared_ptr<Arguments> arguments = added.second;
    add_variant_options(*added.first, arguments->options);
    add_html_option(*added.first, arguments->options);
    added.first->callback([arguments, benchmark] {
      take_devices(*arguments);
      run(*arguments, benchmark);
    });
    return added;
  };
  add_compared("conv", "the convolutions of ResNet-50 with both gradients, compared with PyTorch", bench::conv);
  add_compared("attention", "attention and its gradient by length, heads and size, compared with PyTorch", bench::attention);
  const auto mnist_command = add_compared("mnist", "training and inference on digits: epochs, latency, throughput", bench::mnist);
  mnist_command.second->options.models = models_folder();
  mnist_command.first->add_option("--net", mnist_command.second->options.net, "mnist_mlp or convnet (default: mnist_mlp)")
      ->type_name("NAME");
  add_phase_option(*mnist_command.first, mnist_command.second->options);
  const auto pipeline_command =
      add("pipeline", "training steps with slow data loading: serial, cached, prefetched, copied asynchronously", bench::pipeline);
  add_html_option(*pipeline_command.first, pipeline_command.second->options);
  add("mnist_mlp", "training epochs of 784-300-100-10, batch 100, compared with PyTorch", bench::mnist_mlp);
  add("fashion_mnist", "training epochs of 784-128-10, batch 32, compared with PyTorch", bench::fashion_mnist);
  const auto scaling_command = add("scaling", "training steps of one batch on several virtual devices at the same time", bench::scaling);
  add_scaling_options(*scaling_command.first, scaling_command.second->options);
  const auto generate_command = add("generate", "tokens one by one from language models, compared with PyTorch", bench::generate);
  generate_command.first->add_option("--net", generate_command.second->options.net, "gpt or gpt2 (default: both)")
      ->check(CLI::IsMember({"gpt", "gpt2"}))
      ->type_name("NAME");
  const auto onnx_command =
      add("onnx", "latency, time to the first result and memory of an ONNX model; `tenon bench FILE.onnx` is the same", bench::onnx_model);
  add_onnx_options(*onnx_command.first, *onnx_command.second);
  const auto serve_command =
      add("serve", "throughput and latency of a model that serves several clients, with dynamic batching off and on", bench::serve);
  add_serve_options(*serve_command.first, serve_command.second->options);
  const auto bandwidth_command = add_benchmark(add_external_verb(app, "bandwidth"), bench::bandwidth);
  bench::Options& memory = bandwidth_command.second->options;
  bandwidth_command.first
      ->add_option("--memory-clock-mhz", memory.memory_clock_mhz,
                   "clock of the device's memory, which moves data twice per cycle: DDR4-2933 has 1466.67 (default: as the system tells)")
      ->check(CLI::PositiveNumber)
      ->type_name("MHZ");
  bandwidth_command.first
      ->add_option("--bus-bits", memory.bus_bits, "width of a channel, or of a GPU's whole bus (default: as told, else 64)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  bandwidth_command.first->add_option("--channels", memory.channels, "channels of the memory, 1 for a GPU (default: as told, else 1)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");

  auto files = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* compare = bench->add_subcommand("compare", "compare two reports");
  compare->add_option("old", files->first, "JSON report of an earlier run")->required()->type_name("OLD");
  compare->add_option("new", files->second, "JSON report of a later run")->required()->type_name("NEW");
  compare->callback([files] { bench::compare(files->first, files->second); });
}

/// The arguments with `bench FILE.onnx` as `bench onnx FILE.onnx`.
std::vector<std::string> with_benchmark(std::vector<std::string> arguments) {
  const auto bench = std::ranges::find(arguments, "bench");
  if (bench != arguments.end() && bench + 1 != arguments.end() && bench[1].ends_with(".onnx")) arguments.insert(bench + 1, "onnx");
  return arguments;
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) {
  return tenon::cli::run_program(tenon::cli::with_benchmark(tenon::platform::command_line(argc, argv)), tenon::cli::add_verbs);
}
