// SPDX-License-Identifier: Apache-2.0
// tenon bench blas - BLAS calls of each level through the API and through the drop-in library, compared with direct OpenBLAS calls, in
// turns on the same operands with the same number of threads.
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/blas.h>

#include "bench/benchmarks.h"
#include "bench/blas_chart.h"
#include "bench/machine.h"
#include "bench/openblas_peer.h"
#include "bench/statistics.h"
#include "bench/temporary_folder.h"
#include "cli/common.h"
#include "cli/memory_roofs.h"
#include "io/atomic_file.h"
#include "platform/conventions.h"
#include "platform/environment.h"
#include "platform/library.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::bench {
namespace {

constexpr int column_major = 102, no_trans = 111, lower = 122, unit = 132, left = 141;

/// Looks up cblas functions of the peer or of the drop-in library.
using Symbols = std::function<void*(const std::string&)>;

/// A call, its work, and its implementations.
struct Call {
  std::string name;  ///< "daxpy 1000"
  int level;
  double flops, words;  ///< words: elements of operands and results, each counted once
  std::size_t word_bytes;
  Body ours;
  std::function<Body(const Symbols&)> direct;
  std::shared_ptr<void> operands;  ///< keeps the memory of the bodies alive
};

template <class T>
struct Operands {
  std::vector<T> a, b, c;
};
/// Small numbers, so that repeated sums stay finite.
template <class T>
std::vector<T> numbers(std::int64_t n, std::uint32_t seed) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<T>(static_cast<int>(seed >> 28) - 8) / 64;
  }
  return values;
}
template <class T>
std::shared_ptr<Operands<T>> operands(std::int64_t a, std::int64_t b, std::int64_t c) {
  return std::make_shared<Operands<T>>(Operands<T>{numbers<T>(a, 1), numbers<T>(b, 2), numbers<T>(c, 3)});
}
template <class Function>
Function* function(const Symbols& symbols, const std::string& name) {
  void* const found = symbols(name);
  if (found == nullptr) throw Error(Status::internal, "bench blas: the compared library has no " + name);
  return reinterpret_cast<Function*>(found);
}
/// A call of size n. `ours()` and `direct(f)` make it once, the latter with the library's function f, "cblas_s<name>" or "cblas_d<name>".
template <class T, class Function, class Ours, class Direct>
Call call(const std::string& name, std::int64_t n, int level, double flops, double words, const std::shared_ptr<Operands<T>>& at,
          const Ours& ours, const Direct& direct) {
  const std::string own = (std::is_same_v<T, float> ? "s" : "d") + name;
  const auto direct_body = [=](const Symbols& symbols) {
    auto* f = function<Function>(symbols, "cblas_" + own);
    return repeat([=] { direct(f); });
  };
  return {fmt::format("{} {}", own, n), level, flops, words, sizeof(T), repeat(ours), direct_body, at};
}

constexpr blas::Layout columns_first = blas::Layout::column_major;

template <class T>
Call axpy(const blas::Queue& queue, std::int64_t n) {
  auto at = operands<T>(n, n, 0);
  const T alpha = static_cast<T>(1e-3);
  const double size = static_cast<double>(n);
  const auto ours = [=] { blas::axpy<T>(queue, {.n = n, .alpha = alpha, .x = at->a.data(), .y = at->b.data()}); };
  const auto direct = [=](auto* f) { f(static_cast<int>(n), alpha, at->a.data(), 1, at->b.data(), 1); };
  return call<T, void(int, T, const T*, int, T*, int)>("axpy", n, 1, 2 * size, 3 * size, at, ours, direct);
}
template <class T>
Call dot(const blas::Queue& queue, std::int64_t n) {
  auto at = operands<T>(n, n, 1);
  const double size = static_cast<double>(n);
  const auto ours = [=] { blas::dot<T>(queue, {.n = n, .x = at->a.data(), .y = at->b.data(), .result = at->c.data()}); };
  const auto direct = [=](auto* f) { at->c[0] = f(static_cast<int>(n), at->a.data(), 1, at->b.data(), 1); };
  return call<T, T(int, const T*, int, const T*, int)>("dot", n, 1, 2 * size, 2 * size, at, ours, direct);
}
template <class T>
Call gemv(const blas::Queue& queue, std::int64_t n) {
  auto at = operands<T>(n * n, n, n);
  const double size = static_cast<double>(n);
  const T *a = at->a.data(), *x = at->b.data();
  T* y = at->c.data();
  const auto ours = [=] { blas::gemv<T>(queue, {.layout = columns_first, .m = n, .n = n, .a = a, .lda = n, .x = x, .y = y}); };
  const auto direct = [=, o = static_cast<int>(n)](auto* f) { f(column_major, no_trans, o, o, T(1), a, o, x, 1, T(0), y, 1); };
  return call<T, void(int, int, int, int, T, const T*, int, const T*, int, T, T*, int)>("gemv", n, 2, 2 * size * size,
                                                                                        size * size + 3 * size, at, ours, direct);
}
template <class T>
Call ger(const blas::Queue& queue, std::int64_t n) {
  auto at = operands<T>(n * n, n, n);
  const double size = static_cast<double>(n);
  const T alpha = static_cast<T>(1e-3);
  const T *x = at->b.data(), *y = at->c.data();
  T* a = at->a.data();
  const auto ours = [=] {
    blas::ger<T>(queue, {.layout = columns_first, .m = n, .n = n, .alpha = alpha, .x = x, .y = y, .a = a, .lda = n});
  };
  const auto direct = [=, o = static_cast<int>(n)](auto* f) { f(column_major, o, o, alpha, x, 1, y, 1, a, o); };
  return call<T, void(int, int, int, T, const T*, int, const T*, int, T*, int)>("ger", n, 2, 2 * size * size, 2 * size * size + 2 * size,
                                                                                at, ours, direct);
}
template <class T>
Call gemm(const blas::Queue& queue, std::int64_t n) {
  auto at = operands<T>(n * n, n * n, n * n);
  const double size = static_cast<double>(n);
  const T *a = at->a.data(), *b = at->b.data();
  T* c = at->c.data();
  const auto ours = [=] {
    blas::gemm<T>(queue, {.layout = columns_first, .m = n, .n = n, .k = n, .a = a, .lda = n, .b = b, .ldb = n, .c = c, .ldc = n});
  };
  const auto direct = [=, o = static_cast<int>(n)](auto* f) { f(column_major, no_trans, no_trans, o, o, o, T(1), a, o, b, o, T(0), c, o); };
  return call<T, void(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int)>("gemm", n, 3, 2 * size * size * size,
                                                                                                  4 * size * size, at, ours, direct);
}
template <class T>
Call syrk(const blas::Queue& queue, std::int64_t n) {
  auto at = operands<T>(n * n, 0, n * n);
  const double size = static_cast<double>(n);
  const T* a = at->a.data();
  T* c = at->c.data();
  const auto ours = [=] {
    blas::syrk<T>(queue, {.layout = columns_first, .uplo = blas::Uplo::lower, .n = n, .k = n, .a = a, .lda = n, .c = c, .ldc = n});
  };
  const auto direct = [=, o = static_cast<int>(n)](auto* f) { f(column_major, lower, no_trans, o, o, T(1), a, o, T(0), c, o); };
  return call<T, void(int, int, int, int, int, T, const T*, int, T, T*, int)>("syrk", n, 3, size * size * size, 2 * size * size, at, ours,
                                                                              direct);
}
/// Solves with the identity matrix, so that B does not change.
template <class T>
Call trsm(const blas::Queue& queue, std::int64_t n) {
  auto at = operands<T>(0, n * n, 0);
  at->a.assign(static_cast<std::size_t>(n * n), T(0));
  const double size = static_cast<double>(n);
  const T* a = at->a.data();
  T* b = at->b.data();
  constexpr blas::Uplo uplo = blas::Uplo::lower;
  constexpr blas::Diag diag = blas::Diag::unit;
  const auto ours = [=] {
    blas::trsm<T>(queue, {.layout = columns_first, .uplo = uplo, .diag = diag, .m = n, .n = n, .a = a, .lda = n, .b = b, .ldb = n});
  };
  const auto direct = [=, o = static_cast<int>(n)](auto* f) { f(column_major, left, lower, no_trans, unit, o, o, T(1), a, o, b, o); };
  return call<T, void(int, int, int, int, int, int, int, T, const T*, int, T*, int)>("trsm", n, 3, size * size * size, 2.5 * size * size,
                                                                                     at, ours, direct);
}

std::vector<Call> calls(const blas::Queue& queue, bool tiny) {
  std::vector<Call> list;
  for (const std::int64_t n : tiny ? std::vector<std::int64_t>{10} : std::vector<std::int64_t>{1000, 100000, 10000000}) {
    list.push_back(axpy<float>(queue, n));
    list.push_back(axpy<double>(queue, n));
    list.push_back(dot<float>(queue, n));
    list.push_back(dot<double>(queue, n));
  }
  for (const std::int64_t n : tiny ? std::vector<std::int64_t>{8} : std::vector<std::int64_t>{64, 512, 2048}) {
    list.push_back(gemv<float>(queue, n));
    list.push_back(gemv<double>(queue, n));
  }
  list.push_back(ger<double>(queue, tiny ? 8 : 2048));
  for (const std::int64_t n : tiny ? std::vector<std::int64_t>{8} : std::vector<std::int64_t>{64, 256, 1024}) {
    list.push_back(gemm<float>(queue, n));
    list.push_back(gemm<double>(queue, n));
  }
  list.push_back(syrk<double>(queue, tiny ? 8 : 1024));
  list.push_back(trsm<double>(queue, tiny ? 8 : 1024));
  return list;
}

/// libtenon_blas.so of this installation, with the device and threads of this benchmark. It has a runtime of its own in libtenon.so, as in
/// any program, and reads its configuration at the first call.
class DropIn {
 public:
  DropIn(const Context& context, int threads) {
    const std::filesystem::path file =
        cli::installation_prefix() / "lib" /
        fmt::format("{}tenon_blas{}", platform::conventions().library_prefix, platform::conventions().library_suffix);
    std::string reason;
    library_ = platform::open_library(file, reason);
    if (library_ == nullptr) {
      absent = fmt::format("no drop-in library: {}", reason);
      return;
    }
    const std::string config = folder_.path("config.yaml");
    std::ofstream(platform::path_of(config)) << "device: " << context.default_device().name() << "\nthreads: " << threads << "\n";
    platform::set_environment_variable("TENON_CONFIG", config);
    platform::remove_environment_variable("TENON_DEVICE");  // it would take precedence over the file
    double number = 1;
    function<void(int, double, double*, int)>(symbols(), "cblas_dscal")(1, 2.0, &number, 1);
    if (number == 2) return;
    absent = fmt::format("no drop-in library: {} does not run on '{}' (see its message on stderr)", platform::text_of(file),
                         context.default_device().name());
    library_ = nullptr;
  }

  bool is_open() const { return library_ != nullptr; }
  Symbols symbols() const {
    return [library = library_](const std::string& name) { return platform::find_symbol(library, name.c_str()); };
  }
  std::string absent;

 private:
  void* library_ = nullptr;
  const TemporaryFolder folder_;
};

std::string format_difference(double ns, double reference_ns) {
  return fmt::format("{:+.0f} ns", ns - reference_ns);
}

}  // namespace

std::unique_ptr<Report> blas(const Options& options) {
  const Context context = options.make_context(options.threads);
  auto machine = describe_machine(context, options.threads);
  std::string absent = "--compare none";
  std::unique_ptr<OpenBlasPeer> peer;
  if (options.compare == "openblas") peer = OpenBlasPeer::open(options.threads, absent);
  const bool cpu = context.default_device().info().kind == DeviceKind::cpu;
  if (!cpu) throw Error("bench blas: '" + context.default_device().name() + "': expected a CPU, because the operands are in host memory");
  const double bandwidth = cli::memory_roofs(options.threads, options.tiny ? 1 << 20 : std::int64_t{128} << 20).peak();
  machine["roofs"]["memory_gb_per_s"] = std::round(bandwidth * 10) / 10;
  const std::map<DType, double> peaks = add_peaks(machine, options.threads);
  const auto peak_of = [&](DType dtype) { return peaks.contains(dtype) ? peaks.at(dtype) : 0; };
  const double peak = peak_of(DType::f64);
  auto report = std::make_unique<Report>("tenon bench blas", std::move(machine));
  const DropIn drop_in(context, options.threads);
  if (!drop_in.is_open()) report->note(drop_in.absent);

  std::vector<ChartPoint> points;
  std::vector<std::vector<std::string>> intensity, overhead;
  std::vector<int> sides{options.threads};
  if (options.threads > 1) sides.insert(sides.begin(), 1);
  for (const int threads : sides) {
    const Context side = options.make_context(threads);
    const blas::Queue queue = side.default_device();
    if (peer) peer->set_threads(threads);
    const bool with_peer = peer != nullptr && peer->threads() == threads;
    if (peer && !with_peer) {
      absent = fmt::format("{} has a different number of threads; libopenblas0-pthread supports any number", peer->name());
    }
    Protocol protocol = options.protocol();
    // OpenBLAS's idle workers keep polling for work for 2^26 ticks: about 34 ms at 2 GHz.
    if (with_peer && threads > 1 && !options.tiny) protocol.settle_ms = 60;
    for (const Call& call : calls(queue, options.tiny)) {
      const std::string name = fmt::format("{}, {}", call.name, counted(threads, "thread"));
      say("blas " + name);
      std::vector<Body> bodies{call.ours};
      if (with_peer) bodies.push_back(call.direct([&](const std::string& symbol) { return peer->symbol(symbol); }));
      const bool with_drop_in = drop_in.is_open() && threads == options.threads;
      if (with_drop_in) bodies.push_back(call.direct(drop_in.symbols()));
      std::vector<Samples> samples = measure(bodies, protocol);

      Entry entry{.name = name, .samples = samples[0]};
      const double ns = entry.median_ns(), bytes = call.words * static_cast<double>(call.word_bytes);
      entry.extra.emplace_back("gflop_per_s", call.flops / ns);
      entry.extra.emplace_back("gb_per_s", bytes / ns);
      entry.extra.emplace_back("flops_per_word", call.flops / call.words);
      if (with_peer) {
        entry.peer = peer->name();
        entry.peer_samples = samples[1];
      } else {
        entry.peer_absent = absent;
      }
      if (with_drop_in) entry.extra.emplace_back("drop_in_ns", median(samples.back().ns));
      if (with_peer) {
        const double direct = median(samples[1].ns);
        std::vector<std::string> row{name, format_duration(direct), format_difference(ns, direct), fmt::format("{:.3f}x", direct / ns)};
        if (with_drop_in) {
          const double shim = median(samples.back().ns);
          row.insert(row.end(), {format_difference(shim, direct), fmt::format("{:.3f}x", direct / shim)});
        } else {
          row.insert(row.end(), {"-", "-"});
        }
        overhead.push_back(std::move(row));
      }
      if (threads == options.threads) {
        points.push_back({call.name, call.level, call.flops / bytes, call.flops / ns});
        intensity.push_back({call.name, std::to_string(call.level), fmt::format("{:.3g}", call.flops / call.words),
                             fmt::format("{:.3g}", call.flops / ns), fmt::format("{:.3g}", bytes / ns)});
      }
      report->add(std::move(entry));
    }
  }
  report->table("intensity", {"call", "level", "flops per word", "GFLOP/s", "GB/s"}, std::move(intensity), true);
  if (!overhead.empty()) {
    report->table("overhead", {"call", "direct", "API", "direct / API", "drop-in", "direct / drop-in"}, std::move(overhead), true);
  }
  if (peak > 0 && !options.tiny) {
    report->note(
        fmt::format("machine balance in flops per word of f64: {:.0f} GFLOP/s / ({:.1f} GB/s / 8) = {:.0f}; a call with fewer flops "
                    "per word is memory-bound. Historical: 27 (Xeon Phi), 72 (Maxwell)",
                    peak, bandwidth, peak / (bandwidth / 8)));
  }
  report->note("GB/s counts each operand once, read or written; calls whose operands stay in a cache exceed the memory bandwidth");
  if (!options.html.empty()) {
    io::write_atomically(options.html, blas_chart(fmt::format("BLAS on {}, {} threads", context.default_device().name(), options.threads),
                                                  points, {bandwidth, peak_of(DType::f32), peak}));
  }
  return report;
}

}  // namespace tenon::bench
