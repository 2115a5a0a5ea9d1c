// SPDX-License-Identifier: Apache-2.0
// Collectives of 1, 2 and 4 ranks, if offered. A rank is a thread with a device: the devices of the backend in turn, so that ranks share
// one where the backend takes that.
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "core.h"

namespace tenon::conformance {
namespace {

using Operation = std::uint32_t;

const tenon_collectives_table& collectives_of(const tenon_backend_table& table) {
  return block_of(table.collectives, "collectives");
}

/// Memory of a rank with guard bytes on both sides of an array.
class Buffer {
 public:
  Buffer(const tenon_backend_table& table, tenon_device* device, tenon_stream* stream, const Array& content)
      : table_(table), device_(device), stream_(stream), array_(content) {
    bytes_.assign(2 * guard + content.size_bytes(), 0xC3);
    std::copy_n(content.bytes(), content.size_bytes(), bytes_.begin() + guard);
    expect_ok("memory_allocate", allocate, table_, device_, TENON_MEMORY_DEVICE, bytes_.size(), made_);
    transfer(TENON_COPY_HOST_TO_DEVICE, made_.address, address_of(bytes_.data()));
  }
  ~Buffer() {
    ErrorText ignored;
    static_cast<void>(table_.stream_synchronize(stream_, ignored));
    table_.memory_free(made_.memory);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::uint64_t address() const { return made_.address + guard; }
  /// Waits, and returns what the memory holds. Fails if the bytes around it have changed.
  Array content(const std::string& what) {
    std::vector<unsigned char> now(bytes_.size());
    transfer(TENON_COPY_DEVICE_TO_HOST, address_of(now.data()), made_.address);
    expect_ok("stream_synchronize", table_.stream_synchronize, stream_);
    const auto size = static_cast<std::ptrdiff_t>(guard + array_.size_bytes());
    if (!std::equal(now.begin(), now.begin() + guard, bytes_.begin()) || !std::equal(now.begin() + size, now.end(), bytes_.begin() + size))
      fail(what + ": bytes outside of the destination have changed");
    std::copy_n(now.begin() + guard, array_.size_bytes(), array_.bytes());
    return array_;
  }

 private:
  static constexpr std::ptrdiff_t guard = 256;
  void transfer(std::uint32_t direction, std::uint64_t to, std::uint64_t from) {
    const tenon_copy copy = copy_of(direction, to, from, bytes_.size());
    expect_ok("copy", table_.copy, device_, &copy, stream_);
  }
  const tenon_backend_table& table_;
  tenon_device* const device_;
  tenon_stream* const stream_;
  Array array_;
  std::vector<unsigned char> bytes_;
  Made made_;
};

/// A backend whose devices are the ranks of one group.
class Ranks {
 public:
  /// Throws NotRun if the backend has too few devices and does not take several ranks on one.
  Ranks(const CaseContext& context, std::uint32_t size) : size_(size), backend_(context), block_(collectives_of(backend_.table())) {
    std::uint32_t device_count = 0;
    expect_ok("device_count", table().device_count, backend_.backend, &device_count);
    for (std::uint32_t r = 0; r < size; ++r) {
      Rank& rank = ranks_.emplace_back();
      expect_ok("device_open", table().device_open, backend_.backend, r % device_count, &rank.device);
      expect_ok("stream_create", table().stream_create, rank.device, nullptr, &rank.stream);
    }
    const std::string refusal = join();
    if (refusal.empty()) return;
    close();
    if (device_count >= size) fail(fmt::format("{} ranks on {} devices: {}", size, device_count, refusal));
    // Without the refusal: libraries mention addresses, and equal reasons are listed once.
    throw NotRun(fmt::format("{} ranks need as many devices of the backend, which has {}", size, device_count));
  }
  ~Ranks() { close(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  std::uint32_t size() const { return size_; }
  const tenon_backend_table& table() const { return backend_.table(); }
  const tenon_collectives_table& block() const { return block_; }
  tenon_group* group(std::uint32_t rank) const { return ranks_[rank].group; }
  tenon_stream* stream(std::uint32_t rank) const { return ranks_[rank].stream; }
  tenon_device* device(std::uint32_t rank) const { return ranks_[rank].device; }
  tenon_backend* backend() const { return backend_.backend; }

  /// Runs body(rank) on a thread for each rank. Where one fails, all groups are aborted: the others would wait.
  void each(const std::function<void(std::uint32_t)>& body) {
    on_threads(static_cast<int>(size_), [&](int r) {
      try {
        body(static_cast<std::uint32_t>(r));
      } catch (...) {
        for (const Rank& rank : ranks_) block_.group_abort(rank.group);
        throw;
      }
    });
  }
  Buffer buffer(std::uint32_t rank, const Array& content) const { return {table(), device(rank), stream(rank), content}; }
  void submit(std::uint32_t rank, const std::vector<tenon_collective>& list) const {
    expect_ok("submit", block_.submit, group(rank), list.data(), std::uint32_t{sizeof list[0]}, static_cast<std::uint32_t>(list.size()),
              stream(rank));
  }

 private:
  struct Rank {
    tenon_device* device = nullptr;
    tenon_stream* stream = nullptr;
    tenon_group* group = nullptr;
  };
  /// The text of a refusal as TENON_UNSUPPORTED, on every rank; empty: all have joined.
  std::string join() {
    tenon_group_request request{.struct_size = sizeof request, .size = size_, .timeout_ms = 60'000, .deterministic = 1};
    expect_ok("group_id", block_.group_id, backend_.backend, &request.id);
    std::vector<std::string> refusals(size_);
    on_threads(static_cast<int>(size_), [&](int r) {
      tenon_group_request own = request;
      own.rank = static_cast<std::uint32_t>(r);
      ErrorText error;
      const tenon_status status = block_.group_create(ranks_[own.rank].device, &own, &ranks_[own.rank].group, error);
      if (status == TENON_OK && ranks_[own.rank].group == nullptr) fail("group_create returned OK and left its out-parameter NULL");
      if (status == TENON_UNSUPPORTED) {
        refusals[own.rank] = error.text();
      } else {
        expect_ok(status, error, "group_create");
      }
    });
    return refusals[0];
  }
  void close() {
    for (const Rank& rank : ranks_) {
      if (rank.group != nullptr) block_.group_destroy(rank.group);
    }
    for (const Rank& rank : ranks_) {
      if (rank.stream != nullptr) table().stream_destroy(rank.stream);
      if (rank.device != nullptr) table().device_close(rank.device);
    }
    ranks_.clear();
  }

  const std::uint32_t size_;
  Another backend_;
  const tenon_collectives_table& block_;
  std::vector<Rank> ranks_;
};

tenon_collective collective(std::uint32_t kind, tenon_dtype dtype, std::int64_t count, std::uint64_t source, std::uint64_t destination,
                            std::uint32_t peer = 0, Operation operation = 0) {
  return {.kind = kind,
          .dtype = dtype,
          .operation = operation,
          .peer = peer,
          .count = static_cast<std::uint64_t>(count),
          .source = source,
          .destination = destination};
}

// ---------------------------------------------------------------- operands

struct OperationName {
  Operation operation;
  const char* name;
};
constexpr OperationName operations[] = {{TENON_REDUCE_SUM, "SUM"},
                                        {TENON_REDUCE_MAX, "MAX"},
                                        {TENON_REDUCE_MIN, "MIN"},
                                        {TENON_REDUCE_PROD, "PROD"},
                                        {TENON_REDUCE_AVG, "AVG"}};

/// Small integers of a rank: sums, products and averages of 1, 2 and 4 of them are exact in every dtype.
double element_of(std::uint32_t rank, std::int64_t i, tenon_dtype dtype) {
  const bool has_sign =
      dtype == TENON_DTYPE_I8 || dtype == TENON_DTYPE_I16 || dtype == TENON_DTYPE_I32 || dtype == TENON_DTYPE_I64 || is_float(dtype);
  const auto x = static_cast<double>((static_cast<std::int64_t>(rank) * 5 + i * 3 + i / 7) % 4);
  return has_sign && (i + rank) % 3 == 0 ? -x : x;
}
Array operand(std::uint32_t rank, std::int64_t count, tenon_dtype dtype) {
  Array array(dtype, {count});
  for (std::int64_t i = 0; i < count; ++i) array.set(i, element_of(rank, i, dtype));
  return array;
}
double combined(std::uint32_t ranks, std::int64_t i, tenon_dtype dtype, Operation operation) {
  double result = element_of(0, i, dtype);
  for (std::uint32_t r = 1; r < ranks; ++r) {
    const double x = element_of(r, i, dtype);
    result = operation == TENON_REDUCE_MAX    ? std::max(result, x)
             : operation == TENON_REDUCE_MIN  ? std::min(result, x)
             : operation == TENON_REDUCE_PROD ? result * x
                                              : result + x;
  }
  return operation == TENON_REDUCE_AVG ? result / ranks : result;
}

void expect_elements(const Array& expected, const Array& got, const std::string& what) {
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    if (expected.at(i) != got.at(i)) fail(fmt::format("{}: element {}: expected {}, got {}", what, i, expected.str(i), got.str(i)));
  }
}

/// The dtypes that ranks can combine and the device computes with, and the operations on each.
void each_reduction(const CaseContext& context, const tenon_collectives_table& block,
                    const std::function<void(tenon_dtype, Operation, const std::string&)>& body) {
  for (tenon_dtype dtype = 1; dtype < TENON_DTYPE_COUNT; ++dtype) {
    if ((block.dtypes & TENON_DTYPE_BIT(dtype)) == 0 || !context.device.computes_with(dtype)) continue;
    for (const auto& [operation, name] : operations) {
      if (operation == TENON_REDUCE_AVG && !is_float(dtype)) continue;
      body(dtype, operation, fmt::format("{} of {}", name, Array(dtype, {1}).str()));
    }
  }
}

constexpr std::int64_t counts[] = {1, 1000};

// ---------------------------------------------------------------- cases for each number of ranks

template <std::uint32_t size>
void all_reduce(CaseContext& context) {
  Ranks ranks(context, size);
  if ((ranks.block().dtypes & TENON_DTYPE_BIT(TENON_DTYPE_F32)) == 0) fail("tenon_collectives_table.dtypes: expected f32 among them");
  each_reduction(context, ranks.block(), [&](tenon_dtype dtype, Operation operation, const std::string& what) {
    for (const std::int64_t count : counts) {
      Array expected(dtype, {count});
      for (std::int64_t i = 0; i < count; ++i) expected.set(i, combined(size, i, dtype, operation));
      ranks.each([&](std::uint32_t r) {
        const Array own = operand(r, count, dtype);
        Buffer source = ranks.buffer(r, own), destination = ranks.buffer(r, Array(dtype, {count})), in_place = ranks.buffer(r, own);
        ranks.submit(r, {collective(TENON_COLLECTIVE_ALL_REDUCE, dtype, count, source.address(), destination.address(), 0, operation)});
        ranks.submit(r, {collective(TENON_COLLECTIVE_ALL_REDUCE, dtype, count, in_place.address(), in_place.address(), 0, operation)});
        expect_elements(expected, destination.content(what), fmt::format("{}, rank {} of {}", what, r, size));
        expect_elements(expected, in_place.content(what), fmt::format("{} in place, rank {} of {}", what, r, size));
        expect_elements(own, source.content(what), fmt::format("{}, the source of rank {}", what, r));
      });
    }
  });
}

template <std::uint32_t size>
void reduce_scatter(CaseContext& context) {
  Ranks ranks(context, size);
  each_reduction(context, ranks.block(), [&](tenon_dtype dtype, Operation operation, const std::string& what) {
    for (const std::int64_t count : counts) {
      ranks.each([&](std::uint32_t r) {
        const std::int64_t begin = static_cast<std::int64_t>(r) * count;
        Array expected(dtype, {count});
        for (std::int64_t i = 0; i < count; ++i) expected.set(i, combined(size, begin + i, dtype, operation));
        Buffer source = ranks.buffer(r, operand(r, size * count, dtype)), destination = ranks.buffer(r, Array(dtype, {count}));
        Buffer in_place = ranks.buffer(r, operand(r, size * count, dtype));
        const std::uint64_t part = in_place.address() + static_cast<std::uint64_t>(begin * expected.element_size());
        ranks.submit(r, {collective(TENON_COLLECTIVE_REDUCE_SCATTER, dtype, count, source.address(), destination.address(), 0, operation)});
        ranks.submit(r, {collective(TENON_COLLECTIVE_REDUCE_SCATTER, dtype, count, in_place.address(), part, 0, operation)});
        expect_elements(expected, destination.content(what), fmt::format("REDUCE_SCATTER, {}, rank {} of {}", what, r, size));
        const Array whole = in_place.content(what);
        for (std::int64_t i = 0; i < count; ++i) {
          if (whole.at(begin + i) != expected.at(i))
            fail(fmt::format("REDUCE_SCATTER in place, {}, rank {} of {}: element {}: expected {}, got {}", what, r, size, i,
                             expected.str(i), whole.str(begin + i)));
        }
      });
    }
  });
}

template <std::uint32_t size>
void all_gather(CaseContext& context) {
  Ranks ranks(context, size);
  for (const tenon_dtype dtype : {TENON_DTYPE_U8, TENON_DTYPE_I16, TENON_DTYPE_F32, TENON_DTYPE_F64}) {
    if (!context.device.computes_with(dtype)) continue;
    for (const std::int64_t count : counts) {
      Array expected(dtype, {size * count});
      for (std::int64_t i = 0; i < size * count; ++i)
        expected.set(i, element_of(static_cast<std::uint32_t>(i / count), i % count, TENON_DTYPE_U8));
      ranks.each([&](std::uint32_t r) {
        Array own(dtype, {count}), mine_in_place(dtype, {size * count});
        for (std::int64_t i = 0; i < count; ++i) {
          own.set(i, element_of(r, i, TENON_DTYPE_U8));
          mine_in_place.set(r * count + i, element_of(r, i, TENON_DTYPE_U8));
        }
        Buffer source = ranks.buffer(r, own), destination = ranks.buffer(r, Array(dtype, {size * count}));
        Buffer in_place = ranks.buffer(r, mine_in_place);
        const std::uint64_t part = in_place.address() + r * own.size_bytes();
        ranks.submit(r, {collective(TENON_COLLECTIVE_ALL_GATHER, dtype, count, source.address(), destination.address())});
        ranks.submit(r, {collective(TENON_COLLECTIVE_ALL_GATHER, dtype, count, part, in_place.address())});
        const std::string what = fmt::format("ALL_GATHER of {}, rank {} of {}", own.str(), r, size);
        expect_elements(expected, destination.content(what), what);
        expect_elements(expected, in_place.content(what), what + ", in place");
      });
    }
  }
}

template <std::uint32_t size>
void broadcast(CaseContext& context) {
  Ranks ranks(context, size);
  for (const tenon_dtype dtype : {TENON_DTYPE_BOOL, TENON_DTYPE_F32, TENON_DTYPE_I64}) {
    if (!context.device.computes_with(dtype)) continue;
    for (std::uint32_t root = 0; root < size; ++root) {
      constexpr std::int64_t count = 777;
      const tenon_dtype values = dtype == TENON_DTYPE_BOOL ? TENON_DTYPE_BOOL : TENON_DTYPE_U8;
      const auto of = [&](std::uint32_t r) {
        Array array(dtype, {count});
        for (std::int64_t i = 0; i < count; ++i)
          array.set(i, values == TENON_DTYPE_BOOL ? static_cast<double>((i + r) % 2) : element_of(r, i, values));
        return array;
      };
      ranks.each([&](std::uint32_t r) {
        Buffer source = ranks.buffer(r, of(r)), destination = ranks.buffer(r, Array(dtype, {count})), in_place = ranks.buffer(r, of(r));
        // Only the root's source is read.
        ranks.submit(r,
                     {collective(TENON_COLLECTIVE_BROADCAST, dtype, count, r == root ? source.address() : 0, destination.address(), root)});
        ranks.submit(r, {collective(TENON_COLLECTIVE_BROADCAST, dtype, count, in_place.address(), in_place.address(), root)});
        const std::string what = fmt::format("BROADCAST from rank {} of {}, on rank {}", root, of(r).str(), r);
        expect_elements(of(root), destination.content(what), what);
        expect_elements(of(root), in_place.content(what), what + ", in place");
      });
    }
  }
}

/// Each rank sends to the next one and receives from the one before, twice, in one submission.
template <std::uint32_t size>
void send_and_receive(CaseContext& context) {
  Ranks ranks(context, size);
  constexpr std::int64_t count = 500;
  ranks.each([&](std::uint32_t r) {
    const std::uint32_t next = (r + 1) % size, before = (r + size - 1) % size;
    Buffer first = ranks.buffer(r, operand(r, count, TENON_DTYPE_F32)),
           second = ranks.buffer(r, operand(r + 8, 2 * count, TENON_DTYPE_I32));
    Buffer got_first = ranks.buffer(r, Array(TENON_DTYPE_F32, {count})), got_second = ranks.buffer(r, Array(TENON_DTYPE_I32, {2 * count}));
    ranks.submit(r, {collective(TENON_COLLECTIVE_SEND, TENON_DTYPE_F32, count, first.address(), 0, next),
                     collective(TENON_COLLECTIVE_SEND, TENON_DTYPE_I32, 2 * count, second.address(), 0, next),
                     collective(TENON_COLLECTIVE_RECEIVE, TENON_DTYPE_F32, count, 0, got_first.address(), before),
                     collective(TENON_COLLECTIVE_RECEIVE, TENON_DTYPE_I32, 2 * count, 0, got_second.address(), before)});
    const std::string what = fmt::format("rank {} of {} receives from rank {}", r, size, before);
    expect_elements(operand(before, count, TENON_DTYPE_F32), got_first.content(what), what + ", the first");
    expect_elements(operand(before + 8, 2 * count, TENON_DTYPE_I32), got_second.content(what), what + ", the second");
  });
}

/// Sums of numbers that are rounded: close to the exact ones, the same bits on every rank and every time.
template <std::uint32_t size>
void same_bits(CaseContext& context) {
  Ranks ranks(context, size);
  const std::int64_t count = small_sizes() ? 3000 : 300'000;
  std::vector<Array> operands;
  for (std::uint32_t r = 0; r < size; ++r) {
    Random random(r + 1);
    Array& array = operands.emplace_back(TENON_DTYPE_F32, Dims{count});
    for (std::int64_t i = 0; i < count; ++i)
      array.set(i, random.uniform(-1, 1) * std::ldexp(1.0, static_cast<int>(random.integer(-12, 12))));
  }
  std::vector<std::optional<Array>> firsts(size);
  for (int round = 0; round < 6; ++round) {
    std::vector<Array> results(size);
    ranks.each([&](std::uint32_t r) {
      // Ranks are late in turns.
      if (round > 0 && r == static_cast<std::uint32_t>(round) % size) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      Buffer buffer = ranks.buffer(r, operands[r]);
      ranks.submit(
          r, {collective(TENON_COLLECTIVE_ALL_REDUCE, TENON_DTYPE_F32, count, buffer.address(), buffer.address(), 0, TENON_REDUCE_SUM)});
      results[r] = buffer.content("ALL_REDUCE");
    });
    for (std::uint32_t r = 0; r < size; ++r) {
      if (!results[r].same_bits(results[0])) fail(fmt::format("the sums of rank {} have other bits than those of rank 0", r));
      if (!firsts[r]) firsts[r] = results[r];
      if (!results[r].same_bits(*firsts[r])) fail(fmt::format("the sums of round {} have other bits than those of the first", round + 1));
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0, sizes = 0;
    for (const Array& array : operands) {
      sum += array.at(i);
      sizes += std::fabs(array.at(i));
    }
    const double allowed = (size - 1) * epsilon(TENON_DTYPE_F32) * sizes;
    if (!(std::fabs(firsts[0]->at(i) - sum) <= allowed))
      fail(fmt::format("element {} of a sum over {} ranks: expected {} within {}, got {}", i, size, sum, allowed, firsts[0]->str(i)));
  }
}

// ---------------------------------------------------------------- other cases

/// Elements of the array are `collective_stride` apart, several make progress together, and none of nothing is valid.
void together(CaseContext& context) {
  Ranks ranks(context, 1);
  constexpr std::int64_t count = 100;
  Buffer a = ranks.buffer(0, operand(0, count, TENON_DTYPE_F32)), b = ranks.buffer(0, Array(TENON_DTYPE_F32, {count})),
         c = ranks.buffer(0, Array(TENON_DTYPE_F32, {count}));
  struct Later {
    tenon_collective known;
    unsigned char later[16];
  };
  Later list[3] = {{collective(TENON_COLLECTIVE_ALL_REDUCE, TENON_DTYPE_F32, count, a.address(), b.address(), 0, TENON_REDUCE_SUM), {}},
                   {collective(TENON_COLLECTIVE_ALL_GATHER, TENON_DTYPE_F32, 0, 0, 0), {}},
                   {collective(TENON_COLLECTIVE_BROADCAST, TENON_DTYPE_F32, count, a.address(), c.address()), {}}};
  for (Later& one : list) std::fill(std::begin(one.later), std::end(one.later), static_cast<unsigned char>(0xFF));
  expect_ok("submit", ranks.block().submit, ranks.group(0), &list[0].known, std::uint32_t{sizeof list[0]}, 3u, ranks.stream(0));
  expect_ok("submit of no collectives", ranks.block().submit, ranks.group(0), nullptr, std::uint32_t{sizeof(tenon_collective)}, 0u,
            ranks.stream(0));
  expect_elements(operand(0, count, TENON_DTYPE_F32), b.content("ALL_REDUCE"), "the first of three collectives");
  expect_elements(operand(0, count, TENON_DTYPE_F32), c.content("BROADCAST"), "the last of three collectives");
}

void ids(CaseContext& context) {
  const tenon_collectives_table& block = collectives_of(context.device.table());
  const Another another(context);
  tenon_group_id first{}, second{};
  expect_ok("group_id", block.group_id, another.backend, &first);
  expect_ok("group_id", block.group_id, another.backend, &second);
  if (std::memcmp(&first, &second, sizeof first) == 0) fail("group_id returned one id twice: expected the id of a new group each time");
}

void refused_requests(CaseContext& context) {
  const tenon_collectives_table& block = collectives_of(context.device.table());
  Ranks ranks(context, 1);
  tenon_group_request good{.struct_size = sizeof good, .size = 1, .timeout_ms = 60'000};
  expect_ok("group_id", block.group_id, ranks.backend(), &good.id);
  const auto refuse = [&](const tenon_group_request& request, std::initializer_list<tenon_status> allowed, const std::string& what) {
    ErrorText error;
    tenon_group* group = nullptr;
    expect_refusal(block.group_create(ranks.device(0), &request, &group, error), error, allowed, what);
    if (group != nullptr) fail(what + ": the out-parameter was written");
  };
  const auto changed = [&](auto change) {
    tenon_group_request request = good;
    change(request);
    return request;
  };
  refuse(changed([](auto& r) { r.rank = 1; }), {TENON_INVALID_ARGUMENT}, "joining as rank 1 of 1");
  refuse(changed([](auto& r) { r.size = 0; }), {TENON_INVALID_ARGUMENT}, "joining a group of 0 ranks");
  refuse(changed([](auto& r) { r.deterministic = 2; }), {TENON_UNSUPPORTED}, "joining with deterministic = 2");
  refuse(changed([](auto& r) { r.needs = TENON_NEEDS_TEST; }), {TENON_UNSUPPORTED}, "joining with an unknown bit of `needs`");
  const Longer<tenon_group_request> longer(good);
  tenon_group* group = nullptr;
  expect_ok("group_create with a longer request", block.group_create, ranks.device(0), &longer.head, &group);
  block.group_destroy(group);
}

void refused_collectives(CaseContext& context) {
  Ranks ranks(context, 1);
  const tenon_collectives_table& block = ranks.block();
  Buffer buffer = ranks.buffer(0, operand(0, 64, TENON_DTYPE_F32));
  const tenon_collective good =
      collective(TENON_COLLECTIVE_ALL_REDUCE, TENON_DTYPE_F32, 64, buffer.address(), buffer.address(), 0, TENON_REDUCE_SUM);
  const auto refuse = [&](auto change, std::initializer_list<tenon_status> allowed, const std::string& what) {
    tenon_collective bad = good;
    change(bad);
    const tenon_collective list[] = {good, bad};
    ErrorText error;
    expect_refusal(block.submit(ranks.group(0), list, sizeof list[0], 2, ranks.stream(0), error), error, allowed, what);
  };
  refuse([](auto& c) { c.kind = 77; }, {TENON_UNSUPPORTED}, "a collective of kind 77");
  refuse([](auto& c) { c.dtype = TENON_DTYPE_NONE; }, {TENON_UNSUPPORTED}, "a collective without a dtype");
  refuse([](auto& c) { c.dtype = TENON_DTYPE_BOOL; }, {TENON_UNSUPPORTED}, "a sum of bool");
  refuse([](auto& c) { c.operation = 77; }, {TENON_UNSUPPORTED}, "operation 77");
  refuse([](auto& c) { c.needs = TENON_NEEDS_TEST; }, {TENON_UNSUPPORTED}, "a collective with an unknown bit of `needs`");
  refuse([](auto& c) { c.count = UINT64_MAX / 2; }, {TENON_INVALID_ARGUMENT}, "more elements than the address space has");
  refuse([](auto& c) { c.source = 0; }, {TENON_INVALID_ARGUMENT}, "a source of 0");
  refuse([](auto& c) { c.destination += 1; }, {TENON_INVALID_ARGUMENT}, "a destination that is not aligned to its elements");
  refuse(
      [](auto& c) {
        c.kind = TENON_COLLECTIVE_BROADCAST;
        c.operation = 0;
        c.peer = 1;
      },
      {TENON_INVALID_ARGUMENT}, "a broadcast from rank 1 of 1");
  if ((block.dtypes & TENON_DTYPE_BIT(TENON_DTYPE_I32)) != 0) {
    refuse(
        [](auto& c) {
          c.dtype = TENON_DTYPE_I32;
          c.operation = TENON_REDUCE_AVG;
        },
        {TENON_UNSUPPORTED}, "an average of integers");
  }
  ErrorText error;
  expect_refusal(block.submit(ranks.group(0), nullptr, sizeof good, 1, ranks.stream(0), error), error, {TENON_INVALID_ARGUMENT},
                 "collectives at NULL");
  expect_refusal(block.submit(ranks.group(0), &good, 8, 1, ranks.stream(0), error), error, {TENON_INVALID_ARGUMENT},
                 "collectives 8 bytes apart");
  expect_elements(operand(0, 64, TENON_DTYPE_F32), buffer.content("refusals"), "an operand after refusals");
  expect_ok("group_query after refusals", block.group_query, ranks.group(0));
}

/// A rank that never joins is an error of the others, in time.
void missing_rank(CaseContext& context) {
  Ranks ranks(context, 1);
  tenon_group_request request{.struct_size = sizeof request, .size = 2, .timeout_ms = 300};
  expect_ok("group_id", ranks.block().group_id, ranks.backend(), &request.id);
  ErrorText error;
  tenon_group* group = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  const tenon_status status = ranks.block().group_create(ranks.device(0), &request, &group, error);
  if (status == TENON_OK) {
    ranks.block().group_abort(group);
    ranks.block().group_destroy(group);
    fail("group_create returned OK although rank 1 of 2 has not joined");
  }
  if (error.text().empty()) fail("group_create failed without a text that says why");
  if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(250)) fail("group_create did not wait for the other rank");
}

/// An aborted group says so, and takes nothing more.
void abort(CaseContext& context) {
  Ranks ranks(context, 1);
  const tenon_collectives_table& block = ranks.block();
  expect_ok("group_query", block.group_query, ranks.group(0));
  block.group_abort(ranks.group(0));
  block.group_abort(ranks.group(0));
  ErrorText error;
  expect_refusal(block.group_query(ranks.group(0), error), error, {TENON_CANCELLED}, "group_query after group_abort");
  Buffer buffer = ranks.buffer(0, operand(0, 16, TENON_DTYPE_F32));
  const tenon_collective one =
      collective(TENON_COLLECTIVE_ALL_REDUCE, TENON_DTYPE_F32, 16, buffer.address(), buffer.address(), 0, TENON_REDUCE_SUM);
  expect_refusal(block.submit(ranks.group(0), &one, sizeof one, 1, ranks.stream(0), error), error, {TENON_CANCELLED},
                 "submit after group_abort");
}

/// What waits for a rank that does not come ends when the group is aborted, and the stream is usable.
void abort_while_waiting(CaseContext& context) {
  Ranks ranks(context, 2);
  const tenon_collectives_table& block = ranks.block();
  ranks.each([&](std::uint32_t r) {
    if (r == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      block.group_abort(ranks.group(0));
      block.group_abort(ranks.group(1));
      return;
    }
    Buffer buffer = ranks.buffer(0, operand(0, 16, TENON_DTYPE_F32));
    const tenon_collective one =
        collective(TENON_COLLECTIVE_ALL_REDUCE, TENON_DTYPE_F32, 16, buffer.address(), buffer.address(), 0, TENON_REDUCE_SUM);
    ErrorText error;
    const tenon_status status = block.submit(ranks.group(0), &one, sizeof one, 1, ranks.stream(0), error);
    if (status != TENON_OK) expect_refusal(status, error, {TENON_CANCELLED}, "submit in a group that is being aborted");
    buffer.content("a collective that was aborted");
  });
  Buffer buffer = ranks.buffer(0, operand(3, 16, TENON_DTYPE_F32));
  expect_elements(operand(3, 16, TENON_DTYPE_F32), buffer.content("a copy"), "a stream after an aborted collective");
}

/// Groups give back what they take.
void nothing_left(CaseContext& context) {
  Another another(context);
  const tenon_collectives_table& block = collectives_of(another.table());
  tenon_device* device = nullptr;
  expect_ok("device_open", another.table().device_open, another.backend, 0u, &device);
  for (int round = 0; round < 8; ++round) {
    tenon_group_request request{.struct_size = sizeof request, .size = 1, .timeout_ms = 60'000};
    expect_ok("group_id", block.group_id, another.backend, &request.id);
    tenon_group* group = nullptr;
    expect_ok("group_create", block.group_create, device, &request, &group);
    if (round % 2 == 1) block.group_abort(group);
    block.group_destroy(group);
  }
  another.table().device_close(device);
  another.end();
}

}  // namespace

std::vector<Case> core_collective_cases() {
  return core_cases({
      {"collectives/ids", ids},
      {"collectives/refused_requests", refused_requests},
      {"collectives/refused", refused_collectives},
      {"collectives/together", together},
      {"collectives/all_reduce_1", all_reduce<1>},
      {"collectives/all_reduce_2", all_reduce<2>},
      {"collectives/all_reduce_4", all_reduce<4>},
      {"collectives/reduce_scatter_1", reduce_scatter<1>},
      {"collectives/reduce_scatter_2", reduce_scatter<2>},
      {"collectives/reduce_scatter_4", reduce_scatter<4>},
      {"collectives/all_gather_1", all_gather<1>},
      {"collectives/all_gather_2", all_gather<2>},
      {"collectives/all_gather_4", all_gather<4>},
      {"collectives/broadcast_1", broadcast<1>},
      {"collectives/broadcast_2", broadcast<2>},
      {"collectives/broadcast_4", broadcast<4>},
      {"collectives/send_and_receive_2", send_and_receive<2>},
      {"collectives/send_and_receive_4", send_and_receive<4>},
      {"collectives/same_bits_2", same_bits<2>},
      {"collectives/same_bits_4", same_bits<4>},
      {"collectives/missing_rank", missing_rank},
      {"collectives/abort", abort},
      {"collectives/abort_while_waiting", abort_while_waiting},
      {"collectives/nothing_left", nothing_left},
  });
}

}  // namespace tenon::conformance
