// SPDX-License-Identifier: Apache-2.0
#include "gemm/fp8_products.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "gemm/fp8_quantize.h"
#include "gemm/product_naive.h"
#include "gemm/scratch_arena.h"
#include "libraries/cublas_lt.h"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

constexpr std::uint32_t min_alignment = 16;  // of every address that cuBLASLt gets

std::uint64_t address_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}
bool is_aligned(const void* address) {
  return address_of(address) % min_alignment == 0;
}
std::size_t count_of(std::int64_t entries, std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(entries * rows * columns);
}

/// What a product needs besides its operands.
struct Memory {
  Fp8State *a_state, *b_state;
  void *a_codes, *b_codes, *partials;

  Memory(ScratchArena& arena, const Fp8Shape& shape)
      : a_state(arena.allocate<Fp8State>(1)),
        b_state(arena.allocate<Fp8State>(1)),
        a_codes(arena.allocate_bytes(count_of(shape.a_entries, shape.m, shape.k))),
        b_codes(arena.allocate_bytes(shape.b_packed ? 0 : count_of(shape.b_entries, shape.n, shape.k))),
        partials(arena.allocate_bytes(fp8_partials_bytes)) {}
};

/// Logs each product once: that it runs in FP8, or that cuBLASLt has no algorithm for it.
class Fp8Log {
 public:
  explicit Fp8Log(Device& device) : device_(device) {}
  void write(const Product& p, const Fp8Shape& shape, bool found) {
    const std::lock_guard lock(mutex_);
    if (!written_.insert({shape, p.dtype, found}).second) return;
    std::string line = "product of " + std::string(sdk::name_of(p.dtype)) + " (" + std::to_string(shape.m) + "," + std::to_string(shape.k) +
                       ") by (" + std::to_string(shape.k) + "," + std::to_string(shape.n) + "), batch " + std::to_string(shape.batch());
    line += found ? ": in FP8" : ": not in FP8, because cuBLASLt has no algorithm for it";
    device_.host.log(found ? TENON_LOG_DEBUG : TENON_LOG_WARNING, line.c_str());
  }

 private:
  Device& device_;
  std::mutex mutex_;
  std::set<std::tuple<Fp8Shape, tenon_dtype, bool>> written_;
};

}  // namespace

std::size_t fp8_scratch_bytes(const Fp8Shape& shape) {
  ScratchArena arena(nullptr);
  const Memory counted(arena, shape);
  return arena.required_bytes();
}

std::size_t Fp8Packed::size_bytes(const Fp8Shape& shape) {
  const std::size_t count = count_of(1, shape.n, shape.k);
  return sizeof(Fp8State) + fp8_partials_bytes + count + 2 * count + 4 * product_alignment;
}

Fp8Packed::Fp8Packed(const void* memory, const Fp8Shape& shape) {
  // The copies begin at multiples of `product_alignment` bytes from the memory, which itself has at least the alignment of operands.
  const auto* const begin = static_cast<const char*>(memory);
  const std::size_t count = count_of(1, shape.n, shape.k);
  state = reinterpret_cast<const Fp8State*>(begin);
  codes = begin + product_alignment;
  elements = begin + product_alignment + sdk::aligned_size(count, product_alignment);
  view = {shape.k, shape.n, 1, shape.k};
}

void fp8_pack(Stream& stream, const sdk::Operand& b, const sdk::MatrixView& view, const Fp8Shape& shape, void* memory) {
  const Fp8Packed to(memory, shape);
  auto* const elements = const_cast<void*>(to.elements);
  const std::int64_t sizes[2] = {shape.n, shape.k};
  copy_strided(stream, sizeof(std::uint16_t),
               {.shape = sizes,
                .rank = 2,
                .from = b.data,
                .from_strides = {view.column_stride, view.row_stride},
                .to = elements,
                .to_strides = {shape.k, 1}});
  const Fp8Tensor tensor{
      .data = elements, .view = to.view.transposed(), .state = const_cast<Fp8State*>(to.state), .codes = const_cast<void*>(to.codes)};
  void* const partials = static_cast<char*>(elements) + sdk::aligned_size(2 * count_of(1, shape.n, shape.k), product_alignment);
  fp8_quantize(stream, b.dtype, tensor, {.entries = 0}, partials);
}

bool multiply_fp8(Stream& stream, const Product& p, void* workspace, bool& out_bias_added) {
  const bool has_addend = p.c != nullptr && p.beta != 0;
  if (p.batch.rank > 1 || !is_aligned(p.y)) return false;
  // Results are computed again from c, which therefore must still be there.
  if (has_addend && (!is_aligned(p.c) || p.c == p.y)) return false;
  Device& device = stream.device();
  LtDevice& library = device.attached.get<LtDevice>(device);
  const std::int64_t steps[2] = {p.batch.rank == 0 ? 0 : p.batch.strides[0][0], p.batch.rank == 0 ? 0 : p.batch.strides[1][0]};
  const Fp8Shape& shape = p.fp8.shape;
  ScratchArena arena(p.fp8.memory);
  const Memory memory(arena, shape);
  const Fp8State* b_state = memory.b_state;
  const void* b_codes = memory.b_codes;
  if (shape.b_packed) {
    const Fp8Packed packed(p.fp8.packed_b, shape);
    b_state = packed.state;
    b_codes = packed.codes;
  }

  // y' = b' a' in columns: b' is (n, k), stored as its transpose. Entries of a are one matrix if they share b.
  const bool merged = shape.b_entries == 1;
  const std::int64_t batch = merged ? 1 : shape.batch(), rows = merged ? shape.batch() * shape.m : shape.m;
  const cudaDataType_t type = p.dtype == TENON_DTYPE_F16 ? CUDA_R_16F : CUDA_R_16BF;
  LtOperands operands{};
  operands.a = b_codes;
  operands.b = memory.a_codes;
  operands.c = has_addend ? p.c : p.y;
  operands.d = p.y;
  operands.workspace = workspace;
  operands.a_scale = &b_state->scale;
  operands.b_scale = &memory.a_state->scale;
  const std::uint32_t of_step = batch == 1 ? 256u : alignment_of(static_cast<std::uint64_t>(2 * rows * shape.n));
  const std::uint32_t of_y = std::min({alignment_of(address_of(p.y)), alignment_of(address_of(operands.c)), of_step});
  const auto alignment = [batch](const void* address, std::int64_t step) {
    return std::min(alignment_of(address_of(address)), batch == 1 ? 256u : alignment_of(static_cast<std::uint64_t>(step)));
  };
  const std::int64_t a_step = shape.a_entries == 1 ? 0 : shape.m * shape.k, b_step = shape.b_entries == 1 ? 0 : shape.n * shape.k;
  LtProblem problem{.type = CUDA_R_8F_E4M3,
                    .result_type = type,
                    .compute = CUBLAS_COMPUTE_32F,
                    .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                    .batch = static_cast<std::int32_t>(batch),
                    .a = {shape.k, shape.n, shape.k, b_step, alignment(operands.a, b_step), true},
                    .b = {shape.k, rows, shape.k, a_step, alignment(operands.b, a_step), false},
                    .d = {shape.n, rows, shape.n, rows * shape.n, of_y, false},
                    .workspace_bytes = product_workspace_bytes(p.batch.count * shape.m * shape.n)};
  const auto can_run = [&] { return library.can_multiply(problem, operands); };
  bool found = false;
  out_bias_added = p.bias != nullptr && is_aligned(p.bias);
  if (out_bias_added) {
    problem.epilogue = CUBLASLT_EPILOGUE_BIAS;
    operands.bias = p.bias;
    found = out_bias_added = can_run();
  }
  if (!found) {
    problem.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    operands.bias = nullptr;
    found = can_run();
  }
  device.attached.get<Fp8Log>(device).write(p, shape, found);
  if (!found) return false;

  const Fp8Tensor a{
      .data = p.a, .view = p.a_view, .entries = shape.a_entries, .step = steps[0], .state = memory.a_state, .codes = memory.a_codes};
  const Fp8Tensor b{.data = p.b,
                    .view = p.b_view.transposed(),
                    .entries = shape.b_packed ? 0 : shape.b_entries,
                    .step = steps[1],
                    .state = memory.b_state,
                    .codes = memory.b_codes};
  fp8_quantize(stream, p.dtype, a, b, memory.partials);
  library.multiply(stream, problem, operands, p.alpha, has_addend ? p.beta : 0);
  Product again = p;
  if (!out_bias_added) again.bias = nullptr;
  again.activation = {};
  again.relu_result = nullptr;
  multiply_naively_where_fp8_fails(stream, again, {memory.a_state, b_state});
  return true;
}

}  // namespace tenon::cuda
