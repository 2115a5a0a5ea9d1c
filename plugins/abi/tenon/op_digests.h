/* tenon/op_digests.h - what each (op, version) means, as a number: FNV-1a 64 of "Name-version: schema" of tenon/ops.def.
 * Backend and core compare these at load; where they differ, that op version alone is switched off. A line never changes and
 * never goes; `python3 tests/abi/digests.py --write` appends new ones.
 *
 *   static const tenon_op_digest digests[] = TENON_OP_DIGESTS;
 */
#ifndef TENON_OP_DIGESTS_H
#define TENON_OP_DIGESTS_H

#include <tenon/backend.h>

/* clang-format off */
#define TENON_OP_DIGESTS { \
  {TENON_OP_Add, 14, 0x0ac45bf52f7b52f5ull}, \
  {TENON_OP_Sub, 14, 0x158f4005f03955baull}, \
  {TENON_OP_Mul, 14, 0xd180a8f75471c546ull}, \
  {TENON_OP_Div, 14, 0xee2bc2b0d6d249a9ull}, \
  {TENON_OP_Equal, 13, 0x686a374e743cc65bull}, \
  {TENON_OP_Neg, 13, 0xc56bfbeacea15e2aull}, \
  {TENON_OP_Relu, 14, 0xeb83914624541289ull}, \
  {TENON_OP_ReluGrad, 1, 0x5fb4409bb82bef0cull}, \
  {TENON_OP_Sigmoid, 13, 0xd8a2ef25d8cbfbc4ull}, \
  {TENON_OP_SigmoidGrad, 1, 0x655cbb4243068044ull}, \
  {TENON_OP_Tanh, 13, 0xc708d7ee61eb753dull}, \
  {TENON_OP_TanhGrad, 1, 0xdbce452685b0a933ull}, \
  {TENON_OP_Cast, 13, 0xb22bf13ece185ae6ull}, \
  {TENON_OP_ReduceSum, 11, 0x9093fcde8f08234bull}, \
  {TENON_OP_ReduceMean, 13, 0x82984731d95821b5ull}, \
  {TENON_OP_ArgMax, 13, 0xa5356875030d90d3ull}, \
  {TENON_OP_Reshape, 14, 0x46130c14c8bdaa37ull}, \
  {TENON_OP_Flatten, 13, 0x4b30c932d51e3800ull}, \
  {TENON_OP_Transpose, 13, 0x292c203ffa548808ull}, \
  {TENON_OP_Expand, 13, 0x7f77e2b5009f8e2aull}, \
  {TENON_OP_MatMul, 13, 0xd4bde49d80d30f03ull}, \
  {TENON_OP_Gemm, 13, 0xb6a8a4ea4553c761ull}, \
  {TENON_OP_Softmax, 13, 0x412d9c1e9b59d1e0ull}, \
  {TENON_OP_SoftmaxGrad, 1, 0x5aa40dc8a5334cc4ull}, \
  {TENON_OP_LogSoftmax, 13, 0x61e2968a792a4ec4ull}, \
  {TENON_OP_LogSoftmaxGrad, 1, 0x63c8cab17f6be4c8ull}, \
  {TENON_OP_SoftmaxCrossEntropyLoss, 13, 0x9da6db513b4676adull}, \
  {TENON_OP_SoftmaxCrossEntropyLossGrad, 1, 0x8bf3c2c111b3d9cfull}, \
  {TENON_OP_RandomUniform, 1, 0x20205157770fad07ull}, \
  {TENON_OP_RandomNormal, 1, 0xb35f5c25c926a4beull}, \
  {TENON_OP_RandomBernoulli, 1, 0x1bbad436ccdf68e4ull}, \
  {TENON_OP_Dropout, 1, 0x39d0c52042184380ull}, \
  {TENON_OP_SgdStep, 1, 0x9b9a43753ac33fa3ull}, \
  {TENON_OP_AdamStep, 1, 0x60058f5d06e4127eull}, \
  {TENON_OP_RmsPropStep, 1, 0xbcdac20f35e7659aull}, \
}
/* clang-format on */

#endif /* TENON_OP_DIGESTS_H */
