// SPDX-License-Identifier: Apache-2.0
// train/random_key.h - the random numbers of a batch: the key operand (seed, step) of every random op of a training program.
#pragma once

#include <array>
#include <cstdint>

namespace tenon::train {

/// The key of a step's batch `batch`, counted from 0: more than one is accumulated for a step. `rank`: of the parallel devices, the one
/// that computes this part of the batch.
///
/// Ops put key[0] and the low 32 bits of key[1] into a Philox generator (tenon/sdk/random.h), and each op has its own stream, an attribute.
/// The batch, the rank and the upper bits of the step have no place there, so they change the seed: by a bijection that maps 0 to 0, so
/// that batches of a run have different keys, and the first batch of each of the first 2^32 steps has the seed itself. Beyond 2^20 batches
/// of a step, or 2^12 ranks, keys may repeat. Source  the finalizer of SplitMix64: Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators (2014).
constexpr std::array<std::uint64_t, 2> random_key(std::uint64_t seed, std::uint64_t step, std::uint64_t batch, std::uint64_t rank = 0) {
  std::uint64_t mixed = (step & ~std::uint64_t{0xffffffff}) ^ batch ^ (rank << 20);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return {seed ^ mixed ^ (mixed >> 31), step};
}

}  // namespace tenon::train
