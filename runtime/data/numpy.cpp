// SPDX-License-Identifier: Apache-2.0
// data/numpy.cpp - arrays in NumPy files.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include <tenon/data.h>
#include <tenon/npy.h>

#include "core/element.h"
#include "data/files.h"
#include "io/zip.h"
#include "platform/path.h"

namespace tenon {
namespace {

bool is_floating_wide(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

/// Where the arrays of a split are: members of an archive, or files of a folder.
struct Location {
  std::string path;  ///< of the archive or the folder; empty: the split is missing
  bool is_archive = false;
  std::string suffix = {};  ///< of the names of arrays

  std::string file_of(const std::string& array) const {
    return is_archive ? path : platform::text_of(platform::path_of(path) / platform::path_of(array + suffix + ".npy"));
  }
  Tensor read(const std::string& array) const { return is_archive ? load_npz(path, array + suffix) : load_npy(file_of(array)); }
};

Location find_in_archive(const std::string& path, Split split, const std::string& array) {
  const std::vector<std::string> members = io::ZipReader(path).names();
  const auto has = [&](const std::string& name) { return std::find(members.begin(), members.end(), name + ".npy") != members.end(); };
  const std::string suffix = std::string("_") + name_of(split);
  if (has(array + suffix)) return {path, true, suffix};
  if (split == Split::test) return {};
  if (has(array)) return {path, true};
  return {path, true, "_train"};  // reading reports the arrays that exist
}

/// Which of the places has the array.
Location find_arrays(const std::string& path, Split split, const std::string& array) {
  if (!data::is_folder(path)) return find_in_archive(path, split, array);
  namespace fs = std::filesystem;
  const auto exists = [&](const std::string& name) {
    std::error_code ignored;
    return fs::exists(platform::path_of(path) / platform::path_of(name), ignored);
  };
  const std::string word = name_of(split), archive = word + ".npz", suffix = "_" + word;
  if (exists(archive)) return {platform::text_of(platform::path_of(path) / platform::path_of(archive)), true};
  if (exists(array + suffix + ".npy")) return {path, false, suffix};
  if (split == Split::test) return {};
  if (exists(array + ".npy")) return {path, false};
  throw Error(path + ": expected train.npz, " + array + "_train.npy or " + array +
              ".npy, got none of them; for an archive of another name, give its path");
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
  const NumpyOptions names;
  const std::string &x = names.input_arrays[0].second, &y = names.target_arrays[0].second;
  const Location location = find_arrays(path, split, x);
  if (location.path.empty()) return {};
  return location.is_archive ? std::vector{location.path} : std::vector{location.file_of(x), location.file_of(y)};
}

bool data::has_numpy(const std::string& path, Split split, const NumpyOptions& options) {
  return !find_arrays(path, split, options.input_arrays.at(0).second).path.empty();
}

std::shared_ptr<const ArrayDataset> load_numpy(const std::string& path, Split split, const NumpyOptions& options) {
  if (options.input_arrays.empty() || options.target_arrays.empty())
    throw Error(path + ": expected the names of inputs and targets, got none");
  const std::string& first = options.input_arrays[0].second;
  const Location location = find_arrays(path, split, first);
  if (location.path.empty())
    throw Error(path + ": has no test part; expected " + first + "_test and " + options.target_arrays[0].second + "_test");
  std::vector<NamedTensor> inputs, targets;
  for (const auto& [name, array] : options.input_arrays) inputs.push_back({name, location.read(array)});
  const Tensor& x = inputs[0].tensor;
  const auto expect_as_many = [&](const char* what, const std::string& array, const std::string& name, const Tensor& tensor) {
    if (x.shape().rank() > 0 && tensor.shape().rank() > 0 && x.shape()[0] == tensor.shape()[0]) return;
    throw Error(location.file_of(array) + ": expected as many " + what + " as samples, got " + inputs[0].name + " " + x.str() + " and " +
                name + " " + tensor.str());
  };
  for (std::size_t i = 1; i < inputs.size(); ++i)
    expect_as_many("inputs", options.input_arrays[i].second, inputs[i].name, inputs[i].tensor);
  for (const auto& [name, array] : options.target_arrays) {
    const Tensor given = location.read(array);
    expect_as_many("targets", array, name, given);
    targets.push_back({name, arrange_targets(given)});
  }
  ArrayOptions array;
  array.name = data::folder_name(path) + " " + name_of(split);
  array.scaling = options.scaling;
  array.channels = options.channels;
  array.targets = options.targets;
  array.num_classes = options.num_classes;
  const auto is_label = [](const Tensor& t) { return !is_floating(t.dtype()) && t.shape().rank() == 1; };
  if (inputs.size() == 1) {
    array.x_dtype = x.dtype() == DType::u8 || is_floating_wide(x.dtype()) ? DType::f32 : x.dtype();
  } else {
    for (NamedTensor& input : inputs) {
      if (input.tensor.dtype() == DType::f64) input.tensor = input.tensor.to(DType::f32);
    }
  }
  if (targets.size() > 1) {
    for (NamedTensor& target : targets) {
      if (!is_floating(target.tensor.dtype()) && target.tensor.dtype() != DType::boolean) target.tensor = target.tensor.to(DType::i64);
    }
  } else if (is_label(targets[0].tensor) && !array.num_classes) {
    const std::string& labels = options.target_arrays[0].second;
    const Location train = split == Split::train ? location : find_arrays(path, Split::train, first);
    array.num_classes = classes_of(train.file_of(labels), split == Split::train ? targets[0].tensor : arrange_targets(train.read(labels)));
  }
  return std::make_shared<const ArrayDataset>(inputs, targets, array);
}

}  // namespace tenon
