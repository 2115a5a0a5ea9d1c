// SPDX-License-Identifier: Apache-2.0
// Results of composite functions against plain loops.
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "ops_testing.h"

namespace tenon::test {
namespace {

/// Integers with a long period: sums of their products are exact.
Tensor numbers(const Shape& shape, int start) {
  return generated(shape, [&](int i) { return (i * 7 + start) % 23 - 11; });
}

/// An explicit equation by definition: the sum over all indices that are not in the result.
std::vector<double> einsum_by_loops(const std::string& equation, const std::vector<Tensor>& operands) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < equation.size(); ++i) {
    if (equation[i] == ',' || equation[i] == '-') {
      parts.emplace_back();
      i += equation[i] == '-' ? 1 : 0;
    } else {
      parts.back() += equation[i];
    }
  }
  const std::string result = parts.back();
  std::map<char, std::int64_t> size, at;
  std::string letters = result;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    for (std::size_t d = 0; d < parts[k].size(); ++d) {
      size[parts[k][d]] = operands[k].shape()[d];
      if (letters.find(parts[k][d]) == std::string::npos) letters += parts[k][d];
    }
  }
  const auto offset = [&](const std::string& of) {
    std::int64_t place = 0;
    for (const char c : of) place = place * size[c] + at[c];
    return static_cast<std::size_t>(place);
  };
  std::int64_t count = 1;
  for (const char c : result) count *= size[c];
  std::vector<double> y(static_cast<std::size_t>(count));
  const std::function<void(std::size_t)> walk = [&](std::size_t depth) {
    if (depth == letters.size()) {
      double product = 1;
      for (std::size_t k = 0; k < operands.size(); ++k) product *= operands[k].data<double>()[offset(parts[k])];
      y[offset(result)] += product;
      return;
    }
    for (std::int64_t i = 0; i < size[letters[depth]]; ++i) {
      at[letters[depth]] = i;
      walk(depth + 1);
    }
  };
  walk(0);
  return y;
}

TEST_CASE("einsum: every lowering matches the definition") {
  struct Row {
    const char* equation;
    std::vector<Shape> shapes;
  };
  const Row rows[] = {{"ij,jk->ik", {{2, 3}, {3, 4}}},
                      {"ij,jk->ki", {{2, 3}, {3, 4}}},
                      {"ji,kj->ik", {{3, 2}, {4, 3}}},
                      {"bij,bjk->bik", {{5, 2, 3}, {5, 3, 4}}},
                      {"bij,bkj->ibk", {{5, 2, 3}, {5, 4, 3}}},
                      {"ibj,jkb->kbi", {{2, 5, 3}, {3, 4, 5}}},
                      {"abj,jk->abk", {{5, 2, 3}, {3, 4}}},
                      {"kij,kl->ijl", {{3, 5, 2}, {3, 4}}},
                      {"ikj,kl->ijl", {{5, 3, 2}, {3, 4}}},
                      {"ijk,jkl->il", {{2, 3, 4}, {3, 4, 5}}},
                      {"ijk,kjl->il", {{2, 3, 4}, {4, 3, 5}}},
                      {"abcd,cdef->abef", {{2, 3, 2, 2}, {2, 2, 3, 2}}},
                      {"ijx,jk->ik", {{2, 3, 7}, {3, 4}}},
                      {"ij,kl->il", {{2, 3}, {4, 5}}},
                      {"i,j->ij", {{3}, {4}}},
                      {"i,j->ji", {{3}, {4}}},
                      {"i,i->", {{6}, {6}}},
                      {"i,i->i", {{6}, {6}}},
                      {"ij,j->ij", {{2, 3}, {3}}},
                      {"ji,j->ij", {{3, 2}, {3}}},
                      {"bi,bj->bij", {{5, 2}, {5, 3}}},
                      {"ij->ji", {{2, 3}}},
                      {"ijk->k", {{2, 3, 4}}},
                      {"ij->", {{2, 3}}},
                      // diagonals
                      {"ii->i", {{3, 3}}},
                      {"ii->", {{3, 3}}},
                      {"ii->i", {{0, 0}}},
                      {"iii->i", {{3, 3, 3}}},
                      {"iji->ji", {{3, 2, 3}}},
                      {"ijij->ji", {{3, 2, 3, 2}}},
                      {"ii,ij->j", {{3, 3}, {3, 4}}},
                      {"ij,jj->i", {{2, 3}, {3, 3}}},
                      // more operands than two
                      {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}},
                      {"ij,jk,kl->li", {{2, 3}, {3, 4}, {4, 5}}},
                      {"i,j,k->kji", {{2}, {3}, {4}}},
                      {"i,ij,j->", {{2}, {2, 3}, {3}}},
                      {"bi,bj,bk->bijk", {{2, 3}, {2, 4}, {2, 5}}},
                      {"ij,j,jk,ki->", {{2, 3}, {3}, {3, 4}, {4, 2}}},
                      {"ij,kl,jk->il", {{2, 3}, {4, 5}, {3, 4}}},
                      {"ij,k,ji->i", {{2, 3}, {4}, {3, 2}}},
                      {"ii,ij,jj->ij", {{2, 2}, {2, 3}, {3, 3}}}};
  for (const Row& row : rows) {
    CAPTURE(row.equation);
    std::vector<Tensor> inputs;
    for (const Shape& shape : row.shapes) inputs.push_back(numbers(shape, static_cast<int>(inputs.size()) * 5));
    CHECK(result_of(inputs, [&](const auto& x) { return ops::einsum(row.equation, x); }) == einsum_by_loops(row.equation, inputs));
  }
}

TEST_CASE("einsum: implicit outputs follow NumPy") {
  const Tensor a = numbers({2, 3}, 0), b = numbers({3, 4}, 5), batch = numbers({5, 2, 3}, 1), one = numbers({1, 3, 4}, 2);
  const auto same = [](const std::string& said, const std::string& meant, const std::vector<Tensor>& x, const std::vector<Tensor>& y) {
    CAPTURE(said);
    CHECK(result_of(x, [&](const auto& v) { return ops::einsum(said, v); }) == einsum_by_loops(meant, y));
  };
  same("ij,jk", "ij,jk->ik", {a, b}, {a, b});
  same("ji", "ji->ij", {a}, {a});
  same("...ij,jk->...ik", "bij,jk->bik", {batch, b}, {batch, b});
  same("...ij,...jk", "bij,jk->bik", {batch, one}, {batch, numbers({3, 4}, 2)});
  same("i...,i...->...", "ij,ij->j", {a, a}, {a, a});
  const Tensor square = numbers({3, 3}, 4);
  same("ii", "ii->", {square}, {square});
  same("ii,jb", "ii,jb->bj", {square, b}, {square, b});
  same("...ii->...i", "bii->bi", {numbers({2, 3, 3}, 4)}, {numbers({2, 3, 3}, 4)});
  same("Ab,bC", "ab,bc->ac", {a, b}, {a, b});
  same(" i j , j k\t-> i k ", "ij,jk->ik", {a, b}, {a, b});
}

TEST_CASE("einsum: dimensions of size 1 broadcast, also those with a letter") {
  const Tensor a = numbers({2, 3}, 0), b = numbers({3, 4}, 5), column = numbers({2, 1}, 3), c = numbers({5, 2, 4}, 2);
  const auto same = [](const std::string& said, const std::string& meant, const std::vector<Tensor>& x, const std::vector<Tensor>& y) {
    CAPTURE(said);
    CHECK(result_of(x, [&](const auto& v) { return ops::einsum(said, v); }) == einsum_by_loops(meant, y));
  };
  const Tensor flat = numbers({2}, 3);
  same("ij,jk->ik", "i,jk->ik", {column, b}, {flat, b});
  same("ij,ij->ij", "i,ij->ij", {column, a}, {flat, a});
  same("...j,jk,...k->...", "aj,jk,bak->ba", {a, b, c}, {a, b, c});
  same("ij,ij,ij->i", "i,ij,i->i", {column, a, column}, {flat, a, flat});
  same("ij,ij->ij", "ij,ij->ij", {column, column}, {column, column});
}

TEST_CASE("einsum: a result without the dimensions of \"...\" is their sum") {
  const Tensor a = numbers({2, 3, 4}, 0), b = numbers({4, 5}, 5);
  CHECK(result_of({a}, [](const auto& v) { return ops::einsum("...i->i", v); }) == einsum_by_loops("jki->i", {a}));
  CHECK(result_of({a, b}, [](const auto& v) { return ops::einsum("...i,ij->j", v); }) == einsum_by_loops("kli,ij->j", {a, b}));
}

TEST_CASE("tensordot: pairs of axes are summed over") {
  const Tensor a = numbers({2, 3, 4}, 0), b = numbers({4, 3, 5}, 3);
  CHECK(result_of({a, b}, [](const auto& x) {
          return ops::tensordot(x[0], x[1], {1, 2}, {1, 0});
        }) == einsum_by_loops("ijk,kjl->il", {a, b}));
  CHECK(result_of({a, b}, [](const auto& x) { return ops::tensordot(x[0], x[1], 1); }) == einsum_by_loops("ijk,klm->ijlm", {a, b}));
  const Tensor v = numbers({3}, 0), w = numbers({4}, 3);
  CHECK(result_of({v, w}, [](const auto& x) { return ops::outer(x[0], x[1]); }) == einsum_by_loops("i,j->ij", {v, w}));
}

TEST_CASE("norm: every p, and a zero gradient where it is undefined") {
  const Tensor x = Tensor::of<double>({3, -4, 0, 0, 0, 0}, {2, 3});
  const auto rows = [&](double p) { return result_of({x}, [&](const auto& v) { return ops::norm(v[0], p, {1}); }); };
  CHECK(rows(1) == std::vector<double>{7, 0});
  CHECK(rows(2) == std::vector<double>{5, 0});
  CHECK(rows(std::numeric_limits<double>::infinity()) == std::vector<double>{4, 0});
  CHECK(rows(3)[0] == doctest::Approx(std::cbrt(27.0 + 64.0)));
  CHECK(rows(0.5)[0] == doctest::Approx(std::pow(std::sqrt(3.0) + 2.0, 2)));
  for (const double p : {0.5, 1.0, 2.0, 3.0}) {
    CAPTURE(p);
    const std::vector<double> slope =
        result_of({x}, [&](const auto& v) { return gradients(ops::reduce_sum(ops::norm(v[0], p, {1})), {v[0]})[0]; });
    // d/dx_i = sign(x_i) (|x_i| / norm)^(p - 1)
    CHECK(slope[0] == doctest::Approx(std::pow(3 / rows(p)[0], p - 1)));
    CHECK(slope[1] == doctest::Approx(-std::pow(4 / rows(p)[0], p - 1)));
    for (std::size_t i = 2; i < 6; ++i) CHECK(slope[i] == 0);
  }
}

TEST_CASE("variance: values far from zero keep their precision") {
  const Tensor x = Tensor::of<double>({1e8 + 1, 1e8 + 2, 1e8 + 3, 1e8 + 6}, {4});
  CHECK(result_of({x}, [](const auto& v) { return ops::variance(v[0]); }) == std::vector<double>{3.5});
  CHECK(result_of({x}, [](const auto& v) { return ops::variance(v[0], {}, false, true); })[0] == doctest::Approx(14.0 / 3));
}

TEST_CASE("shape functions: every element has its position") {
  const Tensor x = Tensor::of<double>({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto of_x = [&](const std::function<Value(Value)>& f) { return result_of({x}, [&](const auto& v) { return f(v[0]); }); };
  using List = std::vector<double>;
  CHECK(of_x([](Value v) { return ops::flip(v, {1}); }) == List{3, 2, 1, 6, 5, 4});
  CHECK(of_x([](Value v) { return ops::flip(v, {0, -1}); }) == List{6, 5, 4, 3, 2, 1});
  CHECK(of_x([](Value v) { return ops::tile(v, {1, 2}); }) == List{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  CHECK(of_x([](Value v) { return ops::tile(v, {2, 1}); }) == List{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  CHECK(of_x([](Value v) { return ops::tile(v, {0, 2}); }).empty());
  CHECK(of_x([](Value v) { return ops::stack({v, v}, 2); }) == List{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
  CHECK(of_x([](Value v) { return ops::slice(v, 1, 2, -100, -2); }) == List{3, 1, 6, 4});
  CHECK(of_x([](Value v) { return ops::split(v, {1, 2}, 1)[1]; }) == List{2, 3, 5, 6});
  CHECK(of_x([](Value v) { return ops::pad(v, {{0, 0}, {2, 1}}, 0, ops::PadMode::reflect); }) == List{3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5});
}

TEST_CASE("scatter_elements: of several updates the last one has the gradient") {
  const Tensor x = numbers({3}, 0), u = numbers({4}, 5);
  const std::vector<double> slope = result_of({x, u}, [](const auto& v) {
    const Value i = v[0].graph().constant(Tensor::of<std::int64_t>({0, 2, 0, 2}, {4}));
    const Value y = ops::scatter_elements(v[0], i, v[1]);
    return gradients(ops::reduce_sum(ops::mul(y, y.graph().constant(Tensor::of<double>({1, 2, 3}, {3})))), {v[1]})[0];
  });
  CHECK(slope == std::vector<double>{0, 0, 1, 3});
}

TEST_CASE("scatter_slices: of several updates the last one has the gradient") {
  const Tensor x = numbers({3, 2}, 0), u = numbers({4, 2}, 7);
  const std::vector<double> slope = result_of({x, u}, [](const auto& v) {
    const Value i = v[0].graph().constant(Tensor::of<std::int64_t>({0, 2, 0, 2}, {4}));
    const Value y = ops::scatter_slices(v[0], i, v[1]);
    return gradients(ops::reduce_sum(ops::mul(y, y.graph().constant(Tensor::of<double>({1, 2, 3, 4, 5, 6}, {3, 2})))), {v[1]})[0];
  });
  CHECK(slope == std::vector<double>{0, 0, 0, 0, 1, 2, 5, 6});
}

TEST_CASE("scatter_slices: the element and the updates that are the largest share the gradient") {
  for (const std::size_t of : {0, 1}) {
    const Tensor x = Tensor::of<double>({3, 1}, {2}), u = Tensor::of<double>({3, 2, 3, 1}, {4});
    const std::vector<double> slope = result_of({x, u}, [=](const auto& v) {
      const Value i = v[0].graph().constant(Tensor::of<std::int64_t>({0, 1, 0, 0}, {4}));
      const Value y = ops::scatter_slices(v[0], i, v[1], 0, ops::ScatterReduction::max);
      return gradients(ops::reduce_sum(ops::mul(y, 6)), {v[of]})[0];
    });
    CHECK(slope == (of == 0 ? std::vector<double>{2, 0} : std::vector<double>{2, 6, 2, 0}));
  }
}

TEST_CASE_FIXTURE(OnReference, "gather: an index out of range stops the program and is reported") {
  Graph graph;
  const Value weights = graph.input("weights", DType::f32, {10, 2}), i = graph.input("i", DType::i64, {3});
  graph.output("y", ops::embedding(weights, i));
  Program program(context, graph);
  const std::string message = message_of([&] {
    program.run({Tensor::zeros(DType::f32, {10, 2}), Tensor::of<std::int64_t>({0, 10, 3}, {3})});
  });
  CAPTURE(message);
  CHECK(contains(message, "gather: index 10 at position 1 is out of range [-10, 10)"));
}

}  // namespace
}  // namespace tenon::test
