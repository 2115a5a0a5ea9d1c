// SPDX-License-Identifier: Apache-2.0
// elements.cl - scalars, vectors and matrices of the BLAS kernels; included by blas/level<n>.cl. R is the real dtype, T that of the
// elements: R or, with COMPLEX, a pair of it. Complex elements are aligned as R only, so memory is an array of R.
#ifdef COMPLEX
static inline T load(const global R *x, long i) { return vload2(i, x); }
static inline void store(global R *x, long i, T value) { vstore2(value, i, x); }
static inline T of_real(R x) { return (T)(x, 0); }
static inline R real_of(T x) { return x.x; }
static inline R size_of(T x) { return fabs(x.x) + fabs(x.y); }
static inline int equals(T x, R real) { return x.x == real && x.y == 0; }
static inline T conj_if(int condition, T x) { return condition ? (T)(x.x, -x.y) : x; }
static inline T multiply(T a, T b) { return (T)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// Source: Smith: Algorithm 116, Complex Division (1962). |b|^2 is not formed: it could overflow.
static inline T divide(T a, T b) {
  if (fabs(b.x) >= fabs(b.y)) {
    const R ratio = b.y / b.x, size = b.x + b.y * ratio;
    return (T)((a.x + a.y * ratio) / size, (a.y - a.x * ratio) / size);
  }
  const R ratio = b.x / b.y, size = b.x * ratio + b.y;
  return (T)((a.x * ratio + a.y) / size, (a.y * ratio - a.x) / size);
}
#else
static inline T load(const global R *x, long i) { return x[i]; }
static inline void store(global R *x, long i, T value) { x[i] = value; }
static inline T of_real(R x) { return x; }
static inline R real_of(T x) { return x; }
static inline R size_of(T x) { return fabs(x); }
static inline int equals(T x, R real) { return x == real; }
static inline T conj_if(int condition, T x) { return x; }
static inline T multiply(T a, T b) { return a * b; }
static inline T divide(T a, T b) { return a / b; }
#endif
// a x, exact for a = 1; 0 for a = 0, for any x.
static inline T scaled(T a, T x) {
  return equals(a, 0) ? of_real(0) : equals(a, 1) ? x : multiply(a, x);
}

// Scalar of blas/operands.h: a value of the host or one in device memory, at any byte.
enum { PLAIN = 0, REAL = 1, CONJUGATED = 2 };
#define SCALAR(x) const T x##_value, BUFFER(R, x), const int x##_form
#define READ(x) const T x = scalar_of(x##_value, x##_buffer, x##_offset, x##_form)
static inline T scalar_of(T value, const global uchar *buffer, ulong offset, int form) {
  if (!buffer) return value;
  union {
    R parts[2];
    uchar bytes[2 * sizeof(R)];
  } number;
  number.parts[1] = 0;
  for (ulong b = 0; b < (form == REAL ? sizeof(R) : sizeof(T)); ++b) number.bytes[b] = buffer[offset + b];
#ifdef COMPLEX
  return conj_if(form == CONJUGATED, (T)(number.parts[0], number.parts[1]));
#else
  return number.parts[0];
#endif
}

// x(i) is at i * x_step.
#define VECTOR(x) BUFFER(R, x), const long x##_step

// View of blas/operands.h: A(i, j), i < m, j < n, with the diagonals -below ... above stored. What is not stored is 0 or, of a symmetric or
// Hermitian matrix, in the other triangle.
enum { GENERAL = 0, SYMMETRIC = 1, HERMITIAN = 2 };
typedef struct {
  long m, n, below, above, lead, growth;
  int by_rows, conjugate, kind, unit;
} View;
#define MATRIX(a) const View a##_view, BUFFER(R, a)
static inline int stores(const View *v, long i, long j) {
  return j >= i - v->below && j <= i + v->above;
}
static inline long index_of(const View *v, long i, long j) {
  const long line = v->by_rows ? i : j;
  return line * v->lead + v->growth * (line * (line - 1) / 2) + (v->by_rows ? j : i);
}
static inline T entry(const View *v, const global R *a, long i, long j) {
  if (v->unit && i == j) return of_real(1);
  const int mirrored = !stores(v, i, j);
  if (mirrored && v->kind == GENERAL) return of_real(0);
  const T x = mirrored ? load(a, index_of(v, j, i)) : load(a, index_of(v, i, j));
  if (v->kind != HERMITIAN) return conj_if(v->conjugate, x);
  return i == j ? of_real(real_of(x)) : conj_if(v->conjugate != mirrored, x);
}
// The nonzero entries of row i are in the columns first_of_row ... end_of_row - 1; likewise for columns.
static inline long first_of_row(const View *v, long i) {
  return max(0L, i - (v->kind == GENERAL ? v->below : max(v->below, v->above)));
}
static inline long end_of_row(const View *v, long i) {
  return min(v->n, i + 1 + (v->kind == GENERAL ? v->above : max(v->below, v->above)));
}
static inline long first_of_column(const View *v, long j) {
  return max(0L, j - (v->kind == GENERAL ? v->above : max(v->below, v->above)));
}
static inline long end_of_column(const View *v, long j) {
  return min(v->m, j + 1 + (v->kind == GENERAL ? v->below : max(v->below, v->above)));
}
// Element (i, j) of a work-item of launch_over_elements(): work-groups share lines, so that only they divide.
#define ELEMENT(v, i, j)                                                                            \
  const long length = (v)->by_rows ? (v)->n : (v)->m, size = get_local_size(0);                     \
  const long groups = (length + size - 1) / size, line = get_group_id(0) / groups;                  \
  const long position = (get_group_id(0) - line * groups) * size + get_local_id(0);                 \
  const long i = (v)->by_rows ? line : position, j = (v)->by_rows ? position : line;                \
  if (position >= length || !stores(v, i, j)) return
