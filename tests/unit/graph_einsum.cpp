// SPDX-License-Identifier: Apache-2.0
// Which ops einsum, tensordot and outer consist of, and their errors. Values are tested in exec_composites.cpp.
#include <doctest/doctest.h>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

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
  return message_of([&] { ops_for(equation, shapes); });
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

TEST_CASE("einsum: an axis in only one operand is summed before the product") {
  CHECK(ops_for("ijx,jk->ik", {{2, 3, 7}, {3, 4}}) == "ReduceSum MatMul");
}

TEST_CASE("einsum: without a summed axis a vector is multiplied elementwise") {
  CHECK(ops_for("ij,j->ij", {{2, 3}, {3}}) == "Reshape Mul");
  CHECK(ops_for("i,i->i", {{3}, {3}}) == "Mul");
}

TEST_CASE("einsum: a single operand is summed and transposed") {
  CHECK(ops_for("ij->ji", {{2, 3}}) == "Transpose");
  CHECK(ops_for("ij->", {{2, 3}}) == "ReduceSum");
  CHECK(ops_for("ij->ij", {{2, 3}}).empty());
}

TEST_CASE("einsum: a repeated label is a strided slice") {
  CHECK(ops_for("ii->i", {{3, 3}}) == "Reshape Slice");
  CHECK(ops_for("ii", {{3, 3}}) == "Reshape Slice ReduceSum");
  CHECK(ops_for("iij->ij", {{3, 3, 2}}) == "Transpose Reshape Slice Transpose");
}

TEST_CASE("einsum: operands are multiplied from left to right, and labels summed as soon as nothing has them") {
  CHECK(ops_for("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}) == "MatMul MatMul");
}

TEST_CASE("einsum: a result without the dimensions of \"...\" is their sum") {
  CHECK(ops_for("...i->i", {{2, 3}}) == "ReduceSum");
}

TEST_CASE("einsum: an error has the equation") {
  CHECK(refusal("ii->i", {{3, 1}}) == "einsum \"ii->i\": operand 0: expected equal sizes of both 'i', got 3 and 1 of 'x0' f32(3,1)");
  CHECK(refusal("ij->ii", {{3, 3}}) == "einsum \"ij->ii\": 'i' occurs twice in the result");
  CHECK(refusal("...i...->i", {{3, 3}}) == "einsum \"...i...->i\": \"...\" occurs twice in \"...i...\"");
  CHECK(refusal("ij,jk->iq", {{2, 3}, {3, 4}}) == "einsum \"ij,jk->iq\": 'q' of the result does not occur in any operand");
  CHECK(refusal("ij,jk->ik", {{2, 3}, {5, 4}}) ==
        "einsum \"ij,jk->ik\": expected equal sizes of 'j', got 3 and 5: 'x0' f32(2,3), 'x1' f32(5,4)");
  CHECK(refusal("ij,jk->ik", {{2, 3}, {3}}) == "einsum \"ij,jk->ik\": operand 1: expected 2 dimensions, got 'x1' f32(3)");
  CHECK(refusal("...j,...jk", {{2, 3}, {4, 3, 5}}) ==
        "einsum \"...j,...jk\": expected equal sizes of \"...\", got 2 and 4: 'x0' f32(2,3), 'x1' f32(4,3,5)");
  CHECK(refusal("ij->ij", {{2, 3}, {3}}) == "einsum \"ij->ij\": expected 1 operand, got 2");
  CHECK(refusal("ij,jk", {{2, 3}}) == "einsum \"ij,jk\": expected 2 operands, got 1");
  CHECK(refusal("i", {}) == "einsum \"i\": expected 1 operand, got 0");
  CHECK(refusal("a,b,cdefg,hij,klm->abcdefghijklm", {{2}, {2}, {2, 2, 2, 2, 2}, {2, 2, 2}, {2, 2, 2}}) ==
        "einsum \"a,b,cdefg,hij,klm->abcdefghijklm\": expected a result of at most 8 dimensions, got 13");
  CHECK(refusal("abcd,efgh,i->", {{2, 2, 2, 2}, {2, 2, 2, 2}, {2}}) == "no error");
  CHECK(refusal("abcde,fghij,abcdefghij->a", {{2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}, {2}}) ==
        "einsum \"abcde,fghij,abcdefghij->a\": operand 2: expected 10 dimensions, got 'x2' f32(2)");
  CHECK(refusal("abcde,fghij,abcde,fghij->a", {{2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}}) ==
        "einsum \"abcde,fghij,abcde,fghij->a\": the product of operands 0 to 1: expected a result of at most 8 dimensions, got 10");
  CHECK(refusal("i1->i", {{2, 3}}) == "einsum \"i1->i\": expected letters, '...', ',' and '->', got '1'");
}

TEST_CASE("tensordot: mismatched axes are reported") {
  Graph g;
  const Value a = g.input("a", DType::f32, {2, 3}), b = g.input("b", DType::f32, {3, 4});
  CHECK(str(ops::tensordot(a, b, 1)) == "f32(2,4)");
  CHECK_ERROR("tensordot: axis 0 of a and axis 0 of b differ in size: 'a' f32(2,3), 'b' f32(3,4)", ops::tensordot(a, b, 2));
  CHECK_ERROR("tensordot: expected 0 to 2 axes for 'a' f32(2,3) and 'b' f32(3,4), got 3", ops::tensordot(a, b, 3));
  CHECK_ERROR("outer: expected two vectors, got 'a' f32(2,3) and 'b' f32(3,4)", ops::outer(a, b));
}
