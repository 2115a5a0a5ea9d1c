// SPDX-License-Identifier: Apache-2.0
// Data of the C API: arrays, readers, and sources of the caller.
#include "c/data.h"

#include "config/train_blocks.h"
#include "train/datasets/datasets.h"

namespace tenon::c {
namespace {

/// The caller's function that ends its data.
struct Release {
  void (*function)(void* user) = nullptr;
  void* user = nullptr;
  Release() = default;
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  ~Release() {
    if (function != nullptr) function(user);
  }
};

std::vector<SampleType> types_of(const TenonSampleType* first, std::uint64_t count, const char* argument, const char* usual) {
  std::vector<SampleType> types;
  for (const TenonSampleType& type : array(first, count, argument)) {
    if (type.name == nullptr && count > 1) throw BadArgument(std::string(argument) + ": expected names, since there are several");
    types.push_back({c::dtype_of(type.dtype, argument), shape_of(type.rank, type.shape), type.name == nullptr ? usual : type.name});
  }
  return types;
}

/// Numbered samples of the caller.
class CallerSamples final : public Dataset {
 public:
  explicit CallerSamples(const TenonSampleSource& source)
      : Dataset(types_of(source.inputs, source.input_count, "inputs", "x"), types_of(source.targets, source.target_count, "targets", "y")),
        source_(source),
        name_(source.name == nullptr ? "samples" : source.name) {}
  /// From now on the caller's data ends with this.
  void own() {
    release_.function = source_.release;
    release_.user = source_.user;
  }

  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return source_.size; }
  std::optional<std::int64_t> num_classes() const override {
    return source_.num_classes > 0 ? std::optional(source_.num_classes) : std::nullopt;
  }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> to_inputs, std::span<Tensor> to_targets) const override {
    check_batch(indices, to_inputs, to_targets);
    constexpr std::size_t most = 64;
    void *of_inputs[most], *of_targets[most];
    for (std::size_t i = 0; i < to_inputs.size(); ++i) of_inputs[i] = to_inputs[i].raw();
    for (std::size_t i = 0; i < to_targets.size(); ++i) of_targets[i] = to_targets[i].raw();
    raise(source_.gather(source_.user, indices.data(), indices.size(), of_inputs, of_targets));
  }
  static constexpr std::uint64_t max_parts = 64;

 private:
  TenonSampleSource source_;
  std::string name_;
  Release release_;
};

/// Batches of the caller.
class CallerBatches final : public BatchSource {
 public:
  explicit CallerBatches(const TenonBatchSource& source)
      : source_(source),
        name_(source.name == nullptr ? "batches" : source.name),
        inputs_(types_of(source.inputs, source.input_count, "inputs", "x")),
        targets_(types_of(source.targets, source.target_count, "targets", "y")) {}
  void own() {
    release_.function = source_.release;
    release_.user = source_.user;
  }

  const std::string& name() const override { return name_; }
  const std::vector<SampleType>& inputs() const override { return inputs_; }
  const std::vector<SampleType>& targets() const override { return targets_; }
  std::int64_t batches() const override { return source_.batches; }
  void start(std::uint64_t epoch) override { raise(source_.start(source_.user, epoch)); }
  bool next(Batch& out_batch) override {
    std::vector<TenonTensor*> of_inputs(inputs_.size()), of_targets(targets_.size());
    TenonTensor* weights = nullptr;
    std::uint32_t has_batch = 0;
    TenonError* const error = source_.next(source_.user, of_inputs.data(), of_targets.data(), &weights, &has_batch);
    const auto take = [](TenonTensor* object) {
      Tensor tensor;
      if (object != nullptr && static_cast<const Object*>(object)->kind() == Kind::tensor) tensor = object->value;
      tenon_release(object);
      return tensor;
    };
    for (TenonTensor* tensor : of_inputs) out_batch.inputs.push_back(take(tensor));
    for (TenonTensor* tensor : of_targets) out_batch.targets.push_back(take(tensor));
    out_batch.sample_weights = take(weights);
    raise(error);
    return has_batch != 0;
  }

 private:
  TenonBatchSource source_;
  std::string name_;
  std::vector<SampleType> inputs_, targets_;
  Release release_;
};

ArrayOptions array_options(const char* options) {
  ArrayOptions array;
  if (options == nullptr) return array;
  const yaml::Node tree = yaml::parse(options, std::make_shared<yaml::Source>(yaml::Source{"<options>", "", Origin::Kind::api}));
  yaml::Section top(tree);
  static const std::vector<yaml::Choice<Targets>> forms = {{name_of(Targets::as_given), Targets::as_given},
                                                           {name_of(Targets::one_hot), Targets::one_hot},
                                                           {name_of(Targets::soft_one_hot), Targets::soft_one_hot}};
  array.name = top.get("name", array.name.c_str());
  array.scaling.scale = top.get<double>("scale", 1);
  array.scaling.offset = top.get<double>("offset", 0);
  array.targets = top.choice("targets", array.targets, forms);
  array.num_classes = top.get_optional<std::int64_t>("num_classes", {1, config::max_count});
  top.finish();
  return array;
}

DataSplits load_data(const std::string& definition) {
  yaml::Node tree;
  tree.kind = yaml::Node::Kind::map;
  tree.entries.push_back(
      {"data", {}, yaml::parse(definition, std::make_shared<yaml::Source>(yaml::Source{"<data>", "", Origin::Kind::api}))});
  tree.entries[0].mark = tree.mark = tree.entries[0].value.mark;
  yaml::Section top(tree);
  FitOptions unused;
  const DataDefinition data = config::read_data(top, unused);
  top.finish();
  return train::make_data(data, "", 0);
}

/// New tensors for samples of these types.
std::vector<Tensor> empty_batch(const std::vector<SampleType>& types, std::uint64_t count) {
  std::vector<Tensor> batch;
  for (const SampleType& type : types) batch.push_back(Tensor::empty(type.dtype, type.shape.with_batch(static_cast<std::int64_t>(count))));
  return batch;
}

}  // namespace

Json json_of(const std::vector<SampleType>& types) {
  Json json = Json::array();
  for (const SampleType& type : types)
    json.push_back({{"name", type.name}, {"dtype", tenon::name_of(type.dtype)}, {"shape", c::json_of(type.shape)}});
  return json;
}

std::vector<NamedTensor> named_tensors(const char* const* names, const TenonTensor* const* first, std::uint64_t count, const char* usual) {
  std::vector<NamedTensor> all;
  const std::vector<Tensor> values = tensors(first, count, "tensors");
  if (names == nullptr && count != 1) throw BadArgument("names: expected names for " + std::to_string(count) + " tensors, got NULL");
  const std::vector<std::string> given = names == nullptr ? std::vector<std::string>{usual} : texts(names, count, "names");
  for (std::size_t i = 0; i < values.size(); ++i) all.push_back({given[i], values[i]});
  return all;
}

}  // namespace tenon::c

using namespace tenon;
using namespace tenon::c;

TenonError* tenon_data_arrays(const char* const* input_names, const TenonTensor* const* inputs, uint64_t input_count,
                              const char* const* target_names, const TenonTensor* const* targets, uint64_t target_count,
                              const TenonTensor* sample_weights, const char* options, TenonData** out_data) {
  return guard(__func__, [&] {
    required(out_data, "out_data");
    ArrayOptions array = array_options(options);
    if (sample_weights != nullptr) array.sample_weights = get(sample_weights, "sample_weights").value;
    const auto of_inputs = named_tensors(input_names, inputs, input_count, "x");
    const auto of_targets = named_tensors(target_names, targets, target_count, "y");
    *out_data = new TenonData(std::make_shared<const ArrayDataset>(of_inputs, of_targets, array));
  });
}

TenonError* tenon_data_load(const char* definition, uint32_t part, TenonData** out_data) {
  return guard(__func__, [&] {
    required(out_data, "out_data");
    if (part > TENON_DATA_VALIDATION) throw BadArgument("part: expected a TENON_DATA_* value, got " + std::to_string(part));
    const DataSplits data = load_data(text(definition, "definition"));
    const auto& wanted = part == TENON_DATA_TRAIN ? data.train : part == TENON_DATA_TEST ? data.test : data.validation;
    if (wanted == nullptr) {
      throw BadArgument(part == TENON_DATA_TEST ? "part: the data has no test part"
                                                : "part: the data has no validation part; set validation_split");
    }
    *out_data = new TenonData(wanted);
  });
}

TenonError* tenon_data_samples(const TenonSampleSource* source, TenonData** out_data) {
  return guard(__func__, [&] {
    required(out_data, "out_data");
    required(source, "source");
    const TenonSampleSource given = options_of(source, "source");
    if (given.gather == nullptr) throw BadArgument("source.gather: expected a function, got NULL");
    if (given.size < 0) throw BadArgument("source.size: expected 0 or more samples, got " + std::to_string(given.size));
    if (given.input_count > CallerSamples::max_parts || given.target_count > CallerSamples::max_parts)
      throw BadArgument("source: expected at most 64 inputs and 64 targets");
    auto samples = std::make_shared<CallerSamples>(given);
    auto data = std::make_unique<TenonData>(samples);
    samples->own();
    *out_data = data.release();
  });
}

TenonError* tenon_data_batches(const TenonBatchSource* source, TenonData** out_data) {
  return guard(__func__, [&] {
    required(out_data, "out_data");
    required(source, "source");
    const TenonBatchSource given = options_of(source, "source");
    if (given.start == nullptr || given.next == nullptr) throw BadArgument("source.start, source.next: expected functions, got NULL");
    if (given.batches < 0) throw BadArgument("source.batches: expected 0 or more, got " + std::to_string(given.batches));
    auto batches = std::make_unique<CallerBatches>(given);
    if (batches->inputs().empty() || batches->targets().empty()) throw BadArgument("source: expected at least one input and one target");
    CallerBatches& own = *batches;
    auto data = std::make_unique<TenonData>(std::move(batches));
    own.own();
    *out_data = data.release();
  });
}

TenonError* tenon_data_describe(const TenonData* data, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const TenonData& own = get(data, "data");
    Json json;
    if (own.samples != nullptr) {
      const auto classes = own.samples->num_classes();
      json = {{"name", own.samples->name()},
              {"size", own.samples->size()},
              {"num_classes", classes ? Json(*classes) : Json()},
              {"inputs", json_of(own.samples->inputs())},
              {"targets", json_of(own.samples->targets())}};
    } else {
      json = {{"name", own.batches->name()},
              {"size", nullptr},
              {"num_classes", nullptr},
              {"inputs", json_of(own.batches->inputs())},
              {"targets", json_of(own.batches->targets())}};
    }
    *out_json = new_json(json);
  });
}

TenonError* tenon_data_gather(const TenonData* data, const int64_t* indices, uint64_t count, TenonTensor** out_inputs, uint64_t input_count,
                              TenonTensor** out_targets, uint64_t target_count) {
  return guard(__func__, [&] {
    const TenonData& own = get(data, "data");
    if (own.samples == nullptr) throw BadArgument("data: expected numbered samples, got batches");
    if (input_count != own.samples->inputs().size() || target_count != own.samples->targets().size()) {
      throw BadArgument("input_count, target_count: expected " + std::to_string(own.samples->inputs().size()) + " and " +
                        std::to_string(own.samples->targets().size()) + ", got " + std::to_string(input_count) + " and " +
                        std::to_string(target_count));
    }
    array(out_inputs, input_count, "out_inputs");
    array(out_targets, target_count, "out_targets");
    std::vector<Tensor> of_inputs = empty_batch(own.samples->inputs(), count), of_targets = empty_batch(own.samples->targets(), count);
    own.samples->gather(array(indices, count, "indices"), of_inputs, of_targets);
    // All or nothing: the targets last, whose objects may not be made.
    std::vector<TenonTensor*> made(of_inputs.size());
    give(of_inputs, made.data(), made.size(), "out_inputs");
    try {
      give(of_targets, out_targets, target_count, "out_targets");
    } catch (...) {
      for (TenonTensor* tensor : made) tensor->release();
      throw;
    }
    std::copy(made.begin(), made.end(), out_inputs);
  });
}
