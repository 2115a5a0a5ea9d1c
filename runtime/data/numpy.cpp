// SPDX-License-Identifier: Apache-2.0
// data/numpy.cpp - pairs of arrays in NumPy files.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include <tenon/data.h>
#include <tenon/npy.h>

#include "core/element.h"
#include "data/files.h"
#include "io/zip.h"

namespace tenon {
namespace {

bool is_floating_wide(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

/// The location of a split's arrays: members of one archive, or two files. Without files if the split is missing.
struct Location {
  std::vector<std::string> files;
  std::string x, y;  ///< names in the archive

  Tensor read_x() const { return files.size() == 2 ? load_npy(files[0]) : load_npz(files[0], x); }
  Tensor read_y() const { return files.size() == 2 ? load_npy(files[1]) : load_npz(files[0], y); }
};

Location find_in_archive(const std::string& path, Split split) {
  const std::vector<std::string> members = io::ZipReader(path).names();
  const auto has = [&](const std::string& name) { return std::find(members.begin(), members.end(), name + ".npy") != members.end(); };
  const std::string suffix = std::string("_") + name_of(split);
  if (has("x" + suffix)) return {{path}, "x" + suffix, "y" + suffix};
  if (split == Split::test) return {};
  if (has("x")) return {{path}, "x", "y"};
  return {{path}, "x_train", "y_train"};  // reading reports the arrays that exist
}

Location find_arrays(const std::string& path, Split split) {
  if (!data::is_folder(path)) return find_in_archive(path, split);
  namespace fs = std::filesystem;
  const auto file = [&](const std::string& name) { return (fs::path(path) / name).string(); };
  const auto exists = [&](const std::string& name) {
    std::error_code ignored;
    return fs::exists(file(name), ignored);
  };
  const std::string word = name_of(split);
  if (exists(word + ".npz")) return {{file(word + ".npz")}, "x", "y"};
  if (exists("x_" + word + ".npy")) return {{file("x_" + word + ".npy"), file("y_" + word + ".npy")}, "", ""};
  if (split == Split::test) return {};
  if (exists("x.npy")) return {{file("x.npy"), file("y.npy")}, "", ""};
  throw Error(path + ": expected train.npz, x_train.npy or x.npy, got none of them; for an archive of another name, give its path");
}

/// Reshapes labels (n,1), as in Keras's CIFAR files, to (n), and values (n) to (n,1), the output of a layer of one unit.
Tensor arrange_targets(const Tensor& y) {
  if (!is_floating_wide(y.dtype())) return y.shape().rank() == 2 && y.shape()[1] == 1 ? y.reshape({y.shape()[0]}) : y;
  Tensor values = y;
  if (y.dtype() == DType::f64) {
    values = Tensor::empty(DType::f32, y.shape());
    std::transform(y.data<double>(), y.data<double>() + y.count(), values.data<float>(), [](double v) { return static_cast<float>(v); });
  }
  return y.shape().rank() == 1 ? values.reshape({y.shape()[0], 1}) : values;
}

std::int64_t classes_of(const std::string& file, const Tensor& y) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  std::int64_t largest = 0;
  visit_integer(y.dtype(), [&](auto zero) {  // another dtype has no labels: as_labels reports it
    const auto* values = y.data<decltype(zero)>();
    for (std::int64_t i = 0; i < y.count(); ++i) {
      if (values[i] > zero && static_cast<std::uint64_t>(values[i]) >= static_cast<std::uint64_t>(most)) {
        throw Error(file + ": label " + std::to_string(values[i]) + " of sample " + std::to_string(i) +
                    " is out of range, expected a class below 2147483648; targets that are not classes are floats");
      }
      largest = std::max(largest, static_cast<std::int64_t>(values[i]));
    }
  });
  return largest + 1;
}

}  // namespace

std::vector<std::string> data::numpy_files(const std::string& path, Split split) {
  return find_arrays(path, split).files;
}

std::shared_ptr<const ArrayDataset> load_numpy(const std::string& path, Split split, const NumpyOptions& options) {
  const Location location = find_arrays(path, split);
  if (location.files.empty()) throw Error(path + ": has no test part; expected x_test and y_test");
  const Tensor x = location.read_x(), given_y = location.read_y();
  const Tensor y = arrange_targets(given_y);
  if (x.shape().rank() == 0 || y.shape().rank() == 0 || x.shape()[0] != y.shape()[0]) {
    throw Error(location.files.back() + ": expected as many targets as samples, got x " + x.str() + " and y " + given_y.str());
  }
  ArrayOptions array;
  array.name = data::folder_name(path) + " " + name_of(split);
  array.scaling = options.scaling;
  array.channels = options.channels;
  array.targets = options.targets;
  const bool numbers = x.dtype() == DType::u8 || is_floating_wide(x.dtype());
  array.x_dtype = numbers ? DType::f32 : x.dtype();
  array.num_classes = options.num_classes;
  const bool labels = !is_floating(y.dtype()) && y.shape().rank() == 1;
  if (labels && !array.num_classes) {
    const Location train = split == Split::train ? location : find_arrays(path, Split::train);
    array.num_classes = classes_of(train.files.back(), split == Split::train ? y : arrange_targets(train.read_y()));
  }
  return std::make_shared<const ArrayDataset>(x, y, array);
}

}  // namespace tenon
