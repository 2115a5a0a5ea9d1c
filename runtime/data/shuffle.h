// SPDX-License-Identifier: Apache-2.0
// data/shuffle.h - the order of an epoch.
#pragma once

#include <cstdint>
#include <span>

namespace tenon::data {

/// A permutation of 0..n-1 that depends only on (seed, epoch), on every machine:
///
///   start with 0, 1, ..., n - 1;  for d = 0, 1, ..., n - 2: i = n - 1 - d, j = floor(r_d * (i + 1) / 2^64), swap elements i and j
///
/// where r_d = lane 2h + 1 : lane 2h (high : low) of Philox block d / 2, h = d mod 2, key {seed, epoch}, stream 0xDA7A0000 as
/// tenon/sdk/random.h lays out the counter. Only the low 32 bits of the epoch are used. j is uniform up to (i + 1) / 2^64.
///
/// Source  Durstenfeld: Algorithm 235, random permutation (1964).
void shuffle(std::span<std::int64_t> out_order, std::uint64_t seed, std::uint64_t epoch);

/// The order of 0..n-1 drawn from a shuffle buffer of `buffer` samples: it is filled from the front, and each sample drawn is replaced by
/// the next. With the same r_d:
///
///   start with 0, 1, ..., n - 1;  for d = 0, 1, ..., n - 2: w = min(buffer, n - d), j = d + floor(r_d * w / 2^64), swap elements d and j
void shuffle_windowed(std::span<std::int64_t> out_order, std::int64_t buffer, std::uint64_t seed, std::uint64_t epoch);

}  // namespace tenon::data
