// SPDX-License-Identifier: Apache-2.0
#include "attention.h"

#include <control.h>
#include <numbers.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace tenon::emulation {
namespace {

cudaDataType stored_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF ? CUDA_R_16F : type == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// A tensor's elements, dense in the order of its dimensions.
struct Array {
  Tensor tensor;
  std::vector<double> at;

  explicit Array(const Tensor& of) : tensor(of), at(static_cast<std::size_t>(count())) {}
  std::int64_t count() const { return tensor.dimensions[0] * tensor.dimensions[1] * tensor.dimensions[2] * tensor.dimensions[3]; }
  /// body(indices, position) for all elements.
  template <class Body>
  void each(const Body& body) const {
    const std::int64_t* n = tensor.dimensions;
    std::size_t position = 0;
    for (std::int64_t a = 0; a < n[0]; ++a)
      for (std::int64_t b = 0; b < n[1]; ++b)
        for (std::int64_t c = 0; c < n[2]; ++c)
          for (std::int64_t d = 0; d < n[3]; ++d) body(std::vector<std::int64_t>{a, b, c, d}, position++);
  }
  std::int64_t offset(const std::vector<std::int64_t>& i) const {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < 4; ++d) sum += i[d] * tensor.strides[d];
    return sum;
  }
  /// The position of the element that indices of a larger tensor read: dimensions of 1 are broadcast, heads are shared.
  std::size_t position(const std::vector<std::int64_t>& i, const std::int64_t (&larger)[4]) const {
    std::int64_t p = 0;
    for (std::size_t d = 0; d < 4; ++d) p = p * tensor.dimensions[d] + i[d] * tensor.dimensions[d] / larger[d];
    return static_cast<std::size_t>(p);
  }
};

double rounded_to(cudnnDataType_t type, double value) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return rounded(value, 10, -14);
    case CUDNN_DATA_BFLOAT16:
      return rounded(value, 7, -126);
    case CUDNN_DATA_FLOAT:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

double applied(cudnnPointwiseMode_t mode, double x, double b) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b ? 1 : 0;
    default:
      return x;
  }
}
bool is_known(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_CMP_GE:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_GEN_INDEX:
    case CUDNN_POINTWISE_BINARY_SELECT:
      return true;
    default:
      return false;
  }
}

/// The execution of a graph.
class Run {
 public:
  explicit Run(const std::vector<TensorPointer>& pointers) : pointers_(pointers) {}

  void operation(const Object& o) {
    switch (o.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return multiply(read(o.object(CUDNN_ATTR_OPERATION_MATMUL_ADESC)), read(o.object(CUDNN_ATTR_OPERATION_MATMUL_BDESC)),
                        tensor_of(o.object(CUDNN_ATTR_OPERATION_MATMUL_CDESC)));
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduce(o.object(CUDNN_ATTR_OPERATION_REDUCTION_DESC).get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR),
                      read(o.object(CUDNN_ATTR_OPERATION_REDUCTION_XDESC)), tensor_of(o.object(CUDNN_ATTR_OPERATION_REDUCTION_YDESC)));
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return reshape(read(o.object(CUDNN_ATTR_OPERATION_RESHAPE_XDESC)), tensor_of(o.object(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)));
      default:
        return pointwise(o);
    }
  }

 private:
  Array read(const Object& object) {
    const Tensor tensor = tensor_of(object);
    if (const auto found = made_.find(tensor.id); found != made_.end()) return found->second;
    Array array(tensor);
    const TensorPointer& pointer = pointer_of(tensor.id);
    if (object.get_or<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false)) {
      array.at[0] = pointer.value;
    } else {
      array.each([&](const std::vector<std::int64_t>& i, std::size_t position) {
        array.at[position] = load(stored_type(tensor.type), pointer.data, array.offset(i));
      });
    }
    return array;
  }
  /// Keeps a result for the next operations, and stores it unless it is virtual.
  void write(Array array) {
    for (double& value : array.at) value = rounded_to(array.tensor.type, value);
    if (!array.tensor.is_virtual) {
      const TensorPointer& pointer = pointer_of(array.tensor.id);
      array.each([&](const std::vector<std::int64_t>& i, std::size_t position) {
        store(stored_type(array.tensor.type), pointer.data, array.offset(i), array.at[position]);
      });
    }
    const std::int64_t id = array.tensor.id;
    made_.insert_or_assign(id, std::move(array));
  }
  const TensorPointer& pointer_of(std::int64_t id) const {
    return *std::find_if(pointers_.begin(), pointers_.end(), [&](const TensorPointer& p) { return p.id == id; });
  }

  void multiply(const Array& a, const Array& b, const Tensor& into) {
    Array c(into);
    const std::int64_t depth = a.tensor.dimensions[3];
    const std::int64_t of_a[4] = {into.dimensions[0], into.dimensions[1], into.dimensions[2], depth};
    const std::int64_t of_b[4] = {into.dimensions[0], into.dimensions[1], depth, into.dimensions[3]};
    c.each([&](const std::vector<std::int64_t>& i, std::size_t position) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += a.at[a.position({i[0], i[1], i[2], k}, of_a)] * b.at[b.position({i[0], i[1], k, i[3]}, of_b)];
      c.at[position] = sum;
    });
    write(std::move(c));
  }
  void reduce(cudnnReduceTensorOp_t combine, const Array& x, const Tensor& into) {
    const bool finds_max = combine == CUDNN_REDUCE_TENSOR_MAX;
    Array y(into);
    std::fill(y.at.begin(), y.at.end(), finds_max ? -std::numeric_limits<double>::infinity() : 0.0);
    x.each([&](const std::vector<std::int64_t>& i, std::size_t position) {
      double& to = y.at[y.position(i, x.tensor.dimensions)];
      to = finds_max ? std::max(to, x.at[position]) : to + x.at[position];
    });
    write(std::move(y));
  }
  void reshape(const Array& x, const Tensor& into) {
    Array y(into);
    std::map<std::int64_t, double> by_offset;
    x.each([&](const std::vector<std::int64_t>& i, std::size_t position) { by_offset[x.offset(i)] = x.at[position]; });
    y.each([&](const std::vector<std::int64_t>& i, std::size_t position) { y.at[position] = by_offset.at(y.offset(i)); });
    write(std::move(y));
  }
  void pointwise(const Object& o) {
    const Object& function = o.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const auto mode = function.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    Array y(tensor_of(o.object(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)));
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
      const auto axis = static_cast<std::size_t>(function.get<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS));
      y.each([&](const std::vector<std::int64_t>& i, std::size_t position) { y.at[position] = static_cast<double>(i[axis]); });
      return write(std::move(y));
    }
    const auto operand = [&](cudnnBackendAttributeName_t name) { return o.has(name) ? read(o.object(name)) : Array(Tensor{}); };
    const Array x = operand(CUDNN_ATTR_OPERATION_POINTWISE_XDESC), b = operand(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                condition = operand(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const auto value_of = [&](const Array& array, const std::vector<std::int64_t>& i) {
      return array.at.empty() ? 0.0 : array.at[array.position(i, y.tensor.dimensions)];
    };
    y.each([&](const std::vector<std::int64_t>& i, std::size_t position) {
      y.at[position] = mode == CUDNN_POINTWISE_BINARY_SELECT ? (value_of(condition, i) != 0 ? value_of(x, i) : value_of(b, i))
                                                             : applied(mode, value_of(x, i), value_of(b, i));
    });
    write(std::move(y));
  }

  const std::vector<TensorPointer>& pointers_;
  std::map<std::int64_t, Array> made_;
};

}  // namespace

const char* refusal_of_attention(const Object& graph) {
  int products = 0, softmaxes = 0;
  const auto stored_well = [](const Object& object) {
    const Tensor t = tensor_of(object);
    if (t.is_virtual) return true;
    const bool transposed = t.strides[2] == 1 && t.strides[3] != 1;
    return t.type == CUDNN_DATA_FLOAT ||
           ((t.type == CUDNN_DATA_HALF || t.type == CUDNN_DATA_BFLOAT16) && t.alignment >= 16 && t.dimensions[transposed ? 2 : 3] % 8 == 0);
  };
  for (const ObjectPointer& pointer : graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects) {
    const Object& o = *pointer;
    switch (o.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        ++products;
        for (const auto name : {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC}) {
          if (!stored_well(o.object(name))) return "rows are not multiples of 16 bytes, or not aligned to them";
        }
        break;
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
        const auto mode = o.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR).get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
        if (!is_known(mode)) return "the graph has another pointwise function than those of attention";
        if (mode == CUDNN_POINTWISE_EXP) ++softmaxes;
        break;
      }
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        break;
      default:
        return "the graph has another operation than those of attention";
    }
  }
  return (products == 2 || products == 5) && softmaxes == 1 ? nullptr : "the graph is neither attention nor its gradient";
}

void run_operations(const Object& graph, const std::vector<TensorPointer>& pointers) {
  Run run(pointers);
  for (const ObjectPointer& operation : graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects) run.operation(*operation);
}

}  // namespace tenon::emulation
