// tenon/program.h - a graph made ready to run: placed on devices, partitioned into plans, with memory of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/graph.h>

namespace tenon {

/// Values that outlive runs, by name: weights, statistics, optimizer state. Programs made with the same store share them.
/// Threads  one thread at a time, runs of its programs included.
class ParameterStore {
 public:
  /// Dense device memory for the parameter; keeps the present one if dtype and shape agree. Errors: another dtype or shape by that name.
  Tensor& create(const std::string& name, const Device& device, DType dtype, const Shape& shape);
  /// Copies the elements into the parameter's own memory. Errors: unknown name, other dtype or shape.
  void set(const std::string& name, const Tensor& value);
  /// The parameter itself: a view of its memory. Errors: unknown name.
  const Tensor& get(const std::string& name) const;
  /// True if there is a parameter of that name.
  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// All of them, by name.
  const std::map<std::string, Tensor>& all() const { return tensors_; }
  /// Changes whenever a value may have changed: plans that pack parameters look at it.
  std::uint64_t epoch() const { return epoch_; }
  /// To be called after writing to a parameter by other ways than set().
  void touch() { ++epoch_; }

 private:
  std::map<std::string, Tensor> tensors_;
  std::uint64_t epoch_ = 1;
};

/// One node's whereabouts.
struct Placement {
  std::string node, op;
  std::string requested;  ///< canonical; what was typed, where it differs, follows in parentheses
  std::string device;     ///< where it runs
  std::string reason;     ///< why it is not where it was requested; empty if it is
  /// The kernel that computes it, as its backend calls it. Empty: it has none of its own, because another node's kernel computes it too or
  /// because it only looks at memory in another way; or the backend does not tell.
  std::string algorithm = {};
  std::uint64_t output_size_bytes = 0;  ///< of its results
  bool once = false;                    ///< runs when parameters have changed, and not in each run
  DType dtype = DType::none;            ///< that selects its kernel: what it computes on
};

/// What is copied from one device to another in each run.
struct PlannedCopy {
  std::string value, from, to;
  std::uint64_t size_bytes = 0;
};

/// What ran where, and what that costs.
struct PlacementReport {
  std::vector<Placement> nodes;
  std::uint32_t partitions = 0;
  std::uint32_t kernels = 0;               ///< per run, after fusion
  std::uint32_t copies_inserted = 0;       ///< between devices, per run
  std::uint64_t bytes_copied_per_run = 0;  ///< across devices, inputs that are on another device not counted
  std::uint64_t workspace_size_bytes = 0;  ///< arenas of all devices
  std::uint64_t packed_size_bytes = 0;     ///< constants and packed operands inside plans
  std::vector<PlannedCopy> copies = {};    ///< the copies_inserted, one by one
  /// Whether runs are recorded and replayed as one launch, and why not; empty: on devices that do not record.
  std::string replay = {};
  std::uint64_t records = 0, replays = 0;  ///< until now; runs that were recorded are replays too
  /// Nodes that are not where they were asked to be.
  std::size_t moved() const;
  /// How many nodes compute on which dtype, most first; moves and casts count like any other.
  std::vector<std::pair<DType, std::size_t>> nodes_by_dtype() const;
  /// The device of each node, for to_dot and to_json.
  DeviceByNode device_by_node() const;
  /// The report as a table.
  std::string str() const;
  /// "op Relu 'hidden/relu' in device openblas:0 (Relu)", a line for each node: what log_device_placement writes.
  std::string mapping() const;
  /// All of it: {"nodes": [{node, op, dtype, requested, device, algorithm, reason, output_size_bytes, once}], "copies": [{value, from, to,
  /// size_bytes}], "moved", "partitions", "kernels", "copies_inserted", "bytes_copied_per_run", "workspace_size_bytes",
  /// "packed_size_bytes", "replay", "records", "replays"}.
  std::string json() const;
};

/// What the maker of a program may choose.
struct ProgramOptions {
  std::string device = {};                               ///< for nodes that ask for none; empty: the context's default
  std::shared_ptr<ParameterStore> parameters = nullptr;  ///< null: a store of its own
  bool optimize = true;                                  ///< dead code and common subexpressions go
  /// Parameters become constants of the values that `parameters` has at this moment: the program sees no later change, has a store of its
  /// own and keeps only what its kernels read, so that weights which a backend packs exist packed alone once the given store is gone.
  /// Not for graphs that update parameters.
  bool freeze = false;
  /// Arithmetic of this program; none: the context's. Of the mixed ones: f32 is what inputs, outputs and parameters stay, products run in
  /// 16 bits (ADR 17); graphs of f64, f16 or bf16 are run as they are.
  std::optional<Precision> precision = std::nullopt;
};

/// A compiled graph. Shapes are fixed; a new shape is a new program. What depends on parameters alone is worked out again only when they
/// have changed, unless the graph updates parameters itself.
/// Threads  one run at a time; different programs may run at the same time if they share no parameter store.
class Program {
 public:
  /// Errors  an op no allowed device can do (naming it, the reason, and where it could run), resources.
  Program(const Context& context, const Graph& graph, const ProgramOptions& options = {});
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  /// Runs with inputs in the order in which the graph declared them; returns the outputs in theirs. Inputs may live on the host or on any
  /// device; dense ones in reach of the device are used in place. The outputs are the program's own memory, taken at the first such run:
  /// valid until the next run. Nothing is allocated after the second run with inputs of the same kind; on a device that records (key
  /// `capture`), after the third at the same addresses. Returns when the results may be read.
  const std::vector<Tensor>& run(std::span<const Tensor> inputs);
  /// The same with inputs written out.
  const std::vector<Tensor>& run(std::initializer_list<Tensor> inputs) { return run(std::span(inputs.begin(), inputs.size())); }
  /// The same with results written to tensors of the caller's: dense, of the right dtype and shape, on the device that makes them.
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs);

  /// What runs where.
  const PlacementReport& placement() const;
  /// The graph as it was compiled, after all passes, nodes that run once included; of a frozen program without the elements of its
  /// constants. to_dot and to_json show it, with device_by_node() of the placement.
  const Graph& graph() const;
  /// The store that its parameters are in.
  const std::shared_ptr<ParameterStore>& parameters() const;
  /// How many inputs run() wants.
  std::size_t input_count() const;
  /// How many outputs run() returns.
  std::size_t output_count() const;
  /// A new tensor fit to receive output i.
  Tensor make_output(std::size_t i) const;
  /// One kernel of the last run, where backends tell.
  struct KernelTime {
    std::string node, device, algorithm;
    std::uint64_t duration_ns = 0;
    std::string op = {};                  ///< of `node`
    std::vector<std::string> nodes = {};  ///< all that the kernel computes, `node` among them; empty for a copy on behalf of `node`
    std::uint64_t flops = 0;              ///< a multiplication and its addition are two, an elementary function is one
    std::uint64_t size_bytes = 0;         ///< operands read and results written once each
    std::uint64_t begin_ns = 0;           ///< since its plan began
  };
  /// Measures the runs that follow, or no longer.
  void enable_profile(bool enabled);
  /// Of the last run; empty where nothing was measured.
  std::vector<KernelTime> profile() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
