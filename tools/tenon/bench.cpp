// tenon bench crossing | gemm | blas | elementwise | memory | fusion | nets | conv | mnist | pipeline | mnist_mlp | fashion_mnist | compare
// OLD NEW; tenon bandwidth
#include <CLI/CLI.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include <tenon/error.h>

#include "bench/benchmarks.h"
#include "bench/machine.h"
#include "bench/nets_list.h"
#include "config/yaml_tree.h"
#include "tenon/verbs.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  bench::Options options;
  std::string json;
};

Context make_context(const Common& common, int threads, const std::vector<std::string>& own_sets = {}) {
  ConfigSources sources;
  sources.file = common.config_file;
  sources.command_line = common.overrides();
  if (common.device.empty()) sources.command_line.push_back({"device", "openblas:0", "the default of tenon bench"});
  sources.command_line.push_back({"threads", std::to_string(threads), "--threads " + std::to_string(threads)});
  for (const std::string& text : common.sets) {
    const config::Assignment assignment = config::parse_assignment(text);
    sources.command_line.push_back({assignment.key, assignment.value, "--set " + text});
  }
  for (const std::string& set : own_sets) {
    const config::Assignment assignment = config::parse_assignment(set);
    sources.command_line.push_back({assignment.key, assignment.value, "the benchmark's " + set});
  }
  return Context(resolve_config(sources), {}, common.plugins);
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
  if (arguments.options.threads == 0) arguments.options.threads = bench::available_processors();
  const auto report = benchmark(arguments.options);
  report->print();
  if (!arguments.json.empty()) report->write_json(arguments.json);
}

/// The definitions in the source tree or, where this program is installed, beside it.
std::string models_folder() {
  std::error_code code;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", code);
  const std::filesystem::path installed = self.parent_path().parent_path() / "share/tenon/models/bench";
  return !code && std::filesystem::is_directory(installed, code) ? installed.string() : TENON_MODELS_DIRECTORY "/bench";
}

/// `--set cnn` names a set of nets, `--set key=value` sets a key as everywhere.
void take_set(Arguments& arguments) {
  std::vector<std::string> keys;
  for (const std::string& text : arguments.common.sets) {
    if (text.find('=') != std::string::npos) {
      keys.push_back(text);
    } else if (std::ranges::any_of(bench::benchmark_nets(), [&](const bench::Net& net) { return text == net.set; })) {
      arguments.options.set = text;
    } else {
      throw Error(fmt::format("--set {}: wanted hkbu, cnn, convnet, layers or own, or key=value", text));
    }
  }
  arguments.common.sets = std::move(keys);
}

/// `--device cuda,openblas` names several: each has a context of its own.
void take_devices(Arguments& arguments) {
  std::string& list = arguments.common.device;
  if (list.find(',') == std::string::npos) return;
  arguments.options.devices = CLI::detail::split(list, ',');
  if (std::ranges::find(arguments.options.devices, "") != arguments.options.devices.end()) {
    throw Error(fmt::format("--device {}: wanted names with commas between them, as in cuda,openblas", list));
  }
  list = arguments.options.devices.front();
}

/// Of benchmarks that compare devices.
void add_variant_options(CLI::App& command, bench::Options& options) {
  command.get_option("--device")->description("where to run: one, or several to be compared, as in cuda,openblas");
  command.add_option("--kernels", options.kernels, "tuned, naive or both, of backends with the knob 'kernels'")
      ->delimiter(',')
      ->type_name("KIND,...");
  command.add_option("--precision", options.precisions, "float32, tf32, mixed_bfloat16, mixed_float16: one run each")
      ->delimiter(',')
      ->type_name("NAME,...");
  command.add_option("--batch", options.batches, "samples; several are run one after the other (default: the benchmark's own)")
      ->check(CLI::PositiveNumber)
      ->delimiter(',')
      ->type_name("N,...");
}

void add_html_option(CLI::App& command, bench::Options& options) {
  command.add_option("--html", options.html, "write a chart: a bar for each figure")->type_name("FILE");
}

void add_phase_option(CLI::App& command, bench::Options& options) {
  command.add_option("--phase", options.phases, "infer, train (default: both)")->delimiter(',')->type_name("PHASE,...");
}

void add_net_options(CLI::App& command, bench::Options& options) {
  options.models = models_folder();
  command.get_option("--set")->description("hkbu, cnn, convnet, layers or own: these nets alone; or key=value: a key of the YAML");
  command.add_option("--net", options.net, "one net, by its name in the table or its file")->type_name("NAME");
  add_phase_option(command, options);
  command.add_flag("--layers", options.layers, "print where the time goes by layer for each net, not for a single one alone");
  command.add_option("--models", options.models, "folder of the definitions")->type_name("DIR");
  command.add_option("--onnxruntime", options.onnxruntime_python, "interpreter for ONNX Runtime (default: python3 on PATH)")
      ->type_name("FILE");
}

}  // namespace

void add_bench_verb(CLI::App& app) {
  using Benchmark = std::unique_ptr<bench::Report> (*)(const bench::Options&);
  const auto add_to = [](CLI::App& parent, const char* name, const char* help, Benchmark benchmark) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = parent.add_subcommand(name, help);
    arguments->common.add_to(*command);
    bench::Options& options = arguments->options;
    command->add_option("--threads", options.threads, "threads of device and peers; 0: all (default: 2)")
        ->check(CLI::NonNegativeNumber)
        ->type_name("N");
    command->add_option("--runs", options.runs, "samples of each figure (default: as many as the benchmark needs, at least 10)")
        ->check(CLI::PositiveNumber)
        ->type_name("N");
    command->add_option("--json", arguments->json, "write machine and figures to a file")->type_name("FILE");
    command->add_option("--python", options.python, "interpreter for peers that are Python packages (default: /usr/bin/python3)")
        ->type_name("FILE");
    command->add_flag("--tiny", options.tiny, "sizes that take no time: shows that it runs, not how fast");
    command->callback([arguments, benchmark] { run(*arguments, benchmark); });
    return std::pair{command, arguments};
  };
  CLI::App* bench = app.add_subcommand("bench", "how fast it is, beside its peers where those are installed");
  bench->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Benchmark benchmark) { add_to(*bench, name, help, benchmark); };
  add("crossing", "what a plan and a node cost above their kernels", bench::crossing);
  add("gemm", "matrix products through a plan, beside OpenBLAS called directly", bench::gemm);
  const std::pair<CLI::App*, std::shared_ptr<Arguments>> of_blas = add_to(
      *bench, "blas", "BLAS calls of each level through the API and the drop-in library, beside OpenBLAS called directly", bench::blas);
  of_blas.first->add_option("--compare", of_blas.second->options.compare, "openblas or none (default: openblas)")
      ->check(CLI::IsMember({"openblas", "none"}))
      ->type_name("PEER");
  of_blas.first
      ->add_option("--html", of_blas.second->options.html, "write a chart: rate over flops per byte, under the roofs of the machine")
      ->type_name("FILE");
  add("elementwise", "elementwise ops and reductions by size and threads, beside PyTorch", bench::elementwise);
  add("memory", "what access patterns cost: sequential, strided, random, transposed", bench::memory);
  add("fusion", "a chain of ten ops and a training step, with fusion off, elementwise and full", bench::fusion);
  const std::pair<CLI::App*, std::shared_ptr<Arguments>> of_nets_command =
      add_to(*bench, "nets", "the nets of published benchmarks, forward and with gradients, beside PyTorch and ONNX Runtime", bench::nets);
  const std::shared_ptr<Arguments> of_nets = of_nets_command.second;
  add_net_options(*of_nets_command.first, of_nets->options);
  add_variant_options(*of_nets_command.first, of_nets->options);
  add_html_option(*of_nets_command.first, of_nets->options);
  of_nets_command.first->callback([of_nets] {
    take_set(*of_nets);
    take_devices(*of_nets);
    run(*of_nets, bench::nets);
  });
  const auto add_compared = [&](const char* name, const char* help, Benchmark benchmark) {
    const std::pair<CLI::App*, std::shared_ptr<Arguments>> added = add_to(*bench, name, help, benchmark);
    const std::shared_ptr<Arguments> arguments = added.second;
    add_variant_options(*added.first, arguments->options);
    add_html_option(*added.first, arguments->options);
    added.first->callback([arguments, benchmark] {
      take_devices(*arguments);
      run(*arguments, benchmark);
    });
    return added;
  };
  add_compared("conv", "ResNet-50's convolutions with both gradients, beside PyTorch", bench::conv);
  const auto of_mnist = add_compared("mnist", "training and prediction on digits: epochs, latency, throughput", bench::mnist);
  of_mnist.second->options.models = models_folder();
  of_mnist.first->add_option("--net", of_mnist.second->options.net, "mnist_mlp or convnet (default: mnist_mlp)")->type_name("NAME");
  add_phase_option(*of_mnist.first, of_mnist.second->options);
  const auto of_pipeline = add_to(
      *bench, "pipeline", "training steps with data that takes time to make: serial, cached, prefetched, copied ahead", bench::pipeline);
  add_html_option(*of_pipeline.first, of_pipeline.second->options);
  add("mnist_mlp", "training epochs of 784-300-100-10, batch 100, beside PyTorch", bench::mnist_mlp);
  add("fashion_mnist", "training epochs of 784-128-10, batch 32, beside PyTorch", bench::fashion_mnist);
  add_to(app, "bandwidth", "memory bandwidth: what is measured against what the memory is built for", bench::bandwidth);

  auto files = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* compare = bench->add_subcommand("compare", "two reports side by side");
  compare->add_option("old", files->first, "JSON of an earlier run")->required()->type_name("OLD");
  compare->add_option("new", files->second, "JSON of a later run")->required()->type_name("NEW");
  compare->callback([files] { bench::compare(files->first, files->second); });
}

}  // namespace tenon::cli
