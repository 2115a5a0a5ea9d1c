// SPDX-License-Identifier: Apache-2.0
// What a user asks of backends and devices is done, or an error or one warning says why not.
#include <filesystem>

#include "backend_file.h"
#include "exec/context_state.h"
#include "exec/device_state.h"
#include "log_file.h"
#include "platform/conventions.h"
#include "testing.h"

namespace tenon::test {
namespace {

const std::string reference_file = built_backend("reference");

Config warning_config(const std::string& device) {
  Config config = test_config(device);
  config.logging.level = LogLevel::warning;
  return config;
}

TEST_CASE_FIXTURE(InFolder, "loading: a plugin path that does not exist, has no backend or is none is an error, and makes no folder") {
  const std::filesystem::path missing = platform::path_of(folder.file("nowhere"));
  CHECK_ERROR_CONTAINS(
      "plugin " + platform::text_of(missing) + " (command line): expected a backend file or a folder of backend files, got: no such folder",
      Context(test_config(), {}, {missing}));
  CHECK_FALSE(std::filesystem::exists(missing));
  CHECK_ERROR_CONTAINS("there is no such file", Context(test_config(), {missing / backend_file("x")}));
  CHECK_ERROR_CONTAINS("got: the folder has no file named " + backend_file("<name>"), Context(test_config(), {folder.path()}));
  const std::string broken = folder.write(backend_file("broken"), "not a library");
  CHECK_ERROR_CONTAINS("plugin broken (" + broken + ", API): not usable, stage 'found' reached", Context(test_config(), {broken}));
}

TEST_CASE_FIXTURE(InFolder, "loading: a broken file in a folder is one warning that names it") {
  folder.write(backend_file("broken"), "not a library");
  Config config = warning_config("reference:0");
  config.backends.search.push_back(folder.path());
  const LogFile log(config);
  const Context context(config);
  CHECK(count_of(log.text(), "warning: backend broken (" + folder.file(backend_file("broken")) + ", backends.search): not usable") == 1);
}

TEST_CASE_FIXTURE(InFolder, "loading: a configured folder that is missing, or has no backend, is one warning that names it") {
  for (const std::string& place : {folder.file("nowhere"), folder.path()}) {
    Config config = warning_config("reference:0");
    config.backends.search.push_back(place);
    const LogFile log(config);
    const Context context(config);
    CHECK(count_of(log.text(), "warning: " + place + " (backends.search): expected a backend file or a folder of backend files, got: ") ==
          1);
  }
}

TEST_CASE_FIXTURE(InFolder, "loading: a backend is replaced by its file as it is now, when nothing of it is alive") {
  const std::filesystem::path file = folder.file(backend_file("reference"));
  // As an installer does: a file that is mapped is never written to. Windows lets it be renamed, and keeps it while it is loaded.
  const TemporaryFolder old;
  const auto replace_by = [&](const std::filesystem::path& source) {
    std::filesystem::copy_file(source, folder.file("new"));
    if (std::filesystem::exists(file)) std::filesystem::rename(file, old.file(std::to_string(old.count_files())));
    std::filesystem::rename(folder.file("new"), file);
  };
  const bool keeps_loaded_files = platform::conventions().format == platform::BinaryFormat::pe;
  replace_by(reference_file);
  Context context(test_config("openblas:0"), {file});
  const Device other = context.device("openblas:0");
  const auto code = [&] { return context.device("reference:0").state()->table.copy; };
  const auto first = code();
  const auto sum = [&] {
    const Tensor x = Tensor::of<float>({1, 2}, {2}).to(context.device("reference:0"));
    return context.apply(context.device("reference:0"), TENON_OP_Add, {x, x})[0].to_vector<float>();
  };
  CHECK(sum() == std::vector<float>{2, 4});
  {
    const Tensor x = context.device("reference:0").empty(DType::f32, {1000});
    const std::string text = message_of([&] { context.reload_backend("reference"); });
    CHECK(contains(text, "reload_backend: 'reference' is in use: device 'reference:0' is held by "));
    CHECK(contains(text, " tensors, programs, streams or Device objects, with 4000 bytes in use; destroy them first"));
  }
  context.reload_backend("reference");
  CHECK((code() != first));
  CHECK(sum() == std::vector<float>{2, 4});
  CHECK(context.device("openblas:0") == other);
  CHECK(folder.count_files() == (keeps_loaded_files ? 2 : 1));  // what was loaded is a copy of the file

  const auto second = code();
  const std::size_t services = context.state()->services.size();
  replace_by(built_backend("openblas"));
  CHECK_ERROR("reload_backend: 'reference' stays as it was: " + platform::text_of(file) + " now calls itself 'openblas'",
              context.reload_backend("reference"));
  std::filesystem::rename(folder.write("new", "not a library"), file);
  CHECK_ERROR_CONTAINS("reload_backend: 'reference' stays as it was: reference (" + platform::text_of(file) + ", reload): not usable",
                       context.reload_backend("reference"));
  CHECK((code() == second));
  CHECK(sum() == std::vector<float>{2, 4});
  std::filesystem::remove(file);
  CHECK_ERROR_CONTAINS("there is no such file", context.reload_backend("reference"));
  CHECK(context.state()->services.size() == services);  // nothing of the failed ones is left
  CHECK((code() == second));
  CHECK_ERROR_CONTAINS("reload_backend: no backend 'cuda' is in use; in use: openblas, ", context.reload_backend("cuda"));
}

TEST_CASE("loading: options of a misspelt backend are an error, those of an absent one a warning") {
  Config config = warning_config("reference:0");
  apply_override(config, "backends.options.openblsa.threads", "2", {Origin::Kind::command_line, "--set x"});
  CHECK_ERROR_CONTAINS("--set x: key 'backends.options.openblsa': there is no backend of that name; did you mean 'openblas'?",
                       Context{config});
  Config absent = warning_config("reference:0");
  absent.backends.options["zluda"]["threads"] = "2";
  const LogFile log(absent);
  const Context context(absent);
  CHECK(count_of(log.text(), "key 'backends.options.zluda': there is no backend of that name; its options have no effect") == 1);
}

TEST_CASE("loading: the key that excludes a backend is named as written, a misspelt name gets a suggestion") {
  Config config = warning_config("auto");
  config.backends.use = {"openblsa"};
  const LogFile log(config);
  const std::string text = message_of([&] { Context{config}; });
  CHECK(contains(text, "reference: backends.use does not name it; it names: openblsa"));
  CHECK(contains(log.text(),
                 "backend 'openblsa', named in backends.use, is not available: no file of that name was found; did you mean 'openblas'?"));
}

TEST_CASE_FIXTURE(InFolder, "loading: auto warns once, with the reason, if it is left with the oracle") {
  std::filesystem::copy_file(reference_file, folder.file(backend_file("reference")));
  folder.write(backend_file("better"), "not a library");
  Config config = warning_config("auto");
  config.backends.search = {folder.path()};
  config.backends.deny = {"openblas", "cuda", "opencl"};  // of the folder next to this program
  const LogFile log(config);
  const Context context(config);
  CHECK(context.default_device().name() == "reference:0");
  CHECK(context.default_device().name() == "reference:0");
  CHECK(count_of(log.text(),
                 "device: auto means reference:0, which computes correctly and slowly: no other backend can be used; better: the "
                 "file is not a library") == 1);
  CHECK(contains(log.text(), "Without this warning: device: reference"));
}

TEST_CASE("loading: auto does not warn of a better device, nor of an oracle that was asked for") {
  for (const bool asked : {false, true}) {
    Config config = warning_config("auto");
    config.backends.use = {asked ? "reference" : "openblas"};
    const LogFile log(config);
    const Context context(config);
    CHECK(context.default_device().name() == (asked ? "reference:0" : "openblas:0"));
    CHECK(count_of(log.text(), "device: auto") == 0);
  }
}

TEST_CASE("loading: an alias without a device names the backends that cannot be used") {
  Config config = test_config("gpu");
  config.backends.use = {"reference"};
  const Context context(config);
  CHECK_ERROR_CONTAINS("; backends that cannot be used: ", (void)context.default_device());
  CHECK_ERROR_CONTAINS("openblas: backends.use does not name it", (void)context.default_device());
}

TEST_CASE("loading: a placement rule that matches nothing is one warning") {
  Config config = warning_config("openblas:0");
  config.placement = {{"hiden*", "reference:0"}, {"relu*", "reference:0"}};
  const LogFile log(config);
  const Context context(config);
  Graph graph;
  graph.output("y", ops::neg(ops::relu(graph.input("x", DType::f32, {2}))));
  for (int i = 0; i < 2; ++i) Program(context, graph);
  CHECK(count_of(log.text(), "key 'placement': 'hiden*' matches no node of the program, which has 2 nodes, and has no effect") == 1);
  CHECK(count_of(log.text(), "'relu*'") == 0);
}

}  // namespace
}  // namespace tenon::test
