// config/data_yaml.h - the `data:` block of train.yaml as a typed struct. Parsing only: nothing here opens a file of data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>

namespace tenon::config {

class Section;

enum class DataSource {
  mnist,
  fashion_mnist,
  idx,
  cifar10,
  npz,
  images,
  csv,
  tokens,
  digits,
  linear_regression,
  cifar_like,
  signals,
  ptb_like,
  markov,
  random
};
const char* name_of(DataSource source);

/// unit: x / 255. gorgonia: x / 255 * 0.9 + 0.1. standard: mean 0, deviation 1 over the training set; per_channel: the same for each index
/// of a sample's first axis. given: (x / 255 - mean) / std of bytes, (x - mean) / std of numbers. none: as read.
enum class Normalize { unit, gorgonia, standard, per_channel, none, given };
const char* name_of(Normalize normalize);

enum class Cache { none, ram, disk };
const char* name_of(Cache cache);

struct DataDefinition {
  DataSource source = DataSource::mnist;
  std::string directory;  ///< absolute; "": not given. Sources of files want one, here or from the command line; a file where one suffices
  std::optional<Normalize> normalize = Normalize::unit;  ///< nothing: unit for bytes, none for numbers
  std::vector<double> mean, deviation;                   ///< of Normalize::given: one value, or one per channel
  std::int64_t train_count = 0;                          ///< 0: all there are, or the generator's own number
  std::int64_t test_count = 0;                           ///< likewise
  std::optional<std::uint64_t> seed;                     ///< of generated data and augmentation; nothing: the run's seed
  double validation_split = 0;                           ///< part of the training data, from its end, in [0, 1)
  double test_split = 0;                                 ///< npz, images, csv, tokens without a test part: part of the data, from its end
  std::int64_t features = 3;                             ///< linear_regression: inputs
  double noise = 0.1;                                    ///< linear_regression: standard deviation of what is added to y
  CsvOptions csv;                                        ///< csv; `classes` stays empty
  std::int64_t vocabulary = 10000;                       ///< tokens, ptb_like: words
  std::int64_t sequence = 35;                            ///< tokens, ptb_like, markov: tokens in a sample
  std::int64_t symbols = 64;                             ///< markov
  std::vector<std::int64_t> shape = {3, 224, 224};       ///< random: of a sample
  std::int64_t classes = 1000;                           ///< random
  bool reconstruct = false;                              ///< a sample is its own target
  AugmentOptions augment;                                ///< `fill` and `seed` are for the reader of this to set
  int workers = 1;                                       ///< threads that gather batches; 0: the training thread
  int prefetch = 2;                                      ///< batches gathered ahead
  bool pinned = true;                                    ///< batches in host memory that the device copies from without staging
  std::int64_t shuffle_buffer = 0;                       ///< 0: the whole set is shuffled
  Cache cache = Cache::none;
  std::string cache_directory;  ///< absolute; "": the user's cache folder
  std::string where;            ///< "train.yaml:5:7"
};

/// Errors  a block that is missing or no map; keys that mean nothing to the source are left for the section to refuse.
DataDefinition read_data(Section& top);

}  // namespace tenon::config
