// SPDX-License-Identifier: Apache-2.0
// device.h - an open device of the backend under test, and graphs that run on it in guarded memory.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/backend.h>

#include "array.h"
#include "guarded_pages.h"
#include "host.h"
#include "loader/complete.h"
#include "loader/error_text.h"
#include "loader/loader.h"
#include "process.h"

namespace tenon::conformance {

using loader::ErrorText;

/// "INVALID_ARGUMENT", ...
std::string status_name(tenon_status status);

/// The request itself is wrong, for example an option or the oracle: it says nothing about the backend's quality.
struct WrongUse : std::runtime_error {
  using runtime_error::runtime_error;
};

/// A backend and how to load it.
struct Source {
  std::filesystem::path file;  ///< empty if registered in the process
  std::string name;
  tenon_backend_query_fn query = nullptr;
  std::map<std::string, std::string> options = {};  ///< those that differ from their defaults
};

class Device;
/// Requests a second backend of a library that is already loaded, with host services of its own.
struct SecondInstance {
  const Device& loaded;
  Parallelism parallelism = {};
};

/// A loaded backend and its device 0. Errors: tenon::Error with the loader's record; WrongUse for a backend without a device, a wrong
/// option.
class Device {
 public:
  explicit Device(const Source& source);
  /// Calls only `create`, without the loader's checks. The other instance may be destroyed first.
  explicit Device(SecondInstance other);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Source& source() const { return source_; }
  const loader::Backend& backend() const { return *backend_; }
  const tenon_backend_info& info() const { return backend_->info(); }
  const tenon_device_info& device_info() const { return backend_->devices()[0]; }
  const tenon_backend_table& table() const { return own_ != nullptr ? own_table_.table : backend_->table(); }
  Host& host() const { return *host_; }
  /// The process state before this backend was created and, for the first instance, before its library was loaded.
  const ProcessState& before_loading() const { return before_; }
  /// Device 0 of another backend of this library, whose host has so many threads and runs the ranges of parallel_for in changing orders.
  /// Made at the first call; ends with this one.
  const Device& on_threads(std::uint32_t threads) const;
  tenon_device* handle() const { return device_; }
  tenon_stream* stream() const { return stream_; }
  bool is_oracle() const { return (info().flags & TENON_BACKEND_ORACLE) != 0; }
  bool computes_with(tenon_dtype dtype) const { return device_info().dtypes == 0 || (device_info().dtypes & TENON_DTYPE_BIT(dtype)) != 0; }
  /// With every dtype of a Net.
  bool computes_with(const class Net& net) const;
  /// The dtypes that the static capability table promises for an op version; 0: none.
  std::uint64_t capability(tenon_op op, std::uint32_t version) const;

  tenon_status upload(std::uint64_t address, const void* bytes, std::uint64_t size, tenon_error* error) const;
  tenon_status download(void* bytes, std::uint64_t address, std::uint64_t size, tenon_error* error) const;
  tenon_status synchronize(tenon_error* error) const { return table().stream_synchronize(stream_, error); }

 private:
  void open();

  const Source source_;
  const ProcessState before_;
  std::shared_ptr<Host> first_host_;  ///< the host services of backend_
  std::shared_ptr<loader::Backend> backend_;
  std::shared_ptr<Host> host_;
  tenon_backend* own_ = nullptr;  ///< for a second instance, whose backend_ belongs to the first
  loader::Table own_table_;
  tenon_device* device_ = nullptr;
  tenon_stream* stream_ = nullptr;
  mutable std::map<std::uint32_t, std::unique_ptr<Device>> on_threads_;
};

/// True for a no after which the core makes dense copies of the operands and asks again.
inline bool is_about_strides(std::uint32_t reason) {
  return reason == TENON_REASON_STRIDES || reason == TENON_REASON_ALIGNMENT;
}

/// How an input lies in memory. Empty strides: dense.
struct Layout {
  Dims strides;
  std::int64_t offset = 0;  ///< of the first byte used, in multiples of the alignment that operands need; up to 15
};

/// A graph under construction, with its operands.
class Net {
 public:
  struct Value {
    std::uint32_t kind;
    tenon_dtype dtype;
    Dims shape;
    Array array;  ///< inputs, parameters, constants
    Layout layout;
    tenon_packed* packed = nullptr;  ///< of parameters and constants
  };
  struct Node {
    tenon_op op;
    std::uint32_t version;
    std::vector<std::uint64_t> attributes;
    std::vector<std::uint32_t> inputs, outputs;  ///< TENON_NO_INDEX: absent
    std::string name;
  };

  std::uint32_t input(Array array, Layout layout = {}, std::uint32_t kind = TENON_VALUE_INPUT);
  std::uint32_t output(tenon_dtype dtype, Dims shape);
  std::uint32_t internal(tenon_dtype dtype, Dims shape);
  /// `attributes` begins with its struct_size.
  void node(tenon_op op, std::uint32_t version, const void* attributes, std::vector<std::uint32_t> inputs,
            std::vector<std::uint32_t> outputs);
  /// The output is written over the input.
  void donate(std::uint32_t input, std::uint32_t output) { donations.push_back({input, output}); }

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<tenon_donation> donations;
};

/// A Net as a tenon_graph of the plugin ABI. Points into itself and the Net.
class AbiGraph {
 public:
  explicit AbiGraph(const Net& net);
  AbiGraph(const AbiGraph&) = delete;
  AbiGraph& operator=(const AbiGraph&) = delete;
  tenon_graph graph{};
  std::vector<tenon_value> values;
  std::vector<tenon_node> nodes;
  std::vector<std::uint32_t> bound;  ///< per binding: the index of its value
  /// The id of a node, which no other graph of the process has.
  std::uint64_t id_of(std::uint32_t node) const { return nodes[node].id; }

 private:
  std::list<std::vector<std::uint32_t>> operands_;
  std::vector<tenon_donation> donations_;
};

/// What one execution did.
struct Outcome {
  tenon_status status = TENON_OK;
  std::string text;            ///< the backend's message for a failure
  std::uint64_t node_id = 0;   ///< the node that the backend reports as failed
  std::string damage;          ///< bytes outside the outputs that changed; empty: none
  std::vector<Array> outputs;  ///< in the order in which the Net made them

  bool ok() const { return status == TENON_OK; }
};

/// The plan options that a case requests.
struct PlanOptions {
  bool deterministic = false;
  std::uint32_t fusion = TENON_FUSION_FULL;
};

/// What lies next to operands, results and workspace.
enum class Edge {
  bytes,        ///< on both sides bytes that must not change, in memory of the device
  page_behind,  ///< behind their last byte a page that can neither be read nor written; only where host memory is device memory
  page_before,  ///< such a page before their first byte
};

/// A plan of a Net. The constructor asks `supports` first and checks that plan_create agrees.
class Plan {
 public:
  /// `net` outlives the plan.
  /// Throws NotRun for a dtype that the device does not compute with.
  Plan(const Device& device, const Net& net, PlanOptions options = {});
  Plan(const Device& device, Net&& net, PlanOptions options = {}) = delete;
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Whether `supports` said no; reason() and why() are those of the first such node.
  bool refused() const { return refused_; }
  std::uint32_t reason() const { return reason_; }
  /// The message if `supports` or plan_create failed or disagreed. Empty: the plan exists or was refused.
  const std::string& failure() const { return failure_; }
  bool ready() const { return plan_ != nullptr; }
  /// Why there is no plan.
  std::string why() const { return refused_ ? refusal_ : failure_; }
  const tenon_plan_info& info() const { return info_; }
  tenon_plan* handle() const { return plan_; }
  std::uint64_t id_of(std::uint32_t node) const { return abi_graph_.id_of(node); }

  /// Guarded memory for one execution at a time.
  class Bindings {
   public:
    Bindings(const Plan& plan, unsigned char poison, Edge edge = Edge::bytes);
    ~Bindings();
    Bindings(const Bindings&) = delete;
    Bindings& operator=(const Bindings&) = delete;
    /// Sets the bytes of an input or parameter; same dtype and shape.
    void set(std::uint32_t value, const Array& array);
    /// Poisons outputs and workspace, executes, waits, collects. `stream` NULL: the device's.
    Outcome execute(std::uint64_t epoch = 1, tenon_stream* stream = nullptr);
    /// Only the call to plan_execute: nothing is poisoned, checked or collected.
    tenon_status execute_bare(std::uint64_t epoch, tenon_error* error);
    const tenon_run* run = nullptr;  ///< of the executions
    std::uint64_t execution_id = 0;  ///< of the executions; 0: they are not profiled

   private:
    struct Buffer {
      tenon_memory* memory = nullptr;
      std::shared_ptr<GuardedPages> pages;     ///< instead of `memory`
      std::uint64_t address = 0;               ///< start address of the memory
      std::uint64_t begin = 0;                 ///< bytes from the memory's start to the operand's lowest byte
      std::uint64_t origin = 0;                ///< bytes to element (0, ..., 0)
      std::uint64_t extent = 0;                ///< bytes the operand spans
      std::vector<unsigned char> content;      ///< the whole memory before an execution
      std::uint32_t donated = TENON_NO_INDEX;  ///< the value whose memory this one shares
    };
    tenon_bindings abi(std::uint64_t epoch) const;
    /// Memory whose `extent` begins `offset` alignments behind a much larger multiple.
    void allocate(Buffer& buffer, std::uint64_t alignment, std::uint64_t offset);
    void fill(std::uint32_t value);
    tenon_status send(std::string& out_text, tenon_stream* stream);
    const Plan& plan_;
    const unsigned char poison_;
    const Edge edge_;
    std::vector<Buffer> buffers_;  ///< per value
    std::vector<std::uint64_t> addresses_;
    Buffer workspace_;
  };

  /// One execution with fresh memory.
  Outcome run(unsigned char poison = 0xFF, tenon_stream* stream = nullptr) const;

 private:
  const Device& device_;
  const Net& net_;
  AbiGraph abi_graph_;
  tenon_plan* plan_ = nullptr;
  tenon_plan_info info_{};
  bool refused_ = false;
  std::uint32_t reason_ = 0;
  std::string refusal_, failure_;
};

}  // namespace tenon::conformance
