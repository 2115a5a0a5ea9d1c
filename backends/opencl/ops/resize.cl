// SPDX-License-Identifier: Apache-2.0
// Coordinates are f64 where the device has it.
#ifdef cl_khr_fp64
#define REAL double
#else
#define REAL float
#endif

// ops/resize.cpp. `image` is the smaller index space x, `result` y.
typedef struct {
  long image[2], result[2];
  int mode, coordinates, rounding, reserved;
} Resize;

typedef struct {
  long index[2];
  REAL weight[2];
} Neighbours;

static inline long inside(REAL i, long size) {
  return i < 0 ? 0 : i > size - 1 ? size - 1 : (long)i;
}
static inline Neighbours neighbours(const Resize *s, int d, long i, REAL scale) {
  const long from = s->image[d], to = s->result[d];
  REAL x;
  switch (s->coordinates) {
    case 1: x = i / scale; break;                                                          // ASYMMETRIC
    case 2: x = to == 1 ? (REAL)0 : (REAL)i * (REAL)(from - 1) / (REAL)(to - 1); break;    // ALIGN_CORNERS
    case 3: x = to == 1 ? (REAL)0 : (i + (REAL)0.5) / scale - (REAL)0.5; break;            // PYTORCH_HALF_PIXEL
    default: x = (i + (REAL)0.5) / scale - (REAL)0.5;
  }
  Neighbours all;
  if (s->mode == 0) {  // NEAREST
    switch (s->rounding) {
      case 2: x = floor(x); break;
      case 3: x = ceil(x); break;
      case 1: x = floor(x + (REAL)0.5); break;
      default: x = ceil(x - (REAL)0.5);
    }
    all.index[0] = inside(x, from);
    all.index[1] = 0;
    all.weight[0] = 1;
    all.weight[1] = 0;
  } else {
    const REAL low = floor(x);
    all.index[0] = inside(low, from);
    all.index[1] = inside(low + 1, from);
    all.weight[0] = 1 - (x - low);
    all.weight[1] = x - low;
  }
  return all;
}
// A dimension that keeps its size and has scale 1, such as the row of an image (N, C, L), is not touched.
static inline Neighbours in_dimension(const Resize *s, int d, long i, REAL scale) {
  if (scale == 1 && s->image[d] == s->result[d]) return (Neighbours){{i, 0}, {1, 0}};
  return neighbours(s, d, i, scale);
}

kernel void resize(const Resize s, const long count, BUFFER(T, y), BUFFER(T, x), const REAL row_scale, const REAL column_scale) {
  USE(T, y);
  USE(T, x);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long elements = s.result[0] * s.result[1], plane = e / elements, at = e - plane * elements;
  const Neighbours rows = in_dimension(&s, 0, at / s.result[1], row_scale), columns = in_dimension(&s, 1, at % s.result[1], column_scale);
  const global T *const own = x + plane * s.image[0] * s.image[1];
  REAL sum = 0;
  for (int i = 0; i < 4; ++i) {
    const REAL weight = rows.weight[i / 2] * columns.weight[i % 2];
    if (weight != 0) sum += weight * own[rows.index[i / 2] * s.image[1] + columns.index[i % 2]];
  }
  y[e] = (T)sum;
}

// The weight of element k of the image in element i of the result.
static inline REAL weight_in(const Resize *s, int d, long i, long k, REAL scale) {
  const Neighbours all = in_dimension(s, d, i, scale);
  return (all.index[0] == k ? all.weight[0] : 0) + (all.index[1] == k ? all.weight[1] : 0);
}

kernel void resize_grad(const Resize s, const long count, BUFFER(T, dx), BUFFER(T, dy), const REAL row_scale, const REAL column_scale) {
  USE(T, dx);
  USE(T, dy);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long elements = s.image[0] * s.image[1], plane = e / elements, row = (e - plane * elements) / s.image[1], column = e % s.image[1];
  const global T *const own = dy + plane * s.result[0] * s.result[1];
  REAL sum = 0;
  for (long i = 0; i < s.result[0]; ++i) {
    const REAL of_row = weight_in(&s, 0, i, row, row_scale);
    if (of_row == 0) continue;
    for (long j = 0; j < s.result[1]; ++j) {
      const REAL weight = of_row * weight_in(&s, 1, j, column, column_scale);
      if (weight != 0) sum += weight * own[i * s.result[1] + j];
    }
  }
  dx[e] = (T)sum;
}
