// SPDX-License-Identifier: Apache-2.0
// Changes what an execution reads and writes, before and after that of the unmodified backend.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>
#include <type_traits>

#include "mutant.h"

namespace tenon::mutants {
namespace {

using Value = Graph::Value;

// ---------------------------------------------------------------- before

/// Writes a donated result before its input is read.
void ignore_donation(Execution& run) {
  if (!run.plan.donates) return;
  run.each_output([&](const Value& value) { std::memset(run.bytes_of(value), 0, value.size_bytes()); });
}

/// Keeps the parameters of the first execution forever.
void keep_parameters(Execution& run) {
  for (const Value& value : run.plan.graph.values) {
    if (value.abi.kind != TENON_VALUE_PARAMETER || !value.is_dense() || value.size_bytes() == 0) continue;
    auto& kept = run.plan.parameters[value.abi.binding];
    const unsigned char* bytes = run.bytes_of(value);
    if (kept.empty()) kept.assign(bytes, bytes + value.size_bytes());
    run.addresses[value.abi.binding] = reinterpret_cast<std::uintptr_t>(kept.data());
  }
}

/// Rounds the operands of f32 products to 10 bits of mantissa.
void round_to_tf32(Execution& run) {
  if (run.op() != TENON_OP_MatMul) return;
  for (std::size_t i = 0; i < 2; ++i) {
    const Value* value = run.input(i);
    if (value == nullptr || value->abi.desc.dtype != TENON_DTYPE_F32) continue;
    change_elements<std::uint32_t>(run.replace(*value), value->count(),
                                   [](std::uint32_t bits, std::uint64_t) { return (bits + 0x1000u) & ~std::uint32_t{0x1FFF}; });
  }
}

/// Reads w (O, C / groups, k...) without the rotation of each window by 180 degrees that the gradient needs.
void skip_filter_rotation(Execution& run) {
  const Value* w = run.op() == TENON_OP_ConvInputGrad ? run.input(1) : nullptr;
  if (w == nullptr) return;
  const auto windows = static_cast<std::uint64_t>(w->shape[0] * w->shape[1]);
  const std::uint64_t size = size_of(w->abi.desc.dtype), count = w->count() / windows;
  unsigned char* bytes = run.replace(*w);
  for (std::uint64_t window = 0; window < windows; ++window, bytes += count * size) {
    for (std::uint64_t i = 0; i < count / 2; ++i)
      std::swap_ranges(bytes + i * size, bytes + (i + 1) * size, bytes + (count - 1 - i) * size);
  }
}

/// Clamps indices that are out of range.
void clamp_indices(Execution& run) {
  if (run.op() != TENON_OP_Gather || run.node().inputs[0] == TENON_NO_INDEX) return;
  const Value* indices = run.input(1);
  if (indices == nullptr) return;
  const auto axis = static_cast<std::size_t>(run.node().as<tenon_attributes_axis>().axis);
  const std::int64_t size = run.plan.graph.values[run.node().inputs[0]].shape[axis];
  unsigned char* bytes = run.replace(*indices);
  const auto clamp = [size](auto index, std::uint64_t) {
    return static_cast<decltype(index)>(std::clamp<std::int64_t>(index, -size, size - 1));
  };
  if (indices->abi.desc.dtype == TENON_DTYPE_I32) change_elements<std::int32_t>(bytes, indices->count(), clamp);
  if (indices->abi.desc.dtype == TENON_DTYPE_I64) change_elements<std::int64_t>(bytes, indices->count(), clamp);
}

/// A vector that ends behind its operand.
void read_past_the_end(Execution& run) {
  const Value* x = run.input(0);
  if (x == nullptr) return;
  static_cast<void>(*static_cast<volatile unsigned char*>(run.bytes_of(*x) + x->size_bytes()));
}

// ---------------------------------------------------------------- after

void wrong_first_element(Execution& run) {
  run.each_output(
      [&](const Value& value) { change_floats(run.bytes_of(value), value, [](auto y, std::uint64_t i) { return i == 0 ? y + 1 : y; }); });
}

/// Ends the loop one element early.
void leave_last_element_out(Execution& run) {
  run.each_output([&](const Value& value) {
    const std::uint64_t size = size_of(value.abi.desc.dtype), last = value.size_bytes() - size;
    std::memcpy(run.bytes_of(value) + last, run.before[value.abi.binding].data() + last, size);
  });
}

void write_past_the_end(Execution& run) {
  run.each_output([&](const Value& value) { run.bytes_of(value)[value.size_bytes()] ^= 0x11; });
}
void write_before_the_start(Execution& run) {
  run.each_output([&](const Value& value) { *(run.bytes_of(value) - 1) ^= 0x11; });
}
void write_past_the_workspace(Execution& run) {
  bytes_at(run.workspace)[run.unmodified_workspace_size] ^= 0x11;
}

/// Writes the mutant's 64 bytes at a multiple of 128.
void write_at_128(Execution& run) {
  const std::uint64_t begin = run.workspace + run.unmodified_workspace_size;
  std::memset(bytes_at((begin + 127) / 128 * 128), 0x11, 64);
}
void round_address_down(Execution& run) {
  const Value* x = run.plan.donates ? nullptr : run.input(0);
  if (x != nullptr) run.addresses[x->abi.binding] &= ~std::uint64_t{63};
}
void lose_rate_of_f32(Execution& run) {
  const Value* rate = run.op() == TENON_OP_SgdStep ? run.input(0) : nullptr;
  if (rate != nullptr && rate->abi.desc.dtype == TENON_DTYPE_F32) std::memset(run.replace(*rate), 0, sizeof(float));
}

void write_input(Execution& run) {
  const Value* x = run.plan.donates ? nullptr : run.input(0);
  if (x != nullptr) run.bytes_of(*x)[0] ^= 1;
}

/// Adds the result to the previous content: beta = 1 instead of 0.
void accumulate(Execution& run) {
  run.each_output([&](const Value& value) {
    const std::vector<unsigned char>& before = run.before[value.abi.binding];
    change_floats(run.bytes_of(value), value, [&](auto y, std::uint64_t i) {
      decltype(y) previous;
      std::memcpy(&previous, before.data() + i * sizeof previous, sizeof previous);
      return y + previous;
    });
  });
}

/// Starts a sum with the previous content of the workspace.
void start_from_workspace(Execution& run) {
  const unsigned char rest = bytes_at(run.workspace)[run.unmodified_workspace_size];
  run.each_output([&](const Value& value) {
    change_floats(run.bytes_of(value), value, [&](auto y, std::uint64_t i) { return i == 0 ? y + static_cast<decltype(y)>(rest) : y; });
  });
}

void swallow_nan(Execution& run) {
  run.each_output([&](const Value& value) {
    change_floats(run.bytes_of(value), value, [](auto y, std::uint64_t) { return std::isnan(y) ? decltype(y){0} : y; });
  });
}

void flush_denormals(Execution& run) {
  run.each_output([&](const Value& value) {
    change_floats(run.bytes_of(value), value,
                  [](auto y, std::uint64_t) { return std::fpclassify(y) == FP_SUBNORMAL ? std::copysign(decltype(y){0}, y) : y; });
  });
}

/// Simulates a reduction whose parts are added in the order of their completion.
void other_last_bit_now_and_then(Execution& run) {
  static std::atomic<int> executions{0};
  if (++executions % 3 != 0) return;
  run.each_output([&](const Value& value) {
    change_floats(run.bytes_of(value), value,
                  [](auto y, std::uint64_t i) { return i == 0 ? std::nextafter(y, std::numeric_limits<decltype(y)>::infinity()) : y; });
  });
}

void double_gradient(Execution& run) {
  if (run.op() != TENON_OP_ReluGrad) return;
  run.each_output([&](const Value& value) { change_floats(run.bytes_of(value), value, [](auto y, std::uint64_t) { return y * 2; }); });
}

/// Adds C times 0, which keeps its NaN.
void read_c_under_beta_zero(Execution& run) {
  if (run.op() != TENON_OP_Gemm || run.node().as<tenon_attributes_gemm>().beta != 0) return;
  const Value *c = run.input(2), *y = run.output(0);
  if (c == nullptr || y == nullptr || c->count() != y->count()) return;
  const unsigned char* from = run.bytes_of(*c);
  change_floats(run.bytes_of(*y), *y, [&](auto value, std::uint64_t i) {
    decltype(value) more;
    std::memcpy(&more, from + i * sizeof more, sizeof more);
    return value + 0 * more;
  });
}

template <class T>
void last_of_ties(const Value& x, const unsigned char* from, const Value& y, unsigned char* to, std::size_t axis) {
  std::uint64_t inner = 1;
  for (std::size_t d = axis + 1; d < x.shape.size(); ++d) inner *= static_cast<std::uint64_t>(x.shape[d]);
  const auto size = static_cast<std::uint64_t>(x.shape[axis]);
  const auto at = [&](std::uint64_t outer, std::uint64_t i, std::uint64_t in) {
    T value;
    std::memcpy(&value, from + ((outer * size + i) * inner + in) * sizeof(T), sizeof value);
    return value;
  };
  change_elements<std::int64_t>(to, y.count(), [&](std::int64_t first, std::uint64_t e) {
    const std::uint64_t outer = e / inner, in = e % inner;
    std::int64_t last = first;
    for (std::uint64_t i = 0; i < size; ++i) {
      if (at(outer, i, in) == at(outer, static_cast<std::uint64_t>(first), in)) last = static_cast<std::int64_t>(i);
    }
    return last;
  });
}
void take_last_of_ties(Execution& run) {
  if (run.op() != TENON_OP_ArgMax) return;
  const Value *x = run.input(0), *y = run.output(0);
  if (x == nullptr || y == nullptr) return;
  const auto axis = static_cast<std::size_t>(run.node().as<tenon_attributes_axis>().axis);
  if (x->abi.desc.dtype == TENON_DTYPE_F32) last_of_ties<float>(*x, run.bytes_of(*x), *y, run.bytes_of(*y), axis);
  if (x->abi.desc.dtype == TENON_DTYPE_F64) last_of_ties<double>(*x, run.bytes_of(*x), *y, run.bytes_of(*y), axis);
}

/// A mean as a product with weights of which most are 0.
void add_zero_times_all(Execution& run) {
  if (run.op() != TENON_OP_AveragePool) return;
  const Value *x = run.input(0), *y = run.output(0);
  if (x == nullptr || y == nullptr || x->abi.desc.dtype != TENON_DTYPE_F32) return;
  float sum = 0;
  change_elements<float>(run.bytes_of(*x), x->count(), [&](float value, std::uint64_t) {
    sum += 0 * value;
    return value;
  });
  change_elements<float>(run.bytes_of(*y), y->count(), [&](float value, std::uint64_t) { return value + sum; });
}

/// Treats the padding before an image as 0.
void let_padding_win(Execution& run) {
  const Value* y = run.op() == TENON_OP_MaxPool ? run.output(0) : nullptr;
  if (y == nullptr) return;
  const auto& window = run.node().as<tenon_attributes_window>();
  change_floats(run.bytes_of(*y), *y, [&](auto value, std::uint64_t e) {
    bool touches = false;
    for (std::size_t d = y->shape.size(); d-- > 2;) {
      const auto size = static_cast<std::uint64_t>(y->shape[d]);
      touches = touches || (e % size == 0 && window.pads_before[d - 2] > 0);
      e /= size;
    }
    return touches ? std::max(value, decltype(value){0}) : value;
  });
}

template <class T>
void saturate(const Value& y, const unsigned char* a, const unsigned char* b, unsigned char* to) {
  change_elements<T>(to, y.count(), [&](T, std::uint64_t i) {
    T x, z;
    std::memcpy(&x, a + i * sizeof(T), sizeof x);
    std::memcpy(&z, b + i * sizeof(T), sizeof z);
    const std::int64_t sum = std::int64_t{x} + std::int64_t{z};
    return static_cast<T>(std::clamp<std::int64_t>(sum, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  });
}
void saturate_sums(Execution& run) {
  if (run.op() != TENON_OP_Add || run.plan.donates) return;
  const Value *a = run.input(0), *b = run.input(1), *y = run.output(0);
  if (a == nullptr || b == nullptr || y == nullptr || a->shape != y->shape || b->shape != y->shape) return;
  const auto apply = [&](auto zero) { saturate<decltype(zero)>(*y, run.bytes_of(*a), run.bytes_of(*b), run.bytes_of(*y)); };
  if (y->abi.desc.dtype == TENON_DTYPE_I8) apply(std::int8_t{});
  if (y->abi.desc.dtype == TENON_DTYPE_U8) apply(std::uint8_t{});
  if (y->abi.desc.dtype == TENON_DTYPE_I16) apply(std::int16_t{});
  if (y->abi.desc.dtype == TENON_DTYPE_I32) apply(std::int32_t{});
}

/// Sums results in memory of the plan that concurrent executions share.
void go_through_shared_scratch(Execution& run) {
  static std::mutex mutex;
  const Value* y = run.output(0);
  if (y == nullptr || y->abi.desc.dtype != TENON_DTYPE_F32) return;
  std::vector<double>& scratch = run.plan.scratch;
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  {
    const std::lock_guard lock(mutex);  // each access is synchronized, but not the sequence of them
    scratch.assign(y->count(), 0);
  }
  pause();
  {
    const std::lock_guard lock(mutex);
    change_elements<float>(run.bytes_of(*y), y->count(), [&](float value, std::uint64_t i) {
      scratch[i] += static_cast<double>(value);
      return value;
    });
  }
  pause();
  const std::lock_guard lock(mutex);
  change_elements<float>(run.bytes_of(*y), y->count(), [&](float, std::uint64_t i) { return static_cast<float>(scratch[i]); });
}

float from_bfloat16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
std::uint16_t to_bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// Rounds the sums of a bf16 product after each term.
void sum_in_bfloat16(Execution& run) {
  const Value *a = run.input(0), *b = run.input(1), *y = run.output(0);
  if (run.op() != TENON_OP_MatMul || a == nullptr || b == nullptr || y == nullptr || y->abi.desc.dtype != TENON_DTYPE_BF16) return;
  if (a->shape.size() != 2 || b->shape.size() != 2) return;
  const auto terms = static_cast<std::uint64_t>(a->shape[1]), columns = static_cast<std::uint64_t>(b->shape[1]);
  const auto at = [&](const Value& from, std::uint64_t i) {
    std::uint16_t bits;
    std::memcpy(&bits, run.bytes_of(from) + i * sizeof bits, sizeof bits);
    return from_bfloat16(bits);
  };
  change_elements<std::uint16_t>(run.bytes_of(*y), y->count(), [&](std::uint16_t, std::uint64_t i) {
    float sum = 0;
    for (std::uint64_t k = 0; k < terms; ++k)
      sum = from_bfloat16(to_bfloat16(sum + at(*a, i / columns * terms + k) * at(*b, k * columns + i % columns)));
    return to_bfloat16(sum);
  });
}

/// The f32 operand and result of a ReduceSum to one line of results; `length` terms make each.
struct Sum {
  explicit Sum(Execution& run) {
    const Value *x = run.input(0), *y = run.output(0);
    if (run.op() != TENON_OP_ReduceSum || x == nullptr || y == nullptr || y->abi.desc.dtype != TENON_DTYPE_F32) return;
    from = run.bytes_of(*x);
    to = run.bytes_of(*y);
    length = x->count() / y->count();
  }
  float term(std::uint64_t i) const {
    float value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    return value;
  }
  void store(float value) const { std::memcpy(to, &value, sizeof value); }
  const unsigned char* from = nullptr;
  unsigned char* to = nullptr;
  std::uint64_t length = 0;
};

/// Adds the terms of the first result one after the other.
void sum_one_by_one(Execution& run) {
  const Sum sum(run);
  if (sum.from == nullptr) return;
  float total = 0;
  for (std::uint64_t i = 0; i < sum.length; ++i) total += sum.term(i);
  sum.store(total);
}

/// Adds parts of the first result as they end.
void sum_as_threads_end(Execution& run) {
  struct Work {
    Sum sum;
    float total = 0;
    std::mutex mutex;
  } work{Sum(run), 0, {}};
  if (work.sum.from == nullptr) return;
  const tenon_host* const host = host_of(run.plan.device);
  host->parallel_for(
      host->context, nullptr, static_cast<std::int64_t>(work.sum.length), 16,
      [](void* argument, std::int64_t begin, std::int64_t end) {
        auto& shared = *static_cast<Work*>(argument);
        float part = 0;
        for (std::int64_t i = begin; i < end; ++i) part += shared.sum.term(static_cast<std::uint64_t>(i));
        const std::lock_guard lock(shared.mutex);
        shared.total += part;
      },
      &work);
  work.sum.store(work.total);
}

/// The last bit of a result depends on how many threads the host has.
void round_by_thread_count(Execution& run) {
  const tenon_host* const host = host_of(run.plan.device);
  if (host->thread_count(host->context, nullptr) % 2 == 0) return;
  run.each_output([&](const Value& value) {
    change_floats(run.bytes_of(value), value,
                  [](auto y, std::uint64_t i) { return i == 0 ? std::nextafter(y, std::numeric_limits<decltype(y)>::infinity()) : y; });
  });
}

/// Leaves the last element of a row out if 15 of 16 remain.
void leave_15th_column_out(Execution& run) {
  const Value* y = run.op() == TENON_OP_Relu ? run.output(0) : nullptr;
  if (y == nullptr || y->shape.empty() || y->shape.back() < 64 || y->shape.back() % 16 != 15) return;
  const auto columns = static_cast<std::uint64_t>(y->shape.back()), size = size_of(y->abi.desc.dtype);
  const unsigned char* before = run.before[y->abi.binding].data();
  for (std::uint64_t i = columns - 1; i < y->count(); i += columns) std::memcpy(run.bytes_of(*y) + i * size, before + i * size, size);
}

/// Counts along an axis in 16 bits.
void lose_long_axes(Execution& run) {
  const Value* y = run.op() == TENON_OP_Softmax ? run.output(0) : nullptr;
  if (y == nullptr || std::none_of(y->shape.begin(), y->shape.end(), [](std::int64_t size) { return size > 0xFFFF; })) return;
  change_floats(run.bytes_of(*y), *y, [](auto value, std::uint64_t) { return value / 2; });
}

/// Compares 64-bit integers as doubles.
void compare_as_doubles(Execution& run) {
  const Value *a = run.input(0), *b = run.input(1), *y = run.output(0);
  if (run.op() != TENON_OP_Less || a == nullptr || b == nullptr || y == nullptr || a->abi.desc.dtype != TENON_DTYPE_I64) return;
  if (a->shape != b->shape) return;
  const auto at = [&](const Value& from, std::uint64_t i) {
    std::int64_t value;
    std::memcpy(&value, run.bytes_of(from) + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  };
  change_elements<unsigned char>(run.bytes_of(*y), y->count(),
                                 [&](unsigned char, std::uint64_t i) { return static_cast<unsigned char>(at(*a, i) < at(*b, i)); });
}

/// Adds 0 to what it moves.
void move_by_adding_zero(Execution& run) {
  if (run.op() != TENON_OP_Transpose) return;
  run.each_output([&](const Value& value) { change_floats(run.bytes_of(value), value, [](auto y, std::uint64_t) { return y + 0; }); });
}

/// Takes one value that is both operands for one operand.
void forget_one_value(Execution& run) {
  if (run.plan.graph.nodes.size() != 1 || run.node().inputs.size() != 2 || run.node().inputs[0] != run.node().inputs[1]) return;
  const Value *x = run.input(0), *y = run.output(0);
  if (x != nullptr && y != nullptr && x->size_bytes() == y->size_bytes()) std::memcpy(run.bytes_of(*y), run.bytes_of(*x), y->size_bytes());
}

struct Hook {
  Mutation mutation;
  void (*apply)(Execution&);
};
const Hook before[] = {
    {Mutation::ignores_donation, ignore_donation},
    {Mutation::stale_packed_weights, keep_parameters},
    {Mutation::tf32_under_strict, round_to_tf32},
    {Mutation::conv_filter_not_rotated, skip_filter_rotation},
    {Mutation::gather_clamps_indices, clamp_indices},
    {Mutation::reads_past_the_end, read_past_the_end},
    {Mutation::reads_at_multiples_of_64, round_address_down},
    {Mutation::reads_rates_as_f64, lose_rate_of_f32},
};
const Hook after[] = {
    {Mutation::wrong_element, wrong_first_element},
    {Mutation::off_by_one, leave_last_element_out},
    {Mutation::writes_past_the_end, write_past_the_end},
    {Mutation::writes_before_the_start, write_before_the_start},
    {Mutation::writes_past_the_workspace, write_past_the_workspace},
    {Mutation::workspace_at_128, write_at_128},
    {Mutation::writes_input, write_input},
    {Mutation::adds_to_the_result, accumulate},
    {Mutation::stale_workspace, start_from_workspace},
    {Mutation::swallows_nan, swallow_nan},
    {Mutation::flushes_denormals, flush_denormals},
    {Mutation::ignores_deterministic, other_last_bit_now_and_then},
    {Mutation::gradient_doubled, double_gradient},
    {Mutation::gemm_reads_c_under_beta_zero, read_c_under_beta_zero},
    {Mutation::arg_max_last_of_ties, take_last_of_ties},
    {Mutation::average_pool_by_weights, add_zero_times_all},
    {Mutation::pool_padding_wins, let_padding_win},
    {Mutation::integer_overflow_saturates, saturate_sums},
    {Mutation::executions_share_scratch, go_through_shared_scratch},
    {Mutation::sums_in_bfloat16, sum_in_bfloat16},
    {Mutation::sums_one_by_one, sum_one_by_one},
    {Mutation::sums_as_threads_end, sum_as_threads_end},
    {Mutation::rounds_by_thread_count, round_by_thread_count},
    {Mutation::leaves_15th_column_out, leave_15th_column_out},
    {Mutation::axes_in_16_bits, lose_long_axes},
    {Mutation::compares_as_doubles, compare_as_doubles},
    {Mutation::moves_by_adding_zero, move_by_adding_zero},
    {Mutation::one_value_is_one_operand, forget_one_value},
};

template <std::size_t count>
void apply(const Hook (&hooks)[count], Execution& run) {
  for (const Hook& hook : hooks) {
    if (hook.mutation == mutation) hook.apply(run);
  }
}

}  // namespace

const Value* Execution::operand(const std::vector<std::uint32_t>& list, std::size_t index) const {
  if (index >= list.size() || list[index] == TENON_NO_INDEX) return nullptr;
  const Value& value = plan.graph.values[list[index]];
  return value.abi.binding != TENON_NO_INDEX && value.is_dense() && value.size_bytes() > 0 ? &value : nullptr;
}
const Value* Execution::input(std::size_t index) const {
  return plan.graph.nodes.empty() ? nullptr : operand(node().inputs, index);
}
const Value* Execution::output(std::size_t index) const {
  return plan.graph.nodes.empty() ? nullptr : operand(node().outputs, index);
}

unsigned char* Execution::replace(const Value& value) {
  const unsigned char* bytes = bytes_of(value);
  copies.emplace_back(bytes, bytes + value.size_bytes());
  addresses[value.abi.binding] = reinterpret_cast<std::uintptr_t>(copies.back().data());
  return copies.back().data();
}

void before_execution(Execution& run) {
  run.before.resize(run.addresses.size());
  run.each_output([&](const Value& value) {
    const unsigned char* bytes = run.bytes_of(value);
    run.before[value.abi.binding].assign(bytes, bytes + value.size_bytes());
  });
  apply(before, run);
}

void after_execution(Execution& run) {
  apply(after, run);
}

}  // namespace tenon::mutants
