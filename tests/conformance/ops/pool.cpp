// SPDX-License-Identifier: Apache-2.0
// MaxPool and AveragePool over one and two dimensions, and their gradients.
#include "locality.h"
#include "op_family.h"

namespace tenon::conformance {
namespace {

/// One entry per spatial dimension; an empty list means the default in its comment.
struct Form {
  Dims x;  ///< (N, C, d...)
  Dims kernel;
  Dims strides = {};    ///< 1
  Dims before = {};     ///< 0
  Dims after = {};      ///< `before`
  Dims dilations = {};  ///< 1
  bool ceil_mode = false;
  bool count_include_pad = false;
};

std::int64_t entry(const Dims& list, std::size_t i, std::int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

tenon_attributes_window attributes_of(const Form& form) {
  tenon_attributes_window a{.ceil_mode = form.ceil_mode, .count_include_pad = form.count_include_pad};
  for (std::size_t i = 0; i < TENON_MAX_SPATIAL; ++i) {
    const bool used = i < form.kernel.size();
    a.kernel[i] = used ? form.kernel[i] : 1;
    a.strides[i] = used ? entry(form.strides, i, 1) : 1;
    a.dilations[i] = used ? entry(form.dilations, i, 1) : 1;
    a.pads_before[i] = used ? entry(form.before, i, 0) : 0;
    a.pads_after[i] = used ? entry(form.after, i, a.pads_before[i]) : 0;
  }
  return a;
}

/// The number of windows as in ONNX; with ceil_mode, windows that would start in the trailing padding do not count.
Dims windows_of(const Form& form) {
  const tenon_attributes_window a = attributes_of(form);
  Dims y{form.x[0], form.x[1]};
  for (std::size_t i = 0; i < form.kernel.size(); ++i) {
    const std::int64_t family = form.x[i + 2] + a.pads_before[i] + a.pads_after[i] - a.dilations[i] * (a.kernel[i] - 1) - 1;
    std::int64_t count = family / a.strides[i] + 1;  // of a kernel larger than the image, ceil_mode rounds towards 0
    if (form.ceil_mode && family > 0 && family % a.strides[i] != 0 && count * a.strides[i] < form.x[i + 2] + a.pads_before[i]) ++count;
    y.push_back(count);
  }
  return y;
}

std::string label_of(const Form& form) {
  const tenon_attributes_window a = attributes_of(form);
  std::string text = "kernel=" + str(form.kernel);
  const auto list = [&](const char* name, const std::int64_t* values, std::int64_t otherwise) {
    const Dims dims(values, values + form.kernel.size());
    if (dims != Dims(form.kernel.size(), otherwise)) text += fmt::format(",{}={}", name, str(dims));
  };
  list("strides", a.strides, 1);
  list("before", a.pads_before, 0);
  list("after", a.pads_after, 0);
  list("dilations", a.dilations, 1);
  if (form.ceil_mode) text += ",ceil";
  if (form.count_include_pad) text += ",include_pad";
  return text;
}

Variant max_pool(const Form& form, bool indices, const Values& values = {.special = Special::all}) {
  const Dims y = windows_of(form);
  return {label_of(form) + (indices ? ",indices" : ""),
          {operand(form.x, values)},
          {result(y), indices ? result(y, i64) : omitted},
          attributes_of(form)};
}
Variant average_pool(const Form& form) {
  return {label_of(form), {operand(form.x, {.special = Special::not_large})}, {result(windows_of(form))}, attributes_of(form)};
}
Variant average_pool_grad(const Form& form) {
  AttributeBytes attributes = attributes_of(form);
  static_cast<tenon_attributes_window*>(attributes.data())->ceil_mode = 0;  // the windows of dy are given
  return {label_of(form), {operand(windows_of(form))}, {result(form.x)}, attributes};
}
/// With one plane any indices are valid.
Variant max_pool_grad(const Dims& windows, const Dims& x) {
  const OperandSpec indices = operand(windows, {.low = 0, .high = static_cast<double>(count_of(x)), .whole = true}, i64);
  return {"to=" + str(x), {operand(windows), indices}, {result(x)}, tenon_attributes_none{}};
}

/// Full registers of channels, four at once, and partial ones; windows inside, over each edge, and with gaps; rows for two threads.
std::vector<Form> forms() {
  return {{.x = {1, 1, 4}, .kernel = {2}, .strides = {2}},
          {.x = {2, 3, 7}, .kernel = {3}, .strides = {2}, .before = {1}},
          {.x = {2, 5, 6}, .kernel = {3}, .strides = {2}, .before = {0}, .ceil_mode = true},
          {.x = {1, 1, 4, 4}, .kernel = {2, 2}, .strides = {2, 2}},
          {.x = {2, 3, 5, 6}, .kernel = {2, 2}, .strides = {2, 2}},
          {.x = {2, 17, 6, 5}, .kernel = {3, 3}, .strides = {2, 2}, .before = {1, 1}},
          {.x = {1, 64, 7, 7}, .kernel = {3, 2}, .strides = {2, 1}, .before = {0, 1}, .after = {2, 0}},
          {.x = {1, 70, 5, 4}, .kernel = {2, 3}, .strides = {1, 1}, .before = {1, 2}},
          {.x = {1, 2, 6, 6}, .kernel = {3, 3}, .strides = {2, 2}, .ceil_mode = true},
          {.x = {1, 2, 6, 8}, .kernel = {3, 4}, .strides = {2, 3}, .before = {1, 1}, .ceil_mode = true},
          {.x = {1, 2, 3, 9}, .kernel = {1, 2}, .strides = {2, 4}},
          {.x = {1, 2, 3}, .kernel = {4}, .strides = {5}, .ceil_mode = true},
          {.x = {1, 19, 3, 4}, .kernel = {6, 2}, .strides = {3, 2}, .before = {1, 0}, .ceil_mode = true},
          {.x = {1, 4, 5, 5}, .kernel = {5, 5}},
          {.x = {0, 3, 4, 4}, .kernel = {2, 2}, .strides = {2, 2}},
          {.x = {2, 0, 4, 4}, .kernel = {2, 2}, .strides = {2, 2}},
          {.x = {2, 33, sized(41, 11), sized(43, 13)}, .kernel = {2, 2}, .strides = {2, 2}},
          {.x = {2, 20, sized(41, 11), sized(37, 13)}, .kernel = {3, 3}, .strides = {2, 2}, .before = {1, 1}}};
}
std::vector<Form> dilated_forms() {
  return {
      {.x = {1, 2, 9}, .kernel = {3}, .dilations = {2}},
      {.x = {1, 3, 8, 9}, .kernel = {2, 3}, .strides = {2, 1}, .before = {1, 2}, .dilations = {3, 2}},
      {.x = {1, 18, 9, 9}, .kernel = {3, 3}, .strides = {3, 2}, .before = {2, 0}, .after = {1, 3}, .dilations = {2, 3}, .ceil_mode = true}};
}

double terms(const Variant& variant) {
  const auto& a = variant.attributes.as<tenon_attributes_window>();
  double n = 1;
  for (const std::int64_t k : a.kernel) n *= static_cast<double>(k);
  return n;
}
constexpr Tolerance exact{"The largest element is one of them."};
constexpr Tolerance scatter_bound{"Up to as many gradients of at most 2 as there are windows meet in an element.",
                                  [](const Variant& variant, tenon_dtype t) -> Bound {
                                    const auto n = static_cast<double>(count_of(variant.inputs[0].shape));
                                    return {2 * epsilon(t), epsilon(t) * std::sqrt(n) * 2 * n};
                                  }};
constexpr Tolerance mean_bound{"A sum of n terms of at most 2, in any order but the worst, divided by their number and rounded once more.",
                               [](const Variant& variant, tenon_dtype t) -> Bound {
                                 return {3 * epsilon(t), epsilon(t) * std::sqrt(terms(variant)) * 2};
                               }};
constexpr Tolerance shares_bound{
    "A product with a rounded quotient per term. A window's share is at least 1 over its elements, but one that is "
    "cut short gives more.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      return {3 * epsilon(t), epsilon(t) * std::sqrt(terms(variant)) * 8};
    }};

/// Each index is the flat index in x (N, C, d...) of the element that is the result.
std::string indices_name_results(const Variant& variant, tenon_dtype, const std::vector<Array>& inputs, const std::vector<Array>& outputs) {
  if (!variant.outputs[1].present) return "";
  const std::int64_t planes = variant.inputs[0].shape[0] * variant.inputs[0].shape[1];
  const std::int64_t windows = outputs[0].count() / planes, elements = inputs[0].count() / planes;
  for (std::int64_t i = 0; i < outputs[1].count(); ++i) {
    const auto at = outputs[1].get<std::int64_t>(i);
    if (at / elements != i / windows || at < 0) return fmt::format("index {} of result {} is outside its image and channel", at, i);
    if (inputs[0].at(at) != outputs[0].at(i))
      return fmt::format("result {} is {}, element {} is {}", i, outputs[0].at(i), at, inputs[0].at(at));
  }
  return "";
}

/// The pool followed by its gradient, in every dtype and with all planes, which finite differences do not cover.
void check_round_trip(CaseContext& context, tenon_dtype dtype) {
  std::vector<Form> all = forms();
  for (const Form& form : dilated_forms()) all.push_back(form);
  for (const Form& form : all) {
    if (count_of(form.x) == 0) continue;
    const auto build = [&](tenon_dtype type, const Array& x, const Array& dy) {
      Net net;
      const Variant variant = max_pool(form, true);
      const std::uint32_t in = net.input(x.as(type)), gradient = net.input(dy.as(type));
      const std::uint32_t y = net.output(type, windows_of(form)), indices = net.internal(i64, windows_of(form));
      const std::uint32_t dx = net.output(type, form.x);
      net.node(TENON_OP_MaxPool, line_of(TENON_OP_MaxPool).version, variant.attributes.data(), {in}, {y, indices});
      net.node(TENON_OP_MaxPoolGrad, line_of(TENON_OP_MaxPoolGrad).version, AttributeBytes().data(), {gradient, indices}, {dx});
      return net;
    };
    const std::uint64_t seed = seed_for(context.seed, label_of(form));
    const Array x = fill(max_pool(form, false), dtype, seed)[0], dy = fill(average_pool_grad(form), dtype, seed + 1)[0];
    const auto got = context.run(build(dtype, x, dy), {.deterministic = true});
    const auto again = context.run(build(dtype, x, dy), {.deterministic = true}, 0x33);
    const auto expected = context.judge(build(f64, x, dy));
    // at most as many gradients of 2 as a window has elements
    const Bound bound{2 * epsilon(dtype), epsilon(dtype) * 4 * terms(max_pool(form, false))};
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::string wrong = compare(expected[i], got[i], i == 0 ? Bound{} : bound);
      if (!wrong.empty()) throw Failure(fmt::format("{}{}: {}: {}", str(form.x), label_of(form), i == 0 ? "y" : "dx", wrong));
      if (!got[i].same_bits(again[i])) throw Failure(fmt::format("{}{}: different bits the second time", str(form.x), label_of(form)));
    }
  }
}

/// Planes enough for a core to have some, and elements enough for several threads to share one, in which windows chose any element.
void check_any_choices(CaseContext& context, tenon_dtype dtype) {
  const Dims windows{2, 33, 4, 5}, x{2, 33, 8, 9};
  const Variant variant = max_pool_grad(windows, x);
  Random random(seed_for(context.seed, "choices"));
  Array dy(dtype, windows), indices(i64, windows);
  for (std::int64_t i = 0; i < dy.count(); ++i) {
    dy.set(i, random.uniform(-2, 2));
    indices.put<std::int64_t>(i, i / 20 * 72 + random.integer(0, 72));
  }
  const OpLine& line = line_of(TENON_OP_MaxPoolGrad);
  const Array got = context.run(net_of(line, variant, dtype, {dy, indices}))[0];
  const Array expected = context.judge(net_of(line, variant, f64, {dy.as(f64), indices}))[0];
  const std::string wrong = compare(expected, got, {2 * epsilon(dtype), epsilon(dtype) * 2 * 20});
  if (!wrong.empty()) throw Failure(wrong);
}

/// The first of equal elements and the first NaN win, wherever in the registers they are.
void check_ties(CaseContext& context, tenon_dtype dtype) {
  const Form form{.x = {1, 37, 3, 4}, .kernel = {3, 3}, .strides = {1, 1}};
  Array x(dtype, form.x);
  for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, i % 12 % 4 == 0 ? 1 : 2);  // column 0 is smaller
  const bool has_nan = dtype != TENON_DTYPE_I8 && dtype != u8;
  for (std::int64_t c = 0; has_nan && c < 37; c += 2) {
    x.set(c * 12 + 6, nan);
    x.set(c * 12 + 9, nan);
  }
  const auto got = context.run(net_of(line_of(TENON_OP_MaxPool), max_pool(form, true), dtype, {x}));
  for (std::int64_t c = 0; c < 37; ++c) {
    for (std::int64_t column = 0; column < 2; ++column) {
      const bool is_nan = has_nan && c % 2 == 0;
      const std::int64_t i = 2 * c + column, place = c * 12 + (is_nan ? 6 : 1);
      const bool value = is_nan ? std::isnan(got[0].at(i)) : got[0].at(i) == 2;
      if (!value || got[1].get<std::int64_t>(i) != place) {
        throw Failure(fmt::format("channel {}, window {}: got {} at {}, expected {} at {}", c, column, got[0].str(i), got[1].str(i),
                                  is_nan ? "nan" : "2", place));
      }
    }
  }
}

/// The average of (1, 3) is 2; a maximum would be 3.
void avg_pool_1d_is_average(CaseContext& context, tenon_dtype dtype) {
  const Variant variant = average_pool({.x = {1, 1, 4}, .kernel = {2}, .strides = {2}});
  const auto y = context.run(net_of(line_of(TENON_OP_AveragePool), variant, dtype, {Array(dtype, {1, 1, 4}, {1, 3, -2, 8})}));
  if (y[0].at(0) != 2 || y[0].at(1) != 3) {
    throw Failure(fmt::format("the averages of (1, 3) and (-2, 8) are 2 and 3, got {} and {}", y[0].str(0), y[0].str(1)));
  }
}

void max_pool_is_local(CaseContext& context, tenon_dtype dtype) {
  expect_locality(context, line_of(TENON_OP_MaxPool), max_pool({.x = {2, 17, 7, 6}, .kernel = {3, 2}, .strides = {2, 2}}, false), dtype);
}
void average_pool_is_local(CaseContext& context, tenon_dtype dtype) {
  for (const Dims& strides : {Dims{2, 2}, Dims{1, 1}}) {
    expect_locality(context, line_of(TENON_OP_AveragePool),
                    average_pool({.x = {2, 17, 7, 6}, .kernel = {3, 2}, .strides = strides, .before = {1, 1}}), dtype);
  }
}

template <std::int64_t index, std::int64_t position>
void spoil(std::vector<Array>& inputs) {
  // each in the plane of its channel
  for (std::int64_t i = 0; i < inputs[1].count(); ++i) inputs[1].put<std::int64_t>(i, i / 4 * 16);
  inputs[1].put<std::int64_t>(position, index);
}

}  // namespace

std::vector<OpCase> cases_pool() {
  std::vector<Variant> largest, means, mean_gradients;
  for (const Form& form : forms()) {
    largest.push_back(max_pool(form, false));
    largest.push_back(max_pool(form, true));
    for (const bool include : {false, true}) {
      Form other = form;
      other.count_include_pad = include;
      if (include && form.before.empty()) continue;
      means.push_back(average_pool(other));
      mean_gradients.push_back(average_pool_grad(other));
    }
  }
  for (const Form& form : dilated_forms()) {
    largest.push_back(max_pool(form, false));
    largest.push_back(max_pool(form, true));
  }

  // Golden values are PyTorch's.
  const std::vector<double> x{3, 1, 4, 1, -5, 9, 2, -6, 5, 3, 5, -8, 9,  7, 9, 3, 2, 3,
                              8, 4, 6, 2, -6, 4, 3, 3,  8, 3, 2, 7,  -9, 5, 0, 2, 8, 8};
  const Dims shape{1, 1, 6, 6};
  const Form padded{.x = shape, .kernel = {3, 3}, .strides = {2, 2}, .before = {1, 1}};
  const Form ceiled{.x = shape, .kernel = {3, 3}, .strides = {2, 2}, .ceil_mode = true};
  const Form dilated{.x = shape, .kernel = {2, 2}, .dilations = {2, 3}};
  const Form signal{.x = {2, 3, 6}, .kernel = {2}, .strides = {2}};
  Form mean{.x = shape, .kernel = {3, 3}, .strides = {2, 2}, .before = {1, 1}, .ceil_mode = true};
  Form mean_with_padding = mean;
  mean_with_padding.count_include_pad = true;
  const Form spread{.x = {1, 1, 5, 5}, .kernel = {3, 3}, .strides = {2, 2}, .before = {1, 1}};
  Form spread_with_padding = spread;
  spread_with_padding.count_include_pad = true;
  // f16 and bf16 round thirds before the comparison
  const auto rounded = [](tenon_dtype t) { return Bound{4 * epsilon(t), 0}; };
  const std::vector<tenon_dtype> integers{TENON_DTYPE_I8, u8}, floating{f16, bf16, f32, f64};
  return {
      {.op = TENON_OP_MaxPool,
       .dtypes = floating,
       .variants = largest,
       .bound = exact,
       .gradient = {0},
       .gradient_ops = {TENON_OP_MaxPoolGrad},
       .also = {{"indices_name_results", indices_name_results}},
       .golden = {{"padded", max_pool(padded, true), {x}, {{3, 5, 9, 9, 9, 5, 8, 8, 8}, {0, 8, 5, 12, 14, 10, 18, 26, 34}}},
                  {"ceil_mode", max_pool(ceiled, true), {x}, {{9, 9, 9, 9, 9, 7, 8, 8, 8}, {12, 14, 5, 12, 14, 29, 26, 26, 34}}},
                  {"dilated",
                   max_pool(dilated, true),
                   {x},
                   {{9, 7, 9, 8, 5, 6, 9, 7, 9, 8, 8, 8}, {12, 13, 5, 18, 10, 20, 12, 13, 14, 18, 34, 35}}},
                  {"signal",
                   max_pool(signal, true),
                   {x},
                   {{3, 4, 9, 2, 5, 5, 9, 9, 3, 8, 6, 4, 3, 8, 7, 5, 2, 8},
                    {0, 2, 5, 6, 8, 10, 12, 14, 17, 18, 20, 23, 24, 26, 29, 31, 33, 34}}}},
       .extras = {{"round_trip", check_round_trip},
                  {"ties_and_nan_go_to_the_first", check_ties},
                  {"nan_stays_in_its_windows", max_pool_is_local}}},
      {.op = TENON_OP_MaxPool,
       .dtypes = integers,
       .variants = largest,
       .bound = exact,
       .also = {{"indices_name_results", indices_name_results}},
       .golden =
           {{"signs",
             max_pool({.x = {1, 1, 4}, .kernel = {2}, .strides = {2}}, true),
             {{-128, 127, -3, -4}},
             {{127, -3}, {1, 2}},
             {TENON_DTYPE_I8}},
            {"large", max_pool({.x = {1, 1, 4}, .kernel = {2}, .strides = {2}}, true), {{128, 127, 0, 255}}, {{128, 255}, {0, 3}}, {u8}}},
       .extras = {{"ties_go_to_the_first", check_ties}}},
      {.op = TENON_OP_MaxPoolGrad,
       .variants = {max_pool_grad({1, 1, 3, 3}, {1, 1, 6, 6}), max_pool_grad({1, 1, 5}, {1, 1, 8}),
                    max_pool_grad({1, 1, 1, 1}, {1, 1, 3, 5}), max_pool_grad({1, 1, 7, 7}, {1, 1, 4, 4}),
                    max_pool_grad({0, 3, 2, 2}, {0, 3, 4, 4}),
                    max_pool_grad({1, 1, sized(60, 9), sized(60, 9)}, {1, 1, sized(120, 18), sized(120, 18)})},
       .bound = scatter_bound,
       .golden = {{"overlaps_add",
                   max_pool_grad({1, 1, 4, 4}, shape),
                   {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                    {12, 14, 14, 5, 12, 14, 14, 10, 12, 14, 14, 29, 18, 26, 26, 34}},
                   {{0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 8, 0, 15, 0, 39, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 29, 0, 0, 12, 0, 0, 0, 0, 16, 0}}}},
       .bad = {{"index_too_large", max_pool_grad({1, 2, 2, 2}, {1, 2, 4, 4}), spoil<32, 5>, {"index 32", "position 5", "[16, 32)"}},
               {"index_negative", max_pool_grad({1, 2, 2, 2}, {1, 2, 4, 4}), spoil<-1, 2>, {"index -1", "position 2", "[0, 16)"}},
               {"index_of_another_channel",
                max_pool_grad({1, 2, 2, 2}, {1, 2, 4, 4}),
                spoil<3, 6>,
                {"index 3", "position 6", "max_pool_grad"}}},
       .extras = {{"any_choices", check_any_choices}}},
      {.op = TENON_OP_AveragePool,
       .variants = means,
       .bound = mean_bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_AveragePoolGrad},
       .golden = {{"padding_does_not_count",
                   average_pool(mean),
                   {x},
                   {{0, 4.0 / 3, 5.0 / 6, 0.5, 4, 11.0 / 3, 8.0 / 9, -1.0 / 3, 7.0 / 3, 11.0 / 3, 10.0 / 3, 19.0 / 3, -2, 7.0 / 3, 6, 8}},
                   {},
                   rounded},
                  {"padding_counts",
                   average_pool(mean_with_padding),
                   {x},
                   {{0, 8.0 / 9, 5.0 / 9, 1.0 / 6, 8.0 / 3, 11.0 / 3, 8.0 / 9, -1.0 / 6, 14.0 / 9, 11.0 / 3, 10.0 / 3, 19.0 / 6, -2.0 / 3,
                     7.0 / 6, 3, 2}},
                   {},
                   rounded},
                  {"kernel_larger_than_the_image",
                   average_pool({.x = {1, 1, 3}, .kernel = {4}, .strides = {5}, .ceil_mode = true, .count_include_pad = true}),
                   {{1, 5, 3}},
                   {{3}}}},
       .extras = {{"avg_pool_1d_is_average", avg_pool_1d_is_average}, {"nan_stays_in_its_windows", average_pool_is_local}}},
      {.op = TENON_OP_AveragePoolGrad,
       .variants = mean_gradients,
       .bound = shares_bound,
       .golden = {{"padding_counts",
                   average_pool_grad(spread_with_padding),
                   {{1, 2, 3, 4, 5, 6, 7, 8, 9}},
                   {{1.0 / 9,  3.0 / 9,  2.0 / 9, 5.0 / 9,  3.0 / 9,  5.0 / 9,  12.0 / 9, 7.0 / 9,  16.0 / 9,
                     9.0 / 9,  4.0 / 9,  9.0 / 9, 5.0 / 9,  11.0 / 9, 6.0 / 9,  11.0 / 9, 24.0 / 9, 13.0 / 9,
                     28.0 / 9, 15.0 / 9, 7.0 / 9, 15.0 / 9, 8.0 / 9,  17.0 / 9, 9.0 / 9}},
                   {},
                   rounded},
                  {"padding_does_not_count",
                   average_pool_grad(spread),
                   {{1, 2, 3, 4, 5, 6, 7, 8, 9}},
                   {{9.0 / 36,   21.0 / 36,  12.0 / 36, 39.0 / 36,  27.0 / 36, 33.0 / 36,  65.0 / 36, 32.0 / 36,  95.0 / 36,
                     63.0 / 36,  24.0 / 36,  44.0 / 36, 20.0 / 36,  56.0 / 36, 36.0 / 36,  87.0 / 36, 155.0 / 36, 68.0 / 36,
                     185.0 / 36, 117.0 / 36, 63.0 / 36, 111.0 / 36, 48.0 / 36, 129.0 / 36, 81.0 / 36}},
                   {},
                   rounded}}},
  };
}

}  // namespace tenon::conformance
