#include "finish.h"

#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "finish.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>

#include "simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// What is added to one row: c times beta and the bias, each as a row of its own or as one element for all.
enum class Addend { none, element, row };

template <class T>
struct RowAddends {
  Addend c_kind;
  const T* c;
  T beta;
  const T* bias;  // NULL: none
};

template <class T, class Activate>
void finish_row(const RowAddends<T>& add, const Activate& activate, T* y, std::int64_t n) {
  const Wide<T> d;
  const auto beta = hn::Set(d, add.beta);
  const auto element = hn::Set(d, add.c_kind == Addend::element ? add.beta * *add.c : T(0));
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    auto v = hn::LoadU(d, y + i);
    if (add.c_kind == Addend::row) v = hn::MulAdd(beta, hn::LoadU(d, add.c + i), v);
    if (add.c_kind == Addend::element) v = hn::Add(v, element);
    if (add.bias != nullptr) v = hn::Add(v, hn::LoadU(d, add.bias + i));
    hn::StoreU(activate(d, v), d, y + i);
  }
  if (i < n) {
    auto v = load_first(d, y + i, n - i);
    if (add.c_kind == Addend::row) v = hn::MulAdd(beta, load_first(d, add.c + i, n - i), v);
    if (add.c_kind == Addend::element) v = hn::Add(v, element);
    if (add.bias != nullptr) v = hn::Add(v, load_first(d, add.bias + i, n - i));
    store_first(activate(d, v), d, y + i, n - i);
  }
}

template <class T, class Activate>
void finish_rows(const Finish<T>& f, const Activate& activate, T* y, std::int64_t y_step, std::int64_t row, std::int64_t column,
                 std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t piece = 256;  // columns of a strided c that are gathered at a time
  T buffer[piece];
  const bool gathers = f.c != nullptr && f.c_column != 0 && f.c_column != 1;
  const std::int64_t step = gathers ? piece : columns;
  for (std::int64_t r = row; r < row + rows; ++r) {
    for (std::int64_t begin = column; begin < column + columns; begin += step) {
      const std::int64_t n = std::min(step, column + columns - begin);
      RowAddends<T> add{Addend::none, nullptr, f.beta, f.bias == nullptr ? nullptr : f.bias + begin};
      if (f.c != nullptr) {
        add.c_kind = f.c_column == 0 ? Addend::element : Addend::row;
        add.c = f.c + r * f.c_row + begin * f.c_column;
      }
      if (gathers) {
        for (std::int64_t i = 0; i < n; ++i) buffer[i] = add.c[i * f.c_column];
        add.c = buffer;
      }
      finish_row(add, activate, y + r * y_step + begin, n);
    }
  }
}

template <class T>
void finish(const Finish<T>& f, T* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
  switch (f.activation) {
    case sdk::Activation::none:
      return finish_rows(f, Identity{}, y, y_step, row, column, rows, columns);
    case sdk::Activation::relu:
      return finish_rows(f, Relu{}, y, y_step, row, column, rows, columns);
    case sdk::Activation::sigmoid:
      return finish_rows(f, Sigmoid{}, y, y_step, row, column, rows, columns);
    case sdk::Activation::tanh:
      return finish_rows(f, Tanh{}, y, y_step, row, column, rows, columns);
  }
}

}  // namespace

void finish_f32(const Finish<float>& f, float* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
                std::int64_t columns) {
  finish(f, y, y_step, row, column, rows, columns);
}
void finish_f64(const Finish<double>& f, double* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
                std::int64_t columns) {
  finish(f, y, y_step, row, column, rows, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

void finish_block(const Finish<float>& f, float* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
                  std::int64_t columns) {
  if (!f.empty()) TENON_BEST(finish_f32)(f, y, y_step, row, column, rows, columns);
}

void finish_block(const Finish<double>& f, double* y, std::int64_t y_step, std::int64_t row, std::int64_t column, std::int64_t rows,
                  std::int64_t columns) {
  if (!f.empty()) TENON_BEST(finish_f64)(f, y, y_step, row, column, rows, columns);
}

}  // namespace tenon::openblas
#endif
