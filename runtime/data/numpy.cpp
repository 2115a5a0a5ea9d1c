// data/numpy.cpp - pairs of arrays in NumPy's files.
#include <algorithm>
#include <filesystem>

#include <tenon/data.h>
#include <tenon/npy.h>

#include "data/files.h"
#include "io/zip.h"

namespace tenon {
namespace {

bool is_floating_wide(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

/// Where a split's arrays are: members of one archive, or two files of their own. Without files: nowhere.
struct Place {
  std::vector<std::string> files;
  std::string x, y;  ///< names in the archive

  Tensor read_x() const { return files.size() == 2 ? load_npy(files[0]) : load_npz(files[0], x); }
  Tensor read_y() const { return files.size() == 2 ? load_npy(files[1]) : load_npz(files[0], y); }
};

Place find_in_archive(const std::string& path, Split split) {
  const std::vector<std::string> members = io::ZipReader(path).names();
  const auto has = [&](const std::string& name) { return std::find(members.begin(), members.end(), name + ".npy") != members.end(); };
  const std::string suffix = std::string("_") + name_of(split);
  if (has("x" + suffix)) return {{path}, "x" + suffix, "y" + suffix};
  if (split == Split::test) return {};
  if (has("x")) return {{path}, "x", "y"};
  return {{path}, "x_train", "y_train"};  // reading says what is there instead
}

Place find_place(const std::string& path, Split split) {
  if (!data::is_folder(path)) return find_in_archive(path, split);
  namespace fs = std::filesystem;
  const auto file = [&](const std::string& name) { return (fs::path(path) / name).string(); };
  const auto there = [&](const std::string& name) {
    std::error_code ignored;
    return fs::exists(file(name), ignored);
  };
  const std::string word = name_of(split);
  if (there(word + ".npz")) return {{file(word + ".npz")}, "x", "y"};
  if (there("x_" + word + ".npy")) return {{file("x_" + word + ".npy"), file("y_" + word + ".npy")}, "", ""};
  if (split == Split::test) return {};
  if (there("x.npy")) return {{file("x.npy"), file("y.npy")}, "", ""};
  throw Error(path + ": wanted train.npz, x_train.npy or x.npy, got none of them; an archive of another name is given by its own path");
}

/// Labels (n,1) as Keras stores those of CIFAR become (n); numbers (n) become (n,1), what a layer of one unit puts out.
Tensor arrange_targets(const Tensor& y) {
  if (!is_floating_wide(y.dtype())) return y.shape().rank() == 2 && y.shape()[1] == 1 ? y.reshape({y.shape()[0]}) : y;
  Tensor values = y;
  if (y.dtype() == DType::f64) {
    values = Tensor::empty(DType::f32, y.shape());
    std::transform(y.data<double>(), y.data<double>() + y.count(), values.data<float>(), [](double v) { return static_cast<float>(v); });
  }
  return y.shape().rank() == 1 ? values.reshape({y.shape()[0], 1}) : values;
}

std::int64_t classes_of(const Tensor& y) {
  std::int64_t largest = 0;
  const auto look = [&](const auto* values) {
    for (std::int64_t i = 0; i < y.count(); ++i) largest = std::max(largest, static_cast<std::int64_t>(values[i]));
  };
  switch (y.dtype()) {
    case DType::u8:
      look(y.data<std::uint8_t>());
      break;
    case DType::i8:
      look(y.data<std::int8_t>());
      break;
    case DType::u16:
      look(y.data<std::uint16_t>());
      break;
    case DType::i16:
      look(y.data<std::int16_t>());
      break;
    case DType::u32:
      look(y.data<std::uint32_t>());
      break;
    case DType::i32:
      look(y.data<std::int32_t>());
      break;
    case DType::i64:
      look(y.data<std::int64_t>());
      break;
    default:
      break;  // no labels: as_labels says so
  }
  return largest + 1;
}

}  // namespace

std::vector<std::string> data::numpy_files(const std::string& path, Split split) {
  return find_place(path, split).files;
}

std::shared_ptr<const ArrayDataset> load_numpy(const std::string& path, Split split, const NumpyOptions& options) {
  const Place place = find_place(path, split);
  if (place.files.empty()) throw Error(path + ": has no test part; wanted x_test and y_test");
  const Tensor x = place.read_x(), given_y = place.read_y();
  const Tensor y = arrange_targets(given_y);
  if (x.shape().rank() == 0 || y.shape().rank() == 0 || x.shape()[0] != y.shape()[0]) {
    throw Error(place.files.back() + ": wanted as many targets as samples, got x " + x.str() + " and y " + given_y.str());
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
    array.num_classes = classes_of(split == Split::train ? y : arrange_targets(find_place(path, Split::train).read_y()));
  }
  return std::make_shared<const ArrayDataset>(x, y, array);
}

}  // namespace tenon
