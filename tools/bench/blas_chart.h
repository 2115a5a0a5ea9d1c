// bench/blas_chart.h - the calls of a BLAS benchmark under the roofs of the machine, as a page of HTML.
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
  double f32_gflop_per_s = 0, f64_gflop_per_s = 0;  ///< 0: not known
};

/// A drawing of rate over arithmetic intensity on logarithmic axes, and a table of the same. The page needs no other file and no script; it
/// follows the reader's light or dark setting.
/// Source  Williams, Waterman, Patterson: Roofline (2009).
std::string blas_chart(const std::string& title, const std::vector<ChartPoint>& points, const ChartRoofs& roofs);

}  // namespace tenon::bench
