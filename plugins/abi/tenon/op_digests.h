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
  {TENON_OP_Pow, 15, 0x8216d0d8926dd239ull}, \
  {TENON_OP_Max, 13, 0x89a05a6afc27b6f3ull}, \
  {TENON_OP_Min, 13, 0xb0358de9f4e56ba9ull}, \
  {TENON_OP_Less, 13, 0x6d0876e533295fe4ull}, \
  {TENON_OP_LessOrEqual, 16, 0x3f6d7d39b02454c2ull}, \
  {TENON_OP_Greater, 13, 0x87de443f3f2fc10dull}, \
  {TENON_OP_GreaterOrEqual, 16, 0xbf00bbf92d810725ull}, \
  {TENON_OP_And, 7, 0x4b93d496f0cc761bull}, \
  {TENON_OP_Or, 7, 0x4a8b8e592ad47f05ull}, \
  {TENON_OP_Xor, 7, 0xfc881f11f4249813ull}, \
  {TENON_OP_Not, 1, 0x9208eff69e65786eull}, \
  {TENON_OP_IsNaN, 13, 0xaaa5afdf50550459ull}, \
  {TENON_OP_IsInf, 10, 0x4dccbb51fe69b508ull}, \
  {TENON_OP_Where, 16, 0xb768dc3aecb50bfcull}, \
  {TENON_OP_Abs, 13, 0xbd8aa763b6594ef4ull}, \
  {TENON_OP_Sign, 13, 0x60e8f4369f8957c1ull}, \
  {TENON_OP_Ceil, 13, 0xed473886f0ac6445ull}, \
  {TENON_OP_Floor, 13, 0x498a88b8a66565c6ull}, \
  {TENON_OP_Round, 11, 0x1909a3bb9628ab7eull}, \
  {TENON_OP_Sqrt, 13, 0x700cd430302f6698ull}, \
  {TENON_OP_Rsqrt, 1, 0xeb7946382e43257full}, \
  {TENON_OP_Reciprocal, 13, 0x35d6ad09b56864aeull}, \
  {TENON_OP_Clip, 13, 0x1d3beeb18d91c60dull}, \
  {TENON_OP_Exp, 13, 0xa897c9e824c98145ull}, \
  {TENON_OP_Expm1, 1, 0x49e0716843283622ull}, \
  {TENON_OP_Log, 13, 0xa9973d61b62c401aull}, \
  {TENON_OP_Log2, 1, 0x7468ef8777977111ull}, \
  {TENON_OP_Log1p, 1, 0xb8da3bb287b40488ull}, \
  {TENON_OP_Erf, 13, 0x2345dfbbbe09685dull}, \
  {TENON_OP_Sin, 7, 0x46d9da7e1947802full}, \
  {TENON_OP_Cos, 7, 0xd1ce140dd299e1c2ull}, \
  {TENON_OP_LeakyRelu, 16, 0x7d203ac0a0e8dbe8ull}, \
  {TENON_OP_Elu, 6, 0x510f68226230becfull}, \
  {TENON_OP_Softplus, 1, 0xbd8ef1119bb6c635ull}, \
  {TENON_OP_Mish, 18, 0xb6410c1c94d3f92cull}, \
  {TENON_OP_Gelu, 20, 0xca1f31085a4ddb1aull}, \
  {TENON_OP_Silu, 1, 0x1306c8986e84c236ull}, \
  {TENON_OP_ReduceMax, 13, 0x3f3511dd1d07ff00ull}, \
  {TENON_OP_ReduceMin, 13, 0x3a8e7df8bc457d46ull}, \
  {TENON_OP_ReduceProd, 13, 0xfc28e61c8f2deec9ull}, \
  {TENON_OP_ReduceL1, 13, 0xb3a19cd80d0824efull}, \
  {TENON_OP_ReduceL2, 13, 0xfc9b69a30a9a20ceull}, \
  {TENON_OP_ReduceSumSquare, 13, 0x4f4f970f088ebba6ull}, \
  {TENON_OP_ReduceLogSumExp, 13, 0x8ec60360ae62510aull}, \
  {TENON_OP_ArgMin, 13, 0x464a48c377648b25ull}, \
  {TENON_OP_Slice, 13, 0xc345911a9221f22bull}, \
  {TENON_OP_Pad, 13, 0x3189e0a665314101ull}, \
  {TENON_OP_Concat, 13, 0xf3123d3ca753d151ull}, \
  {TENON_OP_Split, 13, 0xe0d8b5c07c9ba37full}, \
  {TENON_OP_Gather, 13, 0x561de8d17952c20dull}, \
  {TENON_OP_GatherElements, 13, 0xae261b2ffdc70e4aull}, \
  {TENON_OP_ScatterElements, 16, 0xdfac7f0be8784eadull}, \
  {TENON_OP_ScatterAdd, 1, 0x0883ed3d50c2a02eull}, \
  {TENON_OP_OneHot, 11, 0xdb72280cd82b1d71ull}, \
  {TENON_OP_RandomPermutation, 1, 0x18b1ddd8b7b9b6beull}, \
  {TENON_OP_AmsGradStep, 1, 0x76f2ca27a2313086ull}, \
  {TENON_OP_AdagradStep, 1, 0x4e468da3fa4a4d01ull}, \
  {TENON_OP_AdadeltaStep, 1, 0x70691a0a4e68be84ull}, \
}
/* clang-format on */

#endif /* TENON_OP_DIGESTS_H */
