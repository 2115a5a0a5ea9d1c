// SPDX-License-Identifier: Apache-2.0
// Attention and its gradient: several heads, shared keys, masks, causal rows.
#include "op_family.h"

namespace tenon::conformance {
namespace {

struct Form {
  std::int64_t batch, heads, groups, queries, keys, size, result;
  bool causal = false;
  OperandSpec mask = absent;
  bool log_sum = true;
  double scale = 0;  ///< 0: 1 / sqrt(size)
  Special special = Special::none;

  Dims q() const { return {batch, heads, queries, size}; }
  Dims k() const { return {batch, groups, keys, size}; }
  Dims v() const { return {batch, groups, keys, result}; }
  Dims y() const { return {batch, heads, queries, result}; }
  Dims rows() const { return {batch, heads, queries}; }
  AttributeBytes attributes() const {
    return tenon_attributes_attention{.causal = causal, .scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size))};
  }
  std::string label() const { return fmt::format("{}{}", causal ? "causal" : "all", log_sum ? "" : ",y"); }
};

/// Numbers up to 1, so that scores stay below sqrt(size) and a mask's 1.
constexpr Values small{.low = -1, .high = 1};

Variant attention(const Form& form) {
  const Values q{.low = -1, .high = 1, .special = form.special};
  return {form.label(),
          {operand(form.q(), q), operand(form.k(), small), operand(form.v(), small), form.mask},
          {result(form.y()), form.log_sum ? result(form.rows(), dtype_of_sums) : omitted},
          form.attributes()};
}

/// Plausible y and log_sum: the latter about the logarithm of 20 keys.
Variant attention_grad(const Form& form) {
  return {form.label(),
          {operand(form.y(), small), operand(form.q(), small), operand(form.k(), small), operand(form.v(), small), form.mask,
           operand(form.y(), small), operand(form.rows(), {.low = 3, .high = 4}, dtype_of_sums)},
          {result(form.q()), result(form.k()), result(form.v())},
          form.attributes()};
}

std::vector<Form> forms() {
  const auto mask = [](const Dims& shape) { return operand(shape, small); };
  const std::int64_t n = sized(300, 140);
  return {
      {1, 1, 1, 1, 1, 1, 1},
      {.batch = 2, .heads = 3, .groups = 3, .queries = 5, .keys = 7, .size = 4, .result = 6, .special = Special::not_large},
      {2, 3, 3, 5, 7, 4, 6, false, absent, false},
      {1, 4, 2, 9, 9, 8, 8, true},
      {1, 6, 1, 3, 10, 5, 3, true},
      {1, 2, 2, 10, 4, 3, 5, true},
      {2, 2, 1, 6, 11, 4, 4, false, mask({6, 11})},
      {2, 2, 1, 6, 11, 4, 4, true, mask({2, 1, 1, 11})},
      {1, 3, 3, 4, 5, 4, 4, false, mask({1, 3, 4, 5})},
      {1, 3, 3, 4, 5, 4, 4, false, mask({3, 4, 1}), true, -0.5},
      {1, 1, 1, 3, 4, 4, 2, false, mask({})},
      // one query, as in text generation
      {2, 4, 2, 1, n, 16, 16},
      {1, 2, 2, 1, 40, 16, 8, false, mask({40})},
      // more than one block of queries and of keys
      {1, 2, 1, 70, n, 16, 8, false, mask({1, 1, 70, n})},
      {1, 2, 2, 130, 130, 16, 16, true},
      {1, 1, 1, 65, n, 8, 8, true},
      {9, 1, 1, 5, 6, 4, 4, true},
      // rows of 16 bytes in 16 bits, which fused kernels on matrix units want
      {.batch = 2, .heads = 2, .groups = 2, .queries = 20, .keys = 20, .size = 8, .result = 8, .special = Special::not_large},
      {2, 2, 2, sized(100, 24), sized(140, 40), 64, 64},
      {1, 4, 2, sized(200, 40), sized(200, 40), 32, 32, true},
      {1, 2, 1, sized(130, 24), sized(70, 16), 64, 32, true, absent, false},
      {1, 3, 1, 1, sized(500, 60), 128, 128},
      // empty
      {0, 2, 2, 3, 4, 2, 2},
      {1, 2, 2, 0, 4, 2, 2},
      {1, 2, 2, 3, 0, 2, 2, true},
  };
}

template <class Make>
std::vector<Variant> variants(Make make) {
  std::vector<Variant> list;
  for (const Form& form : forms()) list.push_back(make(form));
  return list;
}

/// The error of a score. It sums `size` products of at most 1, each good to epsilon, times the scale, and a mask of at most 1.
double score_error(const Variant& variant, std::size_t q, tenon_dtype t) {
  const auto size = static_cast<double>(variant.inputs[q].shape[3]);
  const double scale = std::fabs(variant.attributes.as<tenon_attributes_attention>().scale);
  return epsilon(t) * (scale * size * std::sqrt(size) + scale * size + 1);
}

constexpr Tolerance attention_bound{
    "The exponential makes the score's error a relative one of each weight, and of their sum; adding the weighted "
    "values, which are at most 1, adds about the root of their number. log_sum has the score's error itself. In 16 "
    "bits the weights, whose sum is 1, may be rounded before they multiply the values, as matrix units want them.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const auto keys = static_cast<double>(variant.inputs[1].shape[2]);
      return {.relative = 2 * epsilon(t), .absolute = 2 * score_error(variant, 0, t) + (8 + std::sqrt(keys)) * epsilon(t), .rounding = 0.5};
    }};

constexpr Tolerance gradient_bound{
    "With scores of at most M a weight is p <= P = e^(M - 3); slopes p (dp - w) have |dp| and |w| up to E. Their "
    "error is that of the weight, p (score error + 4 epsilon) 2 E, and of the two sums, P 2 E sqrt(E) epsilon. A "
    "result adds N of them times at most 1, where N is the number of keys, or that of all queries which share them, "
    "and rounds by its root. In 16 bits weights and slopes may be rounded before they are multiplied, and the results "
    "of the heads that share keys before they are added.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const Dims &q = variant.inputs[1].shape, &k = variant.inputs[2].shape, &v = variant.inputs[3].shape;
      const auto size = static_cast<double>(q[3]), result = static_cast<double>(v[3]);
      const double scale = std::fabs(variant.attributes.as<tenon_attributes_attention>().scale);
      const double weight = std::exp(scale * size + (variant.inputs[4].present ? 1 : 0) - 3);
      const double slope = weight * 2 * result;
      const auto terms = static_cast<double>(std::max(k[2], q[2] * q[1] / k[1]));
      const double each = slope * (score_error(variant, 1, t) + 4 * epsilon(t)) + slope * std::sqrt(result) * epsilon(t);
      return {.relative = 2 * epsilon(t),
              .absolute = std::max(scale, 1.0) * terms * (each + std::sqrt(terms) * epsilon(t) * slope),
              .rounding = std::max(scale, 1.0) * std::sqrt(terms) * slope};
    }};

Array filled(tenon_dtype dtype, const Dims& shape, double value) {
  return Array(dtype, shape, std::vector<double>(static_cast<std::size_t>(count_of(shape)), value));
}

/// Weights of a row sum to 1, so that values which are all 1 give 1.
void weights_sum_to_one(CaseContext& context, tenon_dtype dtype) {
  for (const bool causal : {false, true}) {
    const Variant variant = attention({1, 2, 1, 70, 300, 8, 3, causal, absent, false});
    std::vector<Array> inputs = fill(variant, dtype, seed_for(context.seed, "ones"));
    inputs[2] = filled(dtype, variant.inputs[2].shape, 1);
    const Array y = context.run(net_of(line_of(TENON_OP_Attention), variant, dtype, inputs))[0];
    const std::string wrong = compare(filled(f64, y.shape(), 1), y, attention_bound(variant, dtype));
    if (!wrong.empty()) throw Failure(wrong);
  }
}

/// Causal is a mask of minus infinity above the diagonal.
void causal_is_a_mask(CaseContext& context, tenon_dtype dtype) {
  const Form causal{1, 2, 1, 70, 80, 8, 3, true};
  Form masked = causal;
  masked.causal = false;
  masked.mask = operand({70, 80});
  const auto inputs = fill(attention(causal), dtype, seed_for(context.seed, "causal"));
  Array mask(dtype, {70, 80});
  for (std::int64_t i = 0; i < mask.count(); ++i) mask.set(i, i % 80 > i / 80 ? -inf : 0);
  const auto expected = context.run(net_of(line_of(TENON_OP_Attention), attention(causal), dtype, inputs));
  const auto got = context.run(net_of(line_of(TENON_OP_Attention), attention(masked), dtype, {inputs[0], inputs[1], inputs[2], mask}));
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string wrong = compare(expected[i], got[i], attention_bound(attention(masked), dtype).times(2));
    if (!wrong.empty()) throw Failure(fmt::format("output {}: {}, expected the result of causal rows", i, wrong));
  }
}

/// A row whose mask is minus infinity everywhere is 0 and has no gradient; other rows are not affected.
void masked_rows_are_zero(CaseContext& context, tenon_dtype dtype) {
  Form form{1, 1, 1, 3, 5, 4, 4};
  form.mask = operand({3, 1});
  const Array mask(dtype, {3, 1}, {0, -inf, 0});
  auto inputs = fill(attention(form), dtype, seed_for(context.seed, "rows"));
  inputs[3] = mask;
  const auto out = context.run(net_of(line_of(TENON_OP_Attention), attention(form), dtype, inputs));
  const auto grads = context.run(net_of(line_of(TENON_OP_AttentionGrad), attention_grad(form), dtype,
                                        {filled(dtype, form.y(), 1), inputs[0], inputs[1], inputs[2], mask, out[0], out[1]}));
  for (std::int64_t i = 0; i < 4; ++i) {
    if (out[0].at(4 + i) != 0) throw Failure(fmt::format("y[1,{}] is {}, expected 0", i, out[0].str(4 + i)));
    if (grads[0].at(4 + i) != 0) throw Failure(fmt::format("dq[1,{}] is {}, expected 0", i, grads[0].str(4 + i)));
  }
  if (out[1].at(1) != -inf) throw Failure(fmt::format("log_sum[1] is {}, expected -inf", out[1].str(1)));
  for (const Array& array : {out[0], grads[0], grads[1], grads[2]}) {
    for (std::int64_t i = 0; i < array.count(); ++i) {
      if (!std::isfinite(array.at(i))) throw Failure(fmt::format("element {} is {}", i, array.str(i)));
    }
  }
}

/// Heads next to each other in one row, as the products before and after have them: whether kernels read and write them there or copy
/// them, results are the same.
void heads_of_rows(CaseContext& context, tenon_dtype dtype) {
  // The third is one that kernels do not take: rows are the last dimension.
  const std::int64_t perms[][4] = {{0, 2, 1, 3}, {1, 2, 0, 3}, {0, 1, 3, 2}};
  for (const Form& form : {Form{2, 3, 3, 20, 24, 8, 8}, Form{2, 3, 3, 3, 5, 4, 4}, Form{1, 4, 2, 70, 300, 16, 8, true},
                           Form{1, 2, 2, 17, 17, 8, 8}, Form{1, 2, 2, 20, 18, 17, 15}}) {
    for (const auto& perm : perms) {
      Net net;
      const auto transposed = [&](const std::int64_t(&by)[4]) {
        tenon_attributes_axes axes{.struct_size = sizeof axes, .count = 4};
        std::copy(std::begin(by), std::end(by), axes.axes);
        return axes;
      };
      const tenon_attributes_none none{sizeof none, 0};
      const auto inputs = fill(attention(form), dtype, seed_for(context.seed, "heads"));
      std::vector<std::uint32_t> operands;
      for (std::size_t i = 0; i < 3; ++i) {
        Dims given(4);
        for (std::size_t d = 0; d < 4; ++d) given[static_cast<std::size_t>(perm[d])] = inputs[i].shape()[d];
        Array array(dtype, given);
        for (std::int64_t e = 0; e < array.count(); ++e) array.set(e, inputs[i].at(e));
        const auto axes = transposed(perm);
        const std::uint32_t heads = net.internal(dtype, inputs[i].shape());
        net.node(TENON_OP_Transpose, line_of(TENON_OP_Transpose).version, &axes, {net.input(array)}, {heads});
        operands.push_back(heads);
      }
      operands.push_back(TENON_NO_INDEX);
      const Dims y = form.y(), merged{y[0], y[2], y[1], y[3]};
      const std::uint32_t result = net.internal(dtype, y), rows = net.internal(dtype, merged);
      const AttributeBytes attributes = form.attributes();
      net.node(TENON_OP_Attention, line_of(TENON_OP_Attention).version, attributes.data(), operands, {result, TENON_NO_INDEX});
      const auto axes = transposed({0, 2, 1, 3});
      net.node(TENON_OP_Transpose, line_of(TENON_OP_Transpose).version, &axes, {result}, {rows});
      net.node(TENON_OP_Reshape, line_of(TENON_OP_Reshape).version, &none, {rows}, {net.output(dtype, {y[0] * y[2], y[1] * y[3]})});
      const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
      const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
      const std::string wrong = compare(apart[0], together[0], attention_bound(attention(form), dtype).times(2));
      if (!wrong.empty()) throw Failure(fmt::format("q {}: {}, expected the result of separate kernels", str(form.q()), wrong));
    }
  }
}

/// Scores far beyond the range of the exponential: the largest one of a row decides.
void large_scores(CaseContext& context, tenon_dtype dtype) {
  const Form form{1, 1, 1, 2, 3, 1, 1, false, absent, false, 1};
  const Array q(dtype, {1, 1, 2, 1}, {128, -128}), k(dtype, {1, 1, 3, 1}, {8, 64, -64}), v(dtype, {1, 1, 3, 1}, {1, 2, 3});
  const Array y = context.run(net_of(line_of(TENON_OP_Attention), attention(form), dtype, {q, k, v, {}}))[0];
  if (y.at(0) != 2 || y.at(1) != 3) throw Failure(fmt::format("y is {}, {}, expected 2, 3", y.str(0), y.str(1)));
}

}  // namespace

std::vector<OpCase> cases_attention() {
  // PyTorch 1.13 in f64: softmax(scale q k' + mask) v, logsumexp and their gradients by autograd
  Form masked{1, 2, 1, 2, 3, 2, 2, false, operand({2, 1, 3}), true, 0.75};
  Form causal{1, 2, 1, 3, 3, 2, 2, true, absent, true, 0.5};
  const std::vector<double> q1{-0.5, 0.25, 1, -1, -0.5, -0.25, -0.75, 1}, k1{0, -1, -0.25, 0.5, -0.5, 0.75}, v1{0.5, 0.5, 1, 0.75, 0.5, -1},
      mask1{0, 0.25, -1, 0.25, 0.75, -0.75}, y1{0.7680927156882108,  0.36882357483315964, 0.62223421798106304, 0.48890907510075426,
                                                0.75439414639422819, 0.44873571262347045, 0.8376404147767722,  0.35503184414983607},
      log_sum1{1.0607752236791548, 1.0961690746702735, 1.4257232766775967, 1.6582516308487958}, dy1{0.75, 1, 1, 0, 0.25, -0.5, 0.5, 0.5};
  const std::vector<double> q2{0.75, 0.5, 1, 0.5, -0.5, -0.5, 0.5, 0.25, 0.25, 0.25, -1, 0.5}, k2{-1, 0.5, -0.5, 0, -0.25, -0.25},
      v2{0, 0.5, -1, 0.75, 0.25, 1},
      y2{0, 0.5, -0.53120937337375629, 0.6328023433434391, -0.25, 0.75, 0, 0.5, -0.5, 0.625, -0.24139395979334341, 0.70234786976922736},
      log_sum2{-0.25, 0.3825990353171691, 1.2236122886681098, -0.1875, 0.63064718055994529, 1.4390684439453625},
      dy2{-0.25, -0.25, 0, 0.75, -0.25, 0.25, -0.25, -0.25, 0.75, 0.25, -0.75, 0.75};
  const auto close = [](tenon_dtype t) { return Bound{16 * epsilon(t), 16 * epsilon(t)}; };
  return {
      {.op = TENON_OP_Attention,
       .variants = variants(attention),
       .bound = attention_bound,
       .gradient = {0, 1, 2, 3},
       .gradient_ops = {TENON_OP_AttentionGrad},
       .kept = {1},
       .golden = {{"masked", attention(masked), {q1, k1, v1, mask1}, {y1, log_sum1}, {}, close},
                  {"causal", attention(causal), {q2, k2, v2, {}}, {y2, log_sum2}, {}, close}},
       .extras = {{"weights_sum_to_one", weights_sum_to_one},
                  {"causal_is_a_mask", causal_is_a_mask},
                  {"masked_rows_are_zero", masked_rows_are_zero},
                  {"heads_of_rows", heads_of_rows},
                  {"large_scores", large_scores}}},
      {.op = TENON_OP_AttentionGrad,
       .variants = variants(attention_grad),
       .bound = gradient_bound,
       .golden = {{"masked",
                   attention_grad(masked),
                   {dy1, q1, k1, v1, mask1, y1, log_sum1},
                   {{0.048285312568806762, -0.029479737857787909, -0.015109391215791811, 0.096172780141292685, -0.020968036926430306,
                     0.052107101670247666, 0.031109537891743394, -0.020675709341748123},
                    {-0.038612558228469082, 0.058970346306964204, -0.13117561336621225, 0.13618837331144962, 0.16978817159468129,
                     -0.19515871961841375},
                    {1.0734652405912228, 0.15864411067876824, 1.1114449974683289, 0.61943169975896584, 0.31508976194044835,
                     0.22192418956226595}},
                   {},
                   close},
                  {"causal",
                   attention_grad(causal),
                   {dy2, q2, k2, v2, {}, y2, log_sum2},
                   {{0, 0, 0.011673092578763351, -0.01167309257876333, 0.0078124999999999939, -0.0078124999999999991, 0, 0, -0.04296875,
                     0.04296875, 0.032277417513983601, -0.032277417513983636},
                    {0.082280098084857242, -0.016634671699955285, -0.10582924451369061, 0.020596744914371926, 0.023549146428833261,
                     -0.0039620732144166355},
                    {-0.54062223045350644, 0.39221520042318936, 0.063288070214695277, 0.8351189598156219, -0.27266583976118869,
                     0.27266583976118869}},
                   {},
                   close}}},
  };
}

}  // namespace tenon::conformance
