// config/data_yaml.h - the `data:` block of train.yaml as a typed struct. Parsing only: no data file is opened here.
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
  std::string directory;  ///< absolute; "": not given. File sources need one, here or on the command line; may name a single file
  std::optional<Normalize> normalize = Normalize::unit;  ///< empty: unit for bytes, none for numbers
  std::vector<double> mean, deviation;                   ///< for Normalize::given: one value, or one per channel
  std::int64_t train_count = 0;                          ///< 0: all samples, or the generator's default count
  std::int64_t test_count = 0;                           ///< same
  std::optional<std::uint64_t> seed;                     ///< for generated data and augmentation; empty: the run's seed
  double validation_split = 0;                           ///< fraction of the training data, taken from its end, in [0, 1)
  double test_split = 0;                                 ///< npz, images, csv, tokens without a test part: fraction taken from the end
  std::int64_t features = 3;                             ///< linear_regression: inputs
  double noise = 0.1;                                    ///< linear_regression: standard deviation of the noise added to y
  CsvOptions csv;                                        ///< csv; `classes` stays empty
  std::int64_t vocabulary = 10000;                       ///< tokens, ptb_like: words
  std::int64_t sequence = 35;                            ///< tokens, ptb_like, markov: tokens per sample
  std::int64_t symbols = 64;                             ///< markov
  std::vector<std::int64_t> shape = {3, 224, 224};       ///< random: shape of a sample
  std::int64_t classes = 1000;                           ///< random
  bool reconstruct = false;                              ///< a sample is its own target
  AugmentOptions augment;                                ///< `fill` and `seed` are set by make_data
  int workers = 1;                                       ///< threads that load batches; 0: the training thread does
  int prefetch = 2;                                      ///< batches loaded ahead
  bool pinned = true;                                    ///< keep batches in pinned host memory
  std::int64_t shuffle_buffer = 0;                       ///< 0: the whole set is shuffled
  Cache cache = Cache::none;
  std::string cache_directory;  ///< absolute; "": the user's cache folder
  std::string where;            ///< "train.yaml:5:7"
};

/// Errors  the block is missing or not a map. Keys that the source does not use are reported by the section.
DataDefinition read_data(Section& top);

}  // namespace tenon::config
