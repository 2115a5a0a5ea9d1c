// SPDX-License-Identifier: Apache-2.0
// data/glyphs.cpp - digits as strokes.
#include "data/glyphs.h"

namespace tenon::data {
namespace {

constexpr Point zero[] = {{.50f, .04f}, {.24f, .10f}, {.18f, .50f}, {.24f, .90f}, {.50f, .97f},
                          {.76f, .90f}, {.82f, .50f}, {.76f, .10f}, {.50f, .04f}};
constexpr Point one[] = {{.34f, .24f}, {.54f, .05f}, {.54f, .95f}};
constexpr Point two_arc[] = {{.20f, .28f}, {.24f, .04f}, {.62f, .00f}, {.84f, .20f}, {.74f, .46f}, {.46f, .70f}, {.20f, .94f}};
constexpr Point two_base[] = {{.20f, .94f}, {.82f, .94f}};
constexpr Point three_top[] = {{.22f, .10f}, {.56f, .00f}, {.86f, .14f}, {.76f, .42f}, {.42f, .48f}};
constexpr Point three_bottom[] = {{.42f, .48f}, {.80f, .50f}, {.90f, .78f}, {.62f, 1.0f}, {.18f, .90f}};
constexpr Point four[] = {{.60f, .05f}, {.16f, .64f}, {.86f, .64f}};
constexpr Point four_stem[] = {{.66f, .34f}, {.66f, .96f}};
constexpr Point five_top[] = {{.78f, .07f}, {.32f, .07f}, {.27f, .46f}};
constexpr Point five_bowl[] = {{.27f, .46f}, {.62f, .32f}, {.90f, .60f}, {.78f, .94f}, {.44f, 1.0f}, {.18f, .86f}};
constexpr Point six[] = {{.70f, .05f}, {.34f, .18f}, {.16f, .62f}, {.28f, .98f}, {.66f, 1.0f},
                         {.84f, .74f}, {.66f, .46f}, {.34f, .52f}, {.24f, .72f}};
constexpr Point seven[] = {{.18f, .08f}, {.82f, .08f}, {.40f, .95f}};
constexpr Point eight[] = {{.50f, .48f}, {.20f, .36f}, {.26f, .02f}, {.74f, .02f}, {.80f, .36f}, {.50f, .48f},
                           {.12f, .64f}, {.20f, 1.0f}, {.80f, 1.0f}, {.88f, .64f}, {.50f, .48f}};
constexpr Point nine[] = {{.76f, .28f}, {.66f, .02f}, {.30f, .02f}, {.18f, .30f}, {.36f, .54f}, {.66f, .50f}, {.76f, .28f}};
constexpr Point nine_stem[] = {{.76f, .28f}, {.74f, .62f}, {.60f, .96f}};

constexpr Stroke strokes_0[] = {{true, zero}};
constexpr Stroke strokes_1[] = {{false, one}};
constexpr Stroke strokes_2[] = {{true, two_arc}, {false, two_base}};
constexpr Stroke strokes_3[] = {{true, three_top}, {true, three_bottom}};
constexpr Stroke strokes_4[] = {{false, four}, {false, four_stem}};
constexpr Stroke strokes_5[] = {{false, five_top}, {true, five_bowl}};
constexpr Stroke strokes_6[] = {{true, six}};
constexpr Stroke strokes_7[] = {{false, seven}};
constexpr Stroke strokes_8[] = {{true, eight}};
constexpr Stroke strokes_9[] = {{true, nine}, {true, nine_stem}};

constexpr std::array<std::span<const Stroke>, 10> digits = {strokes_0, strokes_1, strokes_2, strokes_3, strokes_4,
                                                            strokes_5, strokes_6, strokes_7, strokes_8, strokes_9};

}  // namespace

std::span<const Stroke> strokes_of_digit(std::int64_t digit) {
  return digits[static_cast<std::size_t>(digit)];
}

}  // namespace tenon::data
