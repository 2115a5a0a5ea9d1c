// data/image_folder.cpp - pictures in a folder for each class.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <tenon/data.h>

#include "data/files.h"
#include "data/image_file.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

/// Names in a folder, sorted by their bytes; hidden ones are left out.
std::vector<std::string> names_in(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (name.front() != '.' && (folders ? entry.is_directory(ignored) : data::is_image_file(name))) names.push_back(name);
  }
  if (error) throw Error(folder + ": cannot be read: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// The folder of a split; "" if there is none.
std::string split_folder(const std::string& path, Split split) {
  if (!data::is_folder(path)) throw Error(path + ": folder not found; wanted one with a folder of images for each class");
  const std::string inner = (fs::path(path) / name_of(split)).string();
  if (data::is_folder(inner)) return inner;
  return split == Split::train ? path : "";
}

struct Picture {
  std::string file;
  std::int64_t label;
};

/// The first picture of each class, then the second, ...: a part cut off the end has some of every class.
std::vector<Picture> pictures_of(const std::string& folder, const std::vector<std::string>& classes) {
  std::vector<std::vector<std::string>> files;
  std::size_t most = 0;
  for (const std::string& name : classes) {
    const std::string inner = (fs::path(folder) / name).string();
    files.push_back(data::is_folder(inner) ? names_in(inner, false) : std::vector<std::string>());
    most = std::max(most, files.back().size());
  }
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i < most; ++i) {
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (i < files[c].size()) pictures.push_back({(fs::path(folder) / classes[c] / files[c][i]).string(), static_cast<std::int64_t>(c)});
    }
  }
  if (pictures.empty()) throw Error(folder + ": wanted a folder of .pgm, .ppm, .png or .npy images for each class, got none");
  return pictures;
}

}  // namespace

std::vector<std::string> data::image_files(const std::string& path, Split split) {
  const std::string folder = split_folder(path, split);
  std::vector<std::string> files;
  if (folder.empty()) return files;
  for (const Picture& picture : pictures_of(folder, names_in(folder, true))) files.push_back(picture.file);
  return files;
}

ImageFolderData load_image_folder(const std::string& path, Split split, const ImageFolderOptions& options) {
  const std::string folder = split_folder(path, split);
  if (folder.empty()) throw Error(path + ": has no folder " + name_of(split));
  ImageFolderData result;
  const std::vector<std::string> there = names_in(folder, true);
  result.classes = options.classes.empty() ? there : options.classes;
  for (const std::string& name : there) {
    if (std::find(result.classes.begin(), result.classes.end(), name) != result.classes.end()) continue;
    throw Error((fs::path(folder) / name).string() + ": a class that is not among the " + std::to_string(result.classes.size()) + " known");
  }
  const std::vector<Picture> pictures = pictures_of(folder, result.classes);
  Tensor x, y = Tensor::empty(DType::i64, {static_cast<std::int64_t>(pictures.size())});
  Shape shape;
  std::uint8_t* to = nullptr;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Tensor image = data::read_image(pictures[i].file);
    if (i == 0) {
      shape = image.shape();
      Shape all{static_cast<std::int64_t>(pictures.size())};
      for (const std::int64_t size : shape) all.push_back(size);
      x = Tensor::empty(DType::u8, all);
      to = x.data<std::uint8_t>();
    }
    if (image.shape() != shape) {
      throw Error(pictures[i].file + ": wanted channels, height and width of the first, " + pictures[0].file + ", " + shape.str() +
                  ", got " + image.shape().str());
    }
    std::memcpy(to, image.raw(), static_cast<std::size_t>(image.count()));
    to += image.count();
    y.data<std::int64_t>()[i] = pictures[i].label;
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
