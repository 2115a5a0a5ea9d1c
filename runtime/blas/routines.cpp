// SPDX-License-Identifier: Apache-2.0
// Every routine of blas.def: validates the arguments, then calls the queue's backend.
#include <fmt/core.h>

#include <string>

#include "blas/alignment.h"
#include "blas/check.h"
#include "exec/call.h"
#include "exec/device_state.h"
#include "exec/placement.h"
#include "exec/run_context.h"

namespace tenon::blas {

namespace {

std::shared_ptr<const exec::RunContext> run_of(const RunOptions& options) {
  auto run = std::make_shared<const exec::RunContext>(options);
  return run->get() == nullptr ? nullptr : run;
}

tenon_blas_call call_on(const Device& device, tenon_stream* stream, const QueueOptions& options, const exec::RunContext* run) {
  const exec::DeviceState& state = *device.state();
  tenon_blas_call call{};
  call.struct_size = sizeof call;
  call.math = options.precision ? exec::math_of(*options.precision) : state.arithmetic.math;
  call.deterministic = options.deterministic ? std::uint32_t{*options.deterministic} : state.arithmetic.deterministic;
  call.device = state.handle;
  call.stream = stream;
  call.run = run == nullptr ? nullptr : run->get();
  return call;
}

}  // namespace

Queue::Queue(const Device& device, const QueueOptions& options)
    : device_(device),
      run_(run_of(options.run)),
      call_(call_on(device, device.state()->stream, options, run_.get())),
      table_(device.state()->table.blas) {
  device.state()->check_process();
}

Queue::Queue(const Stream& stream, const QueueOptions& options)
    : device_(stream.device()),
      stream_(stream),
      run_(run_of(options.run)),
      call_(call_on(device_, stream.handle(), options, run_.get())),
      table_(device_.state()->table.blas) {}

bool Queue::cancelled() const {
  return run_ != nullptr && run_->cancelled();
}

void Queue::synchronize() const {
  if (stream_) {
    stream_->synchronize();
  } else {
    device_.state()->synchronize();
  }
}

namespace {

std::uint64_t dtypes_of(const Queue& queue, Routine routine) {
  if (queue.table() == nullptr) return 0;
  switch (routine) {
#define TENON_BLAS(id, routine, level, signature, dtypes) \
  case Routine::routine:                                  \
    return queue.table()->routine##_dtypes;
#include <tenon/blas.def>
#undef TENON_BLAS
  }
  return 0;
}

}  // namespace

bool offers(const Queue& queue, Routine routine) {
  return dtypes_of(queue, routine) != 0;
}

bool offers(const Queue& queue, Routine routine, DType dtype) {
  return (dtypes_of(queue, routine) & TENON_DTYPE_BIT(static_cast<tenon_dtype>(dtype))) != 0;
}

namespace {

template <class T>
constexpr tenon_dtype abi_dtype = std::is_same_v<T, float>                 ? TENON_DTYPE_F32
                                  : std::is_same_v<T, double>              ? TENON_DTYPE_F64
                                  : std::is_same_v<T, std::complex<float>> ? TENON_DTYPE_C64
                                                                           : TENON_DTYPE_C128;

std::uint64_t address(const void* pointer) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
}
[[noreturn]] void not_offered(const Queue& queue, Routine routine, tenon_dtype dtype) {
  const std::uint64_t dtypes = dtypes_of(queue, routine);
  std::string taken;
  for (tenon_dtype t = TENON_DTYPE_NONE; t < TENON_DTYPE_COUNT; ++t) {
    if ((dtypes & TENON_DTYPE_BIT(t)) != 0) taken += (taken.empty() ? "" : " or ") + std::string(name_of(static_cast<DType>(t)));
  }
  const std::string what = queue.table() == nullptr ? "has no BLAS"
                           : dtypes == 0            ? "does not offer it"
                                                    : fmt::format("expects {}, got {}", taken, name_of(static_cast<DType>(dtype)));
  throw Error(Status::unsupported, fmt::format("{}: the backend of '{}' {}; run `tenon caps` to see which backends do", name_of(routine),
                                               queue.device().name(), what));
}

// The record of a signature class, from the arguments of the same names.
#define TENON_BLAS_ARGS(signature, fields)                                    \
  template <class T>                                                          \
  tenon_blas_##signature##_args record_of(const arguments::signature<T>& p) { \
    tenon_blas_##signature##_args record;                                     \
    record.struct_size = sizeof record;                                       \
    fields return record;                                                     \
  }
#define TENON_FLAG(name) record.name = static_cast<std::uint32_t>(p.name);
#define TENON_SIZE(name) record.name = p.name;
#define TENON_IN(name) record.name = address(p.name);
#define TENON_OUT(name) record.name = address(p.name);
#define TENON_LIST(name) record.name = p.name;
#define TENON_SCALAR(name) record.name = p.name.abi_scalar();
#define TENON_REAL_SCALAR(name) record.name = p.name.abi_scalar();
#define TENON_NUMBERS(name) record.name = {address(p.name), p.on_device ? 1U : 0U, 0};
#define TENON_REAL_NUMBER(name) TENON_NUMBERS(name)
#define TENON_RESULT(name) record.name = p.name.abi_scalar();
#define TENON_RESERVED record.reserved = 0;
#include <tenon/blas_args.def>

/// Arguments whose place depends on the routine.
template <class Arguments, class Record>
void set_by_routine(Routine, const Arguments&, Record&) {}
template <class T>
void set_by_routine(Routine routine, const arguments::dot<T>& p, tenon_blas_dot_args& record) {
  if (routine == Routine::dsdot) record.result = p.result_f64.abi_scalar();
  if (routine != Routine::sdsdot) record.alpha = {};
}
template <class T>
void set_by_routine(Routine routine, const arguments::reduce<T>& p, tenon_blas_reduce_args& record) {
  if (routine == Routine::iamax || routine == Routine::iamin) record.result = p.index.abi_scalar();
}
template <class T>
void set_by_routine(Routine routine, const arguments::gemm<T>&, tenon_blas_gemm_args& record) {
  if (routine == Routine::gemmt) {
    record.m = 0;
  } else {
    record.uplo = 0;
  }
}

template <class T, class Slot, class Arguments>
void run(const Queue& queue, Routine routine, Slot slot, std::uint64_t dtypes, const Arguments& arguments) {
  if (slot == nullptr || (dtypes & TENON_DTYPE_BIT(abi_dtype<T>)) == 0) not_offered(queue, routine, abi_dtype<T>);
  if (!validate(routine, arguments)) return;
  check_alignment<T>(routine, arguments, queue.device().state()->info.operand_alignment_bytes);
  auto record = record_of(arguments);
  set_by_routine(routine, arguments, record);
  tenon_blas_call call = queue.call();
  call.dtype = abi_dtype<T>;
  if (queue.cancelled()) {
    throw Error(Status::cancelled, fmt::format("{} on '{}': cancelled before the call", name_of(routine), queue.device().name()));
  }
  exec::ErrorText error;
  const tenon_status status = [&] {
    const auto lock = queue.device().state()->submission(call.stream);
    return slot(&call, &record, error);
  }();
  if (status != TENON_OK) exec::check(status, error, fmt::format("{} on '{}'", name_of(routine), queue.device().name()));
}

}  // namespace

#define TENON_BLAS(id, routine, level, signature, dtypes)                                                                        \
  template <class T>                                                                                                             \
  void routine(const Queue& queue, const arguments::signature<T>& arguments) {                                                   \
    const tenon_blas_table* const table = queue.table();                                                                         \
    run<T>(queue, Routine::routine, table == nullptr ? nullptr : table->routine, table == nullptr ? 0 : table->routine##_dtypes, \
           arguments);                                                                                                           \
  }
#include <tenon/blas.def>
#undef TENON_BLAS

#define TENON_INSTANTIATE(routine, signature, T) template void routine<T>(const Queue&, const arguments::signature<T>&);
#define TENON_INSTANTIATE_s(routine, signature) TENON_INSTANTIATE(routine, signature, float)
#define TENON_INSTANTIATE_sd(routine, signature) TENON_INSTANTIATE_s(routine, signature) TENON_INSTANTIATE(routine, signature, double)
#define TENON_INSTANTIATE_cz(routine, signature)             \
  TENON_INSTANTIATE(routine, signature, std::complex<float>) \
  TENON_INSTANTIATE(routine, signature, std::complex<double>)
#define TENON_INSTANTIATE_sdcz(routine, signature) TENON_INSTANTIATE_sd(routine, signature) TENON_INSTANTIATE_cz(routine, signature)
#define TENON_BLAS(id, routine, level, signature, dtypes) TENON_INSTANTIATE_##dtypes(routine, signature)
#include <tenon/blas.def>
#undef TENON_BLAS

}  // namespace tenon::blas
