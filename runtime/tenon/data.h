// tenon/data.h - data sets, where they come from, and the batches of an epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// One sample's part of a batch: a batch of n is (n, shape...).
struct SampleType {
  DType dtype = DType::none;
  Shape shape;
};

/// Numbered samples, each with features x and a target y.
/// Threads  every const member may be called from any thread, at the same time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// For messages: "fashion-mnist train".
  virtual const std::string& name() const = 0;
  /// How many samples.
  virtual std::int64_t size() const = 0;
  /// Of one sample's features.
  virtual SampleType x_type() const = 0;
  /// Of one sample's target.
  virtual SampleType y_type() const = 0;
  /// Of a classification problem.
  virtual std::optional<std::int64_t> num_classes() const { return std::nullopt; }

  /// Writes samples indices[0], indices[1], ... to rows 0, 1, ... of x and y; allocates nothing.
  ///
  /// Shapes  x (n, x shape...), y (n, y shape...), n = indices.size(); dense, in host memory.
  /// Errors  an index outside [0, size()), x or y of another dtype or shape.
  virtual void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const = 0;
  /// What training sees in an epoch: gather, then the random changes that (seed, epoch, index) alone decide; see augment().
  virtual void gather_augmented(std::span<const std::int64_t> indices, [[maybe_unused]] std::uint64_t epoch, Tensor& x, Tensor& y) const {
    gather(indices, x, y);
  }

 protected:
  /// What every gather checks first.
  void check_batch(std::span<const std::int64_t> indices, const Tensor& x, const Tensor& y) const;
};

/// x to x * scale + offset, in f32 (in f64 where the result is f64).
struct Scaling {
  double scale = 1;
  double offset = 0;

  /// True if nothing is changed.
  bool is_identity() const { return scale == 1 && offset == 0; }
  /// As they are.
  static Scaling none() { return {}; }
  /// Bytes to [0, 1].
  static Scaling unit() { return {1.0 / 255, 0}; }
  /// Bytes to [0.1, 1], as Gorgonia's MNIST examples have it.
  static Scaling gorgonia() { return {0.9 / 255, 0.1}; }
  /// Bytes to (byte / 255 - mean) / deviation.
  static Scaling standard(double mean, double deviation);
};

/// What y becomes.
enum class Targets {
  as_given,      ///< labels as i64, other values in their dtype
  one_hot,       ///< f32(num_classes) of 0 and 1
  soft_one_hot,  ///< f32(num_classes) of 0.1 and 0.9
};

/// How arrays become samples.
struct ArrayOptions {
  std::string name = "array";
  Scaling scaling;
  std::vector<Scaling> channels;  ///< one for each index of a sample's first axis, in place of `scaling`; empty: `scaling` for all
  DType x_dtype = DType::f32;
  Targets targets = Targets::as_given;
  /// Given: y are labels, each in [0, num_classes).
  std::optional<std::int64_t> num_classes;
};

/// Samples in host memory, scaled as they are gathered.
///
/// Shapes  x (count, ...), y (count, ...); labels are (count).
/// Dtypes  x u8, f32 or f64 to f32 or f64, any other unscaled to itself; labels of any integer dtype.
/// Errors  counts that differ, a label out of range (its index is named), dtypes that do not convert, channels that do not fit.
class ArrayDataset final : public Dataset {
 public:
  /// Keeps both; nothing is copied that is dense and on the host.
  ArrayDataset(const Tensor& x, const Tensor& y, const ArrayOptions& options = {});

  const std::string& name() const override { return options_.name; }
  /// How many words.
  std::int64_t size() const override { return x_.shape()[0]; }
  SampleType x_type() const override { return x_type_; }
  SampleType y_type() const override { return y_type_; }
  std::optional<std::int64_t> num_classes() const override { return options_.num_classes; }
  void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const override;

  /// Samples [begin, end) as a data set of their own, without a copy; `name` is for messages.
  ArrayDataset slice(std::int64_t begin, std::int64_t end, const std::string& name) const;
  /// The same samples, without a copy, under another scaling; `channels` as in ArrayOptions.
  ArrayDataset rescaled(const Scaling& scaling, const std::vector<Scaling>& channels = {}) const;
  /// As stored, before scaling; labels as i64.
  const Tensor& x() const { return x_; }
  /// As stored; labels as i64.
  const Tensor& y() const { return y_; }
  /// What it was made with.
  const ArrayOptions& options() const { return options_; }
  /// True if gather only copies.
  bool is_unscaled() const;

 private:
  bool has_identity_scaling() const;

  ArrayOptions options_;
  Tensor x_, y_;
  SampleType x_type_, y_type_;
};

/// Which part of a data set.
enum class Split { train, test };
/// "train", "test".
const char* name_of(Split split);

/// Reads an IDX file, plain or gzip, into a host tensor of its dtype (u8, i8, i16, i32, f32, f64).
/// Errors  name the file, what was wanted and what was got: missing, damaged gzip, wrong magic, truncated, trailing bytes.
Tensor load_idx(const std::string& path);

/// What load_mnist may be told.
struct MnistOptions {
  Scaling scaling = Scaling::unit();
  Targets targets = Targets::as_given;
  std::int64_t num_classes = 10;
};

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] from a folder: x (28,28), or whatever size the images have, y a label.
/// Errors  those of load_idx; images and labels that differ in number; a label out of range (its index is named).
std::shared_ptr<const ArrayDataset> load_mnist(const std::string& directory, Split split, const MnistOptions& options = {});

/// What load_cifar10 may be told.
struct Cifar10Options {
  Scaling scaling = Scaling::unit();
  std::vector<Scaling> channels;  ///< as in ArrayOptions
  Targets targets = Targets::as_given;
};

/// Reads CIFAR-10's binary version, data_batch_1..5.bin or test_batch.bin, from a folder or its subfolder cifar-10-batches-bin:
/// x (3,32,32), ten classes.
/// Errors  name the file and the record: missing, a size that is no whole number of records, a label above 9.
std::shared_ptr<const ArrayDataset> load_cifar10(const std::string& directory, Split split, const Cifar10Options& options = {});

/// What load_image_folder may be told.
struct ImageFolderOptions {
  Scaling scaling = Scaling::unit();
  std::vector<Scaling> channels;  ///< as in ArrayOptions
  Targets targets = Targets::as_given;
  std::vector<std::string> classes = {};  ///< names of labels by number; empty: those of the folders, sorted
};

/// What a folder of images holds.
struct ImageFolderData {
  std::shared_ptr<const ArrayDataset> data;  ///< x (channels, height, width), y a label
  std::vector<std::string> classes;          ///< names of labels by number
};

/// Reads the images of path/train/<class> or path/test/<class>, or, without such folders, path/<class> as the training part: binary PGM and
/// PPM, PNG, or .npy of u8 (H,W) or (C,H,W), all of one size. The classes take turns, each in the order of its file names.
/// Errors  no images, sizes or channels that differ, a class that is not known (file or folder is named); what is wrong with an image.
ImageFolderData load_image_folder(const std::string& path, Split split, const ImageFolderOptions& options = {});

/// What load_numpy may be told.
struct NumpyOptions {
  Scaling scaling = Scaling::none();
  std::vector<Scaling> channels;  ///< as in ArrayOptions
  Targets targets = Targets::as_given;
  std::optional<std::int64_t> num_classes;  ///< nothing: one more than the largest label of the training part
};

/// Reads x and y of one split, from an .npz with x_train, y_train, x_test and y_test (or x and y: the training part), or from a folder with
/// train.npz and test.npz of x and y, or with x_train.npy, y_train.npy, x_test.npy and y_test.npy (or x.npy and y.npy).
///
/// Dtypes  x u8, f32 and f64 to f32, others as they are. y of integers are labels (n) or (n,1); f32 and f64 become f32 (n, ...), (n) being
///         (n,1).
/// Errors  those of load_npz; arrays that are missing, or differ in number.
std::shared_ptr<const ArrayDataset> load_numpy(const std::string& path, Split split, const NumpyOptions& options = {});

/// What load_csv may be told.
struct CsvOptions {
  /// Whether the first line names the columns.
  enum class Header { detect, present, absent };  ///< detect: a first line without any number is one
  /// What the target column becomes.
  enum class Target { detect, classes, values };  ///< detect: words, or integers from 0 to 9999 alone, are classes
  char delimiter = ',';
  Header header = Header::detect;
  std::string label;  ///< the target's column: its name, or its number from 0, negative from the end; "": the last
  Target target = Target::detect;
  std::vector<std::string> classes;  ///< words of labels by number; empty: those of the file, sorted
};

/// What a CSV file holds.
struct CsvData {
  std::shared_ptr<const ArrayDataset> data;  ///< x f32(features); y a label, or f32(1)
  std::vector<std::string> features;         ///< names of the columns of x; "0", "1", ... without a header
  std::string label;                         ///< name of the column of y
  std::vector<std::string> classes;          ///< words of labels by number; empty where labels are numbers
};

/// Reads a table of numbers, plain or gzip: comma-separated values with quotes as RFC 4180 has them.
/// Errors  "iris.csv:12:9: column 'width': wanted a number, got 'wide'", line and column from 1.
CsvData load_csv(const std::string& path, const CsvOptions& options = {});

/// Words and their numbers: 0 is <unk>, 1 is <eos>, then the most frequent words of a text, equally frequent ones in the order of their
/// bytes.
class Vocabulary {
 public:
  static constexpr std::int64_t unknown = 0, end_of_sentence = 1;

  Vocabulary() : Vocabulary(std::vector<std::string>()) {}
  /// The words after <unk> and <eos>.
  explicit Vocabulary(const std::vector<std::string>& words);
  /// At most `size` words, <unk> and <eos> among them. Errors  a size below 3.
  static Vocabulary of_text(std::string_view text, std::int64_t size);

  /// How many words.
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }
  /// `unknown` for a word that is not there.
  std::int64_t id(std::string_view word) const;
  /// Errors  an id outside [0, size()).
  const std::string& word(std::int64_t id) const;
  /// i64(tokens): the words between white space, and <eos> for each end of a line.
  Tensor encode(std::string_view text) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::int64_t, std::less<>> ids_;
};

/// What load_tokens may be told.
struct TokenOptions {
  std::int64_t vocabulary = 10000;               ///< words at most, when it is built from the text
  std::int64_t sequence = 35;                    ///< tokens in a sample
  std::shared_ptr<const Vocabulary> words = {};  ///< null: built from the text
};

/// A text as numbers.
struct TokenData {
  std::shared_ptr<const ArrayDataset> data;  ///< x i64(sequence), y the same one token later
  std::shared_ptr<const Vocabulary> vocabulary;
};

/// Reads a text, plain or gzip, one sentence a line, as the files of the Penn Treebank are. Samples follow each other in the text; what is
/// left at its end is too short for one.
/// Errors  a text shorter than one sample; a byte 0 (its line is named).
TokenData load_tokens(const std::string& path, const TokenOptions& options = {});

/// What the generators of images may be told.
struct GeneratedOptions {
  std::int64_t count = 10000;
  std::uint64_t seed = 1;
  Split split = Split::train;  ///< the two never share a sample
  Scaling scaling = Scaling::unit();
  Targets targets = Targets::as_given;
};

/// Digits drawn with a shaky hand: x u8(28,28) scaled, ten classes. The same bytes for the same seed on every machine.
std::shared_ptr<const ArrayDataset> generate_digits(const GeneratedOptions& options = {});

/// Coloured textures: x u8(3,32,32) scaled, ten classes.
std::shared_ptr<const ArrayDataset> generate_textures(const GeneratedOptions& options = {});

/// Noisy waves of ten kinds: x u8(1,128) scaled, which shape the wave has or how it changes is the class.
std::shared_ptr<const ArrayDataset> generate_signals(const GeneratedOptions& options = {});

/// What generate_random may be told.
struct RandomOptions {
  std::int64_t count = 1000;
  Shape shape = {3, 224, 224};
  std::int64_t classes = 1000;
  std::uint64_t seed = 1;
  Split split = Split::train;
  Scaling scaling = Scaling::unit();
  Targets targets = Targets::as_given;
};

/// Random bytes x u8(shape) scaled, with random labels: nothing to learn, but the work of any image model.
std::shared_ptr<const ArrayDataset> generate_random(const RandomOptions& options = {});

/// What generate_tokens may be told.
struct TokenStreamOptions {
  std::int64_t count = 100000;  ///< tokens of the stream
  std::int64_t vocabulary = 10000;
  std::int64_t sequence = 35;  ///< tokens in a sample
  std::uint64_t seed = 1;
  Split split = Split::train;  ///< the two say different things in one language
};

/// A language made up: few words are frequent, each has four likely followers, and sentences end in Vocabulary::end_of_sentence.
/// x i64(sequence), y the same one token later.
std::shared_ptr<const ArrayDataset> generate_tokens(const TokenStreamOptions& options = {});

/// What generate_markov may be told.
struct MarkovOptions {
  std::int64_t count = 100000;  ///< symbols of the stream
  std::int64_t symbols = 64;
  std::int64_t sequence = 32;  ///< symbols in a sample
  std::uint64_t seed = 1;
  Split split = Split::train;  ///< two streams of one source
};

/// A stream whose next symbol depends on the last alone, by probabilities that the seed decides.
struct MarkovStream {
  std::shared_ptr<const ArrayDataset> data;  ///< x i64(sequence), y the same one symbol later
  Tensor transitions;                        ///< f64(symbols, symbols): the probability of column j after row i
  double entropy_rate = 0;                   ///< nats a symbol; in the long run no model has a cross-entropy below it
};
MarkovStream generate_markov(const MarkovOptions& options = {});

/// What generate_linear may be told.
struct LinearOptions {
  std::int64_t count = 1000;
  std::int64_t features = 3;
  double noise = 0.1;  ///< standard deviation of what is added to y
  std::uint64_t seed = 1;
  Split split = Split::train;
};

/// y = x.w + b + noise, with the w and b that a fit should find again; they depend on the seed alone.
struct LinearProblem {
  std::shared_ptr<const ArrayDataset> data;  ///< x f32(features) in [-1, 1), y f32(1)
  Tensor w;                                  ///< f32(features, 1)
  double b = 0;
};
LinearProblem generate_linear(const LinearOptions& options = {});

/// The data set with its samples for targets, as an autoencoder wants them. Where samples are augmented, targets are what they were before.
std::shared_ptr<const Dataset> reconstruct(std::shared_ptr<const Dataset> data);

/// How images are varied, each time they are read.
struct AugmentOptions {
  std::int64_t crop_padding = 0;  ///< pixels around the image, of which a window of the image's own size is then cut out at random
  bool flip_horizontal = false;   ///< left and right exchanged, every other time
  bool flip_vertical = false;
  std::vector<double> fill = {0};  ///< what the padding holds: one value, or one per channel
  std::uint64_t seed = 0;

  /// True if nothing is changed.
  bool is_identity() const { return crop_padding == 0 && !flip_horizontal && !flip_vertical; }
};

/// The data set with random changes to x (C,H,W) or (H,W) where it is gathered for training; gather itself changes nothing.
///
/// Lane 0 and 1 of Philox block `index`, key {seed, epoch}, stream 0xDA7A0050, place the window: its top left corner is
/// floor(lane * (2 padding + 1) / 2^32) down and to the right in the padded image; bit 31 of lanes 2 and 3 flips across and over.
/// Errors  samples of another rank, a fill of another size, a padding that is negative or not below the image's sides.
std::shared_ptr<const Dataset> augment(std::shared_ptr<const Dataset> data, const AugmentOptions& options);

/// The data set with every sample kept in memory, as gather gives it, from its first use on; `data` is asked for each only once more or
/// less: two threads that miss the same one both ask. The memory is taken at once.
std::shared_ptr<const Dataset> cache_in_memory(std::shared_ptr<const Dataset> data);

/// How an epoch is cut and read.
struct BatchOptions {
  std::int64_t batch_size = 32;
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< false: the last batch may be smaller
  int workers = 1;         ///< threads that gather; 0: the caller's own
  int prefetch = 2;        ///< batches gathered ahead of the one in use
  /// 0: any order is as likely as another. n: the order of a reader that draws from a buffer of the next n samples, which stays near that
  /// of the data set.
  std::int64_t shuffle_buffer = 0;
  bool augment = false;  ///< gather_augmented in place of gather
  /// Makes the batches' dense host memory, pinned for a device, say; null: Tensor::empty.
  std::function<Tensor(DType, const Shape&)> allocate = nullptr;
};

/// Some samples side by side.
struct Batch {
  std::int64_t number = 0;                ///< within the epoch
  Tensor x, y;                            ///< of the host, or of the device that they were copied ahead to; used again for later batches
  std::span<const std::int64_t> indices;  ///< of the samples
};

/// The batches of one epoch after another, in an order that (seed, epoch) alone decides, gathered ahead by worker threads.
///
/// Memory   allocated here; start() and next() allocate nothing.
/// Threads  one thread at a time; the workers are joined by the destructor.
class Batches {
 public:
  /// Errors  an empty data set, a batch size below 1, drop_last that drops everything.
  Batches(std::shared_ptr<const Dataset> data, const BatchOptions& options);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  /// Batches in an epoch.
  std::int64_t count() const;
  /// What they are cut from.
  const Dataset& data() const;

  /// Begins an epoch at `first_batch` (where a stopped one goes on). May be called in the middle of another.
  void start(std::uint64_t epoch, std::int64_t first_batch = 0);
  /// The next batch, valid until the following next() or start(); null after the last.
  /// Errors  what the data set's gather threw for this batch, with the sample named; again on each call until start().
  const Batch* next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
