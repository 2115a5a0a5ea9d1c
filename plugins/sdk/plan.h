// SPDX-License-Identifier: Apache-2.0
// plan.h - an immutable list of kernel calls over one workspace, and running it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/backend.h>
#include <tenon/sdk/device.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/kernel_markers.h>
#include <tenon/sdk/rounding.h>
#include <tenon/sdk/shared_mutex.h>

#include "device_blocks.h"
#include "graph_model.h"
#include "handles.h"
#include "packed.h"
#include "profile.h"

namespace tenon::sdk {

/// The location of a value's first byte at execution.
struct Location {
  enum class Place : std::uint8_t { nowhere, binding, workspace, plan };
  Place place = Place::nowhere;
  std::uint64_t offset = 0;  ///< binding: index of the address; workspace: bytes; plan: absolute address
};

/// One kernel call of the program.
struct Step {
  Node node;
  std::uint64_t scratch_offset = 0, scratch_size = 0;
};

/// The result of the plan builder.
struct Layout {
  GraphModel graph;  ///< values only; the nodes have moved to the steps
  std::vector<Step> steps;
  std::vector<Location> locations;                   ///< per value, of its root
  std::map<std::uint32_t, std::uint64_t> converted;  ///< addresses of those of graph.conversions that kernels read as they are
  std::uint64_t workspace_size = 0;
  std::uint64_t alignment = block_alignment;  ///< of workspaces, and of everything in them
};

class Plan {
 public:
  Plan(Device& device, MemoryStats& memory_stats, const tenon_graph& graph, const tenon_plan_options& options, const KernelRow* rows);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  tenon_plan_info info() const;
  /// out_node_id: the running node, for the message if this throws.
  void execute(const tenon_bindings& bindings, std::uint64_t workspace, tenon_stream* stream, std::uint64_t* out_node_id);
  /// Writes at most `capacity` records of that execution, or of one to come for id 0, and returns how many there are.
  std::uint32_t read_profile(std::uint64_t execution_id, tenon_profile_record* out_records, std::uint32_t record_stride,
                             std::uint32_t capacity);

 private:
  struct Frame;
  class PackLocks;
  /// A parameter that kernels read packed or converted.
  struct PackedParameter {
    std::shared_ptr<Packed> packed;
    std::vector<Packing::Read> copies;  ///< their nodes are the plan's steps
    std::vector<Packing::Converted> converted;
  };

  void take_packed(MemoryStats& memory_stats);
  std::shared_ptr<Packed> packed_for(std::uint32_t value, const Packing& packing, MemoryStats& memory_stats,
                                     const std::shared_ptr<SharedMutex>& own_lock);
  void make_steps(const Host& creator);
  void place_constants();
  std::unique_ptr<Frame> make_frame() const;
  std::unique_ptr<Frame> take_frame();
  void return_frame(std::unique_ptr<Frame> frame) noexcept;
  std::size_t count_cancellable() const;
  void bind(Frame& frame, const tenon_bindings& bindings, std::uint64_t workspace, tenon_stream* stream) const;
  /// Throws UNSUPPORTED for a kernel that is not Traits::capture_safe, and if a profiler marks the kernels.
  void check_recordable(std::uint64_t* out_node_id) const;
  void run_packed(const Frame& frame, std::uint64_t epoch, tenon_stream& stream, std::uint64_t* out_node_id);
  bool is_packed(std::uint64_t epoch) const;
  void pack(const Frame& frame, std::uint64_t epoch, tenon_stream& stream, std::uint64_t* out_node_id);
  void run(const Frame& frame, std::uint64_t* out_node_id);
  template <class RunStep>
  void for_each_step(const Frame& frame, std::uint64_t* out_node_id, const RunStep& run_step) const;
  void run_profiled(const Frame& frame, std::uint64_t* out_node_id);
  /// Names the steps for the profiler that marks kernels, if there is one.
  void name_steps(const tenon_graph& graph);
  void run_marked(const Frame& frame, std::uint64_t* out_node_id) const;

  Device& device_;
  Layout layout_;
  DeviceBlocks blocks_;  ///< constants that kernels read as they are
  std::vector<std::shared_ptr<Packed>> packed_constants_;
  std::vector<PackedParameter> packed_parameters_;  ///< packed again when the epoch changes
  std::vector<SharedMutex*> pack_locks_;            ///< theirs, each once, in the order in which all plans take them
  std::uint64_t own_packed_size_ = 0;               ///< bytes of those that were not handed over
  std::size_t cancellable_ = 0;                     ///< an execution may be cancelled before this many of the first steps

  // Frames that no execution uses. One is available without a lock; further ones of overlapping executions are in a list.
  std::atomic<Frame*> idle_{nullptr};
  std::mutex frames_mutex_;
  std::unique_ptr<Frame> spare_;

  // The epoch of the last execution, if the plan has packed parameters: a recording with another one would be taken as valid for all.
  std::atomic<bool> executed_{false};
  std::atomic<std::uint64_t> executed_epoch_{0};

  Profile profile_;
  const KernelMarkers* markers_ = nullptr;
  std::vector<std::string> marker_names_;  ///< per step; empty without markers
};

/// A snapshot of a donated input is needed, but the backend has no kernel that copies it.
class MissingCopy : public Error {
 public:
  MissingCopy(const Node& writer, std::string text) : Error(TENON_UNSUPPORTED, std::move(text), writer.id), node(writer.index) {}
  const std::uint32_t node;  ///< the writer's index in the core's graph
};

/// Answers for every node, by itself and together with the other supported nodes. Fills in their kernels.
std::vector<tenon_answer> answer_all(GraphModel& graph, const KernelRow* rows);
/// True if `dtype` is computed by the kernel of f32 between conversions, because the row has no kernel for it.
bool widens(const KernelRow* rows, const KernelRow& row, tenon_dtype dtype);
/// The core's graph, for kernels of this device. Throws UNSUPPORTED for unknown options and bits of `needs`. `slot`: the function that was
/// called.
GraphModel read_graph(const char* slot, Device& device, const tenon_graph& abi_graph, const tenon_plan_options& options,
                      const KernelRow* rows);
/// Finds the kernel of every node, and runs all passes. Throws UNSUPPORTED for what `supports` refuses.
void arrange_supported(GraphModel& graph, const KernelRow* rows);
/// Runs all passes, up to the order of kernel calls. Every node has its kernel already.
void arrange(GraphModel& graph, const KernelRow* rows);
/// Liveness, in-place reuse, offsets in the workspace.
void place_values(Layout& layout);

}  // namespace tenon::sdk
