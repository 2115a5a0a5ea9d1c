// SPDX-License-Identifier: Apache-2.0
// data/mnist.cpp - data sets in the format of MNIST: Fashion-MNIST, EMNIST, KMNIST, ...
#include <tenon/data.h>

#include "data/files.h"
#include "data/idx.h"
#include "data/labels.h"

namespace tenon {

std::vector<std::string> data::mnist_files(const std::string& directory, Split split) {
  const std::string prefix = split == Split::train ? "train" : "t10k";
  return {find_file(directory, {prefix + "-images-idx3-ubyte"}), find_file(directory, {prefix + "-labels-idx1-ubyte"})};
}

std::shared_ptr<const ArrayDataset> load_mnist(const std::string& directory, Split split, const MnistOptions& options) {
  const std::vector<std::string> files = data::mnist_files(directory, split);
  const std::string &images_path = files[0], &labels_path = files[1];
  const Tensor images = data::read_idx(images_path, data::magic_of_images);
  const Tensor raw_labels = data::read_idx(labels_path, data::magic_of_labels);
  if (images.shape()[0] != raw_labels.shape()[0]) {
    throw Error(labels_path + ": expected " + std::to_string(images.shape()[0]) + " labels, as many as " + images_path +
                " has images, got " + std::to_string(raw_labels.shape()[0]));
  }
  const Tensor labels = data::as_labels(labels_path, raw_labels, options.num_classes);
  ArrayOptions array;
  array.name = data::folder_name(directory) + " " + name_of(split);
  array.scaling = options.scaling;
  array.targets = options.targets;
  array.num_classes = options.num_classes;
  return std::make_shared<const ArrayDataset>(images, labels, array);
}

}  // namespace tenon
