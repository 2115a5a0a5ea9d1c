// SPDX-License-Identifier: Apache-2.0
// Models of the C API, but for their training.
#include "c/model.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <tenon/definition_text.h>
#include <tenon/training_run.h>
#include <tenon/weights.h>

#include "c/data.h"
#include "c/json.h"
#include "c/program.h"
#include "io/atomic_file.h"
#include "platform/path.h"
#include "yaml/reader.h"
#include "yaml/write.h"

using namespace tenon;
using namespace tenon::c;

namespace {

namespace fs = std::filesystem;

// The folder that tenon_model_save writes.
constexpr const char* model_file = "model.yaml";
constexpr const char* compile_file = "compile.yaml";
constexpr const char* checkpoint_folder = "checkpoint";

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(platform::text_of(path) + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Removes a file of an earlier model, if there is one.
void remove_file(const fs::path& path) {
  std::error_code problem;
  fs::remove(path, problem);
  if (problem) throw Error(platform::text_of(path) + ": of an earlier model, cannot be removed: " + problem.message());
}

void compile(TenonModel& model, const Context& context, const std::string& definition, const std::string& name) {
  CompileDefinition given = compile_from_yaml(definition, name);
  model.value->compile(context, std::move(given.options));
  model.of_optimizer = std::move(given.callbacks);
  model.compile_text = definition;
}

/// The keys of a train.yaml that tenon_model_compile takes; empty for a model.yaml, whose defaults follow from its last layer.
std::string compile_text_of(const std::string& path) {
  const yaml::Node tree = yaml::load(path);
  std::string text;
  if (tree.find("model") == nullptr) return text;
  for (const char* key : {"optimizer", "loss", "losses", "metrics", "trainable", "frozen", "parallel"}) {
    if (const auto* entry = tree.find(key)) text += std::string(key) + ": " + yaml::flow(entry->value) + "\n";
  }
  return text;
}

/// The model of a train.yaml or model.yaml, compiled as it says.
std::unique_ptr<TenonModel> load_file(const Context& context, const std::string& path, const char* checkpoint) {
  TrainingRun run(load_definition(path), context);
  if (checkpoint != nullptr) run.load_weights(checkpoint);
  auto model = std::make_unique<TenonModel>(std::move(run.model()));
  model->of_optimizer = run.definition().callbacks;
  model->compile_text = compile_text_of(path);
  return model;
}

std::unique_ptr<TenonModel> load_folder(const Context& context, const fs::path& folder, const char* checkpoint) {
  const fs::path definition = folder / model_file;
  if (!fs::exists(definition)) {
    throw Error(platform::text_of(folder) + ": expected a folder that Model.save (tenon_model_save in C) wrote, with the file " +
                model_file + ", got one without it");
  }
  std::unique_ptr<TenonModel> model;
  if (const fs::path with = folder / compile_file; fs::exists(with)) {
    model = std::make_unique<TenonModel>(Model(model_from_yaml(content_of(definition), platform::text_of(definition))));
    compile(*model, context, content_of(with), platform::text_of(with));
  } else {
    model = load_file(context, platform::text_of(definition), nullptr);
  }
  const std::string from = checkpoint != nullptr ? checkpoint : platform::text_of(folder / checkpoint_folder);
  if (checkpoint != nullptr || fs::exists(platform::path_of(from))) model->value->load(from);
  return model;
}

onnx::ExportOptions export_options(const char* options) {
  onnx::ExportOptions exported;
  if (options == nullptr) return exported;
  const yaml::Node tree = yaml::parse(options, std::make_shared<yaml::Source>(yaml::Source{"<options>", "", Origin::Kind::api}));
  yaml::Section top(tree);
  exported.opset = top.get<std::int64_t>("opset", exported.opset, {1, 1000});
  exported.batch = top.get<std::int64_t>("batch", exported.batch, {0, std::int64_t{1} << 40});
  if (const auto names = top.find("inputs", "a list of names"); names && !names->is_null()) exported.inputs = names->as_names();
  if (const auto names = top.find("outputs", "a list of names"); names && !names->is_null()) exported.outputs = names->as_names();
  exported.graph_name = top.get("graph_name", "");
  if (const auto metadata = top.find("metadata", "a map of texts"); metadata && !metadata->is_null()) {
    for (const auto& [key, value] : metadata->entries()) exported.metadata[key] = value.as_text();
  }
  top.finish();
  return exported;
}

WeightsFile weights_file(const char* path, const char* name_map, std::uint32_t flags) {
  if ((flags & ~std::uint32_t{TENON_WEIGHTS_TRANSPOSE | TENON_WEIGHTS_PARTIAL}) != 0)
    throw BadArgument("flags: expected TENON_WEIGHTS_* flags, got " + std::to_string(flags));
  return {.file = text(path, "path"),
          .map = optional_text(name_map),
          .transpose = (flags & TENON_WEIGHTS_TRANSPOSE) != 0,
          .strict = (flags & TENON_WEIGHTS_PARTIAL) == 0};
}

/// What `read` returns, or null if it is not known yet.
template <class Read>
Json known(const Read& read) {
  try {
    return read();
  } catch (const Error&) {
    return nullptr;
  }
}

Json json_of(const LayerSummary& layer) {
  return {{"name", layer.name},
          {"type", layer.type},
          {"output", c::json_of(layer.output)},
          {"parameters", layer.parameters},
          {"non_trainable", layer.non_trainable},
          {"frozen", layer.frozen},
          {"flops", layer.flops},
          {"device", layer.device}};
}

Model& model_of(const TenonModel* model) {
  return *get(model, "model").value;
}

}  // namespace

TenonError* tenon_model_create(const char* definition, TenonModel** out_model) {
  return guard(__func__, [&] {
    required(out_model, "out_model");
    *out_model = new TenonModel(Model(model_from_yaml(text(definition, "definition"), "<model>")));
  });
}

TenonError* tenon_model_load(const TenonContext* context, const char* path, const char* checkpoint, TenonModel** out_model) {
  return guard(__func__, [&] {
    required(out_model, "out_model");
    const Context& on = get(context, "context").value;
    const std::string from = text(path, "path");
    *out_model =
        (fs::is_directory(platform::path_of(from)) ? load_folder(on, platform::path_of(from), checkpoint) : load_file(on, from, checkpoint))
            .release();
  });
}

TenonError* tenon_model_save(const TenonModel* model, const char* folder) {
  return guard(__func__, [&] {
    const TenonModel& own = get(model, "model");
    const fs::path to = platform::path_of(text(folder, "folder"));
    const std::string definition = to_yaml(own.value->definition());
    fs::create_directories(to / checkpoint_folder);
    own.value->save(platform::text_of(to / checkpoint_folder), "model");
    if (own.compile_text.empty()) {
      remove_file(to / compile_file);
    } else {
      io::write_atomically(platform::text_of(to / compile_file), own.compile_text);
    }
    io::write_atomically(platform::text_of(to / model_file), definition);
  });
}

TenonError* tenon_model_yaml(const TenonModel* model, char** out_yaml) {
  return guard(__func__, [&] {
    required(out_yaml, "out_yaml");
    *out_yaml = new_text(to_yaml(model_of(model).definition()));
  });
}

TenonError* tenon_model_compile(TenonModel* model, const TenonContext* context, const char* definition) {
  return guard(__func__, [&] {
    TenonModel& own = get(model, "model");
    const Context& on = get(context, "context").value;
    if (definition != nullptr) return compile(own, on, definition, "<compile>");
    own.value->compile(on);
    own.of_optimizer.clear();
    own.compile_text.clear();
  });
}

TenonError* tenon_model_build(TenonModel* model, uint32_t rank, const int64_t* shape) {
  return guard(__func__, [&] { model_of(model).build(shape_of(rank, shape)); });
}

TenonError* tenon_model_replace_head(TenonModel* model, const char* after, const char* definition) {
  return guard(__func__, [&] {
    Model& own = model_of(model);
    own.replace_head(text(after, "after"), model_from_yaml(text(definition, "definition"), "<head>").layers);
  });
}

TenonError* tenon_model_summary(const TenonModel* model, int64_t batch_size, char** out_text) {
  return guard(__func__, [&] {
    required(out_text, "out_text");
    *out_text = new_text(model_of(model).summary(batch_size));
  });
}

TenonError* tenon_model_describe(const TenonModel* model, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const Model& own = model_of(model);
    const auto layers = [&] {
      Json list = Json::array();
      for (const LayerSummary& layer : own.layers()) list.push_back(json_of(layer));
      return list;
    };
    *out_json = new_json({{"name", own.definition().name},
                          {"built", own.built()},
                          {"inputs", known([&] { return c::json_of(own.inputs()); })},
                          {"outputs", known([&] { return c::json_of(own.outputs()); })},
                          {"layers", known(layers)},
                          {"step", own.step()},
                          {"epochs", own.epochs_done()},
                          {"learning_rate", known([&] { return Json(own.learning_rate()); })},
                          {"run", own.run()}});
  });
}

TenonError* tenon_model_explain(TenonModel* model, int64_t batch_size, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    *out_json = new_text(model_of(model).explain(batch_size).json());
  });
}

TenonError* tenon_model_set_learning_rate(TenonModel* model, double rate) {
  return guard(__func__, [&] { model_of(model).set_learning_rate(rate); });
}

TenonError* tenon_model_parameters(const TenonModel* model, TenonParameters** out_parameters) {
  return guard(__func__, [&] {
    required(out_parameters, "out_parameters");
    const TenonModel& own = get(model, "model");
    *out_parameters = new TenonParameters(std::shared_ptr<ParameterStore>(own.value, &own.value->parameters()));
  });
}

TenonError* tenon_model_freeze(TenonModel* model, int64_t batch_size, TenonProgram** out_program) {
  return guard(__func__, [&] {
    required(out_program, "out_program");
    Program program = model_of(model).freeze(batch_size);
    const Graph graph = program.graph();
    *out_program = new TenonProgram(std::move(program), graph);
  });
}

TenonError* tenon_model_save_checkpoint(const TenonModel* model, const char* folder, const char* name) {
  return guard(__func__, [&] { model_of(model).save(text(folder, "folder"), text(name, "name")); });
}

TenonError* tenon_model_load_checkpoint(TenonModel* model, const char* checkpoint, uint32_t weights_only) {
  return guard(__func__,
               [&] { model_of(model).load(text(checkpoint, "checkpoint"), weights_only != 0 ? Model::Load::weights : Model::Load::all); });
}

TenonError* tenon_model_import_weights(TenonModel* model, const char* path, const char* name_map, uint32_t flags, char** out_json) {
  return guard(__func__, [&] {
    const WeightsReport report = import_weights(model_of(model), weights_file(path, name_map, flags));
    if (out_json == nullptr) return;
    Json matched = Json::array();
    for (const auto& [parameter, tensor] : report.matched) matched.push_back({parameter, tensor});
    *out_json = new_json({{"matched", matched}, {"missing", report.missing}, {"left_over", report.left_over}});
  });
}

TenonError* tenon_model_export_weights(TenonModel* model, const char* path, const char* name_map, uint32_t flags) {
  return guard(__func__, [&] { export_weights(model_of(model), weights_file(path, name_map, flags)); });
}

TenonError* tenon_model_export_onnx(const TenonModel* model, const char* path, const char* options) {
  return guard(__func__, [&] { model_of(model).export_onnx(text(path, "path"), export_options(options)); });
}
