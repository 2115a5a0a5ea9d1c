// SPDX-License-Identifier: Apache-2.0
// Normalisation of lines of n elements: channels of images (batch_norm), or consecutive elements (layer_norm, rms_norm). Element j of line
// r is at (j / inner * lines + r) * inner + j % inner for channels; consecutive lines have inner = n, where that is r * n + j.
#define LINE_PARAMETERS const long lines, const long n, const long inner, const uint width
#define LINE                                                                         \
  local T shared[GROUP_SIZE], shared_rests[GROUP_SIZE];                              \
  const long row = get_global_id(0) / width, first = get_local_id(0) & (width - 1);  \
  const bool active = row < lines;                                                   \
  const long r = active ? row : 0, terms = active ? n : 0;
#define FOR_EACH                                  \
  for (long j = first; j < terms; j += width) {   \
    const long i = (j / inner * lines + r) * inner + j % inner;
#define SUM_OF(total) sum_of_lanes(total, width, shared, shared_rests)
#define NO_SUM ((Sum){0, 0})

// Mean and variance in two passes. Source: Chan, Golub, LeVeque: Algorithms for Computing the Sample Variance (1983), the corrected
// two-pass algorithm: the second pass measures and subtracts the effect of rounding the mean, which stays in two parts:
// mean + rest_of_mean.
#define STATISTICS                                                                   \
  Sum sum = NO_SUM, squares = NO_SUM;                                                \
  FOR_EACH sum = added(sum, x[i]); }                                                 \
  const T mean = SUM_OF(sum) / n;                                                        \
  sum = NO_SUM;                                                                      \
  FOR_EACH                                                                           \
    const T deviation = x[i] - mean;                                                 \
    sum = added(sum, deviation);                                                     \
    squares = added(squares, deviation * deviation);                                 \
  }                                                                                  \
  const T off = SUM_OF(sum) / n;                                                     \
  T variance = SUM_OF(squares) / n - off * off;                                      \
  if (variance < 0) variance = 0; /* NaN stays */                                    \
  const T rest_of_mean = isfinite(off) ? off : 0;

kernel void batch_norm(const long count, const long channels, const long inner, BUFFER(T, y), BUFFER(T, x), BUFFER(T, scale),
                       BUFFER(T, bias), BUFFER(T, mean), BUFFER(T, variance), const T epsilon) {
  USE(T, y);
  USE(T, x);
  USE(T, scale);
  USE(T, bias);
  USE(T, mean);
  USE(T, variance);
  const long i = get_global_id(0);
  if (i >= count) return;
  const long c = i / inner % channels;
  y[i] = (x[i] - mean[c]) * (1 / sqrt(variance[c] + epsilon)) * scale[c] + bias[c];
}

kernel void batch_norm_train(LINE_PARAMETERS, BUFFER(T, y), BUFFER(T, new_mean), BUFFER(T, new_variance), BUFFER(T, saved_mean),
                             BUFFER(T, saved_inverse_std), BUFFER(T, x), BUFFER(T, scale), BUFFER(T, bias), BUFFER(T, running_mean),
                             BUFFER(T, running_variance), const T epsilon, const T momentum, const T rest, const int biased) {
  USE(T, y);
  USE(T, new_mean);
  USE(T, new_variance);
  USE(T, saved_mean);
  USE(T, saved_inverse_std);
  USE(T, x);
  USE(T, scale);
  USE(T, bias);
  USE(T, running_mean);
  USE(T, running_variance);
  LINE
  STATISTICS
  const T inverse_std = 1 / sqrt(variance + epsilon);
  FOR_EACH y[i] = (x[i] - mean - rest_of_mean) * inverse_std * scale[r] + bias[r]; }
  if (!active || first != 0) return;
  saved_mean[r] = mean + rest_of_mean;
  saved_inverse_std[r] = inverse_std;
  new_mean[r] = rest * running_mean[r] + momentum * (mean + rest_of_mean);
  new_variance[r] = rest * running_variance[r] + momentum * (biased ? variance : variance * ((T)n / (n - 1)));
}

// With x' = (x - mean) inverse_std: dbias = sum(dy), dscale = sum(dy x'), dx = scale inverse_std / n (n dy - dbias - x' dscale).
kernel void batch_norm_train_grad(LINE_PARAMETERS, BUFFER(T, dx), BUFFER(T, dscale), BUFFER(T, dbias), BUFFER(T, dy), BUFFER(T, x),
                                  BUFFER(T, scale), BUFFER(T, mean), BUFFER(T, inverse_std)) {
  USE(T, dx);
  USE(T, dscale);
  USE(T, dbias);
  USE(T, dy);
  USE(T, x);
  USE(T, scale);
  USE(T, mean);
  USE(T, inverse_std);
  LINE
  Sum sum = NO_SUM, products = NO_SUM;
  FOR_EACH
    sum = added(sum, dy[i]);
    products = added(products, dy[i] * ((x[i] - mean[r]) * inverse_std[r]));
  }
  const T total = SUM_OF(sum), product = SUM_OF(products);
  FOR_EACH dx[i] = scale[r] * inverse_std[r] * (dy[i] - total / n - (x[i] - mean[r]) * inverse_std[r] * (product / n)); }
  if (!active || first != 0) return;
  dscale[r] = product;
  dbias[r] = total;
}

kernel void layer_norm(LINE_PARAMETERS, BUFFER(T, y), BUFFER(T, saved_mean), BUFFER(T, saved_inverse_std), BUFFER(T, x), BUFFER(T, scale),
                       BUFFER(T, bias), const T epsilon) {
  USE(T, y);
  USE(T, saved_mean);
  USE(T, saved_inverse_std);
  USE(T, x);
  USE(T, scale);
  USE(T, bias);
  LINE
  STATISTICS
  const T inverse_std = 1 / sqrt(variance + epsilon);
  FOR_EACH
    T value = (x[i] - mean - rest_of_mean) * inverse_std;
    if (scale) value *= scale[j];
    if (bias) value += bias[j];
    y[i] = value;
  }
  if (!active || first != 0) return;
  if (saved_mean) saved_mean[r] = mean + rest_of_mean;
  if (saved_inverse_std) saved_inverse_std[r] = inverse_std;
}

kernel void rms_norm(LINE_PARAMETERS, BUFFER(T, y), BUFFER(T, saved), BUFFER(T, x), BUFFER(T, scale), const T epsilon) {
  USE(T, y);
  USE(T, saved);
  USE(T, x);
  USE(T, scale);
  LINE
  Sum sum = NO_SUM;
  FOR_EACH sum = added(sum, x[i] * x[i]); }
  const T inverse = 1 / sqrt(SUM_OF(sum) / n + epsilon);
  FOR_EACH y[i] = scale ? x[i] * inverse * scale[j] : x[i] * inverse; }
  if (active && first == 0 && saved) saved[r] = inverse;
}

// With x' = (x - mean) inverse_std and g = dy scale: dx = inverse_std (g - mean(g) - x' mean(g x')), the means over the line. Without a
// mean, as for rms_norm, neither is subtracted.
kernel void line_norm_grad(LINE_PARAMETERS, BUFFER(T, dx), BUFFER(T, dy), BUFFER(T, x), BUFFER(T, scale), BUFFER(T, mean),
                           BUFFER(T, inverse_std)) {
  USE(T, dx);
  USE(T, dy);
  USE(T, x);
  USE(T, scale);
  USE(T, mean);
  USE(T, inverse_std);
  LINE
  const T centre = mean ? mean[r] : 0;
  Sum sum = NO_SUM, products = NO_SUM;
  FOR_EACH
    const T g = scale ? dy[i] * scale[j] : dy[i];
    sum = added(sum, g);
    products = added(products, g * ((x[i] - centre) * inverse_std[r]));
  }
  const T average = SUM_OF(sum) / n, product = SUM_OF(products) / n;
  FOR_EACH
    const T g = scale ? dy[i] * scale[j] : dy[i];
    dx[i] = inverse_std[r] * ((mean ? g - average : g) - (x[i] - centre) * inverse_std[r] * product);
  }
}

// dscale = sum(dy x'), dbias = sum(dy) over the lines: here the lines of LINE are the n elements of a line of x.
kernel void line_norm_parameters(LINE_PARAMETERS, BUFFER(T, dscale), BUFFER(T, dbias), BUFFER(T, dy), BUFFER(T, x), BUFFER(T, mean),
                                 BUFFER(T, inverse_std)) {
  USE(T, dscale);
  USE(T, dbias);
  USE(T, dy);
  USE(T, x);
  USE(T, mean);
  USE(T, inverse_std);
  LINE
  Sum sum = NO_SUM, products = NO_SUM;
  FOR_EACH
    sum = added(sum, dy[i]);
    products = added(products, dy[i] * ((x[i] - (mean ? mean[j] : 0)) * inverse_std[j]));
  }
  const T total = SUM_OF(sum), product = SUM_OF(products);
  if (!active || first != 0) return;
  if (dscale) dscale[r] = product;
  if (dbias) dbias[r] = total;
}
