/* SPDX-License-Identifier: Apache-2.0 */
/* shim.c - a plain C program linked to a libblas.so.3 that tests edge cases. Each function that main calls is a test. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
  double re, im;
} zcomplex;

extern void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*, const double*,
                   const int*, const double*, double*, const int*, size_t, size_t);
extern double ddot_(const int*, const double*, const int*, const double*, const int*);
extern double _Complex zdotc_(const int*, const zcomplex*, const int*, const zcomplex*, const int*);
extern double dnrm2_(const int*, const double*, const int*);
extern double dasum_(const int*, const double*, const int*);
extern int idamax_(const int*, const double*, const int*);
extern void dscal_(const int*, const double*, double*, const int*);
extern void daxpy_(const int*, const double*, const double*, const int*, double*, const int*);
extern void dcopy_(const int*, const double*, const int*, double*, const int*);
extern void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
extern void cblas_dgemv(int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
extern void cblas_daxpy(int, double, const double*, int, double*, int);
extern double cblas_ddot(int, const double*, int, const double*, int);
extern size_t cblas_idamax(int, const double*, int);
extern void cblas_zher2(int, int, int, const void*, const void*, int, const void*, int, void*, int);

static int failures = 0;
#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      ++failures;                                                      \
      printf("%s:%d: not true: %s\n", __func__, __LINE__, #condition); \
    }                                                                  \
  } while (0)

/* These replace the handlers of the library, as programs may do. */
static char reported[64];
static int reported_position = -1;
static int reports = 0;
void xerbla_(const char* name, const int* position, size_t length) {
  snprintf(reported, sizeof reported, "%.*s", (int)length, name);
  reported_position = *position;
  ++reports;
}
extern int RowMajorStrg;
void cblas_xerbla(int position, const char* name, const char* format, ...) {
  (void)format;
  snprintf(reported, sizeof reported, "%s%s", name, RowMajorStrg ? " by rows" : "");
  reported_position = position;
  ++reports;
}
static int was(const char* name, int position) {
  const int same = strcmp(reported, name) == 0 && reported_position == position && reports == 1;
  if (!same)
    printf("expected one report of '%s' at position %d, got %d, the last of '%s' at position %d\n", name, position, reports, reported,
           reported_position);
  reports = 0;
  return same;
}

static const int minus = -1, none = 0, one = 1, two = 2, four = 4;
static double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
static const double unit = 1, zero = 0;

static void products_are_right(void) {
  double c[4] = {0};
  dgemm_("n", "T", &two, &two, &two, &unit, a, &two, b, &two, &zero, c, &two, 1, 1);
  CHECK(c[0] == 26 && c[1] == 38 && c[2] == 30 && c[3] == 44);
  cblas_dgemm(101, 111, 111, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
  CHECK(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50);
  const zcomplex z[2] = {{1, 2}, {3, -4}};
  const double _Complex product = zdotc_(&two, z, &one, z, &one);
  CHECK(__real__ product == 30 && __imag__ product == 0);
  CHECK(idamax_(&four, a, &one) == 4 && cblas_idamax(4, a, 1) == 3);
  CHECK(reports == 0);
}

static void vectors_of_nothing_are_silent(void) {
  double x[2] = {1, 2};
  CHECK(ddot_(&minus, NULL, &one, NULL, &one) == 0);
  CHECK(dasum_(&two, x, &minus) == 0 && dnrm2_(&none, x, &one) == 0);
  CHECK(idamax_(&none, x, &one) == 0 && idamax_(&two, x, &none) == 0 && cblas_idamax(0, x, 1) == 0);
  dscal_(&two, &zero, x, &minus);
  cblas_daxpy(-3, 1, NULL, 1, NULL, 1);
  CHECK(x[0] == 1 && x[1] == 2);
  CHECK(reports == 0);
}

static void increments_that_only_read_may_be_0_or_backwards(void) {
  double y[4] = {0, 0, 0, 0};
  const double five[2] = {3, 4};
  CHECK(ddot_(&four, a, &none, b, &one) == 26);
  daxpy_(&four, &unit, a + 2, &none, y, &one);
  CHECK(y[0] == 3 && y[3] == 3);
  CHECK(dnrm2_(&two, five, &minus) == 5 && dnrm2_(&four, five, &none) == 6);
  dcopy_(&four, a, &one, y, &none); /* each element overwrites the previous one */
  CHECK(y[0] == 4 && y[1] == 3);
  CHECK(reports == 0);
  daxpy_(&four, &unit, a, &one, y, &none);
  CHECK(was("DAXPY ", 6));
  cblas_daxpy(4, 1, a, 1, y, 0);
  CHECK(was("cblas_daxpy", 6));
}

static void wrong_arguments_have_their_position(void) {
  double c[4] = {1, 2, 3, 4};
  const int wrong = 1;
  dgemm_("?", "N", &two, &two, &two, &unit, a, &two, b, &two, &zero, c, &two, 1, 1);
  CHECK(was("DGEMM ", 1));
  dgemm_("N", "N", &two, &minus, &two, &unit, a, &two, b, &two, &zero, c, &two, 1, 1);
  CHECK(was("DGEMM ", 4));
  dgemm_("N", "N", &two, &two, &two, &unit, a, &two, b, &two, &zero, c, &wrong, 1, 1);
  CHECK(was("DGEMM ", 13));
  dgemm_("N", "N", &two, &two, &two, &unit, NULL, &two, b, &two, &zero, c, &two, 1, 1);
  CHECK(was("DGEMM ", 7));
  cblas_dgemm(7, 111, 111, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
  CHECK(was("cblas_dgemm", 1));
  cblas_dgemm(102, 111, 111, 2, 2, 2, 1, a, 1, b, 2, 0, c, 2);
  CHECK(was("cblas_dgemm", 9));
  cblas_dgemm(101, 111, 111, 2, 2, 2, 1, a, 1, b, 2, 0, c, 2); /* the reference's Fortran call has A in place of B */
  CHECK(was("cblas_dgemm by rows", 11));
  cblas_dgemv(101, 111, -1, 2, 1, a, 2, b, 1, 0, c, 1);
  CHECK(was("cblas_dgemv by rows", 4));
  cblas_zher2(101, 121, 1, a, a, 0, b, 1, c, 1);
  CHECK(was("cblas_zher2 by rows", 8));
  CHECK(isnan(ddot_(&two, NULL, &one, b, &one)));
  CHECK(was("DDOT  ", 2));
  CHECK(idamax_(&two, NULL, &one) == 0);
  CHECK(was("IDAMAX", 2));
  CHECK(c[0] == 1 && c[1] == 2 && c[2] == 3 && c[3] == 4);
  CHECK(RowMajorStrg == 0);
}

/* Large enough that a backend may distribute it over threads. */
static int a_big_product_is_right(void) {
  enum { n = 512 };
  const int size = n;
  double *x = malloc(sizeof(double) * n * n), *y = malloc(sizeof(double) * n * n);
  for (int i = 0; i < n * n; ++i) x[i] = 1;
  dgemm_("N", "N", &size, &size, &size, &unit, x, &size, x, &size, &zero, y, &size, 1, 1);
  int right = 1;
  for (int i = 0; i < n * n; ++i) right &= y[i] == n;
  free(x);
  free(y);
  return right;
}

static void children_of_fork_compute(void) {
  CHECK(a_big_product_is_right());
  for (int child = 0; child < 3; ++child) {
    fflush(NULL);
    const pid_t id = fork();
    if (id == 0) {
      alarm(60);
      _exit(a_big_product_is_right() ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(id, &status, 0) == id && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  CHECK(a_big_product_is_right());
}

static void* many_small_ones(void* wrong) {
  for (int round = 0; round < 2000; ++round) {
    double c[4];
    dgemm_("N", "N", &two, &two, &two, &unit, a, &two, b, &two, &zero, c, &two, 1, 1);
    *(int*)wrong += !(c[0] == 23 && c[1] == 34 && c[2] == 31 && c[3] == 46);
  }
  return NULL;
}
static void threads_compute_concurrently(void) {
  pthread_t threads[4];
  int wrong[4] = {0};
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, many_small_ones, &wrong[i]);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  CHECK(wrong[0] + wrong[1] + wrong[2] + wrong[3] == 0);
}

/* Runs a product in a child with an invalid configuration; keeps what the child writes to stderr. */
static char child_said[4096];
static int status_of_a_child(const char* fallback, int by_cblas) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  fflush(NULL);
  const pid_t id = fork();
  if (id == 0) {
    alarm(60);
    dup2(ends[1], 2);
    if (fallback) setenv("TENON_BLAS_FALLBACK", fallback, 1);
    double c[4] = {1, 2, 3, 4};
    if (by_cblas) {
      cblas_dgemm(102, 111, 111, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
    } else {
      dgemm_("N", "N", &two, &two, &two, &unit, a, &two, b, &two, &zero, c, &two, 1, 1);
    }
    _exit(reports == 0 && c[0] == 23 && c[1] == 34 && c[2] == 31 && c[3] == 46 ? 0 : 1);
  }
  close(ends[1]);
  size_t size = 0;
  for (ssize_t n; size + 1 < sizeof child_said && (n = read(ends[0], child_said + size, sizeof child_said - 1 - size)) > 0;)
    size += (size_t)n;
  child_said[size] = 0;
  close(ends[0]);
  int status = -1;
  CHECK(waitpid(id, &status, 0) == id);
  return status;
}

/* Nothing returns with a result that nobody wrote. */
static void without_a_device_the_program_ends(void) {
  for (int by_cblas = 0; by_cblas < 2; ++by_cblas) {
    const int status = status_of_a_child(by_cblas ? "abort" : NULL, by_cblas);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(child_said,
                 by_cblas ? "libtenon_blas: cblas_dgemm: environment TENON_CONFIG" : "libtenon_blas: dgemm: environment TENON_CONFIG"));
    CHECK(strstr(child_said, "TENON_BLAS_FALLBACK=reference"));
  }
}
static void without_a_device_the_reference_computes_if_asked(void) {
  const int status = status_of_a_child("reference", 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(strstr(child_said, "the backend 'reference' computes"));
}

static void at_exit(void) { /* the library's own exit handlers run later */
  if (!a_big_product_is_right()) _exit(1);
}

int main(int count, char** arguments) {
  if (count > 1 && strcmp(arguments[1], "without") == 0) {
    without_a_device_the_program_ends();
    without_a_device_the_reference_computes_if_asked();
  } else {
    threads_compute_concurrently();
    products_are_right();
    vectors_of_nothing_are_silent();
    increments_that_only_read_may_be_0_or_backwards();
    wrong_arguments_have_their_position();
    if (count == 1) children_of_fork_compute(); /* the device of "far" does not survive a fork */
    atexit(at_exit);
  }
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
