// SPDX-License-Identifier: Apache-2.0
#include "gemm/epilogue.h"

#include "simd/foreach_target.h"

#include <algorithm>

#include "simd/activations.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// What the epilogue reads for a row: c, times beta, the bias, the residual and the result of a relu. c is a row or one element for the
// whole row.
enum class Addend { none, element, row };

template <class T>
struct RowOperands {
  Addend c_kind;
  const T* c;
  T beta;
  const T* bias;         // NULL: none
  const T* residual;     // NULL: none
  const T* relu_result;  // NULL: none
};

template <class T, class Activate>
void apply_to_row(const RowOperands<T>& add, const Activate& activate, T* y, std::int64_t n) {
  const Wide<T> d;
  const auto beta = hn::Set(d, add.beta);
  const auto element = hn::Set(d, add.c_kind == Addend::element ? add.beta * *add.c : T(0));
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    auto v = hn::LoadU(d, y + i);
    if (add.c_kind == Addend::row) v = hn::MulAdd(beta, hn::LoadU(d, add.c + i), v);
    if (add.c_kind == Addend::element) v = hn::Add(v, element);
    if (add.bias != nullptr) v = hn::Add(v, hn::LoadU(d, add.bias + i));
    if (add.residual != nullptr) v = hn::Add(v, hn::LoadU(d, add.residual + i));
    v = activate(d, v);
    if (add.relu_result != nullptr) v = ReluGrad{}(d, v, hn::LoadU(d, add.relu_result + i));
    hn::StoreU(v, d, y + i);
  }
  if (i < n) {
    auto v = load_first(d, y + i, n - i);
    if (add.c_kind == Addend::row) v = hn::MulAdd(beta, load_first(d, add.c + i, n - i), v);
    if (add.c_kind == Addend::element) v = hn::Add(v, element);
    if (add.bias != nullptr) v = hn::Add(v, load_first(d, add.bias + i, n - i));
    if (add.residual != nullptr) v = hn::Add(v, load_first(d, add.residual + i, n - i));
    v = activate(d, v);
    if (add.relu_result != nullptr) v = ReluGrad{}(d, v, load_first(d, add.relu_result + i, n - i));
    store_first(v, d, y + i, n - i);
  }
}

template <class T, class Activate>
void apply_to_rows(const Epilogue<T>& e, const Activate& activate, T* y, std::int64_t y_step, std::int64_t row, std::int64_t column,
                   std::int64_t rows, std::int64_t columns) {
  if (columns == y_step && rows > 1 && e.c == nullptr && e.bias == nullptr) {  // whole rows, one after the other
    Epilogue<T> of_elements = e;
    const std::int64_t before = row * y_step;
    if (e.residual != nullptr) of_elements.residual += before;
    if (e.relu_result != nullptr) of_elements.relu_result += before;
    return apply_to_rows(of_elements, activate, y + before, rows * columns, 0, 0, 1, rows * columns);
  }
  constexpr std::int64_t piece = 256;  // columns of a strided c that are gathered at a time
  T buffer[piece];
  const bool gathers = e.c != nullptr && e.c_column != 0 && e.c_column != 1;
  const std::int64_t step = gathers ? piece : columns;
  for (std::int64_t r = row; r < row + rows; ++r) {
    for (std::int64_t begin = column; begin < column + columns; begin += step) {
      const std::int64_t n = std::min(step, column + columns - begin);
      RowOperands<T> add{Addend::none,
                         nullptr,
                         e.beta,
                         e.bias == nullptr ? nullptr : e.bias + begin,
                         e.residual == nullptr ? nullptr : e.residual + r * y_step + begin,
                         e.relu_result == nullptr ? nullptr : e.relu_result + r * y_step + begin};
      if (e.c != nullptr) {
        add.c_kind = e.c_column == 0 ? Addend::element : Addend::row;
        add.c = e.c + r * e.c_row + begin * e.c_column;
      }
      if (gathers) {
        for (std::int64_t i = 0; i < n; ++i) buffer[i] = add.c[i * e.c_column];
        add.c = buffer;
      }
      apply_to_row(add, activate, y + r * y_step + begin, n);
    }
  }
}

template <class T>
void apply(const Epilogue<T>& e, T* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
           std::int64_t columns) {
  with_activation<T>(e.activation, [&](const auto& activate) { apply_to_rows(e, activate, y, y_step, row, column, rows, columns); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
void apply_epilogue(const Epilogue<T>& e, T* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
                    std::int64_t columns) {
  if (!e.empty()) TENON_DISPATCH(apply<T>)(e, y, y_step, row, column, rows, columns);
}
TENON_INSTANTIATE_FLOATS(apply_epilogue)

}  // namespace tenon::openblas
#endif
