// SPDX-License-Identifier: Apache-2.0
// bench/blas_chart.h - a roofline chart of BLAS calls as an HTML page.
#pragma once

#include <string>
#include <vector>

namespace tenon::bench {

struct ChartPoint {
  std::string name;  ///< "dgemm 1024"
  int level = 1;
  double flops_per_byte = 0;
  double gflop_per_s = 0;
};
struct ChartRoofs {
  double gb_per_s = 0;
  double f32_gflop_per_s = 0, f64_gflop_per_s = 0;  ///< 0: unknown
};

/// Rate over arithmetic intensity on logarithmic axes, and the same numbers as a table. The page is self-contained, without scripts, and
/// follows the light or dark setting.
/// Source  Williams, Waterman, Patterson: Roofline (2009).
std::string blas_chart(const std::string& title, const std::vector<ChartPoint>& points, const ChartRoofs& roofs);

}  // namespace tenon::bench
