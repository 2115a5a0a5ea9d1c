// SPDX-License-Identifier: Apache-2.0
// The transport `mpi`: processes that mpirun starts, connected by MPI. One thread makes all calls of MPI, in the order in which collectives
// are begun, while the caller computes.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <tenon/transport.h>

#include "signs_of_life.h"

namespace {

/// Writes the failure and returns its status.
tenon_status fail(tenon_error* error, tenon_status status, const std::string& text) {
  if (error == nullptr) return status;
  error->status = status;
  if (error->text != nullptr && error->text_capacity > 0) {
    const std::size_t length = std::min<std::size_t>(text.size(), error->text_capacity - 1);
    std::memcpy(error->text, text.data(), length);
    error->text[length] = '\0';
  }
  return status;
}

std::string text_of(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(call) + ": " + text;
}

/// One call that the thread of MPI makes.
struct Collective {
  enum class Kind { all_reduce, broadcast, all_gather } kind = Kind::all_reduce;
  void* data = nullptr;
  const void* source = nullptr;
  std::uint64_t count = 0;
  MPI_Datatype type = MPI_BYTE;
  std::size_t element_size = 1;
  MPI_Op operation = MPI_SUM;
  int root = 0;
};

/// MPI counts in int: longer buffers go in pieces.
constexpr std::uint64_t max_count = std::uint64_t{1} << 28;

}  // namespace

struct tenon_transport {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Collective> queue;
  std::uint64_t begun = 0, ended = 0;
  std::string failure;
  std::atomic<bool> waiting{false};  ///< the caller has nothing else to do
  bool started = false, quits = false, finalizes = false;
  int rank = 0, size = 1;
  std::string host;
  std::chrono::milliseconds timeout{0};
  tenon::mpi::SignsOfLife signs_of_life;
  std::thread thread;

  void run() {
    {
      const std::string problem = start();
      const std::lock_guard lock(mutex);
      failure = problem;
      started = true;
    }
    changed.notify_all();
    std::unique_lock lock(mutex);
    for (;;) {
      const auto has_work = [&] { return quits || !queue.empty(); };
      if (timeout.count() == 0 || !failure.empty()) {
        changed.wait(lock, has_work);
      } else if (!changed.wait_for(lock, signs_of_life.interval(), has_work)) {
        lock.unlock();
        const std::string problem = signs_of_life.problem();
        lock.lock();
        failure = problem;
        continue;
      }
      if (queue.empty()) break;
      const Collective next = queue.front();
      queue.pop_front();
      const bool skips = !failure.empty();
      lock.unlock();
      const std::string problem = skips ? std::string() : perform(next);
      lock.lock();
      if (!problem.empty()) failure = problem;
      ++ended;
      changed.notify_all();
    }
    bool failed = !failure.empty();
    lock.unlock();
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0 || failed) return;
    failed = !signs_of_life.leave().empty();
    if (finalizes && !failed) MPI_Finalize();
  }

  /// Connects to the other processes; why that fails.
  std::string start() {
    int initialized = 0, finalized = 0, level = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (finalized != 0) return "MPI has been finalized in this process, and cannot be started again";
    if (initialized == 0) {
      const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
      if (code != MPI_SUCCESS) return text_of("MPI_Init_thread", code);
      finalizes = true;
      if (level < MPI_THREAD_FUNNELED) return "this MPI library is for programs of one thread; expected one with MPI_THREAD_FUNNELED";
    } else {
      MPI_Query_thread(&level);
      if (level < MPI_THREAD_MULTIPLE)
        return "this program has started MPI for calls from some of its threads; expected MPI_THREAD_MULTIPLE, or that it does not start "
               "MPI itself";
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host.assign(name, static_cast<std::size_t>(length));
    if (!finalizes) timeout = {};  // the program may end MPI at any time
    if (timeout.count() != 0) signs_of_life.start(timeout);
    return {};
  }

  /// Waits for the request. MPI's own waiting spins for ever: it would take the processor from the caller while that computes, and from
  /// another rank on the same one. Returns why it failed.
  std::string finish(MPI_Request& request, const char* call) {
    using Clock = std::chrono::steady_clock;
    constexpr auto spin_limit = std::chrono::microseconds(200);
    Clock::time_point began = Clock::now();
    for (;;) {
      int done = 0;
      const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) return text_of(call, code);
      if (done != 0) return {};
      if (std::string problem = signs_of_life.problem(); !problem.empty()) return problem;
      if (!waiting.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        began = Clock::now();
      } else if (Clock::now() - began > spin_limit) {
        std::this_thread::yield();
      }
    }
  }

  std::string perform(const Collective& c) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (c.kind == Collective::Kind::all_gather) {
      const int bytes = static_cast<int>(c.count);
      const int code = MPI_Iallgather(c.source, bytes, MPI_BYTE, c.data, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
      return code == MPI_SUCCESS ? finish(request, "MPI_Iallgather") : text_of("MPI_Iallgather", code);
    }
    const bool reduces = c.kind == Collective::Kind::all_reduce;
    for (std::uint64_t at = 0; at < c.count; at += max_count) {
      void* const data = static_cast<char*>(c.data) + at * c.element_size;
      const int count = static_cast<int>(std::min(max_count, c.count - at));
      const char* const call = reduces ? "MPI_Iallreduce" : "MPI_Ibcast";
      const int code = reduces ? MPI_Iallreduce(MPI_IN_PLACE, data, count, c.type, c.operation, MPI_COMM_WORLD, &request)
                               : MPI_Ibcast(data, count, c.type, c.root, MPI_COMM_WORLD, &request);
      std::string problem = code == MPI_SUCCESS ? finish(request, call) : text_of(call, code);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  tenon_status begin(const Collective& collective, std::uint64_t* out_collective, tenon_error* error) {
    const std::lock_guard lock(mutex);
    if (!failure.empty()) return fail(error, TENON_VENDOR_ERROR, failure);
    queue.push_back(collective);
    *out_collective = begun++;
    changed.notify_all();
    return TENON_OK;
  }

  tenon_status wait(std::uint64_t collective, tenon_error* error) {
    std::unique_lock lock(mutex);
    if (collective >= begun) return fail(error, TENON_INVALID_ARGUMENT, "wait: that collective has not begun");
    waiting.store(true, std::memory_order_relaxed);
    changed.wait(lock, [&] { return ended > collective; });
    waiting.store(false, std::memory_order_relaxed);
    if (!failure.empty()) return fail(error, TENON_VENDOR_ERROR, failure);
    return TENON_OK;
  }
};

namespace {

template <class Body>
tenon_status guarded(tenon_error* error, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(error, TENON_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return fail(error, TENON_INTERNAL, e.what());
  } catch (...) {
    return fail(error, TENON_INTERNAL, "an unknown exception");
  }
}

void TENON_CALL destroy(tenon_transport* transport) {
  {
    const std::lock_guard lock(transport->mutex);
    transport->quits = true;
  }
  transport->changed.notify_all();
  transport->thread.join();
  delete transport;
}

tenon_status TENON_CALL group(tenon_transport* transport, tenon_transport_group* out, tenon_error*) {
  out->rank = static_cast<std::uint32_t>(transport->rank);
  out->size = static_cast<std::uint32_t>(transport->size);
  return TENON_OK;
}

tenon_status TENON_CALL all_reduce(tenon_transport* transport, void* data, std::uint64_t count, tenon_dtype dtype, std::uint32_t operation,
                                   std::uint64_t* out_collective, tenon_error* error) {
  Collective collective{.kind = Collective::Kind::all_reduce, .data = data, .count = count};
  switch (dtype) {
    case TENON_DTYPE_F32:
      collective.type = MPI_FLOAT;
      collective.element_size = 4;
      break;
    case TENON_DTYPE_F64:
      collective.type = MPI_DOUBLE;
      collective.element_size = 8;
      break;
    case TENON_DTYPE_I32:
      collective.type = MPI_INT32_T;
      collective.element_size = 4;
      break;
    case TENON_DTYPE_I64:
      collective.type = MPI_INT64_T;
      collective.element_size = 8;
      break;
    case TENON_DTYPE_U8:
      collective.type = MPI_UINT8_T;
      break;
    default:
      return fail(error, TENON_UNSUPPORTED, "all_reduce: expected f32, f64, i32, i64 or u8, got dtype " + std::to_string(dtype));
  }
  switch (operation) {
    case TENON_REDUCE_SUM:
      collective.operation = MPI_SUM;
      break;
    case TENON_REDUCE_MAX:
      collective.operation = MPI_MAX;
      break;
    default:
      return fail(error, TENON_UNSUPPORTED, "all_reduce: expected sum or max, got operation " + std::to_string(operation));
  }
  return guarded(error, [&] { return transport->begin(collective, out_collective, error); });
}

tenon_status TENON_CALL broadcast(tenon_transport* transport, void* data, std::uint64_t size_bytes, std::uint32_t root,
                                  std::uint64_t* out_collective, tenon_error* error) {
  if (root >= static_cast<std::uint32_t>(transport->size))
    return fail(error, TENON_INVALID_ARGUMENT,
                "broadcast: root is " + std::to_string(root) + ", expected below " + std::to_string(transport->size));
  const Collective collective{.kind = Collective::Kind::broadcast, .data = data, .count = size_bytes, .root = static_cast<int>(root)};
  return guarded(error, [&] { return transport->begin(collective, out_collective, error); });
}

tenon_status TENON_CALL all_gather(tenon_transport* transport, const void* data, std::uint64_t size_bytes, void* out_data,
                                   std::uint64_t* out_collective, tenon_error* error) {
  if (size_bytes > max_count)
    return fail(error, TENON_UNSUPPORTED,
                "all_gather: expected at most " + std::to_string(max_count) + " bytes, got " + std::to_string(size_bytes));
  const Collective collective{.kind = Collective::Kind::all_gather, .data = out_data, .source = data, .count = size_bytes};
  return guarded(error, [&] { return transport->begin(collective, out_collective, error); });
}

tenon_status TENON_CALL wait(tenon_transport* transport, std::uint64_t collective, tenon_error* error) {
  return guarded(error, [&] { return transport->wait(collective, error); });
}

void TENON_CALL abort_all(tenon_transport* transport, const char* reason) {
  std::fprintf(stderr, "tenon: rank %d of %d on %s ends all processes: %s\n", transport->rank, transport->size, transport->host.c_str(),
               reason);
  std::fflush(stderr);
  // MPI_Abort waits for daemons on hosts that may be gone.
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    std::_Exit(1);
  }).detach();
  MPI_Abort(MPI_COMM_WORLD, 1);
}

const tenon_transport_table table{sizeof(tenon_transport_table), 0, destroy, group, all_reduce, broadcast, all_gather, wait, abort_all};

tenon_status TENON_CALL create(const tenon_transport_request* request, tenon_transport** out_transport,
                               const tenon_transport_table** out_table, tenon_error* error) {
  if (TENON_HAS(request, tenon_transport_request, needs) && request->needs != 0)
    return fail(error, TENON_UNSUPPORTED,
                "create: the request needs something that this transport does not know (needs is " + std::to_string(request->needs) + ")");
  return guarded(error, [&] {
    auto transport = std::make_unique<tenon_transport>();
    transport->timeout = std::chrono::milliseconds(request->timeout_ms);
    transport->thread = std::thread([raw = transport.get()] { raw->run(); });
    std::unique_lock lock(transport->mutex);
    transport->changed.wait(lock, [&] { return transport->started; });
    if (!transport->failure.empty()) {
      const std::string problem = transport->failure;
      lock.unlock();
      destroy(transport.release());
      return fail(error, TENON_VENDOR_ERROR, problem);
    }
    lock.unlock();
    *out_transport = transport.release();
    *out_table = &table;
    return tenon_status{TENON_OK};
  });
}

}  // namespace

extern "C" tenon_status TENON_CALL tenon_transport_query(const tenon_host_info*, tenon_transport_info* out_info) {
  // MPI_Get_library_version may be called before MPI_Init. Its first line has the version.
  static const std::string library = [] {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string whole(text, static_cast<std::size_t>(length));
    return whole.substr(0, whole.find_first_of(",\n"));
  }();
  if (!TENON_HAS(out_info, tenon_transport_info, create)) return TENON_INCOMPATIBLE;
  out_info->abi_major = TENON_TRANSPORT_ABI_MAJOR;
  out_info->abi_minor_lowest = TENON_TRANSPORT_ABI_MINOR_LOWEST;
  out_info->abi_minor_highest = TENON_TRANSPORT_ABI_MINOR;
  out_info->name = "mpi";
  out_info->version = TENON_VERSION;
  out_info->description = library.c_str();
  out_info->requirements = "an MPI library, and processes started by its mpirun";
  out_info->create = create;
  return TENON_OK;
}
