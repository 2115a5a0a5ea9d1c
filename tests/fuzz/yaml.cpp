// SPDX-License-Identifier: Apache-2.0
// YAML: tenon.yaml, model.yaml and train.yaml, each reader on every input. Configurations and models are unchanged after they are written
// and read.
#include <tenon/config.h>
#include <tenon/definition_text.h>

#include "config/model_yaml.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Config config;
  if (accepts([&] { config = config_from_text(text); })) {
    const std::string written = to_yaml(config, false);
    demand(to_yaml(config_from_text(written), false) == written, "a configuration that was written reads as it was");
  }
  ModelDefinition model;
  std::string written;
  if (accepts([&] { model = config::model_from_text(text); }) && accepts([&] { written = to_yaml(model); }))
    demand(to_yaml(model_from_yaml(written)) == written, "a model that was written reads as it was");
  accepts([&] { compile_from_yaml(text); });
  accepts([&] { fit_from_yaml(text); });
  // Relative paths refer to an empty folder.
  accepts([&] { config::train_from_text(text, "<text>", scratch_folder()); });
  return 0;
}
