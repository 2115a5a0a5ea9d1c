// SPDX-License-Identifier: Apache-2.0
#include "train/run_record.h"

#include <fmt/format.h>

#include <filesystem>

#include <tenon/error.h>

#include "io/atomic_file.h"
#include "io/gzip.h"
#include "io/limits.h"
#include "platform/path.h"
#include "train/datasets/preprocessing.h"
#include "yaml/json.h"
#include "yaml/tree.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "run.json";
constexpr const char* format_name = "tenon-run-1";

/// The folder of a checkpoint, or the folder itself.
fs::path folder_of(const std::string& checkpoint) {
  const fs::path path = platform::path_of(checkpoint);
  return fs::is_directory(path) ? path : path.parent_path();
}

/// The content of a folder's run.json; null if there is none.
Json read_record(const fs::path& folder) {
  const std::string file = platform::text_of(folder / file_name);
  if (!fs::exists(folder / file_name)) return nullptr;
  const std::vector<std::uint8_t> text = io::read_file(file, io::Limit::yaml_bytes);
  const Json record = try_parse_json({reinterpret_cast<const char*>(text.data()), text.size()});
  if (record.is_object() && record.value("format", "") == format_name) return record;
  throw Error(fmt::format("{}: expected the description of a run, with \"format\": \"{}\"; train again, or predict with the train.yaml",
                          file, format_name));
}

/// The overrides that matter to predictions; paths become absolute, for they start from the working directory of the training.
std::vector<ConfigOverride> overrides_of(const TrainDefinition& definition) {
  std::vector<ConfigOverride> kept;
  for (ConfigOverride change : definition.overrides) {
    const bool matters = change.key == "model" || change.key == "data" || change.key == "loss" || change.key == "losses" ||
                         change.key.starts_with("model.") || change.key.starts_with("data.") || change.key.starts_with("loss.") ||
                         change.key.starts_with("losses.") || change.key.starts_with("backends");
    if (!matters) continue;
    const bool is_file = change.key == "model" || change.key == "model.onnx" || change.key.ends_with("onnx.file");
    if (is_file && fs::exists(platform::path_of(change.value))) change.value = platform::absolute_path(change.value);
    kept.push_back(std::move(change));
  }
  return kept;
}

bool is_checkpoint(const std::string& path) {
  const yaml::Node tree = yaml::load(path);
  const yaml::Node::Entry* const format = tree.find("format");
  return format != nullptr && format->value.text.starts_with("tenon-checkpoint");
}

}  // namespace

void save_run(const std::string& folder, const TrainDefinition& definition, const Preprocessing& preprocessing) {
  if (definition.file.empty()) return;
  fs::create_directories(platform::path_of(folder));
  const fs::path file = platform::path_of(platform::absolute_path(definition.file));
  const fs::path home = platform::path_of(platform::absolute_path(folder));
  const fs::path relative = file.lexically_relative(home);  // none to another drive of Windows
  Json overrides = Json::array();
  for (const ConfigOverride& change : overrides_of(definition)) overrides.push_back({change.key, change.value});
  const Json record{{"format", format_name},
                    {"definition", platform::portable_text_of(relative.empty() ? file : relative)},
                    {"overrides", overrides},
                    {"preprocessing", parse_json(preprocessing_to_json(preprocessing))}};
  io::write_atomically(platform::text_of(home / file_name), json_text(record, 2) + "\n");
}

SavedRun find_run(const std::string& run, const std::string& checkpoint) {
  const bool is_folder = fs::is_directory(platform::path_of(run));
  if (!is_folder && !is_checkpoint(run)) return {run, {}, checkpoint, std::nullopt};
  const fs::path folder = folder_of(run);
  const Json record = read_record(folder);
  if (record.is_null()) {
    throw Error(
        fmt::format("{}: expected a folder of checkpoints with {}, which names its train.yaml; give the train.yaml, and --checkpoint {}",
                    platform::text_of(folder), file_name, run));
  }
  try {
    SavedRun saved;
    saved.definition = platform::normal_path(folder / platform::path_of(record.at("definition").get<std::string>()));
    for (const Json& change : record.at("overrides"))
      saved.overrides.push_back({change.at(0), change.at(1), platform::text_of(folder / file_name)});
    saved.checkpoint = checkpoint.empty() ? run : checkpoint;
    saved.preprocessing = saved_preprocessing(run);
    return saved;
  } catch (const Json::exception& problem) {
    throw Error(fmt::format("{}: {}", platform::text_of(folder / file_name), problem.what()));
  }
}

std::optional<Preprocessing> saved_preprocessing(const std::string& checkpoint) {
  const fs::path folder = folder_of(checkpoint);
  const Json record = checkpoint.empty() ? Json() : read_record(folder);
  if (!record.contains("preprocessing")) return std::nullopt;
  try {
    return preprocessing_from_json(json_text(record.at("preprocessing")));
  } catch (const Error& problem) {
    throw Error(fmt::format("{}: preprocessing: {}", platform::text_of(folder / file_name), problem.what()));
  }
}

}  // namespace tenon::train
