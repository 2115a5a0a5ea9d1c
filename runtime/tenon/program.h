// SPDX-License-Identifier: Apache-2.0
// tenon/program.h - a compiled graph: placed on devices and partitioned into plans, with its own
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/communicator.h>
#include <tenon/context.h>
#include <tenon/graph.h>
#include <tenon/run_options.h>

namespace tenon {

/// Values that persist between runs, by name: weights, statistics, optimizer state. Programs
/// created with the same store share them.
/// Threads  one thread at a time, including runs of the programs that use it.
class TENON_API ParameterStore {
 public:
  /// Creates dense device memory for the parameter, or returns the existing one if dtype and shape
  /// match. It has no value yet: a program that reads it fails and names it.
  /// Errors  the existing one has another dtype or shape.
  Tensor& create(const std::string& name, const Device& device, DType dtype, const Shape& shape);
  /// A dense tensor, and with it its memory, becomes the parameter. Errors: one that exists already.
  void adopt(const std::string& name, const Tensor& value);
  /// Copies the elements into the parameter's own memory. Errors: unknown name, other dtype or shape.
  void set(const std::string& name, const Tensor& value);
  /// Sets every element. Errors: unknown name; those of Tensor::fill.
  void fill(const std::string& name, double value);
  /// A view of the parameter's memory. Errors: unknown name.
  const Tensor& get(const std::string& name) const;
  /// True if there is a parameter with that name.
  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// All parameters by name.
  const std::map<std::string, Tensor>& all() const { return tensors_; }
  /// Changes whenever a value may have changed; plans that pack parameters check it.
  std::uint64_t epoch() const { return epoch_; }
  /// The epoch in which the value of this parameter may have changed last. Errors: unknown name.
  std::uint64_t epoch(const std::string& name) const;
  /// Call it after writing to parameters by other means than set(): all of them have values then.
  void touch() { all_changed_ = ++epoch_, unset_.clear(); }
  /// The same for one parameter.
  void touch(const std::string& name) { changed_[name] = ++epoch_, unset_.erase(name); }
  /// Frees a parameter that no program uses any more. Errors: unknown name.
  void erase(const std::string& name);
  /// Parameters that have been created and never written.
  const std::set<std::string>& unset() const { return unset_; }

 private:
  std::map<std::string, Tensor> tensors_;
  std::set<std::string> unset_;
  std::map<std::string, std::uint64_t> changed_;  ///< epochs of single changes
  std::uint64_t epoch_ = 1, all_changed_ = 1;
};

/// Placement of one node.
struct Placement {
  std::string node, op;
  /// canonical name; the user's spelling, if different, follows in parentheses
  std::string requested;
  std::string device;  ///< the device it runs on; empty if none can, and then there is no program
  std::string reason;  ///< why it does not run on the requested device; empty if it does
  /// The backend's name of the kernel that computes it, and of the conversions that the backend
  /// inserts for it: "Conv+relu (inserted: Transpose before, Transpose after)". Without the former
  /// if it has no kernel of its own: another node's kernel includes it, it is only a view, or, if it
  /// is a conversion itself, the backend has merged it with one that it inserts. Empty without both, or
  /// if the backend does not report them.
  std::string algorithm = {};
  std::uint64_t output_size_bytes = 0;   ///< size of its results
  bool once = false;                     ///< runs only when parameters have changed
  DType dtype = DType::none;             ///< the dtype that selects its kernel
  std::vector<std::string> inputs = {};  ///< the nodes whose results it reads
};

/// A copy between devices in each run.
struct PlannedCopy {
  std::string value, from, to;
  std::uint64_t size_bytes = 0;
};

/// A copy that makes the view bound to an input dense in each run, because the device does not take
/// it as it is.
struct DenseCopy {
  std::string value, device;
  std::string reason;  ///< the backend's
  std::uint64_t size_bytes = 0;
};

/// Memory of a program on one device. Each byte is allocated once and kept as long as the program
/// lives, so that the sum is the peak of its runs.
struct MemoryPlan {
  std::string device;
  /// of the parameter store, which other programs may share: bytes of each parameter that is read
  /// or updated
  std::map<std::string, std::uint64_t> parameters = {};
  /// parameters as the backend packs them, where it lets programs of the same store share that:
  /// bytes of each one
  std::map<std::string, std::uint64_t> packed_parameters = {};
  /// copies of the inputs, on a device that cannot use host memory in place; allocated by the first
  /// run with inputs that live elsewhere
  std::uint64_t inputs_size_bytes = 0;
  /// the memory of the results; allocated by the first run that is not given the caller's
  std::uint64_t outputs_size_bytes = 0;
  /// values between kernels (activations, gradients) and workspaces of kernels: the most that live
  /// at one time
  std::uint64_t workspace_size_bytes = 0;
  /// constants, other packed operands, and values that depend on parameters alone
  std::uint64_t packed_size_bytes = 0;

  /// The sum of `parameters`.
  std::uint64_t parameters_size_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& parameter : parameters) sum += parameter.second;
    return sum;
  }
  /// The sum of `packed_parameters`.
  std::uint64_t packed_parameters_size_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& parameter : packed_parameters) sum += parameter.second;
    return sum;
  }
  /// What belongs to the program alone: everything but the parameters, packed or not.
  std::uint64_t own_size_bytes() const {
    return inputs_size_bytes + outputs_size_bytes + workspace_size_bytes + packed_size_bytes;
  }
  /// The peak: parameters and the program's own memory.
  std::uint64_t peak_size_bytes() const {
    return parameters_size_bytes() + packed_parameters_size_bytes() + own_size_bytes();
  }
};

class Event;

/// Placement and cost of a program.
struct TENON_API PlacementReport {
  std::vector<Placement> nodes;
  std::uint32_t partitions = 0;
  std::uint32_t kernels = 0;          ///< per run, after fusion
  std::uint32_t copies_inserted = 0;  ///< between devices, per run
  /// between devices, without inputs that live on another device
  std::uint64_t bytes_copied_per_run = 0;
  std::uint64_t workspace_size_bytes = 0;  ///< as in MemoryPlan, of all devices
  /// constants and packed operands, as in MemoryPlan, of all devices
  std::uint64_t packed_size_bytes = 0;
  /// of these, MemoryPlan::packed_parameters, which programs of the same store share
  std::uint64_t shared_packed_size_bytes = 0;
  std::vector<PlannedCopy> copies = {};  ///< the copies that copies_inserted counts
  std::vector<DenseCopy> dense_copies = {};
  std::uint32_t collectives = 0;            ///< sums over the ranks of a communicator, per run
  std::uint64_t bytes_reduced_per_run = 0;  ///< of the values that these sum
  std::uint32_t broadcasts = 0;             ///< from one rank to the others, per run
  std::uint64_t bytes_broadcast_per_run = 0;
  /// The backend whose collectives compute them, known after the first run; empty: the runtime does, in
  /// the memory of the host.
  std::string reduced_by;
  /// Whether runs are recorded and replayed as one launch, or why not; empty on devices that cannot
  /// record.
  std::string replay = {};
  std::uint64_t records = 0, replays = 0;  ///< so far; a recorded run counts as a replay too
  /// Number of nodes that do not run on the requested device.
  std::size_t moved() const;
  /// Number of nodes per compute dtype, largest first; moves and casts count like any other.
  std::vector<std::pair<DType, std::size_t>> nodes_by_dtype() const;
  /// The device of each node, for to_dot and to_json.
  DeviceByNode device_by_node() const;
  /// The report as a table.
  std::string str() const;
  /// "op Relu 'hidden/relu' in device openblas:0 (Relu)", a line for each node, as
  /// log_device_placement writes it.
  std::string mapping() const;
  /// The report as JSON: {"nodes": [{node, op, dtype, requested, device, algorithm, reason,
  /// output_size_bytes, once, inputs}], "copies": [{value, from, to, size_bytes}], "dense_copies":
  /// [{value, device, reason, size_bytes}], "moved", "partitions", "kernels", "copies_inserted",
  /// "bytes_copied_per_run", "workspace_size_bytes", "packed_size_bytes",
  /// "shared_packed_size_bytes", "collectives", "bytes_reduced_per_run", "broadcasts",
  /// "bytes_broadcast_per_run", "reduced_by", "replay", "records", "replays"}; a device that there is not is null.
  std::string json() const;
};

/// Options of a program.
struct ProgramOptions {
  /// for nodes that request none; empty: the context's default
  std::string device = {};
  std::shared_ptr<ParameterStore> parameters = nullptr;  ///< null: a store of its own
  /// eliminate dead code and common subexpressions
  bool optimize = true;
  /// Replace parameters by constants with the current values of `parameters`. The program does not
  /// see later changes, has its own store and keeps only what its kernels read, so that packed
  /// weights exist only in packed form once the given store is destroyed. Not for graphs that
  /// update parameters.
  bool freeze = false;
  /// Parameters that stay as they are from run to run though the graph updates others, such as those
  /// of frozen layers: what is computed from them alone, and what backends make of them, is made again
  /// only when they have changed. In a graph without updates all parameters count as such.
  std::set<std::string> fixed = {};
  /// Arithmetic of this program; none: the context's. With a mixed precision, inputs, outputs and
  /// parameters stay f32 and products are computed in 16 bits (ADR 17); graphs of f64, f16 or bf16
  /// run unchanged.
  std::optional<Precision> precision = std::nullopt;
  /// Update parameters after everything else, so that a run can be cancelled until then
  /// (RunOptions::stop). Otherwise it can be until its first update, such as that of the running
  /// statistics in a forward pass. Costs the memory of, and a copy of, each update whose op computes
  /// something else too: two values per channel of a batch normalization.
  bool updates_last = false;
  /// This rank's end of the group of ops::all_reduce and ops::broadcast; null: a graph with such an op is an
  /// error. Each rank has a program of its own, and all run at the same time.
  std::shared_ptr<Communicator> communicator = nullptr;
  RunOptions run = {};  ///< of the compilation itself
};

/// A compiled graph with fixed shapes; a new shape needs a new program, which CompiledFunction makes
/// and keeps (tenon/compiled_function.h). Values that depend only on parameters are recomputed only
/// when these have changed, unless the graph itself updates parameters (ProgramOptions::fixed).
/// Threads  one run at a time; different programs may run at the same time if they share no
///          parameter store.
class TENON_API Program {
 public:
  /// Errors  an op that no allowed device supports (names it, the reason, and where it could run),
  ///         resources.
  Program(const Context& context, const Graph& graph, const ProgramOptions& options = {});
  /// What memory() of such a program would be, without allocating it: parameters that do not exist
  /// are not created, and a limit of the device's memory does not matter. Backends make the plans,
  /// for only they know their workspaces.
  /// Errors  those of the constructor, except for a lack of memory.
  static std::vector<MemoryPlan> plan_memory(const Context& context, const Graph& graph,
                                             const ProgramOptions& options = {});
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  /// Runs with inputs and returns outputs in the order in which the graph declared them. Inputs may
  /// live on the host or any device; dense inputs that the device can access are used in place. The
  /// outputs are memory of the program, allocated by the first such run and valid until the next
  /// run. Nothing is allocated after the second run with inputs of the same kind; on a device that
  /// records (option `capture`), after the third at the same addresses. Returns when the results
  /// may be read.
  const std::vector<Tensor>& run(std::span<const Tensor> inputs, const RunOptions& options = {});
  /// The same with an initializer list.
  const std::vector<Tensor>& run(std::initializer_list<Tensor> inputs,
                                 const RunOptions& options = {}) {
    return run(std::span(inputs.begin(), inputs.size()), options);
  }
  /// The same with results written to the caller's tensors: dense, of the right dtype and shape, on
  /// the device that computes them.
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs,
           const RunOptions& options = {});
  /// Submits the same run and returns true as soon as the device has all of it in its queue, so that
  /// the next run can be submitted, or other work done, while it computes. False: the run has ended, as
  /// run() would have left it. So it is on devices with inline streams; if the program uses several
  /// devices or collectives; if an input was copied from host memory, which the caller may change
  /// again; and under check_numerics, sync_debug, a profile or a trace.
  ///
  /// Order  Later runs of this program and of others on the device follow it, as does work on
  ///        Stream::of_programs: a copy there sees the results, an event there marks the end of the run.
  /// Owner  The caller keeps inputs and outputs, and writes neither, until wait_for() has returned for
  ///        an event recorded after the run, or until another run has been waited for. The destructor
  ///        of the program waits.
  /// Errors  those of run() that the submission finds; those of the device come from wait_for().
  bool submit(std::span<const Tensor> inputs, std::span<Tensor> outputs,
              const RunOptions& options = {});
  /// Waits for an event on Stream::of_programs of the program's device that was recorded after
  /// submit(): once for each submitted run, in their order. Errors: an event of another device; those
  /// of the work before the event, which name the node as run() does; a device may report those of
  /// later work too.
  void wait_for(const Event& event);

  /// Where each node runs.
  const PlacementReport& placement() const;
  /// The compiled graph after all passes, including nodes that run once; for a frozen program,
  /// without the elements of its constants. For to_dot and to_json, with device_by_node() of the
  /// placement.
  const Graph& graph() const;
  /// Its memory, on each device that it uses.
  const std::vector<MemoryPlan>& memory() const;
  /// The store that holds its parameters.
  const std::shared_ptr<ParameterStore>& parameters() const;
  /// Number of inputs of run().
  std::size_t input_count() const;
  /// Number of outputs of run().
  std::size_t output_count() const;
  /// Whether run() can write output i to this tensor.
  bool accepts_output(std::size_t i, const Tensor& tensor) const;
  /// A new tensor suitable for output i.
  Tensor make_output(std::size_t i) const;
  /// Duration of one kernel of the last run, where the backend reports it.
  struct KernelTime {
    std::string node, device, algorithm;
    std::uint64_t duration_ns = 0;
    std::string op = {};  ///< op of `node`
    /// all nodes that the kernel computes, including `node`; empty for a conversion that the backend
    /// inserts for `node`, which may do the work of a conversion of the graph, too
    std::vector<std::string> nodes = {};
    /// a multiply-add counts as two, an elementary function as one
    std::uint64_t flops = 0;
    std::uint64_t size_bytes = 0;  ///< operands and results, each counted once
    std::uint64_t begin_ns = 0;    ///< since the start of its plan
  };
  /// Enables or disables measuring the following runs, replayed ones too.
  void enable_profile(bool enabled);
  /// Kernel times of the last run; empty if it was not measured.
  std::vector<KernelTime> profile() const;

 private:
  struct TENON_HIDDEN State;
  std::unique_ptr<State> state_;
};

/// What a cache of programs keeps. The least recently used program is dropped first; the one that
/// runs is kept, even if it alone is larger.
struct ProgramLimits {
  std::size_t programs = 24;     ///< at least 1
  std::uint64_t size_bytes = 0;  ///< of MemoryPlan::own_size_bytes on all devices; 0: no limit
};

/// What a cache of programs has and did.
struct ProgramCounts {
  std::size_t programs = 0;      ///< cached now
  std::uint64_t size_bytes = 0;  ///< their MemoryPlan::own_size_bytes, on all devices
  std::uint64_t hits = 0;        ///< calls that found their program
  std::uint64_t misses = 0;      ///< calls that compiled it
  std::uint64_t evictions = 0;   ///< programs that were dropped for others
};

}  // namespace tenon
