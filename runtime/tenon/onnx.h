// SPDX-License-Identifier: Apache-2.0
// tenon/onnx.h - models in ONNX files: inspected, run on any backend, and turned into graphs; graphs
// are written to such files.
//
//   const onnx::Model model = onnx::Model::load("resnet50.onnx");
//   const std::vector<Tensor> results = model.run({{"x", image}});
//
// Operators  those of ai.onnx, opsets 1 to 28, ai.onnx.ml and com.microsoft that docs/onnx.md lists, functions of the
//            file, and the ops of vendors that a loaded backend declares for the node's domain.
// Source     the ONNX specification, onnx.proto and Operators.md of ONNX 1.23.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/context.h>
#include <tenon/graph.h>
#include <tenon/program.h>
#include <tenon/run_options.h>
#include <tenon/safetensors.h>
#include <tenon/tensor.h>

namespace tenon::onnx {

/// One dimension of an input or output.
struct Dimension {
  std::int64_t size = -1;   ///< -1: chosen at each run
  std::string symbol = {};  ///< "batch": equal in all dimensions of this name; may be empty

  bool is_fixed() const { return size >= 0; }  ///< the same in all runs
  TENON_API std::string str() const;           ///< "224", "batch", "?"
};

/// Name and type of an input or output.
struct ValueType {
  std::string name;
  DType dtype = DType::none;  ///< none: not a tensor, or of a type that Tenon does not compute with
  bool ranked = false;        ///< whether the file states a shape
  std::vector<Dimension> shape = {};
  std::string type = {};              ///< as ONNX writes it: "tensor(float)", "seq(tensor(int64))"
  TENON_API std::string str() const;  ///< "x f32(batch,3,224,224)"
};

/// What a file says about itself.
struct Metadata {
  std::string graph, producer, producer_version, domain, description;
  std::int64_t model_version = 0, ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  ///< by domain; "ai.onnx" for the standard operators
  std::map<std::string, std::string> properties;  ///< metadata_props
};

/// How many nodes there are of an operator, and whether they can be imported.
struct OperatorCount {
  std::string domain, op;   ///< "ai.onnx", "Conv"
  std::int64_t opset = 0;   ///< version of the domain that the model imports
  std::size_t count = 0;    ///< nodes, with those in bodies, branches and functions
  std::string node = {};    ///< the first of them
  std::string reason = {};  ///< why they cannot be imported; empty if they can
};

/// Type of an input of a program, and its elements if the program is made for them.
struct InputType {
  DType dtype = DType::none;
  Shape shape;
  /// of small inputs that determine shapes, axes, counts or branches; else undefined
  Tensor elements = {};
};
using InputTypes = std::map<std::string, InputType>;
/// Tensors by the name of their input.
using tenon::NamedTensors;

/// Options of Model::load.
struct LoadOptions {
  std::string device = {};    ///< where programs run; empty: the context's default device
  ProgramLimits limits = {};  ///< of the programs that are kept for other shapes
  /// iterations of Loop and Scan that are unrolled into the graph, over the whole model
  std::int64_t max_unrolled_iterations = 4096;
};

/// An ONNX model. Programs are compiled for the shapes of the inputs that a run meets, and for the elements of inputs of at most 64 that
/// determine shapes (specialised_inputs); they are kept, least recently used out first, and share one store of parameters: the
/// floating initializers of more than one element, under their ONNX names. Where shapes depend on values that the graph computes, a run
/// has segments: a program for these values, then one for the rest, made for their shapes. The body of a loop that a computed condition
/// ends is a program that runs for each iteration.
/// Threads  one call at a time; different models at the same time.
class TENON_API Model {
 public:
  /// Reads a file; external data is mapped, not read. The bytes of the file stay mapped while the model or a tensor of it lives.
  /// Errors  the file cannot be read or is damaged; external data that is missing, outside its folder or too short; everything that
  ///         cannot be imported, in one message.
  static Model load(const std::filesystem::path& path, const Context& context = Context(),
                    const LoadOptions& options = {});
  /// The same for the content of a file. `folder` has its external data; empty: such data is an error.
  static Model from_bytes(std::string bytes, const Context& context = Context(),
                          const LoadOptions& options = {},
                          const std::filesystem::path& folder = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// In the order of the file, without initializers.
  const std::vector<ValueType>& inputs() const;
  const std::vector<ValueType>& outputs() const;  ///< in the order of the file
  const Metadata& metadata() const;               ///< of the file
  /// All operators of the file, by domain and name.
  const std::vector<OperatorCount>& operators() const;
  /// Initializers and their values: weights, as they are trained, and constants; in the order of the file.
  std::vector<NamedTensor> initializers() const;

  /// The outputs for these inputs, in the order of outputs(), valid until the next call. Compiles a program if it is the first run with
  /// these shapes.
  /// Errors  an input that is missing, unknown, or of another dtype or shape than the file states; what cannot be imported for
  ///         these shapes; those of Program.
  const std::vector<Tensor>& run(const NamedTensors& inputs, const RunOptions& options = {});
  /// The same with results in memory of their own: `outputs`, in the order of outputs(), has tensors that get them, and undefined ones that
  /// become new tensors. A dense tensor on the device that computes the output is written to by the program, others are copied to.
  /// Errors  also: another number of outputs; one of another dtype or shape than the result.
  void run(const NamedTensors& inputs, std::span<Tensor> outputs, const RunOptions& options = {});
  /// The program for these inputs, valid until the next call: to compile before the first run, to see its placement, to profile it.
  /// Errors  those of run; shapes that depend on computed values, which no single program can have.
  Program& bind(const InputTypes& inputs);
  /// Placement of each node of the program for these inputs, also if some nodes cannot run: they have no device, and a reason.
  /// Errors  those of bind, except for nodes that no device computes.
  PlacementReport explain(const InputTypes& inputs);
  /// The graph for these inputs, on which losses and gradients can be built. Its parameters are those of parameters().
  Graph to_graph(const InputTypes& inputs);
  /// The inputs, and computed values, whose elements determine shapes, axes, counts or branches, as found so far: programs are made for
  /// their elements.
  const std::vector<std::string>& specialised_inputs() const;
  /// How often expressions of several nodes were recognised as one op, by the op's name ("Gelu": 12), in the graph imported last.
  const std::map<std::string, std::size_t>& recognized_patterns() const;
  /// The store that holds the parameters of all its programs, created by the first program.
  const std::shared_ptr<ParameterStore>& parameters() const;
  /// How many programs there are, their memory, and how often one was found, compiled and dropped.
  const ProgramCounts& counts() const;

 private:
  struct TENON_HIDDEN State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What a file holds and whether it can be imported, without loading its weights.
struct FileReport {
  Metadata metadata;
  std::vector<ValueType> inputs, outputs;
  std::vector<OperatorCount> operators;
  std::uint64_t weights = 0;             ///< elements of floating initializers
  std::uint64_t weights_size_bytes = 0;  ///< of all initializers

  /// Number of operators that cannot be imported.
  TENON_API std::size_t unsupported() const;
};
/// Errors  the file cannot be read or is damaged.
TENON_API FileReport inspect(const std::filesystem::path& path);

/// Options of export_graph and tenon::Model::export_onnx.
struct ExportOptions {
  std::int64_t opset = 17;  ///< of ai.onnx, 17 to 23
  /// the batch size of the file; 0: any, a dimension named "batch"
  std::int64_t batch = 0;
  std::vector<std::string> inputs = {};   ///< names in the file, in order; empty: the graph's
  std::vector<std::string> outputs = {};  ///< likewise
  std::string graph_name = {};            ///< as viewers show it; empty: the model's, or "tenon"
  std::map<std::string, std::string> metadata = {};  ///< metadata_props
  /// Weights with more bytes than that in all are written to `<path>.data`, next to the file.
  std::uint64_t external_above = std::uint64_t{1} << 30;
};
/// A graph for batches of a size.
using GraphOfBatch = std::function<Graph(std::int64_t batch)>;
/// The elements of the parameter of that name.
using ParameterValues = std::function<Tensor(const std::string& name)>;

/// Writes the outputs of a graph, and what they need, as an ONNX model of operators of ai.onnx, and
/// those of vendors. What ONNX has no operator for becomes several nodes. Parameters become
/// initializers under their names; updates are left out. The file is replaced as a whole.
/// Errors  ops without an ONNX form (random numbers, training), each with its op and node, in one
///         message; names that are not unique; those of writing.
TENON_API void export_graph(const std::filesystem::path& path, const Graph& graph,
                            const ParameterValues& values, const ExportOptions& options = {});
/// The same for a graph that is built for a batch size: ExportOptions::batch, or two of them, whose
/// differences tell what depends on the size.
/// Errors  also: what depends on the batch size in a way that ONNX cannot express.
TENON_API void export_graph(const std::filesystem::path& path, const GraphOfBatch& graph_of,
                            const ParameterValues& values, const ExportOptions& options = {});

/// A tensor of a serialized TensorProto, as in the test data of ONNX (input_0.pb).
/// Errors  a damaged file, strings, external data, a dtype that Tenon does not compute with.
TENON_API NamedTensor load_tensor(const std::filesystem::path& path);

}  // namespace tenon::onnx
