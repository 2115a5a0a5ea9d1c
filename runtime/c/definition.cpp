// SPDX-License-Identifier: Apache-2.0
// Checks parts of definitions in the C API, by the readers of whole ones.
#include <tenon/definition_text.h>

#include <string_view>

#include "c/object.h"
#include "yaml/reader.h"
#include "yaml/write.h"

using namespace tenon;
using namespace tenon::c;

namespace {

/// A kind of part, and a definition that has one.
struct PartKind {
  std::string_view name;
  void (*read)(const std::string& part);
};

constexpr PartKind kinds[] = {
    {"layer", [](const std::string& part) { model_from_yaml("layers: [" + part + "]", "<layer>"); }},
    {"initializer",
     [](const std::string& part) { model_from_yaml("layers: [{dense: {units: 1, kernel_initializer: " + part + "}}]", "<initializer>"); }},
    {"loss", [](const std::string& part) { compile_from_yaml("loss: " + part, "<loss>"); }},
    {"optimizer", [](const std::string& part) { compile_from_yaml("{loss: mse, optimizer: " + part + "}", "<optimizer>"); }},
    {"schedule",
     [](const std::string& part) { compile_from_yaml("{loss: mse, optimizer: {name: sgd, learning_rate: " + part + "}}", "<schedule>"); }},
    {"callback", [](const std::string& part) { fit_from_yaml("callbacks: [" + part + "]", "<callback>"); }},
};

}  // namespace

TenonError* tenon_definition_check(const char* kind, const char* definition) {
  return guard(__func__, [&] {
    const std::string wanted = text(kind, "kind");
    const yaml::Node tree =
        yaml::parse(text(definition, "definition"), std::make_shared<yaml::Source>(yaml::Source{"<definition>", "", Origin::Kind::api}));
    for (const PartKind& known : kinds) {
      if (known.name == wanted) return known.read(yaml::flow(tree));
    }
    std::string names;
    for (const PartKind& known : kinds) names += (names.empty() ? "" : ", ") + std::string(known.name);
    throw BadArgument("kind: expected one of " + names + ", got '" + wanted + "'");
  });
}
