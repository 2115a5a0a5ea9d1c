// SPDX-License-Identifier: Apache-2.0
// aligned_blas.h - the BLAS table of the aligned device: its addresses are not the host's, and vectors and matrices lie at multiples of its
// alignment.
#pragma once

#include <tenon/backend.h>

#include <cstdint>
#include <list>
#include <vector>

#include "disguised_backend.h"

namespace tenon::test {

/// Device: has `alignment` and `moved(address)`, which gives the address of the same byte for the wrapped backend.
template <class Device>
struct AlignedBlas {
  static inline const tenon_blas_table* real = nullptr;

  /// Moves the addresses of one record, and notes whether an operand lies where it must not.
  class Record {
   public:
    std::uint64_t operand(std::uint64_t address) {
      if (address % Device::alignment != 0) aligned_ = false;
      return address == 0 ? 0 : Device::moved(address);
    }
    const std::uint64_t* list(const std::uint64_t* addresses, std::int64_t count) {
      std::vector<std::uint64_t>& own = lists_.emplace_back();
      for (std::int64_t i = 0; i < count; ++i) own.push_back(operand(addresses[i]));
      return own.data();
    }
    static tenon_scalar number(tenon_scalar given) {
      if (given.on_device != 0) given.address = Device::moved(given.address);
      return given;
    }
    bool is_aligned() const { return aligned_; }

   private:
    bool aligned_ = true;
    std::list<std::vector<std::uint64_t>> lists_;
  };

  static std::int64_t batch_of(const auto& args) {
    if constexpr (requires { args.batch; }) return args.batch;
    return 0;
  }

#define TENON_BLAS_ARGS(signature, fields)                                                 \
  static void move(tenon_blas_##signature##_args& args, [[maybe_unused]] Record& record) { \
    fields                                                                                 \
  }
#define TENON_FLAG(name)
#define TENON_SIZE(name)
#define TENON_IN(name) args.name = record.operand(args.name);
#define TENON_OUT(name) args.name = record.operand(args.name);
#define TENON_LIST(name) args.name = record.list(args.name, batch_of(args));
#define TENON_SCALAR(name) args.name = Record::number(args.name);
#define TENON_REAL_SCALAR(name) args.name = Record::number(args.name);
#define TENON_NUMBERS(name) args.name = Record::number(args.name);
#define TENON_REAL_NUMBER(name) args.name = Record::number(args.name);
#define TENON_RESULT(name) args.name = Record::number(args.name);
#define TENON_RESERVED
#include <tenon/blas_args.def>

  template <class Args, class Slot>
  static tenon_status call(const tenon_blas_call* how, const Args* given, Slot slot, tenon_error* error) {
    Args args = *given;
    args.struct_size = sizeof args;
    Record record;
    move(args, record);
    if (record.is_aligned()) return slot(how, &args, error);
    return say(error, TENON_INVALID_ARGUMENT, "an operand of BLAS does not begin at a multiple of 256 bytes");
  }

  static const tenon_blas_table* table_over(const tenon_blas_table* wrapped) {
    static tenon_blas_table table;
    real = wrapped;
    table = *wrapped;
#define TENON_BLAS(id, routine, level, signature, dtypes)                                                          \
  table.routine = [](const tenon_blas_call* how, const tenon_blas_##signature##_args* given, tenon_error* error) { \
    return call(how, given, real->routine, error);                                                                 \
  };
#include <tenon/blas.def>
#undef TENON_BLAS
    return &table;
  }
};

}  // namespace tenon::test
