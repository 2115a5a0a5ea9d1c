// SPDX-License-Identifier: Apache-2.0
// recording_backend.h - a backend on the SDK whose streams defer work until synchronization and can be captured.
//
// Its kernels are Add, Mul, Neg, Relu, Log (fails below 0 when it runs), MatMul (packs its right side), Tanh (not capturable) and
// Reshape, on dense f32. One file of a program includes it.
#pragma once

#include <tenon/sdk/backend.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test::recording {

/// Counters and injected faults of the backend. Only one test may use it at a time.
struct Tape {
  int kernels = 0;   ///< executed kernels
  int packs = 0;     ///< executed packings
  int recorded = 0;  ///< finished recordings
  int replayed = 0;
  int live = 0;                     ///< recordings not destroyed
  int destroyed_early = 0;          ///< recordings that were destroyed before the work that they had submitted
  int fail_replay = 0;              ///< the replay of that number from now on fails; 0: none
  bool pending_at_failure = false;  ///< whether its stream had work to do
  bool fail_end = false;
  bool runs_while_recording = false;  ///< recorded work is also executed
  bool forgets_times = false;         ///< events are left out of recordings
};
inline Tape tape;

using Work = std::vector<std::function<void()>>;

class Stream;

class Recording final : public sdk::Capture {
 public:
  explicit Recording(std::shared_ptr<const Work> work) : work_(std::move(work)) { ++tape.live; }
  ~Recording() override {
    --tape.live;
    if (work_.use_count() > 1) ++tape.destroyed_early;  // a stream has it, too
  }
  void replay(sdk::Stream& stream) override;

 private:
  std::shared_ptr<const Work> work_;
};

class Stream final : public sdk::Stream {
 public:
  Stream() { pending_.reserve(64); }
  void give(std::function<void()> work) {
    if (recorded_ != nullptr) {
      if (tape.runs_while_recording) work();
      recorded_->push_back(std::move(work));
    } else {
      give(std::make_shared<const Work>(1, std::move(work)));
    }
  }
  void give(std::shared_ptr<const Work> work) {
    const std::lock_guard lock(mutex_);
    pending_.push_back(std::move(work));
  }
  void synchronize() override {
    const std::lock_guard lock(mutex_);  // another thread may submit meanwhile, and then waits
    struct Forget {
      std::vector<std::shared_ptr<const Work>>& pending;
      ~Forget() { pending.clear(); }
    } forget{pending_};
    for (const auto& work : pending_) {
      for (const auto& piece : *work) piece();
    }
  }
  bool captures() const override { return true; }
  bool is_busy() {
    const std::lock_guard lock(mutex_);
    return !pending_.empty();
  }
  bool recording() const { return recorded_ != nullptr; }
  void begin_capture() override { recorded_ = std::make_shared<Work>(); }
  std::unique_ptr<sdk::Capture> end_capture() override {
    const std::shared_ptr<const Work> work = std::exchange(recorded_, nullptr);
    if (tape.fail_end) throw sdk::Error(TENON_VENDOR_ERROR, "the tape has torn");
    ++tape.recorded;
    return std::make_unique<Recording>(work);
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Work>> pending_;  // guarded by mutex_
  std::shared_ptr<Work> recorded_;
};

inline void Recording::replay(sdk::Stream& stream) {
  if (tape.fail_replay > 0 && --tape.fail_replay == 0) {
    tape.pending_at_failure = static_cast<Stream&>(stream).is_busy();
    throw sdk::Error(TENON_VENDOR_ERROR, "the tape does not turn");
  }
  ++tape.replayed;
  static_cast<Stream&>(stream).give(work_);
}

class Event final : public sdk::Event {
 public:
  void record(sdk::Stream& stream) override {
    if (tape.forgets_times && static_cast<Stream&>(stream).recording()) return;
    static_cast<Stream&>(stream).give([this] { time_ = std::chrono::steady_clock::now(); });
    stream_ = &stream;
  }
  void wait(sdk::Stream&) override { synchronize(); }
  bool done() override { return true; }
  void synchronize() override {
    if (stream_ != nullptr) stream_->synchronize();
  }
  std::uint64_t nanoseconds_since(sdk::Event& begin) override {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time_ - static_cast<Event&>(begin).time_).count());
  }

 private:
  sdk::Stream* stream_ = nullptr;
  std::chrono::steady_clock::time_point time_;
};

class Device final : public sdk::Device {
 public:
  using sdk::Device::Device;
  std::uint64_t allocate(std::uint32_t, std::uint64_t size_bytes) override {
    return reinterpret_cast<std::uintptr_t>(host.allocate(size_bytes, 64));
  }
  void deallocate(std::uint32_t, std::uint64_t address, std::uint64_t size_bytes) override { host.release(at(address), size_bytes); }
  void copy(const tenon_copy& copy, sdk::Stream& stream) override {
    if (copy.direction == TENON_COPY_HOST_TO_DEVICE) {  // the source may change after the call
      stream.synchronize();
      std::memcpy(at(copy.destination), at(copy.source), copy.size_bytes);
      return;
    }
    static_cast<Stream&>(stream).give([=] { std::memcpy(at(copy.destination), at(copy.source), copy.size_bytes); });
  }
  void fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, sdk::Stream& stream) override {
    static_cast<Stream&>(stream).give([=] { std::memset(at(address), value, size_bytes); });
  }
  std::unique_ptr<sdk::Stream> make_stream(const sdk::StreamOptions&) override { return std::make_unique<Stream>(); }
  std::unique_ptr<sdk::Event> make_event(const sdk::EventOptions&) override { return std::make_unique<Event>(); }

 private:
  static void* at(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }
};

class Backend final : public sdk::Backend {
 public:
  explicit Backend(sdk::Host services) : sdk::Backend(services) {
    description_.kind = TENON_DEVICE_ACCELERATOR;
    description_.name = description_.description = "a tape";
    description_.identity = "tape";
    description_.dtypes = TENON_DTYPE_BIT(TENON_DTYPE_F32);
  }
  std::uint32_t device_count() override { return 1; }
  const sdk::DeviceDescription& describe(std::uint32_t) override { return description_; }
  std::unique_ptr<sdk::Device> open(std::uint32_t) override { return std::make_unique<Device>(host); }

 private:
  sdk::DeviceDescription description_;
};

// ---------------------------------------------------------------- kernels

inline void give(const sdk::Call& call, std::function<void()> work) {
  static_cast<Stream&>(sdk::stream_of(call.stream)).give([work = std::move(work)] {
    ++tape.kernels;
    work();
  });
}
template <class T, class Function>
void unary(const sdk::Call& call, Function f) {
  give(call, [x = call.input<T>(0), y = call.output<T>(0), n = call.outputs[0].count, f] {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
  });
}
template <class T, class Function>
void binary(const sdk::Call& call, Function f) {
  give(call, [a = call.input<T>(0), b = call.input<T>(1), y = call.output<T>(0), n = call.outputs[0].count, f] {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  });
}

template <class T>
void add(const sdk::Call& call) {
  binary<T>(call, [](T a, T b) { return a + b; });
}
template <class T>
void mul(const sdk::Call& call) {
  binary<T>(call, [](T a, T b) { return a * b; });
}
template <class T>
void neg(const sdk::Call& call) {
  unary<T>(call, [](T x) { return -x; });
}
template <class T>
void relu(const sdk::Call& call) {
  unary<T>(call, [](T x) { return x > 0 ? x : T(0); });
}
template <class T>
void tanh(const sdk::Call& call) {
  unary<T>(call, [](T x) { return std::tanh(x); });
}
template <class T>
void reshape(const sdk::Call& call) {
  unary<T>(call, [](T x) { return x; });
}
template <class T>
void log(const sdk::Call& call) {
  unary<T>(call, [node_id = call.node_id](T x) {
    if (x < 0) throw sdk::Error(TENON_INVALID_ARGUMENT, "log: of a negative number", node_id);
    return std::log(x);
  });
}
template <class T>
void matmul(const sdk::Call& call) {
  const bool packed = call.packed != nullptr && call.packed[1] != nullptr;
  const T* b = packed ? static_cast<const T*>(call.packed[1]) : call.input<T>(1);
  const auto [m, depth] = sdk::as_rows(call.inputs[0]);
  give(call, [a = call.input<T>(0), b, y = call.output<T>(0), m = m, depth = depth, n = call.outputs[0].shape[1]] {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        y[i * n + j] = 0;
        for (std::int64_t k = 0; k < depth; ++k) y[i * n + j] += a[i * depth + k] * b[k * n + j];
      }
    }
  });
}
inline std::size_t pack_size(const sdk::Call& call, std::uint32_t input) {
  return input == 1 ? static_cast<std::size_t>(call.inputs[1].count) * sizeof(float) : 0;
}
inline void pack(const sdk::Call& call, std::uint32_t input, void* out_packed) {
  const auto size = static_cast<std::size_t>(call.inputs[input].count) * sizeof(float);
  static_cast<Stream&>(sdk::stream_of(call.stream)).give([from = call.inputs[input].data, out_packed, size] {
    ++tape.packs;
    std::memcpy(out_packed, from, size);
  });
}
inline std::string pack_form(const sdk::Call&, std::uint32_t) {
  return "copy";
}

TENON_KERNEL_WITH(add, (sdk::Traits{.in_place = true}), float)
TENON_KERNEL(mul, float)
TENON_KERNEL(neg, float)
TENON_KERNEL(relu, float)
TENON_KERNEL(log, float)
TENON_KERNEL(reshape, float)
TENON_KERNEL_WITH(tanh, (sdk::Traits{.capture_safe = false}), float)
TENON_KERNEL_WITH(matmul, (sdk::Traits{.pack_size = pack_size, .pack = pack, .pack_form = pack_form}), float)

inline constexpr sdk::KernelRow rows[] = {
    {TENON_OP_Add, 14, 0, &kernel_add},   {TENON_OP_Mul, 14, 0, &kernel_mul},       {TENON_OP_Neg, 13, 0, &kernel_neg},
    {TENON_OP_Relu, 14, 0, &kernel_relu}, {TENON_OP_Log, 13, 0, &kernel_log},       {TENON_OP_Reshape, 14, 0, &kernel_reshape},
    {TENON_OP_Tanh, 13, 0, &kernel_tanh}, {TENON_OP_MatMul, 13, 0, &kernel_matmul}, {TENON_OP_NONE, 0, 0, nullptr},
};

inline const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec tape_spec{
      .name = "tape",
      .version = "0.1",
      .vendor = "tests",
      .description = "records and replays",
      .requirements = nullptr,
      .priority = 1,
      .flags = 0,
      .options = {},
      .create = [](sdk::Host host) -> std::unique_ptr<sdk::Backend> { return std::make_unique<Backend>(host); },
      .captures = true};
  return tape_spec;
}
inline tenon_status query(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<spec, rows>(host, out_info);
}

}  // namespace tenon::test::recording
