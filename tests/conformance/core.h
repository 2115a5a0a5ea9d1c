// SPDX-License-Identifier: Apache-2.0
// core.h - helpers of the cases of profile core: small calls, small graphs, a second instance of the backend. One file of cases per
// subject.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "case.h"
#include "loader/complete.h"
#include "memory.h"

namespace tenon::conformance {

/// A case in the list of a subject.
struct CoreCase {
  const char* name;  ///< "memory/alignment"
  void (*check)(CaseContext&);
  Ending ending = Ending::shut_down;
};
/// All cases of profile core except recordings are mandatory: optional ones report "not run" with a reason.
std::vector<Case> core_cases(std::initializer_list<CoreCase> list);

std::vector<Case> core_lifecycle_cases();
std::vector<Case> core_library_cases();
std::vector<Case> core_process_cases();
std::vector<Case> core_memory_cases();
std::vector<Case> core_exhaustion_cases();
std::vector<Case> core_copy_cases();
std::vector<Case> core_stream_cases();
std::vector<Case> core_plan_cases();
std::vector<Case> core_run_cases();
std::vector<Case> core_malformed_cases();
std::vector<Case> core_answer_cases();
std::vector<Case> core_graph_cases();
std::vector<Case> core_random_graph_cases();
std::vector<Case> core_block_cases();
std::vector<Case> core_pack_cases();
std::vector<Case> core_collective_cases();
std::vector<Case> core_vendor_op_cases();
std::vector<Case> core_extension_cases();

[[noreturn]] void fail(const std::string& text);
/// An optional block of the backend's table, whose slots are all set: they are of no use without each other. Throws NotRun if it is not
/// offered.
template <class Block>
const Block& block_of(const Block* block, const char* name) {
  if (block == nullptr) throw NotRun(fmt::format("not offered: tenon_backend_table.{} is NULL", name));
  const auto* bytes = reinterpret_cast<const char*>(block);
  for (std::size_t offset = 8; offset < sizeof(Block); offset += sizeof(void*)) {
    void* slot = nullptr;
    std::memcpy(&slot, bytes + offset, sizeof slot);
    if (slot == nullptr)
      fail(fmt::format("slot {} of the {} block is empty: a block is offered whole or not at all (NULL in the table)",
                       (offset - 8) / sizeof(void*), name));
  }
  return *block;
}
/// Fails unless `status` is one of `allowed` and `error` has a text.
void expect_refusal(tenon_status status, const ErrorText& error, std::initializer_list<tenon_status> allowed, const std::string& what);

/// Runs body(0), ..., body(count - 1) on threads of their own; the first failure becomes the caller's.
void on_threads(int count, const std::function<void(int)>& body);

// ---------------------------------------------------------------- bytes

std::vector<unsigned char> pattern(std::size_t size, std::uint64_t seed);
void upload(const CaseContext& context, std::uint64_t address, const std::vector<unsigned char>& bytes);
std::vector<unsigned char> download(const CaseContext& context, std::uint64_t address, std::size_t size);
void expect_bytes(const std::vector<unsigned char>& expected, const std::vector<unsigned char>& got, const char* what);
std::uint64_t address_of(const void* host);
tenon_copy copy_of(std::uint32_t direction, std::uint64_t to, std::uint64_t from, std::uint64_t size);
tenon_memory_stats stats_of(const CaseContext& context);

/// A struct as a later header has it: longer than the backend knows it.
template <class Struct>
struct Longer {
  explicit Longer(const Struct& known) : head(known) {
    head.struct_size = sizeof *this;
    std::fill(std::begin(later), std::end(later), static_cast<unsigned char>(0xFF));
  }
  Struct head;
  unsigned char later[32];
};

// ---------------------------------------------------------------- objects

/// A second backend of the same library, only created.
class Another {
 public:
  explicit Another(const CaseContext& context);
  ~Another();
  Another(const Another&) = delete;
  Another& operator=(const Another&) = delete;
  const tenon_backend_table& table() const { return table_.table; }
  Host& host() { return host_; }
  /// Destroys the backend and checks that no host memory is left.
  void end();
  tenon_backend* backend = nullptr;

 private:
  Host host_;
  loader::Table table_;
};

class Stream {
 public:
  explicit Stream(const CaseContext& context);
  Stream(const CaseContext& context, tenon_stream* own) : handle(own), table_(context.device.table()) {}
  ~Stream() { table_.stream_destroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator tenon_stream*() const { return handle; }
  tenon_stream* handle = nullptr;

 private:
  const tenon_backend_table& table_;
};

class Event {
 public:
  explicit Event(const CaseContext& context);
  Event(const CaseContext& context, tenon_event* own) : handle(own), table_(context.device.table()) {}
  ~Event() { table_.event_destroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator tenon_event*() const { return handle; }
  tenon_event* handle = nullptr;

 private:
  const tenon_backend_table& table_;
};

// ---------------------------------------------------------------- graphs

inline constexpr tenon_attributes_none no_attributes{sizeof(tenon_attributes_none), 0};
tenon_plan_options default_options();

/// Throws NotRun unless the backend supports all of these ops in `dtype`: profile core requires no particular op.
void require_ops(const CaseContext& context, std::initializer_list<tenon_op> ops, tenon_dtype dtype = TENON_DTYPE_F32);
/// Throws NotRun if plans have only one node.
void require_graphs(const CaseContext& context);
/// Throws if the plan does not exist.
void expect_ready(const Plan& plan);

/// y = relu(x) on f32, x = -3, -2, ...: the simplest computation.
Net relu_net(std::int64_t n = 16);
void expect_relu(const std::vector<Array>& outputs);
/// Throws NotRun unless the backend supports relu_net().
void require_relu(const CaseContext& context);
/// Checks that the device still works: it stores bytes and, if it has Relu, computes.
void expect_sane(const CaseContext& context);

}  // namespace tenon::conformance
