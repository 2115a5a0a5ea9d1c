// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/blas.h - BLAS routines of a CPU backend: a function template over the routine's
// arguments, and a last line that registers it.
//
//   template <class T>
//   void axpy(const sdk::arguments::axpy<T>& p) { ... }
//   TENON_BLAS_ROUTINE(axpy)
//
// A routine is offered in the dtypes of its line in tenon/blas.def. The files are blas/level1.cpp,
// level2.cpp and level3.cpp of the backend, all three or none: tools/cmake/backend.cmake then
// writes the table. Addresses are host pointers here and scalars are read before the call, so this
// is for devices with host-addressable memory; a GPU backend fills its tenon_blas_table itself.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include <tenon/backend.h>
#include <tenon/sdk/error.h>
#include <tenon/sdk/host.h>

namespace tenon::sdk {

/// f32 for f32 and c64, f64 for f64 and c128.
template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <class T>
using Real = typename RealOf<T>::Type;
template <class T>
inline constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

/// The destination of a scalar result.
struct Result {
  void* address = nullptr;
  template <class R>
  void set(R value) const {
    *static_cast<R*>(address) = value;
  }
};

/// The arguments of each signature class, typed: the fields of its line in tenon/blas_args.def, and
/// what the call states besides. The core has checked them: sizes are 0 or more, increments are not
/// 0, leading dimensions cover their rows or columns, and addresses are not NULL where something is
/// read or written. Vectors: element i at x[i * incx], counted from the array's end where incx is
/// negative. layout, trans, uplo, diag and side are TENON_* constants. Scalars that a routine takes
/// as real numbers have an imaginary part of 0.
namespace arguments {
#define TENON_BLAS_ARGS(signature, fields)                    \
  template <class T>                                          \
  struct signature {                                          \
    Host host;          /* for the run of the call */         \
    std::uint32_t math; /* TENON_MATH_*, of level 3 */        \
    bool deterministic; /* bits independent of the threads */ \
    fields                                                    \
  };
#define TENON_FLAG(name) std::uint32_t name;
#define TENON_SIZE(name) std::int64_t name;
#define TENON_IN(name) const T* name;
#define TENON_OUT(name) T* name;
#define TENON_LIST(name) const std::uint64_t* name;
#define TENON_SCALAR(name) T name;
#define TENON_REAL_SCALAR(name) Real<T> name;
#define TENON_NUMBERS(name) T* name;
#define TENON_REAL_NUMBER(name) Real<T>* name;
#define TENON_RESULT(name) Result name;
#define TENON_RESERVED
#include <tenon/blas_args.def>

template <class T, class Batch>
gemm<T> one_of(const Batch& p, const T* a, const T* b, T* c) {
  return {p.host, p.math, p.deterministic, p.layout, 0, p.trans_a, p.trans_b, p.m, p.n, p.k, p.alpha, a, p.lda, b, p.ldb, p.beta, c, p.ldc};
}
/// The i-th product of a batch.
template <class T>
gemm<T> product(const gemm_batched<T>& p, std::int64_t i) {
  const auto at = [i](const std::uint64_t* list) { return reinterpret_cast<T*>(static_cast<std::uintptr_t>(list[i])); };
  return one_of<T>(p, at(p.a), at(p.b), at(p.c));
}
template <class T>
gemm<T> product(const gemm_strided_batched<T>& p, std::int64_t i) {
  // An operand that is not read may be NULL and stays NULL.
  const auto at = [i](auto* first, std::int64_t stride) { return first == nullptr ? nullptr : first + i * stride; };
  return one_of<T>(p, at(p.a, p.stride_a), at(p.b, p.stride_b), at(p.c, p.stride_c));
}
}  // namespace arguments

namespace detail {
/// The host of an SDK device.
const Host& host_of(const tenon_device* device);
/// Throws UNSUPPORTED for a call with something that the SDK or the routine does not know, and says
/// what.
[[noreturn]] void refuse_blas_call(const char* routine, const tenon_blas_call& call);

template <class T>
inline constexpr tenon_dtype blas_dtype = is_complex<T> ? (sizeof(T) == 8 ? TENON_DTYPE_C64 : TENON_DTYPE_C128)
                                                        : (sizeof(T) == 4 ? TENON_DTYPE_F32 : TENON_DTYPE_F64);

/// Calls body.operator()<T>(arguments) for the T of the call's dtype. Fields that the sender's record
/// does not have are 0.
template <class... Types, class Args, class Body>
tenon_status run_blas(const char* routine, std::tuple<Types...>, const tenon_blas_call& call, const Args& given, tenon_error* error,
                      const Body& body) noexcept {
  try {
    const bool known = call.needs == 0 && call.math <= TENON_MATH_BF16 && call.deterministic <= 1;
    const auto dispatch = [&](const Args& args) {
      return known && ((call.dtype == blas_dtype<Types> && (body.template operator()<Types>(args), true)) || ...);
    };
    bool done = false;
    if (given.struct_size >= sizeof given) [[likely]] {
      done = dispatch(given);
    } else {
      Args whole{};
      std::memcpy(static_cast<void*>(&whole), &given, given.struct_size);
      done = dispatch(whole);
    }
    if (!done) refuse_blas_call(routine, call);
    return TENON_OK;
  } catch (...) {
    return report_current_exception(error);
  }
}

template <class T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}
using Types_s = std::tuple<float>;
using Types_sd = std::tuple<float, double>;
using Types_cz = std::tuple<std::complex<float>, std::complex<double>>;
using Types_sdcz = std::tuple<float, double, std::complex<float>, std::complex<double>>;

/// Scalars that are real although the routine's operands are complex.
struct RealScalars {
  bool alpha = false, beta = false;
  constexpr bool has(const char* name) const { return name[0] == 'a' ? alpha : name[0] == 'b' && beta; }
};
constexpr bool same_name(const char* a, const char* b) {
  for (; *a != 0 || *b != 0; ++a, ++b) {
    if (*a != *b) return false;
  }
  return true;
}
constexpr RealScalars real_scalars(const char* routine) {
  const auto is = [&](const char* name) { return same_name(routine, name); };
  return {is("rscal") || is("her") || is("hpr") || is("herk"), is("herk") || is("her2k")};
}
template <class T, bool is_real>
T scalar(const tenon_scalar& given) {
  using Stored = std::conditional_t<is_real, Real<T>, T>;
  return given.address == 0 ? T(0) : T(*pointer<const Stored>(given.address));
}

// A record with types. `Routine` says which scalars are real.
#define TENON_BLAS_ARGS(signature, fields)                                                                 \
  template <class Routine, class T>                                                                        \
  arguments::signature<T> typed(const tenon_blas_call& call, const tenon_blas_##signature##_args& given) { \
    [[maybe_unused]] constexpr RealScalars real = real_scalars(Routine::name);                             \
    arguments::signature<T> p;                                                                             \
    p.host = host_of(call.device).with(call.run);                                                          \
    p.math = call.math;                                                                                    \
    p.deterministic = call.deterministic != 0;                                                             \
    fields return p;                                                                                       \
  }
#define TENON_FLAG(name) p.name = given.name;
#define TENON_SIZE(name) p.name = given.name;
#define TENON_IN(name) p.name = pointer<const T>(given.name);
#define TENON_OUT(name) p.name = pointer<T>(given.name);
#define TENON_LIST(name) p.name = given.name;
#define TENON_SCALAR(name) p.name = scalar<T, real.has(#name)>(given.name);
#define TENON_REAL_SCALAR(name) p.name = scalar<Real<T>, false>(given.name);
#define TENON_NUMBERS(name) p.name = pointer<T>(given.name.address);
#define TENON_REAL_NUMBER(name) p.name = pointer<Real<T>>(given.name.address);
#define TENON_RESULT(name) p.name = {pointer<void>(given.name.address)};
#define TENON_RESERVED
#include <tenon/blas_args.def>

/// The slot of a CPU backend's routine.
template <class Routine, class Args>
tenon_status slot(const tenon_blas_call* call, const Args* given, tenon_error* error) {
  return run_blas(Routine::name, typename Routine::Types{}, *call, *given, error,
                  [call]<class T>(const Args& args) { Routine::run(typed<Routine, T>(*call, args)); });
}

/// A line of blas.def: `Blas_gemm`.
#define TENON_BLAS(id, routine, level, signature, dtypes) \
  struct Blas_##routine {                                 \
    using Types = Types_##dtypes;                         \
    using Args = tenon_blas_##signature##_args;           \
    static constexpr const char* name = #routine;         \
    static constexpr bool is_level3 = level == 3;         \
  };
#include <tenon/blas.def>
#undef TENON_BLAS

}  // namespace detail
}  // namespace tenon::sdk

/// Registers the function template `routine` of this namespace: its slot of the table, guarded, for
/// the dtypes of its line in blas.def.
#define TENON_BLAS_ROUTINE(routine)                                   \
  namespace {                                                         \
  struct RoutineOf_##routine : ::tenon::sdk::detail::Blas_##routine { \
    template <class Arguments>                                        \
    static void run(const Arguments& arguments) {                     \
      routine(arguments);                                             \
    }                                                                 \
  };                                                                  \
  }                                                                   \
  extern const decltype(tenon_blas_table::routine) blas_##routine;    \
  const decltype(tenon_blas_table::routine) blas_##routine = ::tenon::sdk::detail::slot<RoutineOf_##routine, RoutineOf_##routine::Args>;
