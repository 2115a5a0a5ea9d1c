// plan.h - an immutable list of kernel calls over one workspace, and running it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tenon/backend.h>
#include <tenon/sdk/device.h>
#include <tenon/sdk/kernel.h>

#include "graph_model.h"

namespace tenon::sdk {

/// Where a value's first byte is found at execution.
struct Location {
  enum class Place : std::uint8_t { nowhere, binding, workspace, plan };
  Place place = Place::nowhere;
  std::uint64_t offset = 0;  ///< binding: index of the address; workspace: bytes; plan: absolute address
};

/// One kernel call of the program.
struct Step {
  Node node;
  std::uint64_t scratch_offset = 0, scratch_size = 0;
  std::vector<std::uint64_t> packed;  ///< per input: address of the packed copy, 0: none; empty: no input is packed
};

/// A parameter's packed copy, made again when the epoch changes.
struct PackedParameter {
  std::uint32_t step, input;
};

/// What the builder decided.
struct Layout {
  GraphModel graph;  ///< values only; the nodes have moved to the steps
  std::vector<Step> steps;
  std::vector<Location> locations;  ///< per value, of its root
  std::vector<PackedParameter> packed_parameters;
  std::uint64_t workspace_size = 0;
  std::uint64_t packed_size = 0;
};

class Plan {
 public:
  Plan(Device& device, const tenon_graph& graph, const tenon_plan_options& options, const KernelRow* rows);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  tenon_plan_info info() const;
  /// out_node: the index of the node at work, for the message when this throws.
  void execute(const tenon_bindings& bindings, std::uint64_t workspace, tenon_stream* stream, std::uint32_t* out_node);
  void enable_profile(bool enabled) { profiling_ = enabled; }
  std::uint32_t read_profile(tenon_profile_record* out_records, std::uint32_t capacity) const;

 private:
  struct Frame;
  std::unique_ptr<Frame> make_frame() const;
  std::unique_ptr<Frame> take_frame();
  void give_back(std::unique_ptr<Frame> frame);
  void repack(const Frame& frame, std::uint64_t epoch);
  void run_profiled(Frame& frame, std::uint32_t* out_node);

  struct Block {
    std::uint64_t address, size;
  };

  Device& device_;
  Host host_;
  tenon_plan_options options_;
  Layout layout_;
  std::vector<Block> blocks_;  ///< constants and packed operands
  std::atomic<Frame*> idle_{nullptr};
  std::mutex frames_mutex_;
  std::vector<std::unique_ptr<Frame>> spare_frames_;
  std::mutex pack_mutex_;
  std::atomic<std::uint64_t> packed_epoch_{~std::uint64_t{0}};
  std::atomic<bool> profiling_{false};
  mutable std::mutex profile_mutex_;
  std::vector<tenon_profile_record> profile_;
};

/// The builder's passes (plan_builder.cpp), in the order in which they run.
void resolve_views(GraphModel& graph);                               ///< shape ops whose result nobody needs as bytes become views
void order_for_donations(GraphModel& graph, const KernelRow* rows);  ///< readers before the writer; snapshots where that cannot be
void fuse_epilogues(GraphModel& graph);                              ///< product, bias, activation: one call
void make_dense(GraphModel& graph, const KernelRow* rows);           ///< copies for kernels that want dense operands
void place_values(Layout& layout);                                   ///< liveness, in-place reuse, offsets in the workspace

}  // namespace tenon::sdk
