// SPDX-License-Identifier: Apache-2.0
// data/streams.h - the random streams of this folder. They are high, since streams of dropout and initialisers count from 0.
#pragma once

#include <cstdint>

namespace tenon::data {

inline constexpr std::uint32_t stream_of_shuffle = 0xDA7A0000u;
inline constexpr std::uint32_t stream_of_digits = 0xDA7A0010u;    // + split
inline constexpr std::uint32_t stream_of_textures = 0xDA7A0020u;  // + split
inline constexpr std::uint32_t stream_of_linear = 0xDA7A0030u;    // + split
inline constexpr std::uint32_t stream_of_weights = 0xDA7A0040u;
inline constexpr std::uint32_t stream_of_augmentation = 0xDA7A0050u;
inline constexpr std::uint32_t stream_of_tokens = 0xDA7A0060u;  // + split
inline constexpr std::uint32_t stream_of_followers = 0xDA7A0062u;
inline constexpr std::uint32_t stream_of_signals = 0xDA7A0080u;  // + split
inline constexpr std::uint32_t stream_of_markov = 0xDA7A0090u;   // + split
inline constexpr std::uint32_t stream_of_transitions = 0xDA7A0092u;
inline constexpr std::uint32_t stream_of_sampler = 0xDA7A00A0u;
inline constexpr std::uint32_t stream_of_random = 0xDA7A0070u;  // + split

}  // namespace tenon::data
