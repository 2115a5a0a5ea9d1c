// SPDX-License-Identifier: Apache-2.0
// data/signals.cpp - noisy signals of ten kinds. The kind determines the waveform and its modulation, not its frequency or amplitude.
//
// Uses only IEEE + - * / on f32 without contraction: the same bytes from every compiler and on every machine.
#include <algorithm>
#include <cmath>

#include <tenon/data.h>

#include "data/draw.h"
#include "data/generated.h"
#include "data/streams.h"

namespace tenon {
namespace {

using data::Draw;

constexpr std::int64_t length = 128;

float fraction(float v) {
  return v - std::floor(v);
}
/// A sine approximated by two parabolas, between -1 and 1.
float sine(float v) {
  const float f = 2.0f * fraction(v);
  return f < 1.0f ? 4.0f * f * (1.0f - f) : -4.0f * (f - 1.0f) * (2.0f - f);
}
float triangle(float v) {
  return 2.0f * std::fabs(2.0f * fraction(v) - 1.0f) - 1.0f;
}

/// The signal at `t` in [0, 1), with `cycles` periods in total.
float value_at(std::int64_t kind, float t, float cycles, float phase) {
  const float v = t * cycles + phase;
  switch (kind) {
    case 0:
      return sine(v);
    case 1:
      return triangle(v);
    case 2:
      return fraction(v) < 0.5f ? 1.0f : -1.0f;
    case 3:
      return 2.0f * fraction(v) - 1.0f;  // rising sawtooth
    case 4:
      return 1.0f - 2.0f * fraction(v);  // falling sawtooth
    case 5:
      return fraction(v) < 0.12f ? 1.0f : -0.2f;  // short pulses
    case 6:
      return sine(0.4f * v + 1.2f * t * t * cycles);  // rising frequency
    case 7:
      return sine(2.8f * v - 1.2f * t * t * cycles);  // falling frequency
    case 8:
      return sine(2.0f * v) * sine(2.0f * t + phase);  // beats
    default:
      return sine(2.0f * v) * (1.0f - fraction(2.0f * t + phase));  // decaying bursts
  }
}

std::int64_t generate_signal(Draw& draw, std::uint8_t* out_values) {
  const std::int64_t kind = draw.below(10);
  const float cycles = draw.uniform(4, 9), phase = draw.uniform(0, 1), amplitude = draw.uniform(40, 100), noise = draw.uniform(5, 40);
  for (std::int64_t i = 0; i < length; ++i) {
    const float t = static_cast<float>(i) / static_cast<float>(length);
    const float value = 128.0f + amplitude * value_at(kind, t, cycles, phase) + draw.uniform(-noise, noise);
    out_values[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f));
  }
  return kind;
}

}  // namespace

std::shared_ptr<const ArrayDataset> generate_signals(const GeneratedOptions& options) {
  return data::generate_images("signals", {1, length}, data::stream_of_signals, options, generate_signal);
}

}  // namespace tenon
