// Which ops einsum, tensordot and outer are made of, and what they refuse. The numbers are in exec_composites.cpp.
#include <doctest/doctest.h>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

/// The ops of an equation on f32 inputs of these shapes.
std::string ops_for(const std::string& equation, const std::vector<Shape>& shapes) {
  Graph g;
  std::vector<Value> operands;
  for (const Shape& shape : shapes) operands.push_back(g.input("x" + std::to_string(operands.size()), DType::f32, shape));
  ops::einsum(equation, operands);
  return ops_of(g);
}

std::string refusal(const std::string& equation, const std::vector<Shape>& shapes) {
  return error_of([&] { ops_for(equation, shapes); });
}

}  // namespace

TEST_CASE("einsum: products that BLAS can read are one MatMul of views") {
  CHECK(ops_for("ij,jk->ik", {{2, 3}, {3, 4}}) == "MatMul");
  CHECK(ops_for("ij,kj->ik", {{2, 3}, {4, 3}}) == "Transpose MatMul");
  CHECK(ops_for("ij,jk->ki", {{2, 3}, {3, 4}}) == "Transpose Transpose MatMul");
  CHECK(ops_for("bij,bjk->bik", {{5, 2, 3}, {5, 3, 4}}) == "MatMul");
  CHECK(ops_for("abj,jk->abk", {{5, 2, 3}, {3, 4}}) == "Reshape MatMul Reshape");
  CHECK(ops_for("kij,kl->ijl", {{3, 5, 2}, {3, 4}}) == "Reshape Transpose MatMul Reshape");
}

TEST_CASE("einsum: an axis in one operand alone is summed before the product") {
  CHECK(ops_for("ijx,jk->ik", {{2, 3, 7}, {3, 4}}) == "ReduceSum MatMul");
}

TEST_CASE("einsum: without an axis to sum over a vector is multiplied in") {
  CHECK(ops_for("ij,j->ij", {{2, 3}, {3}}) == "Reshape Mul");
  CHECK(ops_for("i,i->i", {{3}, {3}}) == "Mul");
}

TEST_CASE("einsum: a single operand is summed and turned") {
  CHECK(ops_for("ij->ji", {{2, 3}}) == "Transpose");
  CHECK(ops_for("ij->", {{2, 3}}) == "ReduceSum");
  CHECK(ops_for("ij->ij", {{2, 3}}).empty());
}

TEST_CASE("einsum: a mistake is named with its equation") {
  CHECK(refusal("ii->i", {{3, 3}}) ==
        "einsum \"ii->i\": 'i' stands twice in \"i\": a diagonal is taken by nothing here; multiply by an identity matrix");
  CHECK(refusal("ij,jk->iq", {{2, 3}, {3, 4}}) == "einsum \"ij,jk->iq\": 'q' of the result is in no operand");
  CHECK(refusal("ij,jk->ik", {{2, 3}, {5, 4}}) == "einsum \"ij,jk->ik\": 'j' has the sizes 3 and 5: 'x0' f32(2,3), 'x1' f32(5,4)");
  CHECK(refusal("ij,jk->ik", {{2, 3}, {3}}) == "einsum \"ij,jk->ik\": operand 1 is named by 2 letters, got 'x1' f32(3)");
  CHECK(refusal("ij->ij", {{2, 3}, {3}}) == "einsum \"ij->ij\": it has 1 operands, got 2");
  CHECK(refusal("i,j,k->ijk", {{2}, {3}, {4}}) == "einsum \"i,j,k->ijk\": it has more than two operands; contract two at a time");
  CHECK(refusal("i1->i", {{2, 3}}) == "einsum \"i1->i\": wanted letters, '...', ',' and '->', got '1'");
  CHECK(refusal("...i->i", {{2, 3}}) == "einsum \"...i->i\": the result leaves out the dimensions that \"...\" stands for");
}

TEST_CASE("tensordot: axes that do not pair are named") {
  Graph g;
  const Value a = g.input("a", DType::f32, {2, 3}), b = g.input("b", DType::f32, {3, 4});
  CHECK(str(ops::tensordot(a, b, 1)) == "f32(2,4)");
  CHECK(error_of([&] { ops::tensordot(a, b, 2); }) == "tensordot: axis 0 of a and axis 0 of b differ in size: 'a' f32(2,3), 'b' f32(3,4)");
  CHECK(error_of([&] { ops::tensordot(a, b, 3); }) == "tensordot: wanted 0 to 2 axes for 'a' f32(2,3) and 'b' f32(3,4), got 3");
  CHECK(error_of([&] { ops::outer(a, b); }) == "outer: wanted two vectors, got 'a' f32(2,3) and 'b' f32(3,4)");
}
