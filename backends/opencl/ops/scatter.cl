// SPDX-License-Identifier: Apache-2.0
// Updates of y, which begins as a copy of x. A work-item applies all updates that can meet one element, in their order, so results are
// deterministic. Integers wrap, NaN wins, of bools a sum is "or" and a product "and".
#ifdef T_FLOATING
#define WIDE T
#else
#define WIDE ulong
#endif
#ifdef T_BOOL
#define STORED(v) ((v) != 0)
#else
#define STORED(v) (T)(v)
#endif
static inline T reduced(int reduction, T a, T b) {
  switch (reduction) {
    case 1: return STORED((WIDE)a + (WIDE)b);
    case 2: return STORED((WIDE)a * (WIDE)b);
    case 3: return b > a || b != b ? b : a;
    case 4: return b < a || b != b ? b : a;
    default: return b;
  }
}

// Along the axis: n indices per line of updates with stride `index_step`. `lines` maps a line to its first update and to its element 0
// of y.
kernel void scatter_elements(INDICES, const Layout lines, const long updates, const long index_step, const long step, const int reduction,
                             BUFFER(T, y), BUFFER(T, update)) {
  USE(T, y);
  USE(T, update);
  const long line = get_global_id(0);
  if (line >= lines.count) return;
  const long3 at = place(&lines, line);
  for (long k = 0; k < updates; ++k) {
    const long from = at.s0 + k * index_step;
    INDEX_AT(j, from)
    if (j < 0) continue;
    global T *const element = y + at.s1 + j * step;
    *element = reduced(reduction, *element, update[from]);
  }
}

// y[o, indices[k], i] from updates[o, k, i]
kernel void scatter_slices(INDICES, const long count, const long inner, const int reduction, BUFFER(T, y), BUFFER(T, update)) {
  USE(T, y);
  USE(T, update);
  const long line = get_global_id(0);
  if (line >= count) return;
  const long o = line / inner, i = line - o * inner;
  for (long k = 0; k < index_count; ++k) {
    INDEX_AT(j, k)
    if (j < 0) continue;
    global T *const element = y + (o * n + j) * inner + i;
    *element = reduced(reduction, *element, update[(o * index_count + k) * inner + i]);
  }
}

// For calls that have indices but no other work: invalid indices are still an error.
kernel void check_indices(INDICES) {
  if (get_global_id(0) >= index_count) return;
  INDEX_AT(unused, get_global_id(0))
}
