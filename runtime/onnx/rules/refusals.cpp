// SPDX-License-Identifier: Apache-2.0
// onnx/rules/refusals.cpp - the ops that are refused for good, each with the reason and what to do instead.
#include "onnx/rules/refusals.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "onnx/rules.h"

namespace tenon::onnx {
namespace {

constexpr const char* strings = "strings and files are no tensors here: do this step outside the model, and give it the numbers";
constexpr const char* maps = "maps and strings are no tensors here: do this step outside the model, and give it the numbers";
constexpr const char* trees =
    "trees are walked by branches on the data, which a graph of tensor ops does not have: export the model in its GEMM form "
    "(hummingbird-ml) "
    "or run it with ONNX Runtime";
constexpr const char* saved_for_machine =
    "saved by ONNX Runtime for one machine: export the model without optimisation, or save it with the optimisation level 'basic'";
constexpr const char* decoding_loop = "this is a decoding loop: run the decoder itself, step by step";
constexpr const char* packed_sequences =
    "this reads sequences that a CUDA kernel of ONNX Runtime has packed: export the model without optimisation for transformers";
constexpr const char* experts = "the experts of a token are chosen by its data: export the model without fused mixtures of experts";

struct Refusal {
  std::string_view op;
  const char* text;
};

constexpr Refusal of_onnx[] = {
    {"ImageDecoder", strings},     {"RegexFullMatch", strings}, {"StringConcat", strings},
    {"StringNormalizer", strings}, {"StringSplit", strings},    {"TfIdfVectorizer", strings},
};

constexpr Refusal of_ml[] = {
    {"CastMap", maps},
    {"CategoryMapper", maps},
    {"DictVectorizer", maps},
    {"LabelEncoder", "version 1 maps between strings and integers: export the model for version 2 of ai.onnx.ml or later, with numbers"},
    {"TreeEnsemble", trees},
    {"TreeEnsembleClassifier", trees},
    {"TreeEnsembleRegressor", trees},
    {"ZipMap", "its result is a list of maps, which are no tensors: export the model with options={'zipmap': False}"},
};

constexpr Refusal of_microsoft[] = {
    {"BeamSearch", decoding_loop},
    {"BifurcationDetector", decoding_loop},
    {"DecoderAttention", decoding_loop},
    {"DecoderMaskedMultiHeadAttention", decoding_loop},
    {"DecoderMaskedSelfAttention", decoding_loop},
    {"DynamicTimeWarping", "the length of its result depends on the data: read the cost matrix, and search the path outside the model"},
    {"EPContext", saved_for_machine},
    {"GreedySearch", decoding_loop},
    {"LongformerAttention", "its local and global windows are a CUDA kernel of ONNX Runtime: export the model without optimisation"},
    {"MoE", experts},
    {"NGramRepeatBlock", decoding_loop},
    {"PackedAttention", packed_sequences},
    {"PackedMultiHeadAttention", packed_sequences},
    {"PagedAttention", packed_sequences},
    {"QMoE", experts},
    {"QOrderedAttention", saved_for_machine},
    {"QOrderedGelu", saved_for_machine},
    {"QOrderedLayerNormalization", saved_for_machine},
    {"QOrderedLongformerAttention", saved_for_machine},
    {"QOrderedMatMul", saved_for_machine},
    {"DequantizeWithOrder", saved_for_machine},
    {"QuantizeWithOrder", saved_for_machine},
    {"RemovePadding", packed_sequences},
    {"RestorePadding", packed_sequences},
    {"Sampling", decoding_loop},
    {"Snpe", saved_for_machine},
    {"SparseAttention", "its block mask is a CUDA kernel of ONNX Runtime: export the model with full attention"},
    {"Tokenizer", strings},
    {"WhisperBeamSearch", decoding_loop},
};

/// Domains that are refused as a whole.
struct RefusedDomain {
  std::string_view domain;
  const char* text;
};
constexpr RefusedDomain domains[] = {
    {"ai.onnx.contrib", "an operator of onnxruntime-extensions, mostly a tokeniser: do this step outside the model"},
    {"ai.onnx.preview.training",
     "an operator of training inside the file: load the model without it, and train with an optimiser of Tenon"},
    {"ai.onnx.training", "an operator of training inside the file: load the model without it, and train with an optimiser of Tenon"},
    {"com.microsoft.nchwc", saved_for_machine},
    {"com.ms.internal.nhwc", saved_for_machine},
    {"trt.plugins", "a plugin of TensorRT: export the model without it"},
};

template <std::size_t n>
const char* text_of(const Refusal (&table)[n], std::string_view op) {
  const auto* found = std::ranges::find(table, op, &Refusal::op);
  return found == std::end(table) ? nullptr : found->text;
}

}  // namespace

const char* microsoft_refusal(std::string_view op) {
  return text_of(of_microsoft, op);
}

const char* refusal_of(std::string_view domain, std::string_view op) {
  if (domain.empty()) return text_of(of_onnx, op);
  if (domain == "ai.onnx.ml") return text_of(of_ml, op);
  if (domain == "com.microsoft") return microsoft_refusal(op);
  const auto* found = std::ranges::find(domains, domain, &RefusedDomain::domain);
  return found == std::end(domains) ? nullptr : found->text;
}

}  // namespace tenon::onnx
