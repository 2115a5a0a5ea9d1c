// SPDX-License-Identifier: Apache-2.0
// tenon/data.h - data sets, loaders and generators for them, augmentation, and batches.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/safetensors.h>
#include <tenon/tensor.h>

namespace tenon {

/// An input or a target of samples: a batch of n has shape (n, shape...).
struct SampleType {
  DType dtype = DType::none;
  Shape shape;
  std::string name = {};
};

/// Indexed samples. Each has inputs, which a model gets, and targets, with which losses compare its
/// outputs: one of each, "x" and "y", or several by name.
/// Threads  const members may be called from any thread, also concurrently.
class TENON_API Dataset {
 public:
  virtual ~Dataset() = default;
  /// The name in messages: "fashion-mnist train".
  virtual const std::string& name() const = 0;
  /// Number of samples.
  virtual std::int64_t size() const = 0;
  /// At least one.
  const std::vector<SampleType>& inputs() const { return inputs_; }
  /// At least one.
  const std::vector<SampleType>& targets() const { return targets_; }
  /// The first input.
  const SampleType& x_type() const { return inputs_.front(); }
  /// The first target.
  const SampleType& y_type() const { return targets_.front(); }
  /// Number of classes of a classification problem.
  virtual std::optional<std::int64_t> num_classes() const { return std::nullopt; }
  /// The weight of each sample in loss and metrics: f32(size()) of numbers from 0, in host memory.
  /// Undefined: 1 each. Model::fit and evaluate read it.
  virtual Tensor sample_weights() const { return {}; }
  /// True if gather reads memory only, so that it takes about as long as a copy.
  virtual bool is_in_memory() const { return false; }

  /// Writes samples indices[0], indices[1], ... to rows 0, 1, ... of a tensor for each of inputs()
  /// and of targets(). Does not allocate.
  ///
  /// Shapes  (n, shape of the input or target...), n = indices.size(); dense, in host memory.
  /// Errors  an index outside [0, size()), a tensor of another dtype or shape.
  virtual void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                      std::span<Tensor> targets) const = 0;
  /// The same for one input and one target.
  void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const {
    gather(indices, {&x, 1}, {&y, 1});
  }
  /// gather with the random changes of training; they depend only on (seed, epoch, index). See
  /// augment().
  virtual void gather_augmented(std::span<const std::int64_t> indices,
                                [[maybe_unused]] std::uint64_t epoch, std::span<Tensor> inputs,
                                std::span<Tensor> targets) const {
    gather(indices, inputs, targets);
  }

 protected:
  /// Samples with one input, "x", and one target, "y", whatever the names of the types.
  Dataset(SampleType x, SampleType y);
  /// Errors  no input or no target; a name that is empty or given twice.
  Dataset(std::vector<SampleType> inputs, std::vector<SampleType> targets);
  /// Throws the errors of gather; implementations call it first.
  void check_batch(std::span<const std::int64_t> indices, std::span<const Tensor> inputs,
                   std::span<const Tensor> targets) const;

 private:
  std::vector<SampleType> inputs_, targets_;
};

/// Maps x to x * scale + offset, in f32 (f64 if the result is f64).
struct TENON_API Scaling {
  double scale = 1;
  double offset = 0;

  /// True if it changes nothing.
  bool is_identity() const { return scale == 1 && offset == 0; }
  /// No scaling.
  static Scaling none() { return {}; }
  /// Bytes to [0, 1].
  static Scaling unit() { return {1.0 / 255, 0}; }
  /// Bytes to [0.1, 1], as in Gorgonia's MNIST examples.
  static Scaling gorgonia() { return {0.9 / 255, 0.1}; }
  /// Bytes to (byte / 255 - mean) / deviation.
  static Scaling standard(double mean, double deviation);
};

/// The form of targets; the names in YAML are the same.
enum class Targets {
  as_given,      ///< labels as i64, other values in their own dtype
  one_hot,       ///< f32(num_classes) of 0 and 1
  soft_one_hot,  ///< f32(num_classes) of 0.1 and 0.9
};
/// The name in YAML.
TENON_API const char* name_of(Targets targets);

/// Options of ArrayDataset.
struct ArrayOptions {
  std::string name = "array";
  Scaling scaling;  ///< of the only input
  /// per index of a sample's first axis, in place of `scaling`; empty: use `scaling`
  std::vector<Scaling> channels;
  DType x_dtype = DType::f32;           ///< of the only input; several stay as they are
  Targets targets = Targets::as_given;  ///< form of the only target
  /// If set, the only target holds labels in [0, num_classes).
  std::optional<std::int64_t> num_classes;
  /// Dataset::sample_weights: (count), of any real dtype
  Tensor sample_weights = {};
};

/// Samples in host memory. An only input is scaled when it is gathered.
///
/// Shapes  (count, ...); labels are (count).
/// Dtypes  an only input: u8, f32 or f64 become f32 or f64, any other dtype stays as it is,
///         unscaled; labels: any integer dtype.
/// Errors  different counts, a label out of range (its index is named), dtypes that cannot be
///         converted, a wrong number of channels, a weight that is negative or not finite; options
///         of an only input or target for several.
class TENON_API ArrayDataset final : public Dataset {
 public:
  /// Shares both tensors; copies them only if they are strided or not on the host.
  ArrayDataset(const Tensor& x, const Tensor& y, const ArrayOptions& options = {});
  /// The same for inputs and targets by name, in this order.
  ArrayDataset(const std::vector<NamedTensor>& inputs, const std::vector<NamedTensor>& targets,
               const ArrayOptions& options = {});

  const std::string& name() const override { return options_.name; }
  /// Number of samples.
  std::int64_t size() const override { return x_[0].shape()[0]; }
  std::optional<std::int64_t> num_classes() const override { return options_.num_classes; }
  Tensor sample_weights() const override { return options_.sample_weights; }
  bool is_in_memory() const override { return true; }
  using Dataset::gather;
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
              std::span<Tensor> targets) const override;

  /// Samples [begin, end) as a data set that shares the memory; `name` is used in messages.
  ArrayDataset slice(std::int64_t begin, std::int64_t end, const std::string& name) const;
  /// The same samples, sharing the memory, with another scaling; `channels` as in ArrayOptions.
  ArrayDataset rescaled(const Scaling& scaling, const std::vector<Scaling>& channels = {}) const;
  /// The first input as stored, before scaling.
  const Tensor& x() const { return x_[0]; }
  /// The first target as stored; labels as i64.
  const Tensor& y() const { return y_[0]; }
  std::vector<NamedTensor> input_arrays() const;   ///< all inputs as stored
  std::vector<NamedTensor> target_arrays() const;  ///< all targets as stored
  /// The options it was created with.
  const ArrayOptions& options() const { return options_; }
  /// True if gather only copies.
  bool is_unscaled() const;

 private:
  ArrayOptions options_;
  std::vector<Tensor> x_, y_;  ///< as inputs() and targets()
};

/// Part of a data set.
enum class Split { train, test };
/// "train", "test".
TENON_API const char* name_of(Split split);

/// Reads an IDX file, plain or gzip, into a host tensor of its dtype (u8, i8, i16, i32, f32, f64).
/// Errors  name the file, what was expected and what was found: missing file, damaged gzip, wrong
///         magic, truncation, trailing bytes.
TENON_API Tensor load_idx(const std::string& path);

/// Options of load_mnist.
struct MnistOptions {
  Scaling scaling = Scaling::unit();
  Targets targets = Targets::as_given;
  std::int64_t num_classes = 10;
};

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] from a folder: x (28,28), or the size of
/// the images, y a label.
/// Errors  those of load_idx; different numbers of images and labels; a label out of range (its
///         index is named).
TENON_API std::shared_ptr<const ArrayDataset> load_mnist(const std::string& directory, Split split,
                                                         const MnistOptions& options = {});

/// Options of load_cifar10.
struct Cifar10Options {
  Scaling scaling = Scaling::unit();
  std::vector<Scaling> channels;  ///< as in ArrayOptions
  Targets targets = Targets::as_given;
};

/// Reads CIFAR-10's binary version, data_batch_1..5.bin or test_batch.bin, from a folder or its
/// subfolder cifar-10-batches-bin: x (3,32,32), ten classes.
/// Errors  name the file and the record: missing file, a size that is not a whole number of
///         records, a label above 9.
TENON_API std::shared_ptr<const ArrayDataset> load_cifar10(const std::string& directory,
                                                           Split split,
                                                           const Cifar10Options& options = {});

/// How an image becomes a sample's size and channels, in the order of the fields.
struct ImageOptions {
  /// {side}: the shorter side, keeping the proportions; {height, width}; empty: the image's own size
  std::vector<std::int64_t> resize = {};
  /// {side} or {height, width}, cut out of the centre; empty: nothing is cut off
  std::vector<std::int64_t> crop = {};
  /// 1: greyscale, 0.299 R + 0.587 G + 0.114 B; 3: RGB; 0: those of the image
  std::int64_t channels = 0;

  /// True if it changes nothing.
  bool is_identity() const { return resize.empty() && crop.empty() && channels == 0; }
};

/// Applies the options to an image u8(channels, height, width). Resizing is linear; to a smaller
/// size, each pixel is a weighted mean of all that it covers, as in Pillow and torchvision.
/// Errors  another dtype or rank, a crop that is larger than the image, other than 1 or 3 channels.
TENON_API Tensor transform_image(const Tensor& image, const ImageOptions& options);

/// Reads an image as u8(channels, height, width) and applies the options: JPEG, PNG, binary PGM and
/// PPM, or .npy of u8 (H,W) or (C,H,W).
/// Errors  name the file: another format, damaged, too large; those of transform_image.
TENON_API Tensor load_image(const std::string& path, const ImageOptions& options = {});

/// Options of load_image_folder.
struct ImageFolderOptions {
  Scaling scaling = Scaling::unit();
  std::vector<Scaling> channels;  ///< as in ArrayOptions
  Targets targets = Targets::as_given;
  std::vector<std::string> classes = {};  ///< class names by label; empty: the folder names, sorted
  ImageOptions image = {};
};

/// Result of load_image_folder.
struct ImageFolderData {
  std::shared_ptr<const ArrayDataset> data;  ///< x (channels, height, width), y a label
  std::vector<std::string> classes;          ///< class names by label
};

/// Reads the images of path/train/<class> or path/test/<class> or, without such folders,
/// path/<class> as the training part, as load_image does; after `options.image` all have one size.
/// Samples alternate between the classes, each in the order of its file names. Files of other
/// formats are skipped with a warning.
/// Errors  no images, different sizes or channels, an unknown class (the file or folder is named),
///         invalid images.
TENON_API ImageFolderData load_image_folder(const std::string& path, Split split,
                                            const ImageFolderOptions& options = {});

/// Inputs or targets, and the name of the array that each is read from.
using ArrayNames = std::vector<std::pair<std::string, std::string>>;

/// Options of load_numpy.
struct NumpyOptions {
  Scaling scaling = Scaling::none();
  std::vector<Scaling> channels;  ///< as in ArrayOptions
  Targets targets = Targets::as_given;
  /// default: one more than the largest label of the training part
  std::optional<std::int64_t> num_classes = {};
  ArrayNames input_arrays = {{"x", "x"}};   ///< without _train and _test
  ArrayNames target_arrays = {{"y", "y"}};  ///< likewise
};

/// Reads x and y of one split from an .npz with x_train, y_train, x_test and y_test (or x and y:
/// the training part), or from a folder with train.npz and test.npz of x and y, or with
/// x_train.npy, y_train.npy, x_test.npy and y_test.npy (or x.npy and y.npy). The options name other
/// arrays in their place.
///
/// Dtypes  x: u8, f32 and f64 become f32, others stay as they are; of several inputs only f64
///         becomes f32. y: integers are labels (n) or (n,1); f32 and f64 become f32 (n, ...), where
///         (n) becomes (n,1).
/// Errors  those of load_npz; arrays that are missing or differ in the number of samples.
TENON_API std::shared_ptr<const ArrayDataset> load_numpy(const std::string& path, Split split,
                                                         const NumpyOptions& options = {});

/// Options of load_csv.
struct CsvOptions {
  /// Whether the first line names the columns.
  /// detect: a first line without any number is a header
  enum class Header { detect, present, absent };
  /// How the target column is read.
  /// detect: words, or only integers from 0 to 9999, are classes
  enum class Target { detect, classes, values };
  char delimiter = ',';
  Header header = Header::detect;
  /// the target column: a name, or an index from 0, negative from the end; empty: the last
  std::string label;
  /// the column of sample weights, given like `label`; it is no feature; empty: none
  std::string sample_weight = {};
  Target target = Target::detect;
  std::vector<std::string> classes;  ///< class names by label; empty: the words in the file, sorted
};

/// Result of load_csv.
struct CsvData {
  std::shared_ptr<const ArrayDataset> data;  ///< x f32(features); y a label, or f32(1)
  /// names of the columns of x; "0", "1", ... without a header
  std::vector<std::string> features;
  std::string label;  ///< name of the column of y
  /// class names by label; empty if the labels are numbers
  std::vector<std::string> classes;
};

/// Reads a table of numbers, plain or gzip: comma-separated values with quotes as in RFC 4180.
/// Errors  "iris.csv:12:9: column 'width': expected a number, got 'wide'", line and column counted
///         from 1.
TENON_API CsvData load_csv(const std::string& path, const CsvOptions& options = {});

/// Maps words to ids: 0 is <unk>, 1 is <eos>, then the most frequent words of a text, ties ordered
/// by bytes.
class TENON_API Vocabulary {
 public:
  static constexpr std::int64_t unknown = 0, end_of_sentence = 1;

  Vocabulary() : Vocabulary(std::vector<std::string>()) {}
  /// `words` follow <unk> and <eos>.
  explicit Vocabulary(const std::vector<std::string>& words);
  /// At most `size` words, including <unk> and <eos>. Errors: a size below 3.
  static Vocabulary of_text(std::string_view text, std::int64_t size);

  /// Number of words.
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }
  /// The id of a word; `unknown` if it is not in the vocabulary.
  std::int64_t id(std::string_view word) const;
  /// Errors  an id outside [0, size()).
  const std::string& word(std::int64_t id) const;
  /// i64(tokens): the words between white space, and <eos> at the end of each line.
  Tensor encode(std::string_view text) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::int64_t, std::less<>> ids_;
};

/// Options of load_tokens.
struct TokenOptions {
  /// maximum number of words, if built from the text
  std::int64_t vocabulary = 10000;
  std::int64_t sequence = 35;                    ///< tokens in a sample
  std::shared_ptr<const Vocabulary> words = {};  ///< null: built from the text
};

/// Result of load_tokens.
struct TokenData {
  std::shared_ptr<const ArrayDataset> data;  ///< x i64(sequence), y is x shifted by one token
  std::shared_ptr<const Vocabulary> vocabulary;
};

/// Reads a text, plain or gzip, one sentence a line, in the format of the Penn Treebank files.
/// Samples follow each other in the text; a remainder that is too short for a sample is dropped.
/// Errors  a text shorter than one sample; a byte 0 (its line is named).
TENON_API TokenData load_tokens(const std::string& path, const TokenOptions& options = {});

/// Labels for the characters of texts, in the order of their code points.
class TENON_API Alphabet {
 public:
  Alphabet() = default;
  /// Each string is one character in UTF-8. Errors: a string that is not; a character given twice.
  explicit Alphabet(const std::vector<std::string>& characters);
  /// The characters of a text. Errors: text that is not UTF-8, by `name` and line.
  static Alphabet of_text(std::string_view text, const std::string& name = "text");
  /// Number of characters.
  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()); }
  /// By label.
  const std::vector<std::string>& characters() const { return characters_; }
  /// i64(characters): the label of each. Errors: a character that is not of the alphabet, and text
  /// that is not UTF-8, by `name` and line.
  Tensor encode(std::string_view text, const std::string& name = "text") const;

 private:
  std::vector<std::string> characters_;
  std::map<std::string, std::int64_t, std::less<>> labels_;
};

/// Options of load_text.
struct TextOptions {
  std::int64_t sequence = 128;                    ///< characters in a sample
  std::shared_ptr<const Alphabet> alphabet = {};  ///< null: that of the text
};

/// Result of load_text.
struct TextData {
  std::shared_ptr<const ArrayDataset> data;  ///< x i64(sequence), y is x shifted by one character
  std::shared_ptr<const Alphabet> alphabet;
};

/// Reads a text in UTF-8, plain or gzip, as characters. Samples follow each other in the text; a
/// remainder that is too short for a sample is dropped.
/// Errors  a text shorter than one sample; those of Alphabet.
TENON_API TextData load_text(const std::string& path, const TextOptions& options = {});

/// Options of the image generators.
struct GeneratedOptions {
  std::int64_t count = 10000;
  std::uint64_t seed = 1;
  Split split = Split::train;  ///< train and test never share a sample
  Scaling scaling = Scaling::unit();
  Targets targets = Targets::as_given;
};

/// Hand-drawn digits: x u8(28,28) scaled, ten classes. The same seed gives the same bytes on every
/// machine.
TENON_API std::shared_ptr<const ArrayDataset> generate_digits(const GeneratedOptions& options = {});

/// Coloured textures: x u8(3,32,32) scaled, ten classes.
TENON_API std::shared_ptr<const ArrayDataset> generate_textures(
    const GeneratedOptions& options = {});

/// Noisy waves of ten kinds: x u8(1,128) scaled; the class is the shape of the wave or how it
/// changes.
TENON_API std::shared_ptr<const ArrayDataset> generate_signals(
    const GeneratedOptions& options = {});

/// Options of generate_random.
struct RandomOptions {
  std::int64_t count = 1000;
  Shape shape = {3, 224, 224};
  std::int64_t classes = 1000;
  std::uint64_t seed = 1;
  Split split = Split::train;
  Scaling scaling = Scaling::unit();
  Targets targets = Targets::as_given;
};

/// Random bytes x u8(shape) scaled, with random labels. There is nothing to learn; use it to
/// measure image models.
TENON_API std::shared_ptr<const ArrayDataset> generate_random(const RandomOptions& options = {});

/// Options of generate_tokens.
struct TokenStreamOptions {
  std::int64_t count = 100000;  ///< tokens in the stream
  std::int64_t vocabulary = 10000;
  std::int64_t sequence = 35;  ///< tokens in a sample
  std::uint64_t seed = 1;
  Split split = Split::train;  ///< different streams of one language
};

/// A synthetic language: few words are frequent, each has four likely successors, and sentences end
/// in Vocabulary::end_of_sentence. x is i64(sequence), y is x shifted by one token.
TENON_API std::shared_ptr<const ArrayDataset> generate_tokens(
    const TokenStreamOptions& options = {});

/// Options of generate_markov.
struct MarkovOptions {
  std::int64_t count = 100000;  ///< symbols in the stream
  std::int64_t symbols = 64;
  std::int64_t sequence = 32;  ///< symbols in a sample
  std::uint64_t seed = 1;
  Split split = Split::train;  ///< different streams of one source
};

/// A Markov chain: the next symbol depends only on the last one, with probabilities derived from
/// the seed.
struct MarkovStream {
  std::shared_ptr<const ArrayDataset> data;  ///< x i64(sequence), y is x shifted by one symbol
  /// f64(symbols, symbols): the probability of column j after row i
  Tensor transitions;
  /// nats per symbol; the lower bound of any model's cross-entropy
  double entropy_rate = 0;
};
TENON_API MarkovStream generate_markov(const MarkovOptions& options = {});

/// Options of generate_linear.
struct LinearOptions {
  std::int64_t count = 1000;
  std::int64_t features = 3;
  double noise = 0.1;  ///< standard deviation of the noise added to y
  std::uint64_t seed = 1;
  Split split = Split::train;
};

/// y = x.w + b + noise; w and b, which a fit should recover, depend only on the seed.
struct LinearProblem {
  std::shared_ptr<const ArrayDataset> data;  ///< x f32(features) in [-1, 1), y f32(1)
  Tensor w;                                  ///< f32(features, 1)
  double b = 0;
};
TENON_API LinearProblem generate_linear(const LinearOptions& options = {});

/// The data set with its samples as targets, for autoencoders. If samples are augmented, targets
/// are the original samples. Errors  several inputs.
TENON_API std::shared_ptr<const Dataset> reconstruct(std::shared_ptr<const Dataset> data);

/// Random changes to images, drawn each time they are read.
struct AugmentOptions {
  /// pixels added on each side before a random crop to the original size
  std::int64_t crop_padding = 0;
  bool flip_horizontal = false;  ///< mirrors left and right with probability 1/2
  bool flip_vertical = false;
  std::vector<double> fill = {0};  ///< value of the padding: one, or one per channel
  std::uint64_t seed = 0;

  /// True if it changes nothing.
  bool is_identity() const { return crop_padding == 0 && !flip_horizontal && !flip_vertical; }
};

/// The data set with random changes to x (C,H,W) or (H,W) in gather_augmented; gather itself
/// changes nothing.
///
/// Lanes 0 and 1 of Philox block `index`, key {seed, epoch}, stream 0xDA7A0050, place the crop: its
/// top left corner is floor(lane * (2 padding + 1) / 2^32) down and to the right in the padded
/// image; bit 31 of lanes 2 and 3 flips horizontally and vertically.
/// Errors  several inputs, samples of another rank, a fill of the wrong size, a padding that is
///         negative or not less than the image's sides.
TENON_API std::shared_ptr<const Dataset> augment(std::shared_ptr<const Dataset> data,
                                                 const AugmentOptions& options);

/// Caches every sample in memory on first use, as gather returns it. `data` is normally read once
/// per sample; two threads that miss the same sample at the same time both read it. The memory is
/// allocated at once.
TENON_API std::shared_ptr<const Dataset> cache_in_memory(std::shared_ptr<const Dataset> data);

/// How an epoch is divided into batches and read.
struct BatchOptions {
  std::int64_t batch_size = 32;
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< false: the last batch may be smaller
  int workers = 1;         ///< threads that gather; 0: the calling thread (also: run_parts)
  int prefetch = 2;        ///< batches gathered ahead of the one in use
  /// 0: a uniformly random order. n: the order of a reader that draws from a buffer of the next n
  /// samples, which stays close to that of the data set.
  std::int64_t shuffle_buffer = 0;
  bool augment = false;  ///< use gather_augmented instead of gather
  /// Allocates the batches' dense host memory, for example pinned for a device; null:
  /// Tensor::empty.
  std::function<Tensor(DType, const Shape&)> allocate = nullptr;
  /// The samples of each batch that are gathered: [first, second) of their number, at least one; null:
  /// all. For processes that share the batches.
  std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t samples)> part = nullptr;
  /// Calls body(0) to body(count - 1), several at the same time, and returns when all are done; body
  /// does not throw. Given this, next() gathers the batches of a data set in memory by it, in
  /// `gather_parts` parts, and a single worker is not started: where the steps compute on all
  /// processors, it would take the time of one of them.
  std::function<void(int count, const std::function<void(int)>& body)> run_parts = nullptr;
  int gather_parts = 1;
};

/// Samples of one batch.
struct Batch {
  std::int64_t index = 0;  ///< within the epoch
  /// As Dataset::inputs() and targets(), on the host, or on the device they were prefetched to;
  /// reused for later batches.
  std::vector<Tensor> inputs, targets;
  Tensor sample_weights;                  ///< f32(n), where the inputs are; undefined: 1 each
  std::span<const std::int64_t> indices;  ///< indices of the samples
  /// Samples of the whole batch, if these are BatchOptions::part of it; 0: they are all.
  std::int64_t whole = 0;

  const Tensor& x() const { return inputs.front(); }   ///< the first input
  const Tensor& y() const { return targets.front(); }  ///< the first target
};

/// Iterates over the batches of an epoch, gathered ahead by worker threads, in an order that
/// depends only on (seed, epoch).
///
/// Memory   allocated by the constructor; start() and next() do not allocate.
/// Threads  one thread at a time; the workers are joined by the destructor.
class TENON_API Batches {
 public:
  /// Errors  an empty data set, a batch size below 1, drop_last with fewer samples than a batch.
  Batches(std::shared_ptr<const Dataset> data, const BatchOptions& options);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  /// Number of batches in an epoch.
  std::int64_t count() const;
  /// The data set.
  const Dataset& data() const;

  /// Begins an epoch at `first_batch` (to resume an interrupted one). May be called while another
  /// epoch is running.
  void start(std::uint64_t epoch, std::int64_t first_batch = 0);
  /// The next batch, valid until the following next() or start(); null after the last.
  /// Errors  those of the data set's gather for this batch, with the sample named; thrown again by
  ///         each call until start().
  const Batch* next();

 private:
  struct TENON_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
