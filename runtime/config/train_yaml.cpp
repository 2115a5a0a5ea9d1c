#include <fmt/format.h>
#include <tenon/error.h>

#include "config/config_table.h"
#include "config/model_yaml.h"
#include "config/yaml_reader.h"

namespace tenon::config {
namespace {

using Optimizer = OptimizerDefinition;

const std::vector<Choice<Loss>> losses = {
    {"sparse_categorical_crossentropy", Loss::sparse_categorical_crossentropy}, {"mse", Loss::mse}, {"mean_squared_error", Loss::mse}};
const std::vector<Choice<Metric>> metrics = {{"accuracy", Metric::accuracy}, {"mse", Metric::mse}, {"mean_squared_error", Metric::mse}};
const std::vector<Choice<Optimizer::Kind>> optimizers = {{"adam", Optimizer::Kind::adam},
                                                         {"adamw", Optimizer::Kind::adamw},
                                                         {"sgd", Optimizer::Kind::sgd},
                                                         {"rmsprop", Optimizer::Kind::rmsprop}};
const std::vector<Choice<LogStyle>> log_styles = {{"keras", LogStyle::keras}, {"gorgonia", LogStyle::gorgonia}};

constexpr std::int64_t most = std::int64_t{1} << 40;  // of counts: far beyond any use, far below overflow
constexpr Range<double> from_zero{.lowest = 0};
constexpr Range<double> above_zero{.lowest = 0, .above_lowest = true};
constexpr Range<double> below_one{.lowest = 0, .highest = 1, .below_highest = true};

LossDefinition read_loss(const Value& value) {
  LossDefinition result;
  result.where = value.mark().str();
  if (!value.is_map()) {
    result.loss = value.as_choice(losses);
    return result;
  }
  Section section = value.section();
  result.loss = section.require_value("name", "the name of a loss").as_choice(losses);
  if (result.loss == Loss::sparse_categorical_crossentropy) {
    result.from_logits = section.get<bool>("from_logits", false);
    result.ignore_index = section.get_optional<std::int64_t>("ignore_index");
  }
  section.finish();
  return result;
}

void set_defaults(Optimizer& optimizer) {
  const Preset preset = optimizer.preset;
  optimizer.epsilon = preset == Preset::keras ? 1e-7 : 1e-8;
  switch (optimizer.kind) {
    case Optimizer::Kind::adam:
      break;
    case Optimizer::Kind::adamw:
      optimizer.weight_decay = preset == Preset::keras ? 0.004 : 0.01;
      break;
    case Optimizer::Kind::sgd:
      optimizer.learning_rate = 0.01;
      break;
    case Optimizer::Kind::rmsprop:
      optimizer.rho = preset == Preset::keras ? 0.9 : preset == Preset::torch ? 0.99 : 0.999;
      optimizer.epsilon_outside_root = preset == Preset::torch;
      if (preset == Preset::torch) optimizer.learning_rate = 0.01;
      break;
  }
}

/// Only the keys that mean something to this optimizer are known: `beta1` under sgd is an error, not a wish that nobody hears.
void read_optimizer_keys(Section& section, Optimizer& optimizer) {
  optimizer.learning_rate = section.get<double>("learning_rate", optimizer.learning_rate, from_zero);
  switch (optimizer.kind) {
    case Optimizer::Kind::adamw:
      optimizer.weight_decay = section.get<double>("weight_decay", optimizer.weight_decay, from_zero);
      [[fallthrough]];
    case Optimizer::Kind::adam:
      optimizer.beta1 = section.get<double>("beta1", optimizer.beta1, below_one);
      optimizer.beta2 = section.get<double>("beta2", optimizer.beta2, below_one);
      optimizer.epsilon = section.get<double>("epsilon", optimizer.epsilon, above_zero);
      break;
    case Optimizer::Kind::sgd:
      optimizer.momentum = section.get<double>("momentum", 0, below_one);
      optimizer.nesterov = section.get<bool>("nesterov", false);
      optimizer.weight_decay = section.get<double>("weight_decay", 0, from_zero);
      if (optimizer.nesterov && optimizer.momentum == 0) section.find("nesterov")->fail("Nesterov's step wants a momentum above 0");
      break;
    case Optimizer::Kind::rmsprop:
      optimizer.rho = section.get<double>("rho", optimizer.rho, below_one);
      optimizer.epsilon = section.get<double>("epsilon", optimizer.epsilon, above_zero);
      break;
  }
}

Optimizer read_optimizer(const Value& value) {
  Optimizer result;
  result.where = value.mark().str();
  if (!value.is_map()) {
    result.kind = value.as_choice(optimizers);
    set_defaults(result);
    return result;
  }
  Section section = value.section();
  result.kind = section.require_value("name", "the name of an optimizer").as_choice(optimizers);
  result.preset = read_preset(section);
  set_defaults(result);
  read_optimizer_keys(section, result);
  section.finish();
  return result;
}

std::vector<Metric> read_metrics(const Value& value) {
  std::vector<Metric> result;
  const std::vector<Value> items = value.is_scalar() ? std::vector<Value>{value} : value.items("a list of metrics");
  for (const Value& item : items) {
    const Metric metric = item.as_choice(metrics);
    for (const Metric earlier : result) {
      if (earlier == metric) item.fail(fmt::format("'{}' is given twice", name_of(metric)));
    }
    result.push_back(metric);
  }
  return result;
}

std::optional<CheckpointDefinition> read_checkpoint(Section& top) {
  std::optional<Section> section = top.child("checkpoint");
  if (!section) return std::nullopt;
  CheckpointDefinition checkpoint;
  checkpoint.directory = section->require_value("directory", "a folder").as_path();
  checkpoint.every_epochs = section->get<std::int64_t>("every_epochs", 1, {1, most});
  checkpoint.keep = section->get<std::int64_t>("keep", 1, {0, most});
  return checkpoint;
}

ResumeDefinition read_resume(const Value& value, bool has_checkpoint) {
  ResumeDefinition resume;
  const std::string text = value.as_text("never, auto or the path of a checkpoint");
  if (text == "never") return resume;
  resume.kind = text == "auto" ? ResumeDefinition::Kind::automatic : ResumeDefinition::Kind::path;
  if (resume.kind == ResumeDefinition::Kind::path)
    resume.path = value.as_path();
  else if (!has_checkpoint)
    value.fail("'auto' takes the newest checkpoint in checkpoint.directory, which is not set");
  return resume;
}

/// What the loss and the metrics can make of each other.
void check_metrics(const TrainDefinition& train, Section& top) {
  const bool classes = train.loss.loss == Loss::sparse_categorical_crossentropy;
  for (const Metric metric : train.metrics) {
    const bool good = metric == Metric::accuracy ? classes : !classes;
    if (!good) {
      top.find("metrics")->fail(fmt::format("'{}' does not go with the loss {}", name_of(metric), name_of(train.loss.loss)));
    }
  }
}

/// The model's tree: the file that `model` names, with the overrides that reach into it, or the map itself.
ModelDefinition read_model_of(Section& top, const std::vector<ConfigOverride>& model_overrides) {
  const Value value = top.require_value("model", "the path of a model.yaml, or the model itself");
  if (value.is_scalar()) {
    const std::string path = value.as_shown_path();
    try {
      return load_model(path, model_overrides);
    } catch (const Error& problem) {
      const std::string text = problem.what();
      if (text.rfind(path + ": no such file", 0) == 0) value.fail(text);  // say also who named it
      throw;
    }
  }
  if (!value.is_map()) value.fail_wanted("the path of a model.yaml, or the model itself");
  return read_model(value.node(), "model");
}

TrainDefinition read_train(Node tree, const std::vector<ConfigOverride>& overrides) {
  std::vector<ConfigOverride> own;
  std::vector<ConfigOverride> of_model;
  // "model.dtype" means the model's file where `model` is a path, also one that an earlier override set.
  for (const ConfigOverride& change : overrides) {
    const bool inside = change.key.rfind("model.", 0) == 0;
    const Node::Entry* model = tree.find("model");
    if (inside && model != nullptr && model->value.kind == Node::Kind::scalar) {
      ConfigOverride inner = change;
      inner.text = change.text.empty() ? fmt::format("--set {}={}", change.key, change.value) : change.text;
      inner.key = change.key.substr(6);
      of_model.push_back(inner);
    } else {
      apply_overrides(tree, {change});
    }
  }

  Section top(tree);
  TrainDefinition train;
  read_config(top, train.config);
  train.data = read_data(top);
  train.loss = read_loss(top.require_value("loss", "the name of a loss"));
  const auto optimizer = top.find("optimizer");
  train.optimizer = optimizer ? read_optimizer(*optimizer) : Optimizer();
  if (const auto metrics_value = top.find("metrics"); metrics_value && !metrics_value->is_null()) {
    train.metrics = read_metrics(*metrics_value);
  }
  train.batch_size = top.get<std::int64_t>("batch_size", train.batch_size, {1, most});
  train.epochs = top.get<std::int64_t>("epochs", train.epochs, {1, most});
  train.shuffle = top.get<bool>("shuffle", train.shuffle);
  if (!train.shuffle && train.data.shuffle_buffer > 0) top.find("shuffle")->fail("data.shuffle_buffer means nothing without shuffling");
  train.verbose = top.get<int>("verbose", train.verbose, {0, 2});
  train.log_style = top.choice("log_style", train.log_style, log_styles);
  train.steps_per_epoch = top.get_optional<std::int64_t>("steps_per_epoch", {1, most});
  train.checkpoint = read_checkpoint(top);
  if (const auto resume = top.find("resume")) train.resume = read_resume(*resume, train.checkpoint.has_value());
  if (const auto output = top.find("output"); output && !output->is_null()) train.output = output->as_path();
  const bool has_model = top.has("model");
  if (!has_model) top.require_value("model", "the path of a model.yaml, or the model itself");
  top.finish();  // before the model's file is opened: a slip here is the nearer mistake
  check_metrics(train, top);
  train.model = read_model_of(top, of_model);
  return train;
}

}  // namespace

const char* name_of(Loss loss) {
  return word_of(losses, loss);
}
const char* name_of(OptimizerDefinition::Kind kind) {
  return word_of(optimizers, kind);
}
const char* name_of(Metric metric) {
  return word_of(metrics, metric);
}
const char* name_of(LogStyle style) {
  return word_of(log_styles, style);
}

TrainDefinition load_train(const std::string& path, const std::vector<ConfigOverride>& overrides) {
  TrainDefinition train = read_train(load_yaml(path), overrides);
  train.file = path;
  return train;
}

TrainDefinition train_from_text(const std::string& text, const std::string& name, const std::string& folder,
                                const std::vector<ConfigOverride>& overrides) {
  return read_train(parse_yaml(text, std::make_shared<Source>(Source{name, folder, Origin::Kind::yaml})), overrides);
}

}  // namespace tenon::config

namespace tenon {

const char* name_of(Loss loss) {
  return config::word_of(config::losses, loss);
}
const char* name_of(OptimizerDefinition::Kind kind) {
  return config::word_of(config::optimizers, kind);
}
const char* name_of(Metric metric) {
  return config::word_of(config::metrics, metric);
}

}  // namespace tenon
