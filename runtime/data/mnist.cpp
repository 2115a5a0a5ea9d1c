// data/mnist.cpp - data sets in the files of MNIST: Fashion-MNIST, EMNIST, KMNIST and their like.
#include <filesystem>

#include <tenon/data.h>

#include "data/idx.h"
#include "data/labels.h"

namespace tenon {
namespace fs = std::filesystem;
namespace {

std::string find_file(const std::string& directory, const std::string& name) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) throw Error(directory + ": folder not found; wanted one with " + name + "[.gz]");
  for (const char* ending : {"", ".gz"}) {
    const fs::path path = fs::path(directory) / (name + ending);
    if (fs::exists(path, ignored)) return path.string();
  }
  throw Error(directory + ": wanted " + name + " or " + name + ".gz, got neither");
}

/// "fashion-mnist" of "../data/fashion-mnist/".
std::string folder_name(const std::string& directory) {
  const fs::path path = fs::path(directory).lexically_normal();
  return (path.has_filename() ? path.filename() : path.parent_path().filename()).string();
}

}  // namespace

std::shared_ptr<const ArrayDataset> load_mnist(const std::string& directory, Split split, const MnistOptions& options) {
  const std::string prefix = split == Split::train ? "train" : "t10k";
  const std::string images_path = find_file(directory, prefix + "-images-idx3-ubyte");
  const std::string labels_path = find_file(directory, prefix + "-labels-idx1-ubyte");
  const Tensor images = data::read_idx(images_path, data::magic_of_images);
  const Tensor raw_labels = data::read_idx(labels_path, data::magic_of_labels);
  if (images.shape()[0] != raw_labels.shape()[0]) {
    throw Error(labels_path + ": wanted " + std::to_string(images.shape()[0]) + " labels, as many as " + images_path + " has images, got " +
                std::to_string(raw_labels.shape()[0]));
  }
  const Tensor labels = data::as_labels(labels_path, raw_labels, options.num_classes);
  ArrayOptions array;
  array.name = folder_name(directory) + " " + name_of(split);
  array.scaling = options.scaling;
  array.targets = options.targets;
  array.num_classes = options.num_classes;
  return std::make_shared<const ArrayDataset>(images, labels, array);
}

}  // namespace tenon
