// SPDX-License-Identifier: Apache-2.0
// Recurrent layers against PyTorch 1.13 in f64, and against the same layers made of products and activations.
#include <cmath>

#include "ops_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Numbers = std::vector<double>;

/// Layers of torch.nn of 2 units over 2 steps of 1 sequence of 2 features; loss = sum(y dy) + sum(h dy_h) + sum(c dy_c). Weights are in
/// PyTorch's order of gates, their gradients in ONNX's.
struct Golden {
  RecurrentCell cell;
  Numbers x, weight_ih, weight_hh, bias_ih, bias_hh, h0, c0, dy, dy_h, dy_c, y, y_h, y_c, dx, dw, dr, db, dh0, dc0;
};
const Golden of_rnn{
    .cell = RecurrentCell::rnn,
    .x = {-1.0, 0.75, 0.625, 0.25},
    .weight_ih = {0.25, -0.125, 0.0, 1.0},
    .weight_hh = {-0.125, 0.75, 0.5, 0.875},
    .bias_ih = {-0.75, 0.75},
    .bias_hh = {0.75, 1.0},
    .h0 = {0.5, -1.0},
    .c0 = {},
    .dy = {-0.5, 0.5, 0.125, -0.625},
    .dy_h = {-0.25, -0.375},
    .dy_c = {},
    .y = {-0.8198140120760964, 0.9540452601799487, 0.7366024529009213, 0.9844612400038626},
    .y_h = {0.7366024529009213, 0.9844612400038626},
    .y_c = {},
    .dx = {-0.04166614017225732, 0.059458233757282944, -0.014294275824385813, -0.02368892901786435},
    .dw = {0.13092887112806473, -0.13929269634115776, -0.057897705502440076, 0.021259856020851405},
    .dr = {-0.0364576898912663, 0.11211501629718881, 0.044592421582154415, -0.06804416716836707},
    .db = {-0.22384166398657251, 0.007789096741097033, -0.22384166398657251, 0.007789096741097033},
    .dh0 = {0.0401456519217058, -0.09120140230451196},
    .dc0 = {},
};
const Golden of_gru{
    .cell = RecurrentCell::gru,
    .x = {0.125, 0.125, 0.125, 0.0},
    .weight_ih = {-0.875, -0.25, 0.25, 0.375, 0.125, -1.0, -0.625, -0.75, 0.625, -0.75, 0.125, 0.0},
    .weight_hh = {0.375, 0.5, 0.0, -0.375, -0.875, -1.0, 0.75, 1.0, 0.25, 0.375, 1.0, -0.75},
    .bias_ih = {-0.625, -1.0, 0.375, -0.375, 0.75, -0.25},
    .bias_hh = {-1.0, -0.625, 0.625, 0.875, -1.0, 0.125},
    .h0 = {-0.625, -0.625},
    .c0 = {},
    .dy = {0.375, 0.875, 0.25, -0.5},
    .dy_h = {-0.125, -0.75},
    .dy_c = {},
    .y = {-0.49320016856669846, -0.3597805821559322, -0.3392674929036602, -0.2951668300714836},
    .y_h = {-0.3392674929036602, -0.2951668300714836},
    .y_c = {},
    .dx = {0.08151829346136355, 0.053706522588286974, -0.09715515287337029, -0.01345495912374935},
    .dw = {-0.007835517919081296, -0.005769468315882179, -0.000856349906394425, -0.005133481765458806, -0.0006200767041621437,
           -0.00044703708671866915, 0.0010674716519354617, -0.00020518437374292863, 0.005335541281768327, 0.003921439263955307,
           -0.04523627766674512, 0.039294265770630346},
    .dr = {0.03699914967993061, 0.03479393781142698, 0.008791551596313639, 0.01335677690559909, 0.0029179307815280554,
           0.0027332357879921707, -0.003995471462421411, -0.0026370935377079676, -0.002375600501054463, -0.002210819933935077,
           0.021252492464014755, 0.004232051199920747},
    .db = {-0.06268414335265036, -0.0068507992511554, -0.00496061363329715, 0.008539773215483694, 0.04268433025414661, -0.361890221333961,
           -0.06268414335265036, -0.0068507992511554, -0.00496061363329715, 0.008539773215483694, 0.004061408929930672,
           -0.06090608050471297},
    .dh0 = {0.425811361757793, 0.10982147620340602},
    .dc0 = {},
};
const Golden of_lstm{
    .cell = RecurrentCell::lstm,
    .x = {0.5, 0.875, 0.375, -0.125},
    .weight_ih = {0.625, -0.375, -0.25, 0.375, -0.5, -0.125, 0.75, 0.125, -1.0, 0.875, 0.375, 0.625, 0.375, -0.125, -0.375, -0.75},
    .weight_hh = {-0.375, 0.25, 0.25, -0.875, 0.625, -0.875, -1.0, -0.5, 0.0, 1.0, -0.625, -0.125, -0.625, 0.375, -0.75, -0.75},
    .bias_ih = {1.0, 0.375, -0.125, -0.875, -0.75, -0.375, -0.5, 0.125},
    .bias_hh = {-0.625, 0.25, 0.0, 0.375, -0.375, -0.625, 0.625, 0.125},
    .h0 = {-1.0, 0.5},
    .c0 = {-1.0, 0.0},
    .dy = {-0.125, -0.625, 0.0, -0.125},
    .dy_h = {0.25, 0.375},
    .dy_c = {-0.75, -1.0},
    .y = {-0.28995481661698547, 0.06822621059671931, -0.40443194664191817, -0.17229195325953756},
    .y_h = {-0.40443194664191817, -0.17229195325953756},
    .y_c = {-0.7799527946132707, -0.30006139000680787},
    .dx = {-0.036129886826458533, -0.3225986531553093, -0.0529383482399499, -0.24459882341727335},
    .dw = {0.05399163924381733, -0.006987847442792919, 0.0225978144093412, -0.06589873903500484, -0.020456233791401914,
           -0.005754211003695989, -0.02154956573112582, -0.023959314685313773, 0.03471881123716607, 0.010547874821153668,
           -0.012511271661243512, 0.004170423887081171, -0.07394144359512222, -0.06997701457055955, -0.3029886096967041,
           -0.29803052401616903},
    .dr = {-0.04822998016040607, 0.014146105762973971, 0.016896435070686493, -0.01880728756594358, 0.023220706125024738,
           -0.00865876497820667, 0.035000908051802164, -0.01614939467664572, -0.039871044185851676, 0.015002810311895213,
           0.009673875947149734, -0.00227625774718071, 0.11289265331970877, -0.05060876449252526, 0.46924469930471174,
           -0.21181071057424516},
    .db = {0.1404547076458661, 0.07893800137911502, -0.05052661098480618, -0.04749990757238169, 0.08550483682437596, -0.03336339109664937,
           -0.16689745094093383, -0.6802810731383884, 0.1404547076458661, 0.07893800137911502, -0.05052661098480618, -0.04749990757238169,
           0.08550483682437596, -0.03336339109664937, -0.16689745094093383, -0.6802810731383884},
    .dh0 = {0.2646836553530552, 0.008028668176077544},
    .dc0 = {-0.02575738035294208, -0.5276695668144558},
};

void check_close(const char* what, const Tensor& got, const Numbers& expected, double bound = 1e-14) {
  CAPTURE(what);
  const std::vector<double> values = got.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <= bound * std::max(1.0, std::abs(expected[i])));
  }
}

ops::RecurrentResult apply(RecurrentCell cell, Value x, const ops::RecurrentValues& values, ops::Direction direction, bool flag) {
  if (cell == RecurrentCell::lstm) return ops::lstm(x, values, direction);
  if (cell == RecurrentCell::gru) return ops::gru(x, values, direction, flag);
  return ops::rnn(x, values, direction, flag ? ops::RnnActivation::relu : ops::RnnActivation::tanh);
}

void check_golden(const Golden& golden) {
  const std::int64_t rows = static_cast<std::int64_t>(golden.bias_ih.size());
  const RecurrentWeights weights =
      from_torch(golden.cell, {{Tensor::of(golden.weight_ih, {rows, 2}), Tensor::of(golden.weight_hh, {rows, 2}),
                                Tensor::of(golden.bias_ih, {rows}), Tensor::of(golden.bias_hh, {rows})}});
  const bool has_cell = golden.cell == RecurrentCell::lstm;
  for (const char* device : devices) {
    CAPTURE(device);
    const Context context(test_config(device));
    Graph g;
    std::vector<Tensor> bound;
    std::vector<Value> operands;
    const auto bind = [&](const char* name, const Tensor& value) {
      bound.push_back(value);
      operands.push_back(g.input(name, DType::f64, value.shape()));
      return operands.back();
    };
    const Value x = bind("x", Tensor::of(golden.x, {2, 1, 2}));
    ops::RecurrentValues values;
    values.w = bind("w", weights.w);
    values.r = bind("r", weights.r);
    values.b = bind("b", weights.b);
    values.h0 = bind("h0", Tensor::of(golden.h0, {1, 1, 2}));
    if (has_cell) values.c0 = bind("c0", Tensor::of(golden.c0, {1, 1, 2}));
    const ops::RecurrentResult result = apply(golden.cell, x, values, ops::Direction::forward, golden.cell == RecurrentCell::gru);
    const auto weighed = [&](Value of, const Numbers& by) { return ops::reduce_sum(ops::mul(of, g.constant(Tensor::of(by, of.shape())))); };
    Value loss = ops::add(weighed(result.y, golden.dy), weighed(result.h, golden.dy_h));
    if (has_cell) loss = ops::add(loss, weighed(result.c, golden.dy_c));
    g.output("y", result.y);
    g.output("y_h", result.h);
    const std::vector<Value> gradient = gradients(loss, operands);
    for (std::size_t i = 0; i < gradient.size(); ++i) g.output("gradient_" + operands[i].name(), gradient[i]);
    if (has_cell) g.output("y_c", result.c);
    Program program(context, g);
    const std::vector<Tensor>& got = program.run(bound);
    check_close("y", got[0], golden.y);
    check_close("y_h", got[1], golden.y_h);
    check_close("dx", got[2], golden.dx);
    check_close("dw", got[3], golden.dw);
    check_close("dr", got[4], golden.dr);
    check_close("db", got[5], golden.db);
    check_close("dh0", got[6], golden.dh0);
    if (has_cell) check_close("dc0", got[7], golden.dc0);
    if (has_cell) check_close("y_c", got[8], golden.y_c);
  }
}

/// Rows [gate H, (gate + 1) H) of direction d of a (D, G H, n), or of a half of b, as a matrix (H, n) or a vector (H).
Value gate_of(Value weights, std::int64_t d, std::int64_t gate, std::int64_t units) {
  const Value own = ops::squeeze(ops::slice(weights, 0, d, d + 1), {0});
  return ops::slice(own, 0, gate * units, (gate + 1) * units);
}

/// The layer step by step, made of other ops.
ops::RecurrentResult unrolled(RecurrentCell cell, Value x, const ops::RecurrentValues& v, ops::Direction direction, bool flag) {
  const std::int64_t steps = x.shape()[0], directions = v.r.shape()[0], units = v.r.shape()[2];
  const std::int64_t gates = v.r.shape()[1] / units;
  std::vector<Value> sequences, last_h, last_c;
  for (std::int64_t d = 0; d < directions; ++d) {
    const bool backward = direction == ops::Direction::reverse || d == 1;
    Value h = ops::squeeze(ops::slice(v.h0, 0, d, d + 1), {0}), c;
    if (cell == RecurrentCell::lstm) c = ops::squeeze(ops::slice(v.c0, 0, d, d + 1), {0});
    std::vector<Value> states(static_cast<std::size_t>(steps));
    const auto product = [&](Value a, Value w, std::int64_t gate) {
      return ops::matmul(a, ops::transpose(gate_of(w, d, gate, units), {1, 0}));
    };
    for (std::int64_t s = 0; s < steps; ++s) {
      const std::int64_t t = backward ? steps - 1 - s : s;
      const Value step = ops::squeeze(ops::slice(x, 0, t, t + 1), {0});
      const auto from_input = [&](std::int64_t gate) { return ops::add(product(step, v.w, gate), gate_of(v.b, d, gate, units)); };
      const auto from_state = [&](Value state, std::int64_t gate) {
        return ops::add(product(state, v.r, gate), gate_of(v.b, d, gates + gate, units));
      };
      const auto sum = [&](std::int64_t gate) { return ops::add(from_input(gate), from_state(h, gate)); };
      if (cell == RecurrentCell::lstm) {
        c = ops::add(ops::mul(ops::sigmoid(sum(2)), c), ops::mul(ops::sigmoid(sum(0)), ops::tanh(sum(3))));
        h = ops::mul(ops::sigmoid(sum(1)), ops::tanh(c));
      } else if (cell == RecurrentCell::gru) {
        const Value z = ops::sigmoid(sum(0)), r = ops::sigmoid(sum(1));
        const Value seen = flag ? ops::mul(r, from_state(h, 2)) : from_state(ops::mul(r, h), 2);
        const Value candidate = ops::tanh(ops::add(from_input(2), seen));
        h = ops::add(candidate, ops::mul(z, ops::sub(h, candidate)));
      } else {
        h = flag ? ops::relu(sum(0)) : ops::tanh(sum(0));
      }
      states[static_cast<std::size_t>(t)] = h;
    }
    sequences.push_back(ops::stack(states, 0));
    last_h.push_back(h);
    if (c.present()) last_c.push_back(c);
  }
  return {ops::stack(sequences, 1), ops::stack(last_h, 0), last_c.empty() ? Value() : ops::stack(last_c, 0)};
}

Tensor numbers(const Shape& shape, std::uint32_t seed) {
  std::vector<double> values;
  for (const float value : uniform(shape.count(), seed)) values.push_back(value / 2);
  return Tensor::of(values, shape);
}

/// Results and all gradients of loss = sum(y weights) + sum(h weights) + sum(c weights).
template <class Layer>
std::vector<Numbers> evaluate(const char* device, RecurrentCell cell, std::int64_t directions, const Layer& layer) {
  const std::int64_t steps = 4, batch = 3, features = 5, units = 6;
  const std::int64_t gates = cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
  const Context context(test_config(device));
  Graph g;
  std::vector<Tensor> bound;
  std::vector<Value> operands;
  const auto bind = [&](const Shape& shape) {
    bound.push_back(numbers(shape, static_cast<std::uint32_t>(bound.size() + 1)));
    operands.push_back(g.input("operand_" + std::to_string(bound.size()), DType::f64, shape));
    return operands.back();
  };
  const Value x = bind({steps, batch, features});
  ops::RecurrentValues v{bind({directions, gates * units, features}),
                         bind({directions, gates * units, units}),
                         bind({directions, 2 * gates * units}),
                         bind({directions, batch, units}),
                         {}};
  if (cell == RecurrentCell::lstm) v.c0 = bind({directions, batch, units});
  const ops::RecurrentResult result = layer(x, v);
  Value loss;
  std::uint32_t seed = 100;
  for (const Value part : {result.y, result.h, result.c}) {
    if (!part.present()) continue;
    const Value term = ops::reduce_sum(ops::mul(part, g.constant(numbers(part.shape(), ++seed))));
    loss = loss.present() ? ops::add(loss, term) : term;
    g.output("result_" + std::to_string(seed), part);
  }
  for (const Value gradient : gradients(loss, operands)) g.output("gradient_" + std::to_string(g.outputs().size()), gradient);
  Program program(context, g);
  std::vector<Numbers> all;
  for (const Tensor& t : program.run(bound)) all.push_back(t.to_vector<double>());
  return all;
}

void check_unrolled(RecurrentCell cell, bool flag) {
  for (const char* device : devices) {
    for (const ops::Direction direction : {ops::Direction::forward, ops::Direction::reverse, ops::Direction::both}) {
      const std::int64_t directions = direction == ops::Direction::both ? 2 : 1;
      CAPTURE(device);
      CAPTURE(static_cast<int>(direction));
      const auto whole =
          evaluate(device, cell, directions, [&](Value x, const ops::RecurrentValues& v) { return apply(cell, x, v, direction, flag); });
      const auto parts = evaluate("reference:0", cell, directions,
                                  [&](Value x, const ops::RecurrentValues& v) { return unrolled(cell, x, v, direction, flag); });
      REQUIRE(whole.size() == parts.size());
      for (std::size_t k = 0; k < whole.size(); ++k) {
        CAPTURE(k);
        REQUIRE(whole[k].size() == parts[k].size());
        for (std::size_t i = 0; i < whole[k].size(); ++i) CHECK(std::abs(whole[k][i] - parts[k][i]) <= 1e-13);
      }
    }
  }
}

}  // namespace

TEST_CASE("recurrent: results and gradients match PyTorch") {
  for (const Golden* golden : {&of_rnn, &of_gru, &of_lstm}) check_golden(*golden);
}

TEST_CASE("recurrent: an lstm and its gradients match step-by-step products and activations") {
  check_unrolled(RecurrentCell::lstm, false);
}

TEST_CASE("recurrent: a gru matches products and activations, in both reset variants") {
  check_unrolled(RecurrentCell::gru, true);
  check_unrolled(RecurrentCell::gru, false);
}

TEST_CASE("recurrent: an rnn matches products and activations, with tanh and relu") {
  check_unrolled(RecurrentCell::rnn, false);
  check_unrolled(RecurrentCell::rnn, true);
}
