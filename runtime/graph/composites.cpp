// composites.cpp - functions made of several ops.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

namespace tenon::ops {

Value mse(Value y, Value target) {
  // broadcasting (8) against (8,1) would average 64 differences and train on nonsense
  if (y.shape() != target.shape()) {
    throw Error(fmt::format("mse: wanted y and target of one shape, got '{}' {} and '{}' {}", y.name(), y.shape().str(), target.name(),
                            target.shape().str()));
  }
  const Value error = sub(y, target);
  return reduce_mean(mul(error, error));
}

}  // namespace tenon::ops
