// SPDX-License-Identifier: Apache-2.0
// data/files.h - finds the files of a data set.
#pragma once

#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// The first of these names, plain or with .gz, that exists in the folder.
/// Errors  the folder does not exist; none of the names exists.
std::string find_file(const std::string& directory, const std::vector<std::string>& names);
/// The same, but "" if none exists. Errors  the folder does not exist.
std::string find_file_or_none(const std::string& directory, const std::vector<std::string>& names);
/// The last component of a path: "fashion-mnist" of "../data/fashion-mnist/".
std::string folder_name(const std::string& path);
bool is_folder(const std::string& path);

// The files of each source, in order. Errors: those of find_file. Empty if a source has no test part and may lack one.

std::vector<std::string> mnist_files(const std::string& directory, Split split);
std::vector<std::string> cifar10_files(const std::string& directory, Split split);
/// One .npz, or .npy files of x and y.
std::vector<std::string> numpy_files(const std::string& path, Split split);
/// Whether load_numpy finds this part.
bool has_numpy(const std::string& path, Split split, const NumpyOptions& options);
/// Images in one folder per class, in train and test or, as the training part only, in `path` itself.
std::vector<std::string> image_files(const std::string& path, Split split);
/// The names of the class folders of the training images, sorted by bytes. Errors  the folder does not exist.
std::vector<std::string> class_folders(const std::string& path);
/// train.csv and test.csv in `path`, or the file `path` as the training part.
std::vector<std::string> csv_files(const std::string& path, Split split);
/// ptb.train.txt (train.txt) and ptb.test.txt (test.txt) in `path`, or the file `path` as the training part.
std::vector<std::string> token_files(const std::string& path, Split split);

}  // namespace tenon::data
