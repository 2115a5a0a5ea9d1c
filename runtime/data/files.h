// data/files.h - which files of a folder hold a data set.
#pragma once

#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::data {

/// The first of these names, plain or with .gz, that the folder has.
/// Errors  no such folder; none of the names.
std::string find_file(const std::string& directory, const std::vector<std::string>& names);
/// The same; "" if there is none. Errors  no such folder.
std::string find_file_or_none(const std::string& directory, const std::vector<std::string>& names);
/// "fashion-mnist" of "../data/fashion-mnist/".
std::string folder_name(const std::string& path);
bool is_folder(const std::string& path);

// What the readers below open, in order. Errors: those of find_file. Where data may come without a test part its files are none then.

std::vector<std::string> mnist_files(const std::string& directory, Split split);
std::vector<std::string> cifar10_files(const std::string& directory, Split split);
/// One .npz, or .npy files of x and y.
std::vector<std::string> numpy_files(const std::string& path, Split split);
/// Images in a folder for each class, in train and test or in `path` itself, which then is the training part.
std::vector<std::string> image_files(const std::string& path, Split split);
/// `path` itself, the training part, or train.csv and test.csv in it.
std::vector<std::string> csv_files(const std::string& path, Split split);
/// `path` itself, the training part, or ptb.train.txt (train.txt) and ptb.test.txt (test.txt) in it.
std::vector<std::string> token_files(const std::string& path, Split split);

}  // namespace tenon::data
