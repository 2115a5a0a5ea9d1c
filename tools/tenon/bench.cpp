// tenon bench crossing | gemm | blas | elementwise | memory | fusion | nets | pipeline | mnist_mlp | fashion_mnist | compare OLD NEW; tenon
// bandwidth
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

Context make_context(const Common& common, int threads, const std::string& set = {}) {
  ConfigSources sources;
  sources.file = common.config_file;
  sources.command_line = common.overrides();
  if (common.device.empty()) sources.command_line.push_back({"device", "openblas:0", "the default of tenon bench"});
  sources.command_line.push_back({"threads", std::to_string(threads), "--threads " + std::to_string(threads)});
  for (const std::string& text : common.sets) {
    const config::Assignment assignment = config::parse_assignment(text);
    sources.command_line.push_back({assignment.key, assignment.value, "--set " + text});
  }
  if (!set.empty()) {
    const config::Assignment assignment = config::parse_assignment(set);
    sources.command_line.push_back({assignment.key, assignment.value, "the benchmark's " + set});
  }
  return Context(resolve_config(sources), {}, common.plugins);
}

void run(Arguments& arguments, std::unique_ptr<bench::Report> (*benchmark)(const bench::Options&)) {
  arguments.options.make_context = [&arguments](int threads) { return make_context(arguments.common, threads); };
  arguments.options.make_context_with = [&arguments](int threads, const std::string& set) {
    return make_context(arguments.common, threads, set);
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

void add_net_options(CLI::App& command, bench::Options& options) {
  options.models = models_folder();
  command.get_option("--set")->description("hkbu, cnn, convnet, layers or own: these nets alone; or key=value: a key of the YAML");
  command.add_option("--net", options.net, "one net, by its name in the table or its file")->type_name("NAME");
  command.add_option("--phase", options.phases, "infer, train (default: both)")->delimiter(',')->type_name("PHASE,...");
  command.add_option("--batch", options.batch, "samples (default: the benchmark's own)")->check(CLI::PositiveNumber)->type_name("N");
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
  of_nets_command.first->callback([of_nets] {
    take_set(*of_nets);
    run(*of_nets, bench::nets);
  });
  add("pipeline", "training steps with data that takes time to make: serial, cached, prefetched", bench::pipeline);
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
