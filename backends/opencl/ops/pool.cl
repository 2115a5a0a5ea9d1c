// SPDX-License-Identifier: Apache-2.0
#define PLACE_OF_WINDOW                                                                   \
  const long result = get_global_id(0);                                                   \
  if (result >= results) return;                                                          \
  const long windows = w.count[0] * w.count[1], plane = result / windows, window = result - plane * windows; \
  const long row = start_of(&w, 0, window / w.count[1]), column = start_of(&w, 1, window % w.count[1]);

// The first of equal elements; the first NaN if there is one. indices count from the start of x.
kernel void max_pool(const Windows w, const long results, BUFFER(T, y), BUFFER(long, indices), BUFFER(T, x), const T lowest) {
  USE(T, y);
  USE(long, indices);
  USE(T, x);
  PLACE_OF_WINDOW
  const long begin = plane * w.size[0] * w.size[1];
  T maximum = lowest;
  long place = -1;
  for (long i = 0; i < w.kernel_size[0]; ++i) {
    const long r = row + i * w.dilation[0];
    if (r < 0 || r >= w.size[0]) continue;
    for (long k = 0; k < w.kernel_size[1]; ++k) {
      const long c = column + k * w.dilation[1];
      if (c < 0 || c >= w.size[1]) continue;
      const T v = x[begin + r * w.size[1] + c];
      if (place >= 0 && !(v > maximum) && !(v != v && maximum == maximum)) continue;
      maximum = v;
      place = r * w.size[1] + c;
    }
  }
  if (y) y[result] = maximum;
  if (indices) indices[result] = begin + place;
}

#ifdef T_FLOATING
#define IS_GREATER(a, b) ((a) > (b))
BEST_OF_LANES(largest_of_lanes, long, IS_GREATER)

// `width` lanes share an image and channel; each sums one part of it, in the order of the windows. The kernel knows only which elements
// the windows chose. If windows were evenly spaced, window i would choose element i * elements / windows; the lanes find how far choices
// lie before and after that, and read only windows whose choice may be in their part.
kernel void max_pool_grad(const long planes, const long elements, const long windows, const uint width, BUFFER(T, dx), BUFFER(T, dy),
                          BUFFER(long, indices), FAULT) {
  local long shared[GROUP_SIZE];
  USE(T, dx);
  USE(T, dy);
  USE(long, indices);
  const long plane = get_global_id(0) / width, lane = get_local_id(0) & (width - 1);
  const bool active = plane < planes;
  const long begin = plane * elements, end = begin + elements, part = begin + elements * lane / width;
  const long part_end = begin + elements * (lane + 1) / width;
  const global long *const choices = indices + plane * windows;
  long first = 0, last = windows - 1;
  if (width > 1) {
    long before = 0, after = 0;
    for (long i = lane; active && i < windows; i += width) {
      if (choices[i] < begin || choices[i] >= end) continue;
      const long distance = choices[i] - begin - i * elements / windows;
      before = max(before, -distance);
      after = max(after, distance);
    }
    before = largest_of_lanes(before, width, shared);
    after = largest_of_lanes(after, width, shared);
    first = max(first, (part - begin - after) * windows / elements - 1);
    last = min(last, (part_end - begin + before + 1) * windows / elements + 1);
  }
  if (!active) return;
  for (long i = part; i < part_end; ++i) dx[i] = 0;
  for (long i = first; i <= last; ++i) {
    const long index = choices[i];
    if (index < begin || index >= end) {
      RAISE(FAULT_INDEX, plane * windows + i, index, begin, end)
    } else if (index >= part && index < part_end) {
      dx[index] += dy[plane * windows + i];
    }
  }
}

// The number of elements of a window inside the image, padded or not.
static inline long elements_of(const Windows *w, int d, long begin, int padded) {
  const long end = min(begin + w->kernel_size[d], padded ? w->size[d] + w->after[d] : w->size[d]);
  return end - (padded ? begin : max(begin, 0L));
}

kernel void average_pool(const Windows w, const long results, BUFFER(T, y), BUFFER(T, x), const int padded) {
  USE(T, y);
  USE(T, x);
  PLACE_OF_WINDOW
  const long begin = plane * w.size[0] * w.size[1];
  Sum sum = {0, 0};
  for (long r = max(row, 0L); r < min(row + w.kernel_size[0], w.size[0]); ++r) {
    for (long c = max(column, 0L); c < min(column + w.kernel_size[1], w.size[1]); ++c) sum = added(sum, x[begin + r * w.size[1] + c]);
  }
  y[result] = value_of(sum) / (elements_of(&w, 0, row, padded) * elements_of(&w, 1, column, padded));
}

kernel void average_pool_grad(const Windows w, const long count, BUFFER(T, dx), BUFFER(T, dy), const int padded) {
  USE(T, dx);
  USE(T, dy);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long elements = w.size[0] * w.size[1], plane = e / elements, r = (e - plane * elements) / w.size[1], c = e % w.size[1];
  const global T *const own = dy + plane * w.count[0] * w.count[1];
  Sum sum = {0, 0};
  for (long i = w.kernel_size[0]; i-- > 0;) {
    const long a = window_at(&w, 0, r, i);
    if (a < 0) continue;
    for (long k = w.kernel_size[1]; k-- > 0;) {
      const long b = window_at(&w, 1, c, k);
      if (b < 0) continue;
      const long size = elements_of(&w, 0, start_of(&w, 0, a), padded) * elements_of(&w, 1, start_of(&w, 1, b), padded);
      sum = added(sum, own[a * w.count[1] + b] / size);
    }
  }
  dx[e] = value_of(sum);
}
#endif
