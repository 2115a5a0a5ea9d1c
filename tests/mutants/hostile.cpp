// SPDX-License-Identifier: Apache-2.0
// A normal program with a defective backend: hostile PLUGIN use|avoid. The plugin takes precedence over every other backend. The program
// computes on the reference backend, then on the plugin's device unless it is to avoid it, then on reference again. It must end normally
// whatever the plugin does: what would end the process ends a child process first.
#include <fmt/format.h>

#include <cfenv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

/// A small computation that is exact in f32.
void compute(const Context& context, const std::string& device) {
  Graph graph;
  const Value a = graph.input("a", DType::f32, {2, 3});
  const Value b = graph.input("b", DType::f32, {3, 2});
  graph.output("product", ops::relu(ops::matmul(a, b)));
  ProgramOptions options;
  options.device = device;
  Program program(context, graph, options);
  const Tensor y =
      program.run({Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3}), Tensor::of<float>({1, -1, 2, -2, 3, -3}, {3, 2})})[0].to_host();
  const std::vector<float> expected{14, 0, 32, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (y.data<float>()[i] != expected[i])
      throw std::runtime_error(fmt::format("element {} is {}, expected {}", i, y.data<float>()[i], expected[i]));
  }
}

void run(const std::filesystem::path& plugin, bool use) {
  Config config = resolve_config();
  config.backends.search = {plugin.string()};  // a plugin that is found may be bad, one that is named may not
  const Context context(config);
  if (std::fegetround() != FE_TONEAREST) throw std::runtime_error("loading the plugin changed the rounding mode of the process");
  const LoadRecord& record = context.load_report().records.front();
  std::printf("%s\n", record.summary.c_str());
  if (record.path != std::filesystem::canonical(plugin)) throw std::runtime_error("the plugin was not examined first");
  if (!record.healthy && (record.text.empty() || record.remedy.empty())) throw std::runtime_error("a refusal without a reason or a remedy");
  compute(context, "reference:0");
  std::printf("reference:0: works\n");
  if (!record.healthy || !use) return;
  // The conformance kit finds the defect. Here it is enough that failures reach the program as exceptions.
  try {
    compute(context, record.name + ":0");
    std::printf("%s:0: seems to work\n", record.name.c_str());
  } catch (const std::exception& e) {
    if (*e.what() == '\0') throw std::runtime_error("a failure without a message");
    std::printf("%s:0: %s\n", record.name.c_str(), e.what());
  }
  compute(context, "reference:0");
  std::printf("reference:0: still works\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    run(argv[1], std::string(argv[2]) == "use");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hostile: %s\n", e.what());
    return 1;
  }
  return 0;
}
