// SPDX-License-Identifier: Apache-2.0
// BLAS in the C API.
#include <tenon/blas.h>

#include <algorithm>
#include <complex>
#include <string_view>
#include <type_traits>

#include "c/json.h"
#include "c/run.h"

namespace tenon::c {
namespace {

using blas::Routine;

/// The routines whose scalars are of the real dtype also for complex operands.
bool has_real_scalar(Routine routine, std::string_view scalar) {
  switch (routine) {
    case Routine::rscal:
    case Routine::her:
    case Routine::hpr:
      return scalar == "alpha";
    case Routine::herk:
      return scalar == "alpha" || scalar == "beta";
    case Routine::her2k:
      return scalar == "beta";
    default:
      return false;
  }
}

template <class T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

/// A scalar of a record, of the real dtype if `is_real`; absent ones keep their usual value.
template <class V>
void set(blas::Scalar<V>& scalar, const tenon_scalar& given, bool is_real) {
  if (given.address == 0) return;
  if (given.on_device != 0) {
    scalar = blas::Scalar<V>::on_device(pointer<const V>(given.address));
  } else if (is_real) {
    blas::Real<V> value;
    std::memcpy(&value, pointer<const void>(given.address), sizeof value);
    scalar = V(value);
  } else {
    V value;
    std::memcpy(static_cast<void*>(&value), pointer<const void>(given.address), sizeof value);
    scalar = value;
  }
}

template <class R>
void set(blas::Result<R>& result, const tenon_scalar& given) {
  R* const address = pointer<R>(given.address);
  result = given.on_device != 0 ? blas::Result<R>::on_device(address) : blas::Result<R>(address);
}

// The arguments of a signature class, from the record with the same names.
#define TENON_BLAS_ARGS(signature, fields)                                                                               \
  template <class T>                                                                                                     \
  blas::arguments::signature<T> arguments_of([[maybe_unused]] Routine routine, const tenon_blas_##signature##_args& r) { \
    blas::arguments::signature<T> p;                                                                                     \
    fields return p;                                                                                                     \
  }
#define TENON_FLAG(name) \
  if (r.name != 0) p.name = static_cast<decltype(p.name)>(r.name);
#define TENON_SIZE(name) p.name = r.name;
#define TENON_IN(name) p.name = pointer<std::remove_pointer_t<decltype(p.name)>>(r.name);
#define TENON_OUT(name) p.name = pointer<std::remove_pointer_t<decltype(p.name)>>(r.name);
#define TENON_LIST(name) p.name = r.name;
#define TENON_SCALAR(name) set(p.name, r.name, has_real_scalar(routine, #name));
#define TENON_REAL_SCALAR(name) set(p.name, r.name, false);
#define TENON_NUMBERS(name)                                                  \
  p.name = pointer<std::remove_pointer_t<decltype(p.name)>>(r.name.address); \
  p.on_device = p.on_device || r.name.on_device != 0;
#define TENON_REAL_NUMBER(name) TENON_NUMBERS(name)
#define TENON_RESULT(name) set(p.name, r.name);
#define TENON_RESERVED
#include <tenon/blas_args.def>

/// Results whose dtype depends on the routine.
template <class Arguments, class Record>
void set_by_routine(Routine, const Record&, Arguments&) {}
template <class T>
void set_by_routine(Routine routine, const tenon_blas_dot_args& r, blas::arguments::dot<T>& p) {
  if (routine == Routine::dsdot) set(p.result_f64, r.result);
}
template <class T>
void set_by_routine(Routine routine, const tenon_blas_reduce_args& r, blas::arguments::reduce<T>& p) {
  if (routine == Routine::iamax || routine == Routine::iamin) set(p.index, r.result);
}

template <class T, class Record, class Call>
void call(Routine routine, const Record* given, const Call& run) {
  const Record record = options_of(given, "arguments");
  auto arguments = arguments_of<T>(routine, record);
  set_by_routine(routine, record, arguments);
  run(arguments);
}

[[noreturn]] void wrong_dtype(Routine routine, tenon_dtype dtype, const char* letters) {
  throw Error(Status::unsupported,
              std::string(name_of(routine)) + ": expected one of the dtypes " + letters + " (s: f32, d: f64, c: c64, z: c128), got " +
                  (dtype <= TENON_DTYPE_BOOL ? tenon::name_of(static_cast<DType>(dtype)) : std::to_string(dtype).c_str()));
}

// A case for each dtype of a routine, by the letters of its line.
#define TENON_CASE(abi_dtype, T, routine) \
  case abi_dtype:                         \
    return call<T>(id, record, [&](const auto& typed) { blas::routine<T>(queue, typed); });
#define TENON_CASES_s(routine) TENON_CASE(TENON_DTYPE_F32, float, routine)
#define TENON_CASES_sd(routine) TENON_CASES_s(routine) TENON_CASE(TENON_DTYPE_F64, double, routine)
#define TENON_CASES_cz(routine)                             \
  TENON_CASE(TENON_DTYPE_C64, std::complex<float>, routine) \
  TENON_CASE(TENON_DTYPE_C128, std::complex<double>, routine)
#define TENON_CASES_sdcz(routine) TENON_CASES_sd(routine) TENON_CASES_cz(routine)

void run(const blas::Queue& queue, std::uint32_t routine_id, tenon_dtype dtype, const void* arguments) {
  switch (routine_id) {
#define TENON_BLAS(number, routine, level, signature, dtypes)                                   \
  case number: {                                                                                \
    constexpr Routine id = Routine::routine;                                                    \
    const auto* record = static_cast<const tenon_blas_##signature##_args*>(arguments);          \
    switch (dtype) { TENON_CASES_##dtypes(routine) default : wrong_dtype(id, dtype, #dtypes); } \
  }
#include <tenon/blas.def>
#undef TENON_BLAS
    default:
      throw BadArgument("routine: expected a TENON_BLAS_* value, got " + std::to_string(routine_id));
  }
}

// The fields of a record, as [{name, kind}].
#define TENON_BLAS_ARGS(signature, fields) \
  Json fields_of_##signature() {           \
    Json list = Json::array();             \
    fields return list;                    \
  }
#define TENON_FIELD(name, kind) list.push_back({{"name", name}, {"kind", kind}});
#define TENON_FLAG(name) TENON_FIELD(#name, "flag")
#define TENON_SIZE(name) TENON_FIELD(#name, "size")
#define TENON_IN(name) TENON_FIELD(#name, "in")
#define TENON_OUT(name) TENON_FIELD(#name, "out")
#define TENON_LIST(name) TENON_FIELD(#name, "list")
#define TENON_SCALAR(name) TENON_FIELD(#name, "scalar")
#define TENON_REAL_SCALAR(name) TENON_FIELD(#name, "real_scalar")
#define TENON_NUMBERS(name) TENON_FIELD(#name, "numbers")
#define TENON_REAL_NUMBER(name) TENON_FIELD(#name, "real_number")
#define TENON_RESULT(name) TENON_FIELD(#name, "result")
#define TENON_RESERVED TENON_FIELD("reserved", "reserved")
#include <tenon/blas_args.def>
#undef TENON_FIELD

Json real_scalars_of(Routine routine) {
  Json names = Json::array();
  for (const char* scalar : {"alpha", "beta"}) {
    if (has_real_scalar(routine, scalar)) names.push_back(scalar);
  }
  return names;
}

/// The dtype of the number that a routine gives: that of the call, its real one, or one of its own.
Json result_of(Routine routine) {
  switch (routine) {
    case Routine::dot:
    case Routine::dotu:
    case Routine::dotc:
    case Routine::sdsdot:
      return "call";
    case Routine::nrm2:
    case Routine::asum:
      return "real";
    case Routine::dsdot:
      return "f64";
    case Routine::iamax:
    case Routine::iamin:
      return "i64";
    default:
      return nullptr;
  }
}

blas::Op op_of(std::uint32_t trans, const char* argument) {
  if (trans == 0) return blas::Op::none;
  if (trans < TENON_NO_TRANS || trans > TENON_CONJ_NO_TRANS)
    throw BadArgument(std::string(argument) + ": expected TENON_NO_TRANS, TENON_TRANS, TENON_CONJ_TRANS or TENON_CONJ_NO_TRANS, got " +
                      std::to_string(trans));
  return static_cast<blas::Op>(trans);
}

blas::Queue queue_on(const TenonDevice* device) {
  return blas::Queue(get(device, "device").value);
}

const Tensor& operand(const TenonTensor* tensor, const char* argument) {
  return get(tensor, argument).value;
}

}  // namespace
}  // namespace tenon::c

using namespace tenon;
using namespace tenon::c;

TenonError* tenon_blas_routines(char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    Json routines = Json::array();
#define TENON_BLAS(number, routine, level, signature, dtypes)                    \
  routines.push_back({{"id", number},                                            \
                      {"name", #routine},                                        \
                      {"signature", #signature},                                 \
                      {"dtypes", #dtypes},                                       \
                      {"arguments", blas::arguments_of(blas::Routine::routine)}, \
                      {"fields", fields_of_##signature()},                       \
                      {"real", real_scalars_of(blas::Routine::routine)},         \
                      {"result", result_of(blas::Routine::routine)},             \
                      {"formula", blas::formula_of(blas::Routine::routine)}});
#include <tenon/blas.def>
#undef TENON_BLAS
    *out_json = new_json(routines);
  });
}

TenonError* tenon_blas(const TenonDevice* device, uint32_t routine, tenon_dtype dtype, const void* arguments,
                       const TenonRunOptions* options) {
  return guard(__func__, [&] {
    const Device& on = get(device, "device").value;
    required(arguments, "arguments");
    run(blas::Queue(on, {.run = run_options(options)}), routine, dtype, arguments);
  });
}

TenonError* tenon_gemm(const TenonDevice* device, double alpha, const TenonTensor* a, uint32_t trans_a, const TenonTensor* b,
                       uint32_t trans_b, double beta, const TenonTensor* c) {
  return guard(__func__, [&] {
    blas::gemm(queue_on(device), alpha, operand(a, "a"), operand(b, "b"), beta, writable(c, "c"), op_of(trans_a, "trans_a"),
               op_of(trans_b, "trans_b"));
  });
}

TenonError* tenon_gemv(const TenonDevice* device, double alpha, const TenonTensor* a, uint32_t trans_a, const TenonTensor* x, double beta,
                       const TenonTensor* y) {
  return guard(__func__, [&] {
    blas::gemv(queue_on(device), alpha, operand(a, "a"), operand(x, "x"), beta, writable(y, "y"), op_of(trans_a, "trans_a"));
  });
}

TenonError* tenon_axpy(const TenonDevice* device, double alpha, const TenonTensor* x, const TenonTensor* y) {
  return guard(__func__, [&] { blas::axpy(queue_on(device), alpha, operand(x, "x"), writable(y, "y")); });
}

TenonError* tenon_scal(const TenonDevice* device, double alpha, const TenonTensor* x) {
  return guard(__func__, [&] { blas::scal(queue_on(device), alpha, writable(x, "x")); });
}

TenonError* tenon_dot(const TenonDevice* device, const TenonTensor* x, const TenonTensor* y, TenonTensor** out_result) {
  return guard(__func__, [&] {
    required(out_result, "out_result");
    *out_result = new TenonTensor(blas::dot(queue_on(device), operand(x, "x"), operand(y, "y")));
  });
}

TenonError* tenon_nrm2(const TenonDevice* device, const TenonTensor* x, TenonTensor** out_result) {
  return guard(__func__, [&] {
    required(out_result, "out_result");
    *out_result = new TenonTensor(blas::nrm2(queue_on(device), operand(x, "x")));
  });
}
