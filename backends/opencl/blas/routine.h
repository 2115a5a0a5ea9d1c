// SPDX-License-Identifier: Apache-2.0
// blas/routine.h - a BLAS routine: its name and what it does with its arguments `p`, whose elements are `T`.
//
//   TENON_OPENCL_BLAS(axpy, over_pairs(p, "axpy", p.alpha))
#pragma once

#include "blas/operands.h"

namespace tenon::opencl::blas {

/// The arguments of each signature class: the fields of its line in tenon/blas_args.def. Operands are addresses of the device, numbers in
/// place and results as given; see sdk::arguments.
namespace arguments {
#define TENON_BLAS_ARGS(signature, fields) \
  template <class T>                       \
  struct signature {                       \
    Stream& stream;                        \
    fields                                 \
  };
#define TENON_FLAG(name) std::uint32_t name;
#define TENON_SIZE(name) std::int64_t name;
#define TENON_IN(name) const T* name;
#define TENON_OUT(name) T* name;
#define TENON_LIST(name) const std::uint64_t* name;
#define TENON_SCALAR(name) Scalar<T> name;
#define TENON_REAL_SCALAR(name) Scalar<T> name;
#define TENON_NUMBERS(name) tenon_scalar name;
#define TENON_REAL_NUMBER(name) tenon_scalar name;
#define TENON_RESULT(name) tenon_scalar name;
#define TENON_RESERVED
#include <tenon/blas_args.def>
}  // namespace arguments

namespace detail {
template <class T>
Scalar<T> scalar(const Stream& stream, const tenon_scalar& given, bool is_real) {
  Scalar<T> x{.form = is_real ? Scalar<T>::real : Scalar<T>::plain};
  const auto* const address = sdk::detail::pointer<const void>(given.address);
  if (given.on_device != 0) {
    x.memory = stream.device().place_of(address);
  } else if (address != nullptr) {
    x.value = is_real ? T(*static_cast<const sdk::Real<T>*>(address)) : *static_cast<const T*>(address);
  }
  return x;
}

#define TENON_BLAS_ARGS(signature, fields)                                                               \
  template <class Routine, class T>                                                                      \
  arguments::signature<T> typed(Stream& stream, const tenon_blas_##signature##_args& given) {            \
    [[maybe_unused]] constexpr sdk::detail::RealScalars real = sdk::detail::real_scalars(Routine::name); \
    return {stream fields};                                                                              \
  }
#define TENON_FLAG(name) , given.name
#define TENON_SIZE(name) , given.name
#define TENON_IN(name) , sdk::detail::pointer<const T>(given.name)
#define TENON_OUT(name) , sdk::detail::pointer<T>(given.name)
#define TENON_LIST(name) , given.name
#define TENON_SCALAR(name) , scalar<T>(stream, given.name, real.has(#name))
#define TENON_REAL_SCALAR(name) , scalar<T>(stream, given.name, true)
#define TENON_NUMBERS(name) , given.name
#define TENON_REAL_NUMBER(name) , given.name
#define TENON_RESULT(name) , given.name
#define TENON_RESERVED
#include <tenon/blas_args.def>

template <class Routine, class Args>
tenon_status slot(const tenon_blas_call* call, const Args* given, tenon_error* error) {
  return sdk::detail::run_blas(Routine::name, typename Routine::Types{}, *call, *given, error, [call]<class T>(const Args& args) {
    auto& stream = static_cast<Stream&>(sdk::stream_of(call->stream));
    const bool needs_f64 =
        sizeof(sdk::Real<T>) == 8 || sdk::detail::same_name(Routine::name, "dsdot") || sdk::detail::same_name(Routine::name, "sdsdot");
    const sdk::DeviceDescription& device = stream.device().description();
    if (needs_f64 && (device.dtypes & TENON_DTYPE_BIT(TENON_DTYPE_F64)) == 0) {
      throw sdk::Error(TENON_UNSUPPORTED, std::string(Routine::name) + ": expected a device with f64 (cl_khr_fp64), got " + device.name +
                                              ": use f32 or c64, or another device");
    }
    Routine::run(typed<Routine, T>(stream, args));
    stream.flush();
  });
}
}  // namespace detail

/// Defines a routine in the namespace tenon::opencl: its slot of the table, for the dtypes of its line in blas.def.
#define TENON_OPENCL_BLAS(routine, ...)                            \
  namespace blas {                                                 \
  namespace {                                                      \
  struct RoutineOf_##routine : sdk::detail::Blas_##routine {       \
    template <template <class> class Arguments, class T>           \
    static void run(const Arguments<T>& p) {                       \
      __VA_ARGS__;                                                 \
    }                                                              \
  };                                                               \
  }                                                                \
  }                                                                \
  extern const decltype(tenon_blas_table::routine) blas_##routine; \
  const decltype(tenon_blas_table::routine) blas_##routine =       \
      &blas::detail::slot<blas::RoutineOf_##routine, sdk::detail::Blas_##routine::Args>;

}  // namespace tenon::opencl::blas
