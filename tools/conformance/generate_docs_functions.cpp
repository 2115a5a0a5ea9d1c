// SPDX-License-Identifier: Apache-2.0
// The ops created by front-end functions that are not ops themselves, found by building an example graph of each.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "generate_docs.h"

namespace tenon::cli {
namespace {

/// Creates operands for the examples.
struct Operands {
  Graph& graph;
  int count = 0;
  Value of(const Shape& shape, DType dtype = DType::f32) { return graph.input("operand_" + std::to_string(count++), dtype, shape); }
};

const std::map<std::string, void (*)(Operands&)>& examples() {
  static const std::map<std::string, void (*)(Operands&)> all{
      {"not_equal", [](Operands& o) { ops::not_equal(o.of({3}), o.of({3})); }},
      {"relu6", [](Operands& o) { ops::relu6(o.of({3})); }},
      {"square", [](Operands& o) { ops::square(o.of({3})); }},
      {"cube", [](Operands& o) { ops::cube(o.of({3})); }},
      {"norm", [](Operands& o) { ops::norm(o.of({3}), 3); }},
      {"selu", [](Operands& o) { ops::selu(o.of({3})); }},
      {"hard_swish", [](Operands& o) { ops::hard_swish(o.of({3})); }},
      {"prelu", [](Operands& o) { ops::prelu(o.of({3}), o.of({3})); }},
      {"glu", [](Operands& o) { ops::glu(o.of({4})); }},
      {"variance",
       [](Operands& o) {
         ops::variance(o.of({3, 4}));
       }},
      {"squeeze",
       [](Operands& o) {
         ops::squeeze(o.of({1, 3}));
       }},
      {"unsqueeze", [](Operands& o) { ops::unsqueeze(o.of({3}), {0}); }},
      {"flip", [](Operands& o) { ops::flip(o.of({3}), {0}); }},
      {"stack",
       [](Operands& o) {
         ops::stack({o.of({3}), o.of({3})});
       }},
      {"tile", [](Operands& o) { ops::tile(o.of({3}), {2}); }},
      {"embedding",
       [](Operands& o) {
         ops::embedding(o.of({5, 3}), o.of({2}, DType::i64));
       }},
      {"outer", [](Operands& o) { ops::outer(o.of({3}), o.of({4})); }},
      {"tensordot",
       [](Operands& o) {
         ops::tensordot(o.of({2, 3, 4}), o.of({4, 3, 5}), {1, 2}, {1, 0});
       }},
      {"einsum",
       [](Operands& o) {
         ops::einsum("bij,bkj->bik", {o.of({2, 3, 4}), o.of({2, 5, 4})});
       }},
      {"conv1d",
       [](Operands& o) {
         ops::conv1d(o.of({1, 2, 8}), o.of({3, 2, 3}));
       }},
      {"conv2d",
       [](Operands& o) {
         ops::conv2d(o.of({1, 2, 8, 8}), o.of({3, 2, 3, 3}));
       }},
      {"max_pool_with_indices",
       [](Operands& o) {
         ops::max_pool_with_indices(o.of({1, 2, 8, 8}), {2, 2});
       }},
      {"global_average_pool",
       [](Operands& o) {
         ops::global_average_pool(o.of({1, 2, 8, 8}));
       }},
      {"global_max_pool",
       [](Operands& o) {
         ops::global_max_pool(o.of({1, 2, 8, 8}));
       }},
      {"adaptive_average_pool",
       [](Operands& o) {
         ops::adaptive_average_pool(o.of({1, 2, 8, 8}), {3, 3});
       }},
      {"adaptive_max_pool",
       [](Operands& o) {
         ops::adaptive_max_pool(o.of({1, 2, 8, 8}), {3, 3});
       }},
      {"upsample",
       [](Operands& o) {
         ops::upsample(o.of({1, 2, 4, 4}), {2, 2});
       }},
      {"group_norm",
       [](Operands& o) {
         ops::group_norm(o.of({2, 4, 3}), 2, o.of({4}), o.of({4}));
       }},
      {"instance_norm",
       [](Operands& o) {
         ops::instance_norm(o.of({2, 4, 3}), o.of({4}), o.of({4}));
       }},
      {"rotary_embedding",
       [](Operands& o) {
         ops::rotary_embedding(o.of({2, 3, 4}), o.of({3, 2}), o.of({3, 2}));
       }},
      {"mse", [](Operands& o) { ops::mse(o.of({3}), o.of({3})); }},
      {"half_mse",
       [](Operands& o) {
         ops::half_mse(o.of({2, 3}), o.of({2, 3}));
       }},
      {"mae", [](Operands& o) { ops::mae(o.of({3}), o.of({3})); }},
      {"huber", [](Operands& o) { ops::huber(o.of({3}), o.of({3})); }},
      {"binary_cross_entropy", [](Operands& o) { ops::binary_cross_entropy(o.of({3}), o.of({3})); }},
      {"categorical_cross_entropy",
       [](Operands& o) {
         ops::categorical_cross_entropy(o.of({2, 3}), o.of({2, 3}));
       }},
      {"nll",
       [](Operands& o) {
         ops::nll(o.of({2, 3}), o.of({2}, DType::i64));
       }},
      {"kl_divergence",
       [](Operands& o) {
         ops::kl_divergence(o.of({2, 3}), o.of({2, 3}));
       }},
      {"ctc_loss",
       [](Operands& o) {
         ops::ctc_loss(o.of({2, 3, 4}), o.of({2, 2}, DType::i64));
       }},
      {"sum_pool",
       [](Operands& o) {
         ops::sum_pool(o.of({2, 3, 4}), {2});
       }},
      {"lp_pool",
       [](Operands& o) {
         ops::lp_pool(o.of({2, 3, 4}), {2});
       }},
      {"neg_mean_prod", [](Operands& o) { ops::neg_mean_prod(o.of({3}), o.of({3})); }},
  };
  return all;
}

}  // namespace

std::vector<std::string> ops_made_by(const std::string& function) {
  const auto example = examples().find(function);
  if (example == examples().end()) {
    throw Error(
        fmt::format("generate-docs: the function {} of tenon/functions.h is neither the stem of an op nor has an example: add one to "
                    "tools/conformance/generate_docs_functions.cpp",
                    function));
  }
  Graph graph;
  Operands operands{graph};
  example->second(operands);
  std::vector<std::string> names;
  for (const NodeInfo& node : graph.nodes()) {
    const std::string name = op_name(node.op);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace tenon::cli
