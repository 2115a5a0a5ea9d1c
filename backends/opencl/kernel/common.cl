// SPDX-License-Identifier: Apache-2.0
// common.cl - what every kernel of this backend begins with.
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// A buffer as a parameter, and the pointer in the body: the plugin ABI's addresses point into buffers. NULL: the operand is absent.
#define BUFFER(T, x) global uchar *x##_buffer, const ulong x##_offset
#define USE(T, x) global T *const x = x##_buffer ? (global T *)(x##_buffer + x##_offset) : 0

// kernel/layout.h
typedef struct {
  long count;
  int rank, dense;
  long sizes[8];
  long strides[3][8];
} Layout;

// The places of element i in up to three operands.
static inline long3 place(const Layout *layout, long i) {
  if (layout->dense) return (long3)(i);
  long3 at = 0;
  for (int d = layout->rank; d-- > 0;) {
    const long size = layout->sizes[d], outer = i / size, index = i - outer * size;
    at += index * (long3)(layout->strides[0][d], layout->strides[1][d], layout->strides[2][d]);
    i = outer;
  }
  return at;
}

// tenon/sdk/fault.h. The first fault stays.
typedef struct {
  uint state, kind, op, reserved;
  ulong node_id;
  long position, value, low, high;
} FaultRecord;
enum { FAULT_INDEX = 1, FAULT_LABEL = 2, FAULT_ZERO_DIVISOR = 3 };
#define FAULT global FaultRecord *fault_record, const uint fault_op, const ulong fault_node
#define RAISE(fault_kind, at, v, lowest, above)                    \
  if (atomic_cmpxchg(&fault_record->state, 0u, 1u) == 0u) {        \
    fault_record->kind = fault_kind;                               \
    fault_record->op = fault_op;                                   \
    fault_record->node_id = fault_node;                            \
    fault_record->position = at;                                   \
    fault_record->value = v;                                       \
    fault_record->low = lowest;                                    \
    fault_record->high = above;                                    \
  }

// Elementwise kernels: y = f(a, b, c), where U is y's type. Further parameters follow the operands.
#define MAP_1(name, U, A, expression, ...)                                                               \
  kernel void name(const Layout layout, BUFFER(U, y), BUFFER(A, x) __VA_ARGS__) {                        \
    USE(U, y);                                                                                           \
    USE(A, x);                                                                                           \
    const long i = get_global_id(0);                                                                     \
    if (i >= layout.count) return;                                                                       \
    const A a = x[place(&layout, i).s0];                                                                 \
    y[i] = expression;                                                                                   \
  }
#define MAP_2(name, U, A, B, expression, ...)                                                            \
  kernel void name(const Layout layout, BUFFER(U, y), BUFFER(A, x0), BUFFER(B, x1) __VA_ARGS__) {        \
    USE(U, y);                                                                                           \
    USE(A, x0);                                                                                          \
    USE(B, x1);                                                                                          \
    const long i = get_global_id(0);                                                                     \
    if (i >= layout.count) return;                                                                       \
    const long3 at = place(&layout, i);                                                                  \
    const A a = x0[at.s0];                                                                               \
    const B b = x1[at.s1];                                                                               \
    y[i] = expression;                                                                                   \
  }

#ifdef T_FLOATING
static inline T sigmoid_of(T x) {
  const T e = exp(-fabs(x));  // this exponent cannot overflow
  return (x < 0 ? e : (T)1) / (1 + e);
}
#endif

#ifdef T_FLOATING
// A sum whose error does not grow with the number of terms: the rounding errors of the additions are summed separately.
// Source: Ogita, Rump, Oishi: Accurate Sum and Dot Product (2005), Sum2.
typedef struct {
  T total, rest;
} Sum;
static inline Sum added(Sum s, T x) {
  const T next = s.total + x, seen = next - s.total;
  return (Sum){next, s.rest + ((s.total - (next - seen)) + (x - seen))};
}
static inline T value_of(Sum s) {
  return isfinite(s.total) ? s.total + s.rest : s.total;  // with an infinite total, the rest is NaN
}
#endif

// Reductions by groups of work-items. `width`, a power of two, is the number of neighbouring work-items (lanes) that share one line; a
// work-group has several such sets. All work-items of the work-group call these together; each lane gets the result.
#define GROUP_SIZE 128
#ifdef T_FLOATING
static inline T sum_of_lanes(Sum own, uint width, local T *totals, local T *rests) {
  const uint item = get_local_id(0), lane = item & (width - 1);
  if (width == 1) return value_of(own);
  barrier(CLK_LOCAL_MEM_FENCE);
  totals[item] = own.total;
  rests[item] = own.rest;
  for (uint step = width / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) {
      const Sum both = added((Sum){totals[item], rests[item] + rests[item + step]}, totals[item + step]);
      totals[item] = both.total;
      rests[item] = both.rest;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return value_of((Sum){totals[item - lane], rests[item - lane]});
}
#endif
// The best of the lanes' values by BEATS(a, b): a replaces b.
#define BEST_OF_LANES(name, V, BEATS)                                  \
  static inline V name(V own, uint width, local V *shared) {           \
    const uint item = get_local_id(0), lane = item & (width - 1);      \
    if (width == 1) return own;                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                      \
    shared[item] = own;                                                \
    for (uint step = width / 2; step > 0; step /= 2) {                 \
      barrier(CLK_LOCAL_MEM_FENCE);                                    \
      if (lane < step) {                                               \
        const V a = shared[item + step], b = shared[item];             \
        if (BEATS(a, b)) shared[item] = a;                             \
      }                                                                \
    }                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                      \
    return shared[item - lane];                                        \
  }

// An operand of indices, i32 or i64: each in [-n, n), negative ones count from the end; -1 after a fault. INDICES declares the parameters.
#define INDICES BUFFER(uchar, index), const int wide, const long index_count, const long n, FAULT
#define INDEX_AT(result, k)                                                                                                    \
  long result;                                                                                                                 \
  {                                                                                                                            \
    const long at = k;                                                                                                         \
    const global uchar *const indices = index_buffer + index_offset;                                                           \
    result = wide ? ((const global long *)indices)[at] : ((const global int *)indices)[at];                                    \
    if (result < -n || result >= n) {                                                                                          \
      RAISE(FAULT_INDEX, at, result, -n, n)                                                                                    \
      result = -1;                                                                                                             \
    } else if (result < 0) {                                                                                                   \
      result += n;                                                                                                             \
    }                                                                                                                          \
  }

// kernel/windows.h: windows that slide over images of two dimensions, rows and columns.
typedef struct {
  long size[2], count[2], kernel_size[2], stride[2], dilation[2], before[2], after[2];
} Windows;
static inline long start_of(const Windows *w, int d, long window) {
  return window * w->stride[d] - w->before[d];
}
// The window whose tap k is at element i of dimension d; -1 if there is none.
static inline long window_at(const Windows *w, int d, long i, long k) {
  const long from = i + w->before[d] - k * w->dilation[d];
  if (from < 0 || from % w->stride[d] != 0) return -1;
  const long window = from / w->stride[d];
  return window < w->count[d] ? window : -1;
}
