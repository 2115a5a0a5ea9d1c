// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "emulation.h"
#include "sanitizers.h"
#include "static_shared.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace tenon::emulation {
namespace {

// AddressSanitizer's frames are several times as large; only touched pages cost memory.
constexpr std::size_t stack_bytes = address_sanitized ? 1 << 20 : 128 << 10;
constexpr unsigned lanes = 32, max_threads = 1024, max_warps = max_threads / lanes;

/// Rounds in which all blocks of a cooperative launch have only waited for each other, before that counts as a deadlock.
constexpr int max_idle_rounds = 1000;

/// The dynamic shared memory of a block. AddressSanitizer finds accesses beyond it; without it, guard bytes at its end do for
/// writes.
struct DynamicShared {
  static constexpr std::size_t alignment = 16, guard_bytes = address_sanitized ? 0 : 256;
  static constexpr unsigned char guard = 0xa5;
  struct Free {
    void operator()(unsigned char* begin) const { ::operator delete (begin, std::align_val_t{alignment}); }
  };
  std::size_t bytes = 0;
  std::unique_ptr<unsigned char, Free> memory;

  void prepare(std::size_t new_bytes) {
    if (memory == nullptr || new_bytes != bytes) {
      memory.reset(static_cast<unsigned char*>(::operator new (new_bytes + guard_bytes, std::align_val_t{alignment})));
    }
    bytes = new_bytes;
    std::fill_n(memory.get(), bytes, static_cast<unsigned char>(0xff));  // NaN in every format
    std::fill_n(memory.get() + bytes, guard_bytes, guard);
  }
  bool overrun() const {
    const unsigned char* const end = memory.get() + bytes;
    return std::any_of(end, end + guard_bytes, [](unsigned char byte) { return byte != guard; });
  }
};

enum class Kind { none, block_barrier, warp_barrier, shuffle, vote, other_blocks };

/// What a waiting thread waits for.
struct Request {
  Kind kind = Kind::none;
  unsigned mask = 0;
  std::uint64_t bits = 0;  ///< passed by the lane; after the release, its result
  int source = 0;
};

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::block_barrier:
      return "__syncthreads";
    case Kind::warp_barrier:
      return "__syncwarp";
    case Kind::shuffle:
      return "a shuffle";
    case Kind::vote:
      return "a vote";
    case Kind::other_blocks:
      return "__nanosleep";
    case Kind::none:
      break;
  }
  return "nothing";
}

/// A fiber: runs threads to completion until one must wait, and then holds that one.
struct Worker {
  boost::context::fiber context;
  StackBounds stack;
};

/// The fibers of all blocks, and the context that resumes them.
struct Fibers {
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<Worker*> idle;
  Worker* running = nullptr;
  boost::context::fiber scheduler;
  StackBounds scheduler_stack;

  Worker* idle_worker();
  void resume(Worker* worker);
  void leave();
};

class Block {
 public:
  /// `cooperative`: threads may wait for other blocks.
  void begin(uint3 index, const std::vector<unsigned>& order, const std::function<void()>& body, std::size_t shared_bytes,
             const std::function<void(bool)>& set_open, bool cooperative);
  /// Runs its threads until they have returned or wait for other blocks. False if all that it did was to wait again.
  bool advance();
  bool finished() const { return exited_count_ == threads_; }
  bool running() const { return running_; }
  void check_shared() const;
  [[noreturn]] void deadlock() const;
  void work(Worker* self);
  void wait(Request request);
  void wait_for_previous_kernel();
  Request& request_of_current() { return requests_[current_]; }
  unsigned current() const { return current_; }
  char* shared() const { return reinterpret_cast<char*>(shared_.memory.get()); }

 private:
  void start(unsigned thread);
  void ended();
  void release_block();
  void settle(unsigned warp, unsigned mask);
  [[noreturn]] void wrong(const std::string& what) const;

  uint3 index_{};
  DynamicShared shared_;
  bool running_ = false, cooperative_ = false, progressed_ = false;
  unsigned threads_ = 0, next_ = 0, exited_count_ = 0, at_barrier_ = 0, current_ = 0;
  std::vector<unsigned> order_;  ///< of threads
  const std::function<void()>* body_ = nullptr;
  const std::function<void(bool)>* set_open_ = nullptr;  ///< of a kernel that was launched early
  unsigned waited_count_ = 0;                            ///< threads that have waited for the previous kernel
  std::array<bool, max_threads> waited_{};
  std::array<unsigned, max_warps> exited_{}, arrived_{};  ///< by warp, a bit for each lane; arrived: waiting for its warp
  std::array<Request, max_threads> requests_{};
  std::array<Worker*, max_threads> holders_{};
  std::vector<unsigned> ready_;  ///< threads whose wait is over; `ready_front_` resumes first
  std::size_t ready_front_ = 0;
  std::vector<unsigned> waiting_;  ///< at the barrier of the block, in order of arrival
  std::vector<unsigned> polling_;  ///< wait for other blocks
};

// Never destroyed: fibers may be suspended, and kernel frames must not be unwound at exit.
Fibers& fibers() {
  static Fibers* const the_fibers = new Fibers;
  return *the_fibers;
}
/// The blocks that run at once.
std::vector<std::unique_ptr<Block>>& blocks_at_once() {
  static auto* const blocks = new std::vector<std::unique_ptr<Block>>;
  if (blocks->empty()) blocks->push_back(std::make_unique<Block>());
  return *blocks;
}
Block* current_block = nullptr;  ///< the one whose threads run; without one, intrinsics are called outside of kernels
Block& block() {
  return current_block != nullptr ? *current_block : *blocks_at_once().front();
}

std::string text_of(uint3 index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) + ")";
}
uint3 index_of(unsigned thread) {
  uint3 index;
  if (blockDim.y == 1 && blockDim.z == 1) {
    index.x = thread;
    index.y = index.z = 0;
  } else {
    index.x = thread % blockDim.x;
    index.y = thread / blockDim.x % blockDim.y;
    index.z = thread / blockDim.x / blockDim.y;
  }
  return index;
}

void Block::wrong(const std::string& what) const {
  std::fprintf(stderr, "cuda emulation: block %s: %s\n", text_of(index_).c_str(), what.c_str());
  std::abort();
}

void Block::deadlock() const {
  std::string what = "deadlock:";
  unsigned shown = 0, waiting = 0;
  for (unsigned t = 0; t < threads_; ++t) {
    const Request& request = requests_[t];
    if (request.kind == Kind::none) continue;
    ++waiting;
    if (shown == 8) continue;
    ++shown;
    what += "\n  thread " + text_of(index_of(t)) + " waits in " + name_of(request.kind);
    if (request.kind == Kind::block_barrier) {
      what += " for the " + std::to_string(threads_ - exited_count_ - at_barrier_) + " missing threads of the block";
    } else if (request.kind == Kind::other_blocks) {
      what += " for another block";
    } else {
      char mask[64];
      std::snprintf(mask, sizeof mask, " of mask 0x%08x, missing lanes 0x%08x", request.mask,
                    request.mask & ~arrived_[t / lanes] & ~exited_[t / lanes]);
      what += mask;
    }
  }
  wrong(what + "\n  " + std::to_string(waiting) + " of " + std::to_string(threads_) + " threads wait, " + std::to_string(exited_count_) +
        " have returned");
}

Worker* Fibers::idle_worker() {
  if (!idle.empty()) {
    Worker* const worker = idle.back();
    idle.pop_back();
    return worker;
  }
  workers.push_back(std::make_unique<Worker>());
  Worker* const worker = workers.back().get();
  boost::context::protected_fixedsize_stack allocator(stack_bytes);
  const boost::context::stack_context memory = allocator.allocate();
  worker->stack = {static_cast<char*>(memory.sp) - memory.size, memory.size};
  worker->context = boost::context::fiber(std::allocator_arg, boost::context::preallocated(memory.sp, memory.size, memory), allocator,
                                          [this, worker](boost::context::fiber&& caller) {
                                            scheduler = std::move(caller);
                                            scheduler_stack = arrived_from(nullptr);
                                            for (;;) block().work(worker);
                                            return boost::context::fiber();
                                          });
  return worker;
}

void Fibers::resume(Worker* worker) {
  running = worker;
  void* const own = leaving_for(worker->stack);
  worker->context = std::move(worker->context).resume();
  arrived_from(own);
}

/// Switches from a fiber to the scheduler; the host thread may differ when control returns.
void Fibers::leave() {
  void* const own = leaving_for(scheduler_stack);
  scheduler = std::move(scheduler).resume();
  scheduler_stack = arrived_from(own);
}

/// Runs on a fiber: runs threads to completion, then returns to the scheduler. The fiber may be resumed by another block.
void Block::work(Worker* self) {
  while (next_ < threads_ && ready_front_ == ready_.size()) {
    start(order_[next_++]);
    (*body_)();
    ended();
  }
  fibers().idle.push_back(self);
  fibers().leave();
}

void Block::start(unsigned thread) {
  current_ = thread;
  threadIdx = index_of(thread);
}

void Block::wait_for_previous_kernel() {
  if (set_open_ == nullptr || waited_[current_]) return;
  waited_[current_] = true;
  if (waited_count_++ == 0) (*set_open_)(true);
}

void Block::ended() {
  if (set_open_ != nullptr && !waited_[current_]) {
    wrong("thread " + text_of(threadIdx) + " of a kernel that was launched early ends without a wait for the previous kernel");
  }
  progressed_ = true;
  const unsigned warp = current_ / lanes;
  exited_[warp] |= 1u << (current_ % lanes);
  ++exited_count_;
  if (at_barrier_ > 0 && at_barrier_ + exited_count_ == threads_) release_block();
  for (unsigned left = arrived_[warp]; left != 0; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(left));
    if ((arrived_[warp] >> lane & 1) != 0) settle(warp, requests_[warp * lanes + lane].mask);
  }
}

void Block::wait(Request request) {
  if (!running_) {
    std::fprintf(stderr, "cuda emulation: %s outside of a kernel\n", name_of(request.kind));
    std::abort();
  }
  const unsigned thread = current_, warp = thread / lanes, lane = thread % lanes;
  requests_[thread] = request;
  holders_[thread] = fibers().running;
  progressed_ = progressed_ || request.kind != Kind::other_blocks;
  if (request.kind == Kind::other_blocks) {
    if (!cooperative_) wrong("thread " + text_of(threadIdx) + " waits for another block, and the launch is not cooperative");
    polling_.push_back(thread);
  } else if (request.kind == Kind::block_barrier) {
    waiting_.push_back(thread);
    ++at_barrier_;
    if (at_barrier_ + exited_count_ == threads_) release_block();
  } else {
    if ((request.mask >> lane & 1) == 0) {
      wrong("thread " + text_of(threadIdx) + " calls " + name_of(request.kind) + " with a mask that excludes it");
    }
    arrived_[warp] |= 1u << lane;
    settle(warp, request.mask);
  }
  // The last thread to arrive continues at once if no other is ready: that saves a switch for warps of one thread.
  if (ready_.size() - ready_front_ == 1 && ready_[ready_front_] == thread) {
    ready_.clear();
    ready_front_ = 0;
    return;
  }
  fibers().leave();
  start(thread);
}

void Block::release_block() {
  for (const unsigned thread : waiting_) {
    requests_[thread].kind = Kind::none;
    ready_.push_back(thread);
  }
  waiting_.clear();
  at_barrier_ = 0;
}

/// Releases the members of a mask if all live ones have arrived with the same call.
void Block::settle(unsigned warp, unsigned mask) {
  const unsigned members = mask & ~exited_[warp];
  if ((members & ~arrived_[warp]) != 0) return;
  Request* const requests = &requests_[warp * lanes];
  const Kind kind = requests[std::countr_zero(members)].kind;
  unsigned votes = 0;
  std::array<std::uint64_t, lanes> given{};
  for (unsigned left = members; left != 0; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(left));
    if (requests[lane].mask != mask) return;  // it waits for other lanes first
    if (requests[lane].kind != kind) {
      wrong("warp " + std::to_string(warp) + ": one lane calls " + name_of(kind) + ", another " + name_of(requests[lane].kind));
    }
    given[lane] = requests[lane].bits;
    if (requests[lane].bits != 0) votes |= 1u << lane;
  }
  for (unsigned left = members; left != 0; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(left));
    Request& request = requests[lane];
    if (kind == Kind::vote) {
      request.bits = votes;
    } else if (kind == Kind::shuffle) {
      const unsigned source = static_cast<unsigned>(request.source);
      request.bits = source < lanes && (members >> source & 1) != 0 ? given[source] : ~std::uint64_t{0};
    }
    request.kind = Kind::none;
    ready_.push_back(warp * lanes + lane);
  }
  arrived_[warp] &= ~members;
}

void Block::begin(uint3 index, const std::vector<unsigned>& order, const std::function<void()>& body, std::size_t shared_bytes,
                  const std::function<void(bool)>& set_open, bool cooperative) {
  index_ = index;
  order_ = order;
  body_ = &body;
  cooperative_ = cooperative;
  shared_.prepare(shared_bytes);
  threads_ = static_cast<unsigned>(order.size());
  next_ = exited_count_ = at_barrier_ = 0;
  const unsigned warps = (threads_ + lanes - 1) / lanes;
  for (unsigned w = 0; w < warps; ++w) exited_[w] = arrived_[w] = 0;
  if (threads_ % lanes != 0) exited_[warps - 1] = ~0u << (threads_ % lanes);
  set_open_ = set_open ? &set_open : nullptr;
  if (set_open_ != nullptr) {
    waited_count_ = 0;
    std::fill_n(waited_.begin(), threads_, false);
    set_open(false);
  }
}

bool Block::advance() {
  current_block = this;
  blockIdx = index_;
  for (const unsigned thread : polling_) {
    requests_[thread].kind = Kind::none;
    ready_.push_back(thread);
  }
  polling_.clear();
  progressed_ = false;
  running_ = true;
  while (!finished()) {
    if (ready_front_ < ready_.size()) {
      const unsigned thread = ready_[ready_front_++];
      if (ready_front_ == ready_.size()) {
        ready_.clear();
        ready_front_ = 0;
      }
      fibers().resume(holders_[thread]);
    } else if (next_ < threads_) {
      fibers().resume(fibers().idle_worker());
    } else if (!polling_.empty()) {
      break;
    } else {
      deadlock();
    }
  }
  running_ = false;
  return progressed_;
}

void Block::check_shared() const {
  if (shared_.overrun()) wrong("wrote beyond its " + std::to_string(shared_.bytes) + " bytes of dynamic shared memory");
}

}  // namespace

void wait_for_previous_kernel() {
  block().wait_for_previous_kernel();
}
void wait_for_other_blocks() {
  block().wait({Kind::other_blocks, 0, 0, 0});
}
void block_barrier() {
  block().wait({Kind::block_barrier, 0, 0, 0});
}
void warp_barrier(unsigned mask) {
  block().wait({Kind::warp_barrier, mask, 0, 0});
}
std::uint64_t exchange(unsigned mask, std::uint64_t bits, int source) {
  block().wait({Kind::shuffle, mask, bits, source});
  return block().request_of_current().bits;
}
unsigned vote(unsigned mask, bool predicate) {
  block().wait({Kind::vote, mask, predicate ? 1u : 0u, 0});
  return static_cast<unsigned>(block().request_of_current().bits);
}
int lane() {
  return static_cast<int>(block().current() % lanes);
}
char* dynamic_shared() {
  return block().shared();
}

Order parse_order(const char* text) {
  const std::string word = text;
  if (word == "ascending") return {Order::ascending, 0};
  if (word == "descending") return {Order::descending, 0};
  if (!word.empty() && word.size() <= 19 && word.find_first_not_of("0123456789") == std::string::npos) {
    return {Order::shuffled, std::stoull(word)};
  }
  throw std::invalid_argument("order of threads: expected ascending, descending or a seed, got '" + word + "'");
}

std::string running_thread() {
  if (current_block == nullptr || !current_block->running()) return {};
  return "block " + text_of(blockIdx) + ", thread " + text_of(threadIdx);
}

void run_grid(dim3 grid, dim3 block_size, Order order, const std::function<void()>& body, const SharedMemory& shared,
              const std::function<void(bool)>& set_open, bool cooperative) {
  const unsigned threads = block_size.x * block_size.y * block_size.z;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  gridDim = grid;
  blockDim = block_size;
  std::vector<unsigned> order_of_threads(threads);
  std::iota(order_of_threads.begin(), order_of_threads.end(), 0u);
  if (order.kind == Order::descending) std::reverse(order_of_threads.begin(), order_of_threads.end());
  std::mt19937_64 random(order.seed);
  // Block i * stride + offset: visits every block once if the stride is coprime to the number of blocks.
  std::uint64_t stride = 1, offset = 0;
  if (order.kind == Order::descending) {
    stride = blocks - 1;
    offset = blocks - 1;
  } else if (order.kind == Order::shuffled && blocks > 1 && blocks < (std::uint64_t{1} << 32)) {
    do stride = random() % blocks;
    while (std::gcd(stride, blocks) != 1);
    offset = random() % blocks;
  }
  std::uint64_t at = offset;
  const std::uint64_t at_once = cooperative ? blocks : 1;
  auto& running = blocks_at_once();
  while (running.size() < at_once) running.push_back(std::make_unique<Block>());
  const bool watched = cooperative && fill_static_shared(shared.kernel);
  for (std::uint64_t begun = 0; begun < blocks; begun += at_once) {
    for (std::uint64_t i = 0; i < at_once; ++i, at = (at + stride) % blocks) {
      if (order.kind == Order::shuffled) std::shuffle(order_of_threads.begin(), order_of_threads.end(), random);
      uint3 index;
      index.x = static_cast<unsigned>(at % grid.x);
      index.y = static_cast<unsigned>(at / grid.x % grid.y);
      index.z = static_cast<unsigned>(at / grid.x / grid.y);
      running[i]->begin(index, order_of_threads, body, shared.bytes, set_open, cooperative);
      if (!cooperative) fill_static_shared(shared.kernel);
    }
    std::uint64_t unfinished = at_once;
    for (int idle_rounds = 0; unfinished > 0;) {
      bool progressed = false;
      for (std::uint64_t i = 0; i < at_once; ++i) {
        Block& block = *running[i];
        if (block.finished()) continue;
        progressed = block.advance() || progressed;
        if (!block.finished()) continue;
        block.check_shared();
        --unfinished;
      }
      idle_rounds = progressed ? 0 : idle_rounds + 1;
      if (idle_rounds < max_idle_rounds) continue;
      for (std::uint64_t i = 0; i < at_once; ++i) {
        if (!running[i]->finished()) running[i]->deadlock();
      }
    }
  }
  // All blocks would have the same variables here. A write of 0xFF bytes is not seen.
  if (watched && !is_static_shared_unwritten(shared.kernel)) {
    std::fprintf(stderr, "cuda emulation: static shared memory in a cooperative launch: its blocks need dynamic shared memory\n");
    std::abort();
  }
}

}  // namespace tenon::emulation
