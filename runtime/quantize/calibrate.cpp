// SPDX-License-Identifier: Apache-2.0
#include "quantize/calibrate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include <tenon/error.h>
#include <tenon/program.h>

namespace tenon::quantize {
namespace {

/// A program with the values as its outputs.
struct Observed {
  std::vector<std::string> inputs;  ///< names, in order
  Program program;
};

Observed observe_values(const Context& context, const Graph& graph, const std::vector<ValueId>& values) {
  Graph observed = graph;
  for (std::size_t i = 0; i < values.size(); ++i) observed.output(fmt::format("observed/{}", i), Value(&observed, values[i]));
  std::vector<std::string> inputs;
  for (const ValueInfo& value : graph.values()) {
    if (value.kind == ValueKind::input) inputs.push_back(value.name);
  }
  return {std::move(inputs), Program(context, observed, {.precision = Precision::float32})};
}

}  // namespace

Calibrator::Calibrator(const Context& context, const std::function<Graph(std::int64_t batch)>& graph_of, const Samples& samples,
                       std::int64_t fixed_batch, const Options& options)
    : context_(context),
      graph_of_(graph_of),
      samples_(samples),
      options_(options),
      batch_(fixed_batch > 0 ? fixed_batch : std::min(options.batch_size, samples.count)),
      count_(fixed_batch > 0 ? samples.count / fixed_batch * fixed_batch : samples.count) {
  if (samples.count < 1) throw Error("quantisation: expected samples to observe the ranges of activations on, got none");
  if (count_ < 1)
    throw Error(
        fmt::format("quantisation: the model takes batches of {}, expected at least as many samples, got {}", fixed_batch, samples.count));
}

void Calibrator::run(const std::vector<ValueId>& values,
                     const std::function<void(std::size_t i, std::span<const float> elements)>& observe) {
  std::map<std::int64_t, Observed> programs;  // for whole batches and the rest
  for (std::int64_t begin = 0; begin < count_; begin += batch_) {
    const std::int64_t end = std::min(begin + batch_, count_);
    auto found = programs.find(end - begin);
    if (found == programs.end()) found = programs.emplace(end - begin, observe_values(context_, graph_of_(end - begin), values)).first;
    Observed& observed = found->second;
    const NamedTensors samples = samples_.read(begin, end);
    std::vector<Tensor> inputs;
    for (const std::string& name : observed.inputs) inputs.push_back(samples.at(name));
    const std::vector<Tensor>& results = observed.program.run(std::span<const Tensor>(inputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Tensor result = results[results.size() - values.size() + i].to_host().contiguous();
      observe(i, {result.data<float>(), static_cast<std::size_t>(result.count())});
    }
  }
}

std::vector<Range> Calibrator::ranges_of(const std::vector<ValueId>& values) {
  std::vector<Range> ranges(values.size());
  run(values, [&](std::size_t i, std::span<const float> elements) {
    if (ranges[i].observe(elements)) return;
    const Graph graph = graph_of_(batch_);
    throw Error(
        fmt::format("quantisation: expected finite activations, but of '{}' {}; check the samples, or leave out with --exclude "
                    "(Options::exclude) what reads it",
                    graph.info(values[i]).name, *first_not_finite(elements)));
  });
  for (Range& range : ranges) {
    if (range.empty()) range = {0, 0};  // a value without elements
  }
  if (options_.calibration == Calibration::minmax) return ranges;

  std::vector<Histogram> histograms;
  for (const Range& range : ranges) histograms.emplace_back(range, options_.calibration == Calibration::entropy);
  run(values, [&](std::size_t i, std::span<const float> elements) { histograms[i].observe(elements); });
  const std::size_t levels = options_.activations == DType::u8 ? 256 : 128;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = options_.calibration == Calibration::percentile ? percentile_range(histograms[i], ranges[i], options_.percentile)
                                                                : entropy_range(histograms[i], ranges[i], levels);
  }
  return ranges;
}

}  // namespace tenon::quantize
