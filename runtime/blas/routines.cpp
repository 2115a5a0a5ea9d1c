// SPDX-License-Identifier: Apache-2.0
// Every routine of blas.def: validates the arguments, then calls the queue's backend.
#include <fmt/core.h>

#include <string_view>

#include "blas/alignment.h"
#include "blas/check.h"
#include "exec/call.h"
#include "exec/device_state.h"

namespace tenon::blas {

Queue::Queue(const Device& device) : device_(device), handle_(device.state()->stream), table_(device.state()->table.blas) {
  device.state()->check_process();
}

Queue::Queue(const Stream& stream)
    : device_(stream.device()), stream_(stream), handle_(stream.handle()), table_(stream.device().state()->table.blas) {}

void Queue::synchronize() const {
  if (stream_) {
    stream_->synchronize();
  } else {
    device_.state()->synchronize();
  }
}

bool offers(const Queue& queue, Routine routine) {
  if (queue.table() == nullptr) return false;
  switch (routine) {
#define TENON_BLAS(id, routine, level, signature, dtypes) \
  case Routine::routine:                                  \
    return queue.table()->routine != nullptr;
#include <tenon/blas.def>
#undef TENON_BLAS
  }
  return false;
}

namespace {

template <class T>
constexpr tenon_dtype abi_dtype = std::is_same_v<T, float>                 ? TENON_DTYPE_F32
                                  : std::is_same_v<T, double>              ? TENON_DTYPE_F64
                                  : std::is_same_v<T, std::complex<float>> ? TENON_DTYPE_C64
                                                                           : TENON_DTYPE_C128;

template <class E>
std::uint32_t abi_enum(E value) {
  return static_cast<std::uint32_t>(value);
}
std::uint64_t address(const void* pointer) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
}
tenon_scalar place(const void* pointer, bool on_device) {
  return {address(pointer), on_device ? 1U : 0U, 0};
}

[[noreturn]] void not_offered(const Queue& queue, Routine routine) {
  throw Error(Status::unsupported, fmt::format("{}: the backend of '{}' {}; run `tenon caps` to see which backends do", name_of(routine),
                                               queue.device().name(), queue.table() == nullptr ? "has no BLAS" : "does not offer it"));
}

/// A backend's slot with the arguments that all slots share.
template <class T, class Slot>
struct Call {
  const Queue& queue;
  Routine routine;
  Slot slot;

  template <class... Arguments>
  void operator()(Arguments... arguments) const {
    exec::ErrorText error;
    const tenon_status status = slot(queue.device().state()->handle, queue.handle(), abi_dtype<T>, arguments..., error);
    if (status != TENON_OK) exec::check(status, error, fmt::format("{} on '{}'", name_of(routine), queue.device().name()));
  }
};

template <class T, class Call>
void invoke(const Call& call, const arguments::rotg<T>& p) {
  call(address(p.a), address(p.b), address(p.c), address(p.s), p.on_device ? 1U : 0U);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::rotmg<T>& p) {
  call(address(p.d1), address(p.d2), address(p.x1), address(p.y1), address(p.param), p.on_device ? 1U : 0U);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::rot<T>& p) {
  const tenon_scalar c = p.c.abi_scalar(), s = p.s.abi_scalar();
  call(p.n, address(p.x), p.incx, address(p.y), p.incy, &c, &s);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::rotm<T>& p) {
  const tenon_scalar param = place(p.param, p.param_on_device);
  call(p.n, address(p.x), p.incx, address(p.y), p.incy, &param);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::xy<T>& p) {
  call(p.n, address(p.x), p.incx, address(p.y), p.incy);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::scal<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar();
  call(p.n, &alpha, address(p.x), p.incx);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::axpy<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar();
  call(p.n, &alpha, address(p.x), p.incx, address(p.y), p.incy);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::axpby<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  call(p.n, &alpha, address(p.x), p.incx, &beta, address(p.y), p.incy);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::dot<T>& p) {
  const tenon_scalar alpha = place(&p.alpha, false),
                     result = call.routine == Routine::dsdot ? p.result_f64.abi_scalar() : p.result.abi_scalar();
  call(p.n, call.routine == Routine::sdsdot ? &alpha : nullptr, address(p.x), p.incx, address(p.y), p.incy, &result);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::reduce<T>& p) {
  const bool returns_index = call.routine == Routine::iamax || call.routine == Routine::iamin;
  const tenon_scalar result = returns_index ? p.index.abi_scalar() : p.result.abi_scalar();
  call(p.n, address(p.x), p.incx, &result);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::gemv<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.trans), p.m, p.n, p.kl, p.ku, &alpha, address(p.a), p.lda, address(p.x), p.incx, &beta, address(p.y),
       p.incy);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::symv<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.uplo), p.n, p.k, &alpha, address(p.a), p.lda, address(p.x), p.incx, &beta, address(p.y), p.incy);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::trmv<T>& p) {
  call(abi_enum(p.layout), abi_enum(p.uplo), abi_enum(p.trans), abi_enum(p.diag), p.n, p.k, address(p.a), p.lda, address(p.x), p.incx);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::ger<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar();
  call(abi_enum(p.layout), p.m, p.n, &alpha, address(p.x), p.incx, address(p.y), p.incy, address(p.a), p.lda);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::syr<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.uplo), p.n, &alpha, address(p.x), p.incx, address(p.y), p.incy, address(p.a), p.lda);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::gemm<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  const bool triangle = call.routine == Routine::gemmt;
  call(abi_enum(p.layout), triangle ? abi_enum(p.uplo) : 0U, abi_enum(p.trans_a), abi_enum(p.trans_b), triangle ? p.n : p.m, p.n, p.k,
       &alpha, address(p.a), p.lda, address(p.b), p.ldb, &beta, address(p.c), p.ldc);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::symm<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.side), abi_enum(p.uplo), p.m, p.n, &alpha, address(p.a), p.lda, address(p.b), p.ldb, &beta,
       address(p.c), p.ldc);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::syrk<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.uplo), abi_enum(p.trans), p.n, p.k, &alpha, address(p.a), p.lda, address(p.b), p.ldb, &beta,
       address(p.c), p.ldc);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::trmm<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.side), abi_enum(p.uplo), abi_enum(p.trans), abi_enum(p.diag), p.m, p.n, &alpha, address(p.a), p.lda,
       address(p.b), p.ldb);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::geam<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.trans_a), abi_enum(p.trans_b), p.m, p.n, &alpha, address(p.a), p.lda, &beta, address(p.b), p.ldb,
       address(p.c), p.ldc);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::dgmm<T>& p) {
  call(abi_enum(p.layout), abi_enum(p.side), p.m, p.n, address(p.a), p.lda, address(p.x), p.incx, address(p.c), p.ldc);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::gemm_batched<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.trans_a), abi_enum(p.trans_b), p.m, p.n, p.k, &alpha, p.a, p.lda, p.b, p.ldb, &beta, p.c, p.ldc,
       p.batch);
}
template <class T, class Call>
void invoke(const Call& call, const arguments::gemm_strided_batched<T>& p) {
  const tenon_scalar alpha = p.alpha.abi_scalar(), beta = p.beta.abi_scalar();
  call(abi_enum(p.layout), abi_enum(p.trans_a), abi_enum(p.trans_b), p.m, p.n, p.k, &alpha, address(p.a), p.lda, p.stride_a, address(p.b),
       p.ldb, p.stride_b, &beta, address(p.c), p.ldc, p.stride_c, p.batch);
}

template <class T, class Slot, class Arguments>
void run(const Queue& queue, Routine routine, Slot slot, const Arguments& arguments) {
  if (slot == nullptr) not_offered(queue, routine);
  if (!validate(routine, arguments)) return;
  check_alignment<T>(routine, arguments, queue.device().state()->info.operand_alignment_bytes);
  invoke<T>(Call<T, Slot>{queue, routine, slot}, arguments);
}

}  // namespace

#define TENON_BLAS(id, routine, level, signature, dtypes)                                                    \
  template <class T>                                                                                         \
  void routine(const Queue& queue, const arguments::signature<T>& arguments) {                               \
    run<T>(queue, Routine::routine, queue.table() == nullptr ? nullptr : queue.table()->routine, arguments); \
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
