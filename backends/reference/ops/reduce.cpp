// Reductions over any set of axes, the sum carried in f64 with its rounding errors beside it.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <array>
#include <cmath>

namespace tenon::reference {
namespace {

/// A sum whose error does not grow with the number of terms: what each addition rounds off is added up separately.
/// Source  Ogita, Rump, Oishi: Accurate Sum and Dot Product (2005), Sum2.
class Sum {
 public:
  void add(double x) {
    const double next = total_ + x;
    const double x_seen = next - total_;
    lost_ += (total_ - (next - x_seen)) + (x - x_seen);
    total_ = next;
  }
  double value() const { return std::isfinite(total_) ? total_ + lost_ : total_; }  // beside an infinity, `lost_` is NaN

 private:
  double total_ = 0, lost_ = 0;
};

/// Some dimensions of an operand.
struct Dimensions {
  std::uint32_t rank = 0;
  std::array<std::int64_t, TENON_MAX_RANK> shape{};
  sdk::Strides strides{};

  void append(std::int64_t size, std::int64_t stride) {
    shape[rank] = size;
    strides[rank++] = stride;
  }
};

/// y[kept] = finish(sum over the reduced dimensions of x[kept, reduced], number of terms).
template <class T, class Finish>
void reduce(const sdk::Call& call, Finish finish) {
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand& x = call.inputs[0];
  Dimensions kept, reduced;
  std::uint32_t next = 0;  // axes are ascending
  std::int64_t terms = 1;
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    const bool listed = next < attributes.count && attributes.axes[next] == d;
    if (listed) ++next;
    if (listed || attributes.count == 0) {
      reduced.append(x.shape[d], x.strides[d]);
      terms *= x.shape[d];
    } else {
      kept.append(x.shape[d], x.strides[d]);
    }
  }
  const T* from = call.input<T>(0);
  T* y = call.output<T>(0);
  const std::array<sdk::Strides, 1> outer{kept.strides}, inner{reduced.strides};
  sdk::for_each_element(kept.shape.data(), kept.rank, outer, [&](std::int64_t i, const auto& at) {
    Sum sum;
    sdk::for_each_element(reduced.shape.data(), reduced.rank, inner,
                          [&](std::int64_t, const auto& inside) { sum.add(double{from[at[0] + inside[0]]}); });
    y[i] = static_cast<T>(finish(sum.value(), static_cast<double>(terms)));
  });
}

/// y = sum of x over the axes; the sum of nothing is 0.
///
/// Attributes  axes: ascending, none means all. keepdims changes the shape of y alone.
template <class T>
void reduce_sum(const sdk::Call& call) {
  reduce<T>(call, [](double sum, double) { return sum; });
}

/// y = (sum of x over the axes) / (number of terms); the mean of nothing is NaN. Attributes as for reduce_sum.
template <class T>
void reduce_mean(const sdk::Call& call) {
  reduce<T>(call, [](double sum, double terms) { return sum / terms; });
}

}  // namespace
TENON_KERNEL_WITH(reduce_sum, (sdk::Traits{.strided = true}), float, double)
TENON_KERNEL_WITH(reduce_mean, (sdk::Traits{.strided = true}), float, double)
}  // namespace tenon::reference
