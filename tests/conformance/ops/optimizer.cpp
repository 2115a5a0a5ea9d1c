// SPDX-License-Identifier: Apache-2.0
// SgdStep, AdamStep, AmsGradStep, RmsPropStep, AdagradStep, AdadeltaStep over several parameters at once.
#include "op_family.h"

namespace tenon::conformance {
namespace {

constexpr Values learning_rate{.low = 0.01, .high = 0.1};
constexpr Values number{.low = -2, .high = 2};
/// A mean of squares, not near 0, where its root is steep.
constexpr Values square{.low = 0.1, .high = 1};

/// Groups of (w, g, states...), with every output written over its input, as in a training step.
Variant groups(std::string label, const std::vector<Dims>& shapes, const std::vector<OperandSpec>& shared,
               const std::vector<Values>& states, const AttributeBytes& attributes) {
  Variant variant{std::move(label), shared, {}, attributes};
  for (const Dims& shape : shapes) {
    const auto first = static_cast<std::uint32_t>(variant.inputs.size());
    variant.donations.push_back({first, static_cast<std::uint32_t>(variant.outputs.size())});
    variant.inputs.push_back(operand(shape, number));
    variant.inputs.push_back(operand(shape, number));
    variant.outputs.push_back(result(shape));
    for (const Values& state : states) {
      variant.donations.push_back({static_cast<std::uint32_t>(variant.inputs.size()), static_cast<std::uint32_t>(variant.outputs.size())});
      variant.inputs.push_back(operand(shape, state));
      variant.outputs.push_back(result(shape));
    }
  }
  return variant;
}

Variant sgd(const std::vector<Dims>& shapes, double momentum, bool nesterov, double weight_decay) {
  tenon_attributes_sgd attributes{.nesterov = nesterov, .momentum = momentum, .weight_decay = weight_decay};
  std::vector<Values> states;
  if (momentum != 0) states.push_back(number);
  return groups(fmt::format("momentum={}{},decay={}", momentum, nesterov ? ",nesterov" : "", weight_decay), shapes,
                {operand({}, learning_rate, dtype_of_rates)}, states, attributes);
}

Variant adam(const std::vector<Dims>& shapes, double weight_decay) {
  return groups(fmt::format("decay={}", weight_decay), shapes,
                {operand({}, learning_rate, dtype_of_rates), operand({}, {.low = 1, .high = 100, .whole = true}, i64)}, {number, square},
                tenon_attributes_adam{.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = weight_decay});
}

Variant rmsprop(const std::vector<Dims>& shapes, bool epsilon_outside) {
  return groups(epsilon_outside ? "epsilon_outside" : "epsilon_inside", shapes, {operand({}, learning_rate, dtype_of_rates)}, {square},
                tenon_attributes_rmsprop{.epsilon_outside = epsilon_outside, .rho = 0.9, .epsilon = 1e-3});
}

Variant amsgrad(const std::vector<Dims>& shapes, double weight_decay) {
  return groups(fmt::format("decay={}", weight_decay), shapes,
                {operand({}, learning_rate, dtype_of_rates), operand({}, {.low = 1, .high = 100, .whole = true}, i64)},
                {number, square, square},
                tenon_attributes_adam{.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = weight_decay});
}

Variant adagrad(const std::vector<Dims>& shapes, double weight_decay) {
  return groups(fmt::format("decay={}", weight_decay), shapes, {operand({}, learning_rate, dtype_of_rates)}, {square},
                tenon_attributes_adagrad{.epsilon = 1e-10, .weight_decay = weight_decay});
}

Variant adadelta(const std::vector<Dims>& shapes, double weight_decay) {
  return groups(fmt::format("decay={}", weight_decay), shapes, {operand({}, learning_rate, dtype_of_rates)}, {square, square},
                tenon_attributes_adadelta{.rho = 0.9, .epsilon = 1e-6, .weight_decay = weight_decay});
}

/// The same step with a learning rate of f32.
Variant with_f32_rate(Variant variant) {
  variant.label += ",lr=f32";
  variant.inputs[0].dtype = f32;
  return variant;
}

constexpr Tolerance sgd_bound{"A few products and sums of numbers of at most 4 (w, h, v), each rounded by half an epsilon.", 2, 16};
constexpr Tolerance adaptive_bound{
    "The direction is at most 2 / (1 - beta1) over sqrt(0.1); times lr 0.1 that is 7, off by the 8 roundings of "
    "moments, corrections and root.",
    4, 32};

std::vector<std::vector<Dims>> shape_lists() {
  return {{{7}}, {{3, 5}, {5}, {}}, {{0}, {4}}, {{sized(20011, 211), 3}, {17}, {1}}};
}
template <class Make>
std::vector<Variant> each(Make make) {
  std::vector<Variant> variants;
  for (const std::vector<Dims>& shapes : shape_lists()) variants.push_back(make(shapes));
  return variants;
}
void append(std::vector<Variant>& to, std::vector<Variant> from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::vector<OpCase> cases_optimizer() {
  std::vector<Variant> sgds = each([](const auto& shapes) { return sgd(shapes, 0.9, false, 0.01); });
  append(sgds, each([](const auto& shapes) { return sgd(shapes, 0, false, 0); }));
  sgds.push_back(sgd({{7}, {2, 2}}, 0.9, true, 0));
  sgds.push_back(sgd({{7}}, 0, false, 0.1));
  sgds.push_back(with_f32_rate(sgd({{7}}, 0.9, true, 0.1)));
  std::vector<Variant> adams = each([](const auto& shapes) { return adam(shapes, 0); });
  adams.push_back(adam({{7}, {2, 2}}, 0.05));
  adams.push_back(with_f32_rate(adam({{7}}, 0.05)));
  std::vector<Variant> amsgrads = each([](const auto& shapes) { return amsgrad(shapes, 0); });
  amsgrads.push_back(amsgrad({{7}, {2, 2}}, 0.05));
  amsgrads.push_back(with_f32_rate(amsgrad({{7}}, 0.05)));
  std::vector<Variant> adagrads = each([](const auto& shapes) { return adagrad(shapes, 0); });
  adagrads.push_back(adagrad({{7}, {2, 2}}, 0.05));
  adagrads.push_back(with_f32_rate(adagrad({{7}}, 0.05)));
  std::vector<Variant> adadeltas = each([](const auto& shapes) { return adadelta(shapes, 0); });
  adadeltas.push_back(adadelta({{7}, {2, 2}}, 0.05));
  adadeltas.push_back(with_f32_rate(adadelta({{7}}, 0.05)));
  std::vector<Variant> rmsprops = each([](const auto& shapes) { return rmsprop(shapes, false); });
  append(rmsprops, each([](const auto& shapes) { return rmsprop(shapes, true); }));
  rmsprops.push_back(with_f32_rate(rmsprop({{7}}, false)));

  return {
      {.op = TENON_OP_SgdStep,
       .variants = sgds,
       .bound = sgd_bound,
       .golden = {{"plain", sgd({{2}}, 0, false, 0), {{0.5}, {1, -2}, {4, 0.25}}, {{-1, -2.125}}},
                  {"decay", sgd({{2}}, 0, false, 0.25), {{0.5}, {1, -2}, {4, 0.25}}, {{-1.125, -1.875}}},
                  {"momentum", sgd({{2}}, 0.5, false, 0), {{0.5}, {1, -2}, {4, 0.25}, {-2, 1}}, {{-0.5, -2.375}, {3, 0.75}}},
                  {"nesterov", sgd({{2}}, 0.5, true, 0), {{0.5}, {1, -2}, {4, 0.25}, {-2, 1}}, {{-1.75, -2.3125}, {3, 0.75}}}}},
      {.op = TENON_OP_AdamStep,
       .variants = adams,
       .bound = adaptive_bound,
       .golden =
           {{"first_step",
             adam({{2}}, 0),
             {{0.125}, {1}, {1, -2}, {4, -0.5}, {0, 0}, {0, 0}},
             {{0.8750000003125, -1.8750000025}, {0.3999999999999999, -0.04999999999999999}, {0.016000000000000014, 0.0002500000000000002}}},
            {"tenth_step_with_decay",
             adam({{2}}, 0.5),
             {{0.125}, {10}, {1, -2}, {4, -0.5}, {0.5, 1}, {0.25, 0.5}},
             {{0.9059266915715114, -1.8980239761925854}, {0.8499999999999999, 0.8500000000000001}, {0.26575000000000004, 0.49975}}}}},
      {.op = TENON_OP_RmsPropStep,
       .variants = rmsprops,
       .bound = adaptive_bound,
       .golden = {{"epsilon_inside",
                   rmsprop({{2}}, false),
                   {{0.125}, {1, -2}, {4, -0.5}, {0.25, 1}},
                   {{0.6299847550578561, -1.9350506926365043}, {1.8249999999999997, 0.925}}},
                  {"epsilon_outside",
                   rmsprop({{2}}, true),
                   {{0.125}, {1, -2}, {4, -0.5}, {0.25, 1}},
                   {{0.6301571648503288, -1.9350830917733717}, {1.8249999999999997, 0.925}}}}},
      // PyTorch 1.13's second step, in f64
      {.op = TENON_OP_AmsGradStep,
       .variants = amsgrads,
       .bound = adaptive_bound,
       .golden = {{"two_steps_of_pytorch",
                   amsgrad({{2}}, 0),
                   {{0.125},
                    {2.0},
                    {0.8750000003125, -1.8750000025},
                    {0.25, 2.0},
                    {0.3999999999999999, -0.04999999999999999},
                    {0.016000000000000014, 0.0002500000000000002},
                    {0.016000000000000014, 0.0002500000000000002}},
                   {{0.7856008529296594, -1.9449379387750694},
                    {0.3849999999999999, 0.15499999999999997},
                    {0.016046500000000016, 0.0042497500000000035},
                    {0.016046500000000016, 0.0042497500000000035}}}}},
      {.op = TENON_OP_AdagradStep,
       .variants = adagrads,
       .bound = adaptive_bound,
       .golden = {{"two_steps_of_pytorch",
                   adagrad({{2}}, 0.25),
                   {{0.125}, {0.8750000000029412, -1.8750000000125}, {0.25, 2.0}, {18.0625, 1.0}},
                   {{0.861296334463388, -1.9796588130770167}, {18.28222656250069, 3.3447265624904294}}}}},
      {.op = TENON_OP_AdadeltaStep,
       .variants = adadeltas,
       .bound = adaptive_bound,
       .golden = {{"two_steps_of_pytorch",
                   adadelta({{2}}, 0.25),
                   {{0.125},
                    {0.9996047154019003, -1.9996047172688878},
                    {0.25, 2.0},
                    {1.8062499999999997, 0.09999999999999998},
                    {9.999994463670885e-07, 9.999900000999991e-07}},
                   {{0.9995359316168339, -2.000077179821527},
                    {1.6506151188616092, 0.3150296471813861},
                    {9.30279239894052e-07, 2.328604527426191e-06}}}}},
  };
}

}  // namespace tenon::conformance
