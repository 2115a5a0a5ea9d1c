// SPDX-License-Identifier: Apache-2.0
// data/image_folder.cpp - images in one folder per class.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <tenon/data.h>

#include "data/files.h"
#include "data/image_file.h"
#include "platform/folder.h"
#include "platform/path.h"

namespace tenon {
namespace {

/// Names of the folders in a folder, sorted by bytes, without hidden ones.
std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& [name, kind] : platform::entries_of(folder, error)) {
    if (name.front() != '.' && kind == platform::FileKind::folder) names.push_back(name);
  }
  if (error) throw Error(folder + ": cannot be read: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// The folder of a split; "" if found is none.
std::string split_folder(const std::string& path, Split split) {
  if (!data::is_folder(path)) throw Error(path + ": folder not found; expected one with a folder of images per class");
  const std::string inner = platform::text_of(platform::path_of(path) / name_of(split));
  if (data::is_folder(inner)) return inner;
  return split == Split::train ? path : "";
}

struct LabelledImage {
  std::string file;
  std::int64_t label;
};

/// Interleaves the classes: the first image of each class, then the second, so that a part split off the end has all classes.
std::vector<LabelledImage> interleaved_images(const std::string& folder, const std::vector<std::string>& classes) {
  std::vector<std::vector<std::string>> files;
  std::size_t max_files = 0;
  for (const std::string& name : classes) {
    const std::string inner = platform::text_of(platform::path_of(folder) / platform::path_of(name));
    files.push_back(data::is_folder(inner) ? data::images_in(inner) : std::vector<std::string>());
    max_files = std::max(max_files, files.back().size());
  }
  std::vector<LabelledImage> images;
  for (std::size_t i = 0; i < max_files; ++i) {
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (i < files[c].size()) images.push_back({files[c][i], static_cast<std::int64_t>(c)});
    }
  }
  if (images.empty()) throw Error(fmt::format("{}: expected a folder of {} images per class, got none", folder, data::image_endings));
  return images;
}

}  // namespace

std::vector<std::string> data::image_files(const std::string& path, Split split) {
  const std::string folder = split_folder(path, split);
  std::vector<std::string> files;
  if (folder.empty()) return files;
  for (const LabelledImage& image : interleaved_images(folder, folders_in(folder))) files.push_back(image.file);
  return files;
}

std::vector<std::string> data::class_folders(const std::string& path) {
  return folders_in(split_folder(path, Split::train));
}

ImageFolderData load_image_folder(const std::string& path, Split split, const ImageFolderOptions& options) {
  const std::string folder = split_folder(path, split);
  if (folder.empty()) throw Error(path + ": expected a folder '" + name_of(split) + "'");
  ImageFolderData result;
  const std::vector<std::string> found = folders_in(folder);
  result.classes = options.classes.empty() ? found : options.classes;
  for (const std::string& name : found) {
    if (std::find(result.classes.begin(), result.classes.end(), name) != result.classes.end()) continue;
    throw Error(platform::text_of(platform::path_of(folder) / platform::path_of(name)) + ": unknown class; expected one of the " +
                std::to_string(result.classes.size()) + " given classes");
  }
  const std::vector<LabelledImage> images = interleaved_images(folder, result.classes);
  Tensor x, y = Tensor::empty(DType::i64, {static_cast<std::int64_t>(images.size())});
  Shape shape;
  std::uint8_t* to = nullptr;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Tensor image = load_image(images[i].file, options.image);
    if (i == 0) {
      shape = image.shape();
      Shape all{static_cast<std::int64_t>(images.size())};
      for (const std::int64_t size : shape) all.push_back(size);
      x = Tensor::empty(DType::u8, all);
      to = x.data<std::uint8_t>();
    }
    if (image.shape() != shape) {
      throw Error(fmt::format(
          "{}: expected the shape of the first image {}, {}, got {}; data: {{image: {{resize: [{}, {}], channels: {}}}}} "
          "gives all images one shape",
          images[i].file, images[0].file, shape.str(), image.shape().str(), shape[1], shape[2], shape[0] == 1 ? "greyscale" : "rgb"));
    }
    std::memcpy(to, image.raw(), static_cast<std::size_t>(image.count()));
    to += image.count();
    y.data<std::int64_t>()[i] = images[i].label;
  }
  ArrayOptions array;
  array.name = data::folder_name(path) + " " + name_of(split);
  array.scaling = options.scaling;
  array.channels = options.channels;
  array.targets = options.targets;
  array.num_classes = static_cast<std::int64_t>(result.classes.size());
  result.data = std::make_shared<const ArrayDataset>(x, y, array);
  return result;
}

}  // namespace tenon
