// SPDX-License-Identifier: Apache-2.0
// program_state.h - a compiled program: plans, addresses, copies between devices, and storage of its values.
#pragma once

#include <tenon/program.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state_of.h"
#include "exec/context_state.h"
#include "exec/device_group.h"
#include "exec/packed_parameters.h"
#include "exec/program_memory.h"
#include "exec/replay.h"
#include "exec/run_context.h"

namespace tenon {

/// The state that compile() creates once and every run uses. Its members are defined in program_compile.cpp, program_run.cpp and
/// program_profile.cpp.
struct Program::State {
  using DeviceState = exec::DeviceState;
  using DevicePointer = std::shared_ptr<DeviceState>;
  struct Compiler;

  static constexpr const char* owner = "program";  ///< for state_of
  /// Name prefix of the outputs that check_numerics: all adds, one per floating result.
  static constexpr std::string_view watch_prefix = "check/";

  /// Elements at a slot that take part in a collective.
  struct Piece {
    std::uint32_t slot;
    std::uint64_t count;
    std::vector<char> staging = {};  ///< the elements in host memory, if the device is out of its reach
  };
  /// A sum over the ranks of the communicator, of values that lie one after the other on a device, or a broadcast of values.
  struct Collective {
    DevicePointer device;
    DType dtype;
    std::vector<Piece> pieces = {};  ///< of a sum one, with what lies between the values
    std::optional<int> root = {};    ///< of a broadcast
    std::uint64_t id = 0;            ///< of its last piece in this run, as the communicator counts
  };
  /// One plan and its arguments, or a collective.
  struct Part {
    DevicePointer device;
    tenon_plan* plan = nullptr;  ///< null: a collective
    std::uint64_t workspace = 0;
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint32_t> slots;           ///< per address
    std::vector<NodeId> nodes;                  ///< per ABI node
    std::uint64_t packed = 0;                   ///< bytes that the plan allocated itself
    bool updates = false;                       ///< it writes parameters in place
    bool fixed = false;                         ///< its parameters stay as they are though others change
    std::vector<std::string> parameters = {};   ///< of such a plan: those that it reads, without results of the prologue
    std::vector<std::uint32_t> traced_kernels;  ///< ids of its kernels in the trace of that generation
    std::uint64_t trace_generation = 0;
    std::uint32_t collective = TENON_NO_INDEX;  ///< index in `collectives`
    std::uint32_t after = 0;                    ///< how many of `collectives` have to be finished before it
  };
  struct Copy {
    DevicePointer from, to;
    std::uint32_t source, destination;  ///< slots
    std::uint64_t size;
  };
  /// What a replayed run submits at once: copies and plans between two collectives, or waits for them.
  struct Segment {
    std::size_t begin = 0, end = 0;  ///< of `parts`; a collective is its last part; the copies before that collective belong to the segment
    std::uint32_t wait = 0;          ///< how many of `collectives` have to be finished before it
    std::optional<std::size_t> recorded;  ///< the piece of the recording; empty: it has neither copies nor plans
  };
  /// A graph input on a device that reads it.
  struct InputUse {
    std::size_t input;
    DevicePointer device;
    std::uint32_t slot;
    Tensor staging;  ///< allocated when an operand is first copied
  };
  struct Output {
    DevicePointer device;
    std::uint32_t slot;
    DType dtype;
    Shape shape;
  };

  const std::uint64_t program_id;  ///< unique in the process, for the ids of its nodes
  std::shared_ptr<ParameterStore> parameters;
  PlacementReport report;
  Graph graph;                       ///< the nodes that run each time
  Graph complete;                    ///< including the nodes of `prologue`, if there is one
  std::unique_ptr<State> prologue;   ///< runs when parameters have changed; its outputs are parameters of `graph`
  std::uint64_t prologue_epoch = 0;  ///< epoch of the last change of its parameters
  std::uint64_t seen_epoch = 0;      ///< epoch of the store for which that was found
  std::vector<ValueId> inputs;
  std::vector<InputUse> input_uses;
  std::vector<Part> parts;
  std::shared_ptr<Communicator> communicator;
  std::vector<Collective> collectives;              ///< in the order in which they begin
  std::vector<tenon_collective> requests;           ///< of a collective that the devices compute; its memory is used again
  std::shared_ptr<exec::DeviceGroup> device_group;  ///< that computes them; null: the communicator does, in memory of the host
  std::optional<std::uint64_t> group_generation;    ///< of the communicator when that was chosen; empty: in the next run
  std::size_t finished = 0;                         ///< of `collectives`, in this run
  std::vector<std::vector<Copy>> before;            ///< per part
  std::vector<Copy> after;
  std::vector<std::uint64_t> slots;
  std::vector<Output> outputs;
  std::size_t visible = 0;             ///< outputs that the caller requested; check_numerics watches the rest
  std::vector<Tensor> own_outputs;     ///< memory of all outputs; undefined as long as callers pass their own
  std::vector<Tensor> results;         ///< the visible ones, as returned
  std::vector<Tensor> other_outputs;   ///< of run_into; its memory is used again
  exec::ProgramMemory memory;          ///< arenas, constants, temporaries
  exec::PackedList packed_parameters;  ///< that the plans read
  std::vector<DevicePointer> devices;  ///< each once
  std::vector<char> staging;
  CheckNumerics check = CheckNumerics::off;
  bool sync_debug = false;
  bool profile_requested = false;   ///< by the caller; traced runs are measured too
  std::uint64_t measured_runs = 0;  ///< the id of the last measured run
  std::uint64_t execution_id = 0;   ///< of the last run; 0: it was not measured
  bool kernels_named = false;       ///< whether the report has them
  std::size_t submitted = 0;        ///< parts of this run submitted to their devices
  std::shared_ptr<exec::TraceRecorder> trace;
  std::unique_ptr<exec::Replay> replay;  ///< null: every run is executed
  std::vector<Segment> segments;         ///< of a replayed run; the copies in `after` belong to the last one
  exec::ErrorText error;
  std::atomic<bool> running = false;  ///< a thread is in run()
  bool copies_from_host = false;      ///< the device may still read an input of this run from host memory
  std::size_t in_flight = 0;          ///< runs that were not waited for

  explicit State(exec::ProgramMemory::Mode mode);
  ~State() {
    if (in_flight > 0 && devices.front()->in_its_process()) finish_submitted();
    replay.reset();  // recordings point into the plans
    for (Part& part : parts) {
      if (part.plan != nullptr) part.device->table.plan_destroy(part.plan);
      part.device->allocator->unreserve(part.packed);
    }
  }

  static std::unique_ptr<State> compiled(const Context& context, const Graph& graph, const ProgramOptions& options,
                                         exec::ProgramMemory::Mode mode);
  void compile(const Context& context, const ProgramOptions& options);
  void rewrite(const Context& context, const ProgramOptions& options, Precision precision);
  void hoist(const Context& context, const ProgramOptions& options, Precision precision);
  void make_outputs(std::size_t first);
  const Output* made_by_prologue(const std::string& name) const;
  enum class Return { at_the_end, when_submitted };
  /// Runs into the program's own outputs.
  const std::vector<Tensor>& run(std::span<const Tensor> given, const RunOptions& options);
  /// Runs into the caller's. `when_submitted`: true if the run may go on after the return.
  bool run_into(std::span<const Tensor> given, std::span<Tensor> outputs_given, const RunOptions& options, Return returns);
  void bind_inputs(std::span<const Tensor> given);
  /// Why output i cannot be written to this tensor; empty if it can.
  std::string why_not_output(std::size_t i, const Tensor& given) const;
  /// Errors  parameters without a value are read.
  void expect_values() const;
  /// True if the run may go on after the return.
  bool execute(const RunOptions& options, Return returns = Return::at_the_end);
  /// Whether all of this run is in the queue of one device once it is submitted, and needs nothing of the host that may change.
  bool may_go_on_alone() const;
  void run_parts(std::uint64_t epoch, bool traced, exec::RunContext& context);
  bool run_recorded(std::uint64_t epoch, bool traced, exec::RunContext& context);
  void divide_into_segments();
  /// Chooses, with the other ranks, whether the collectives are those of the devices.
  void choose_group();
  void begin(Collective& collective);
  /// Waits for the first `count` collectives.
  void finish_collectives(std::size_t count);
  [[noreturn]] void cancel(const std::string& where);
  void finish_submitted();
  void all_ended();
  void enqueue_segment(const Segment& segment, std::uint64_t epoch, tenon_stream* stream);
  tenon_bindings bind(Part& part, std::uint64_t epoch, const tenon_run* run);
  void run_prologue(const RunOptions& options);
  /// The epoch in which one of these parameters or of those of the prologue changed last.
  std::uint64_t last_change(const std::vector<std::string>& names) const;
  std::string why_not_replayed(Capture capture) const;
  void check_results();

  /// The node of this program that a backend names in an error; null: none.
  const NodeInfo* find_node(std::uint64_t abi_id) const;
  [[noreturn]] void fail(tenon_status status, const DeviceState& device, const Part* part);
  /// Waits for the device. A failure is attributed to `part`, or to any part that ran there.
  void wait_for(const DeviceState& device, const Part* part);
  void wait_for(const Event& event);
  std::vector<tenon_profile_record> read_profile(const Part& part, std::uint64_t execution);
  std::vector<KernelTime> kernels_of(const Part& part, std::span<const tenon_profile_record> records) const;
  void name_kernels();
  /// Returns when the plan ended.
  std::uint64_t record(Part& part, std::uint64_t begin_ns, std::uint64_t duration_ns);
};

}  // namespace tenon
