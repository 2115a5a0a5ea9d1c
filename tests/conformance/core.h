// core.h - what the cases of profile core share: small calls, small graphs, a second instance of the backend. One file of cases per
// subject.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "case.h"
#include "loader/complete.h"
#include "memory.h"

namespace tenon::conformance {

/// A line of a subject's list.
struct CoreCase {
  const char* name;  ///< "memory/alignment"
  void (*check)(Kit&);
  Ending ending = Ending::shut_down;
};
/// Every case of profile core but the recordings is mandatory: what is optional says that it is not run, and why.
std::vector<Case> core_cases(std::initializer_list<CoreCase> list);

std::vector<Case> core_lifecycle_cases();
std::vector<Case> core_library_cases();
std::vector<Case> core_process_cases();
std::vector<Case> core_memory_cases();
std::vector<Case> core_exhaustion_cases();
std::vector<Case> core_copy_cases();
std::vector<Case> core_stream_cases();
std::vector<Case> core_plan_cases();
std::vector<Case> core_malformed_cases();
std::vector<Case> core_graph_cases();
std::vector<Case> core_block_cases();

[[noreturn]] void fail(const std::string& text);
/// One of the statuses that are allowed, and a sentence.
void expect_refusal(tenon_status status, const ErrorText& error, std::initializer_list<tenon_status> allowed, const std::string& what);

/// Runs body(0), ..., body(count - 1) on threads of their own; the first failure becomes the caller's.
void on_threads(int count, const std::function<void(int)>& body);

// ---------------------------------------------------------------- bytes

std::vector<unsigned char> pattern(std::size_t size, std::uint64_t seed);
void upload(const Kit& kit, std::uint64_t address, const std::vector<unsigned char>& bytes);
std::vector<unsigned char> download(const Kit& kit, std::uint64_t address, std::size_t size);
void expect_bytes(const std::vector<unsigned char>& want, const std::vector<unsigned char>& got, const char* what);
std::uint64_t address_of(const void* host);
tenon_copy copy_of(std::uint32_t direction, std::uint64_t to, std::uint64_t from, std::uint64_t size);
tenon_memory_stats stats_of(const Kit& kit);

// ---------------------------------------------------------------- objects

/// A second backend of the same library, bare: created, and nothing else.
class Another {
 public:
  explicit Another(const Kit& kit);
  ~Another();
  Another(const Another&) = delete;
  Another& operator=(const Another&) = delete;
  const tenon_backend_table& table() const { return table_.table; }
  Host& host() { return host_; }
  /// destroy, and nothing of the host's is left.
  void end();
  tenon_backend* backend = nullptr;

 private:
  Host host_;
  loader::Table table_;
};

class Stream {
 public:
  explicit Stream(const Kit& kit);
  Stream(const Kit& kit, tenon_stream* own) : handle(own), table_(kit.device.table()) {}
  ~Stream() { table_.stream_destroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  tenon_stream* handle = nullptr;

 private:
  const tenon_backend_table& table_;
};

class Event {
 public:
  explicit Event(const Kit& kit);
  ~Event() { table_.event_destroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  tenon_event* handle = nullptr;

 private:
  const tenon_backend_table& table_;
};

// ---------------------------------------------------------------- graphs

inline constexpr tenon_attributes_none no_attributes{sizeof(tenon_attributes_none), 0};
tenon_plan_options default_options();

/// Throws NotRun unless the backend says that it serves all of these in `dtype`: profile core asks for no op in particular.
void require_ops(const Kit& kit, std::initializer_list<tenon_op> ops, tenon_dtype dtype = TENON_DTYPE_F32);
/// Throws NotRun where plans are of one node only.
void require_graphs(const Kit& kit);
/// Throws what it is if the plan is not there.
void expect_ready(const Plan& plan);

/// y = relu(x) on f32, x = -3, -2, ...: the smallest thing a backend computes.
Net relu_net(std::int64_t n = 16);
void expect_relu(const std::vector<Array>& outputs);
/// What relu_net wants, or why there is no such plan.
void require_relu(const Kit& kit);
/// The device still works: it computes where it has Relu, else it keeps bytes.
void expect_sane(const Kit& kit);

}  // namespace tenon::conformance
