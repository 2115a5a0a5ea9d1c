// SPDX-License-Identifier: Apache-2.0
#include "conv/column_products.h"

#include <algorithm>

#include <tenon/sdk/scratch_arena.h>

#include "gemm/clblast_gemm.h"
#include "gemm/products.h"

namespace tenon::opencl {
namespace {

/// For each group there are products of their own.
constexpr std::int64_t max_groups = 4;
constexpr std::int64_t int_limit = std::int64_t{1} << 30;  // of what the kernels count as int

/// The numbers of a convolution as matrices of one image and group: filters x lines times lines x windows.
struct Sizes {
  std::int64_t lines, windows, all_lines, x_elements, y_elements;

  explicit Sizes(const ConvTerms& t)
      : lines(t.groups.group_channels * t.windows.taps()),
        windows(t.windows.windows()),
        all_lines(t.groups.channels * t.windows.taps()),
        x_elements(t.groups.channels * t.windows.elements()),
        y_elements(t.groups.filters * windows) {}
};

/// `Divisor` of conv/columns.cl: divides n < 2^31 by multiplication.
/// Source  Granlund, Montgomery: Division by Invariant Integers using Multiplication (1994), theorem 4.2.
struct Divisor {
  std::uint32_t factor = 0, shift = 0;

  explicit Divisor(std::int64_t by) {  // by at least 1
    while (std::int64_t{1} << shift < by) ++shift;
    factor = static_cast<std::uint32_t>(
        (((std::uint64_t{1} << shift) - static_cast<std::uint64_t>(by)) << 32) / static_cast<std::uint64_t>(by) + 1);
  }
};

/// `Columns` of conv/columns.cl.
struct Columns {
  std::int32_t channels, filters, lines, taps, windows, elements, down, across;
  std::int32_t size[2], kernel_rows, kernel_columns, stride[2], dilation[2], before[2];
  Divisor by_lines, by_taps, by_windows, by_elements, by_channels, by_filters, by_across, by_columns, by_kernel_columns, by_stride[2];

  explicit Columns(const ConvTerms& t) : Columns(t.windows, t.groups) {}

 private:
  static std::int32_t narrow(std::int64_t x) { return static_cast<std::int32_t>(x); }
  Columns(const Windows& w, const Groups& g)
      : channels(narrow(g.channels)),
        filters(narrow(g.filters)),
        lines(narrow(g.channels * w.taps())),
        taps(narrow(w.taps())),
        windows(narrow(w.windows())),
        elements(narrow(w.elements())),
        down(narrow(w.count[0])),
        across(narrow(w.count[1])),
        size{narrow(w.size[0]), narrow(w.size[1])},
        kernel_rows(narrow(w.kernel[0])),
        kernel_columns(narrow(w.kernel[1])),
        stride{narrow(w.stride[0]), narrow(w.stride[1])},
        dilation{narrow(w.dilation[0]), narrow(w.dilation[1])},
        before{narrow(w.before[0]), narrow(w.before[1])},
        by_lines(lines),
        by_taps(taps),
        by_windows(windows),
        by_elements(elements),
        by_channels(channels),
        by_filters(filters),
        by_across(across),
        by_columns(size[1]),
        by_kernel_columns(kernel_columns),
        by_stride{Divisor(stride[0]), Divisor(stride[1])} {}
};

/// Whether an image is its own matrix of columns.
bool is_pointwise(const Windows& w) {
  for (int d = 0; d < 2; ++d) {
    if (w.kernel[d] != 1 || w.stride[d] != 1 || w.before[d] != 0 || w.after[d] != 0) return false;
  }
  return true;
}

sdk::MatrixView matrix(std::int64_t rows, std::int64_t columns) {
  return {rows, columns, columns, 1};
}

/// A product with fewer results than this occupies a part of a large device only.
constexpr std::int64_t min_results = std::int64_t{1} << 18;

/// How the gradient of the filters sums over the images: one product over the windows of many images, or, where that would have too few
/// results, a product for each image, whose results are summed afterwards.
bool sums_by_image(const ConvTerms& terms) {
  return !terms.is_on_cpu && terms.groups.filters * Sizes(terms).lines < min_results;
}

/// Scratch memory: the columns of some images, and y or dy with its images next to each other, or the gradients of the filters by image.
template <class T>
struct Memory {
  sdk::ScratchArena arena;
  std::int64_t images;
  T *columns, *rest;

  Memory(void* scratch, const ConvTerms& terms) : arena(scratch) {
    const Sizes sizes(terms);
    const std::int64_t in_columns = sizes.all_lines * sizes.windows;
    const std::int64_t in_rest = sums_by_image(terms) ? terms.groups.filters * sizes.lines : sizes.y_elements;
    const std::int64_t bytes = (in_columns + in_rest) * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t counted =
        int_limit / std::max({in_columns, sizes.x_elements, sizes.y_elements});  // elements that a kernel counts as int
    images = std::clamp<std::int64_t>(std::min(terms.columns_limit_bytes / bytes, counted), 1, terms.batch);
    columns = arena.allocate<T>(images * in_columns);
    rest = arena.allocate<T>(images * in_rest);
  }
};

/// Puts the images of y next to each other, (filters, images, windows), or back.
template <class T>
void join_images(const sdk::Call& call, const ConvTerms& terms, std::int64_t images, const T* y, T* joined, bool back = false) {
  const std::int64_t count = images * Sizes(terms).y_elements;
  Launch launch(call, sources::columns, "join_images", types<T>());
  launch.value(Columns(terms)).value(static_cast<std::int32_t>(count)).value(static_cast<std::int32_t>(images));
  launch.value(static_cast<std::int32_t>(back)).address(joined).address(y).over(count);
}

/// Lays out the columns of `images` images.
template <class T>
void make_columns(const sdk::Call& call, const ConvTerms& terms, std::int64_t images, const T* x, T* columns, std::int64_t line_stride,
                  std::int64_t image_stride) {
  const Sizes sizes(terms);
  const std::int64_t count = images * sizes.all_lines * sizes.windows;
  Launch(call, sources::columns, "columns", types<T>())
      .value(Columns(terms))
      .value(static_cast<std::int32_t>(count))
      .value(line_stride)
      .value(image_stride)
      .address(columns)
      .address(x)
      .over(count);
}

/// y[n] = a[n] b[n] for the images n and each group. Groups and images of b and y follow each other, as those of a do unless it is the
/// `same` for all images. With one image: y = a b + beta y, where b may be all images next to each other.
template <class T>
void multiply_images(const sdk::Call& call, std::int64_t groups, std::int64_t images, const sdk::MatrixView& a_view, const T* a, bool same,
                     const sdk::MatrixView& b_view, const T* b, T* y, T beta = 0) {
  const std::int64_t in_a = a_view.rows * a_view.columns, in_b = b_view.rows * b_view.columns, in_y = a_view.rows * b_view.columns;
  Product<T> product;
  product.a_view = a_view;
  product.b_view = b_view;
  product.beta = beta;
  const std::int64_t batch = groups == 1 ? images : 1;
  product.batch = collapse<2>(&batch, 1, {sdk::Strides{same ? 0 : in_a}, sdk::Strides{in_b}});
  for (std::int64_t entry = 0; entry < images * groups / batch; ++entry) {
    product.a = a + (same ? entry % groups : entry) * in_a;
    product.b = b + entry * in_b;
    product.y = y + entry * in_y;
    multiply(stream_of(call), product);
  }
}

/// Calls body(first image, number of images) for parts of the batch.
template <class Body>
void for_parts(const ConvTerms& terms, std::int64_t images, const Body& body) {
  for (std::int64_t first = 0; first < terms.batch; first += images) body(first, std::min(images, terms.batch - first));
}

}  // namespace

bool by_products(const ConvTerms& terms) {
  const Sizes sizes(terms);
  const std::int64_t groups = terms.groups.channels / std::max<std::int64_t>(terms.groups.group_channels, 1);
  if (terms.batch == 0 || groups < 1 || groups > max_groups) return false;
  if (sizes.x_elements == 0 || sizes.lines < 8 || terms.groups.group_filters < 8 || sizes.windows < 8) return false;
  if (!worth_clblast(terms.groups.group_filters, sizes.windows, sizes.lines, terms.batch)) return false;
  const Windows& w = terms.windows;
  for (int d = 0; d < 2; ++d) {
    // One window may have any stride, and one tap any dilation.
    if (w.size[d] + w.before[d] + w.after[d] >= int_limit || w.stride[d] >= int_limit || w.dilation[d] >= int_limit) return false;
  }
  return sizes.all_lines * sizes.windows < int_limit && sizes.x_elements < int_limit && sizes.y_elements < int_limit;
}

std::size_t column_bytes(const ConvTerms& terms, std::size_t element_size) {
  if (!by_products(terms)) return 0;
  return element_size == sizeof(float) ? Memory<float>(nullptr, terms).arena.required_bytes()
                                       : Memory<double>(nullptr, terms).arena.required_bytes();
}

template <class T>
void conv_by_products(const sdk::Call& call, const ConvTerms& terms) {
  const Sizes sizes(terms);
  const Memory<T> memory(call.scratch, terms);
  const std::int64_t groups = terms.groups.channels / terms.groups.group_channels;
  for_parts(terms, memory.images, [&](std::int64_t first, std::int64_t images) {
    const T* const x = call.input<T>(0) + first * sizes.x_elements;
    T* const y = call.output<T>(0) + first * sizes.y_elements;
    const sdk::MatrixView filters = matrix(terms.groups.group_filters, sizes.lines);
    if (terms.is_on_cpu) {
      const std::int64_t places = images * sizes.windows;
      make_columns(call, terms, images, x, memory.columns, places, sizes.windows);
      multiply_images(call, groups, 1, filters, call.input<T>(1), true, matrix(sizes.lines, places), memory.columns, memory.rest);
      join_images(call, terms, images, y, memory.rest, true);
    } else {
      const T* columns = x;
      if (!is_pointwise(terms.windows)) {
        make_columns(call, terms, images, x, memory.columns, sizes.windows, sizes.all_lines * sizes.windows);
        columns = memory.columns;
      }
      multiply_images(call, groups, images, filters, call.input<T>(1), true, matrix(sizes.lines, sizes.windows), columns, y);
    }
    if (!call.has_input(2)) return;
    const std::int64_t count = images * sizes.y_elements;
    Launch launch(call, sources::columns, "add_bias", types<T>());
    launch.value(Columns(terms)).value(static_cast<std::int32_t>(count)).address(y).in(call, 2).over(count);
  });
}

template <class T>
void input_grad_by_products(const sdk::Call& call, const ConvTerms& terms) {
  const Sizes sizes(terms);
  const Memory<T> memory(call.scratch, terms);
  const std::int64_t groups = terms.groups.channels / terms.groups.group_channels;
  const sdk::MatrixView filters = matrix(terms.groups.group_filters, sizes.lines).transposed();
  const bool in_place = is_pointwise(terms.windows) && !call.has_input(2) && !terms.is_on_cpu;
  for_parts(terms, memory.images, [&](std::int64_t first, std::int64_t images) {
    T* const dx = call.output<T>(0) + first * sizes.x_elements;
    T* const columns = in_place ? dx : memory.columns;
    const T* const dy = call.input<T>(0) + first * sizes.y_elements;
    const std::int64_t places = images * sizes.windows;
    if (terms.is_on_cpu) {
      join_images(call, terms, images, dy, memory.rest);
      multiply_images(call, groups, 1, filters, call.input<T>(1), true, matrix(terms.groups.group_filters, places), memory.rest, columns);
    } else {
      multiply_images(call, groups, images, filters, call.input<T>(1), true, matrix(terms.groups.group_filters, sizes.windows), dy,
                      columns);
    }
    if (in_place) return;
    const std::int64_t count = images * sizes.x_elements;
    Launch launch(call, sources::columns, "sum_columns", types<T>());
    launch.value(Columns(terms)).value(static_cast<std::int32_t>(count));
    launch.value(terms.is_on_cpu ? places : sizes.windows).value(terms.is_on_cpu ? sizes.windows : sizes.all_lines * sizes.windows);
    launch.address(dx).address(columns).in(call, 2).over(count);
  });
}

template <class T>
void weight_grad_by_products(const sdk::Call& call, const ConvTerms& terms) {
  const Sizes sizes(terms);
  const Memory<T> memory(call.scratch, terms);
  const std::int64_t groups = terms.groups.channels / terms.groups.group_channels, filters = terms.groups.group_filters;
  T* const dw = call.output<T>(0);
  for_parts(terms, memory.images, [&](std::int64_t first, std::int64_t images) {
    const T* const x = call.input<T>(1) + first * sizes.x_elements;
    const T* const dy = call.input<T>(0) + first * sizes.y_elements;
    if (sums_by_image(terms)) {
      const T* columns = x;
      if (!is_pointwise(terms.windows)) {
        make_columns(call, terms, images, x, memory.columns, sizes.windows, sizes.all_lines * sizes.windows);
        columns = memory.columns;
      }
      multiply_images(call, groups, images, matrix(filters, sizes.windows), dy, false, matrix(sizes.lines, sizes.windows).transposed(),
                      columns, memory.rest);
      const std::int64_t count = groups * filters * sizes.lines;
      Launch launch(call, sources::columns, "sum_images", types<T>());
      launch.value(static_cast<std::int32_t>(count)).value(static_cast<std::int32_t>(images)).value(std::int32_t{first > 0});
      launch.address(dw).address(memory.rest).over(count);
      return;
    }
    // Images next to each other, so that one product sums over all of their windows.
    const std::int64_t places = images * sizes.windows;
    make_columns(call, terms, images, x, memory.columns, places, sizes.windows);
    join_images(call, terms, images, dy, memory.rest);
    multiply_images(call, groups, 1, matrix(filters, places), memory.rest, true, matrix(sizes.lines, places).transposed(), memory.columns,
                    dw, first == 0 ? T(0) : T(1));
  });
}

template void conv_by_products<float>(const sdk::Call&, const ConvTerms&);
template void conv_by_products<double>(const sdk::Call&, const ConvTerms&);
template void input_grad_by_products<float>(const sdk::Call&, const ConvTerms&);
template void input_grad_by_products<double>(const sdk::Call&, const ConvTerms&);
template void weight_grad_by_products<float>(const sdk::Call&, const ConvTerms&);
template void weight_grad_by_products<double>(const sdk::Call&, const ConvTerms&);

}  // namespace tenon::opencl
