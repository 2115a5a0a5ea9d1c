// tenon/data.h - data sets, where they come from, and the batches of an epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

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
  virtual std::int64_t size() const = 0;
  virtual SampleType x_type() const = 0;
  virtual SampleType y_type() const = 0;
  /// Of a classification problem.
  virtual std::optional<std::int64_t> num_classes() const { return std::nullopt; }

  /// Writes samples indices[0], indices[1], ... to rows 0, 1, ... of x and y; allocates nothing.
  ///
  /// Shapes  x (n, x shape...), y (n, y shape...), n = indices.size(); dense, in host memory.
  /// Errors  an index outside [0, size()), x or y of another dtype or shape.
  virtual void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const = 0;

 protected:
  /// What every gather checks first.
  void check_batch(std::span<const std::int64_t> indices, const Tensor& x, const Tensor& y) const;
};

/// x to x * scale + offset, in f32 (in f64 where the result is f64).
struct Scaling {
  double scale = 1;
  double offset = 0;

  bool is_identity() const { return scale == 1 && offset == 0; }
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

struct ArrayOptions {
  std::string name = "array";
  Scaling scaling;
  DType x_dtype = DType::f32;
  Targets targets = Targets::as_given;
  /// Given: y are labels, each in [0, num_classes).
  std::optional<std::int64_t> num_classes;
};

/// Samples in host memory, scaled as they are gathered.
///
/// Shapes  x (count, ...), y (count, ...); labels are (count).
/// Dtypes  x u8, f32 or f64 to f32 or f64, any other unscaled to itself; labels of any integer dtype.
/// Errors  counts that differ, a label out of range (its index is named), dtypes that do not convert.
class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(const Tensor& x, const Tensor& y, const ArrayOptions& options = {});

  const std::string& name() const override { return options_.name; }
  std::int64_t size() const override { return x_.shape()[0]; }
  SampleType x_type() const override { return x_type_; }
  SampleType y_type() const override { return y_type_; }
  std::optional<std::int64_t> num_classes() const override { return options_.num_classes; }
  void gather(std::span<const std::int64_t> indices, Tensor& x, Tensor& y) const override;

  /// Samples [begin, end) as a data set of their own, without a copy; `name` is for messages.
  ArrayDataset slice(std::int64_t begin, std::int64_t end, const std::string& name) const;
  /// As stored, before scaling; labels as i64.
  const Tensor& x() const { return x_; }
  const Tensor& y() const { return y_; }

 private:
  ArrayOptions options_;
  Tensor x_, y_;
  SampleType x_type_, y_type_;
};

enum class Split { train, test };
const char* name_of(Split split);

/// Reads an IDX file, plain or gzip, into a host tensor of its dtype (u8, i8, i16, i32, f32, f64).
/// Errors  name the file, what was wanted and what was got: missing, damaged gzip, wrong magic, truncated, trailing bytes.
Tensor load_idx(const std::string& path);

struct MnistOptions {
  Scaling scaling = Scaling::unit();
  Targets targets = Targets::as_given;
  std::int64_t num_classes = 10;
};

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] from a folder: x (28,28), or whatever size the images have, y a label.
/// Errors  those of load_idx; images and labels that differ in number; a label out of range (its index is named).
std::shared_ptr<const ArrayDataset> load_mnist(const std::string& directory, Split split, const MnistOptions& options = {});

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

struct BatchOptions {
  std::int64_t batch_size = 32;
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< false: the last batch may be smaller
  int workers = 1;         ///< threads that gather; 0: the caller's own
  int prefetch = 2;        ///< batches gathered ahead of the one in use
};

struct Batch {
  std::int64_t number = 0;                ///< within the epoch
  Tensor x, y;                            ///< host tensors that are used again for later batches
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
  const Dataset& data() const;

  /// Begins an epoch at `first_batch` (where a stopped one goes on). May be called in the middle of another.
  void start(std::uint64_t epoch, std::int64_t first_batch = 0);
  /// The next batch, valid until the following next() or start(); null after the last.
  /// Errors  what the data set's gather threw for this batch, again on each call until start().
  const Batch* next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
