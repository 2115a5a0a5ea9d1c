// SPDX-License-Identifier: Apache-2.0
// tenon/compiled_function.h - a graph for inputs of changing shapes: compiled once for each of them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <tenon/api.h>
#include <tenon/context.h>
#include <tenon/graph.h>
#include <tenon/program.h>
#include <tenon/tensor.h>

namespace tenon {

/// Dtype and shape of an input.
struct TensorType {
  DType dtype = DType::none;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

/// A function of tensors whose dtypes and shapes may change from call to call. For each combination
/// of types that it meets it builds a graph and compiles a program, which it keeps for the next call
/// with these types. The programs share one parameter store.
///
///   CompiledFunction norm(context, [](std::span<const TensorType> types) {
///     Graph graph;
///     const Value x = graph.input("x", types[0].dtype, types[0].shape);
///     graph.output("norm", ops::sqrt(ops::reduce_sum(x * x)));
///     return graph;
///   });
///   norm.run({Tensor::of<float>({3, 4}, {2})});  // 5
///
/// Threads  one call at a time, as for a Program.
class TENON_API CompiledFunction {
 public:
  /// Makes the graph for inputs of these types, in the order of run's inputs.
  using Build = std::function<Graph(std::span<const TensorType> inputs)>;

  /// Compiles nothing yet. `options` are those of every program; limits.programs and
  /// limits.size_bytes bound what is kept.
  /// Errors  no function; a limit of 0 programs.
  CompiledFunction(const Context& context, Build build, const ProgramOptions& options = {},
                   const ProgramLimits& limits = {});
  ~CompiledFunction();
  CompiledFunction(CompiledFunction&&) noexcept;
  CompiledFunction& operator=(CompiledFunction&&) noexcept;

  /// The results for these inputs, valid until the next call. A call with the types of one of the
  /// kept programs compiles nothing, and allocates as Program::run does.
  /// Errors  those of `build` and of Program; nothing is kept of a program that could not be made.
  const std::vector<Tensor>& run(std::span<const Tensor> inputs);
  /// The same with an initializer list.
  const std::vector<Tensor>& run(std::initializer_list<Tensor> inputs) {
    return run(std::span(inputs.begin(), inputs.size()));
  }
  /// The program for inputs of these types, valid until the next call: to see its placement, to
  /// profile it, or to compile before the first run.
  Program& program(std::span<const TensorType> types);
  /// The store that holds the parameters of all its programs.
  const std::shared_ptr<ParameterStore>& parameters() const;
  /// How many programs there are, their memory, and how often one was found, compiled and dropped.
  const ProgramCounts& counts() const;

 private:
  struct TENON_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
