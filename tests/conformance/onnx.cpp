// SPDX-License-Identifier: Apache-2.0
// Profile onnx: ONNX's own tests - models with inputs and expected outputs - imported and run on the device under test.
//
// A test is a folder with model.onnx and test_data_set_<i>/{input,output}_<j>.pb, as ONNX publishes them. The tolerances are those of
// ONNX's test runner. onnx_left_out.cpp names the tests that Tenon does not run, each with its reason.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/onnx.h>

#include "case.h"
#include "onnx_left_out.h"
#include "platform/path.h"
#include "training_run.h"

namespace tenon::conformance {
namespace {

namespace fs = std::filesystem;

/// Those of ONNX's test runner, or some epsilons of the dtype where that is more: of the element, and of the largest one, for sums that
/// cancel.
struct Tolerances {
  double relative, absolute;
};
Tolerances tolerances(DType dtype, double largest) {
  const double epsilon = epsilon_of(dtype);
  return {std::max(1e-3, 2 * epsilon), std::max(1e-7, 4 * epsilon * std::min(largest, 1.0))};
}

/// "input_3.pb" of a folder in the order of their numbers.
std::vector<fs::path> numbered(const fs::path& folder, const std::string& stem) {
  std::vector<fs::path> files;
  for (int i = 0; fs::exists(folder / fmt::format("{}_{}.pb", stem, i)); ++i) files.push_back(folder / fmt::format("{}_{}.pb", stem, i));
  return files;
}

/// The tensor of a file. ONNX 1.12 stored bf16 as u16, since NumPy has no bf16.
Tensor read(const fs::path& file, DType declared) {
  Tensor tensor = onnx::load_tensor(file).tensor;
  if (declared != DType::bf16 || tensor.dtype() != DType::u16) return tensor;
  tensor = tensor.contiguous();
  return Tensor::borrow(tensor.raw(), DType::bf16, tensor.shape(), tensor.storage());
}

void check_output(const std::string& name, const Tensor& expected, const Tensor& got) {
  const Tensor host = got.to_host();
  if (host.dtype() != expected.dtype() || !(host.shape() == expected.shape()))
    throw Failure(fmt::format("output '{}': expected {}, got {}", name, expected.str(), host.str()));
  if (!is_floating(expected.dtype())) {
    if (!equal(expected, host)) throw Failure(fmt::format("output '{}': expected {}, got {}", name, expected.text(), host.text()));
    return;
  }
  const Array a = array_of(expected), b = array_of(host);
  double largest = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) largest = std::isfinite(a.at(i)) ? std::max(largest, std::fabs(a.at(i))) : largest;
  const Tolerances tolerance = tolerances(expected.dtype(), largest);
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double e = a.at(i), g = b.at(i);
    const bool same = (std::isnan(e) && std::isnan(g)) || e == g;
    if (same || std::fabs(e - g) <= tolerance.absolute + tolerance.relative * std::fabs(e)) continue;
    throw Failure(fmt::format("output '{}' {}: element {}: expected {}, got {}", name, host.str(), i, e, g));
  }
}

void check_data_set(onnx::Model& model, const fs::path& folder) {
  const std::vector<fs::path> inputs = numbered(folder, "input"), outputs = numbered(folder, "output");
  if (inputs.size() > model.inputs().size() || outputs.size() != model.outputs().size()) {
    throw Failure(fmt::format("{}: expected {} inputs and {} outputs, got {} and {}", platform::text_of(folder), model.inputs().size(),
                              model.outputs().size(), inputs.size(), outputs.size()));
  }
  onnx::NamedTensors given;
  for (std::size_t i = 0; i < inputs.size(); ++i) given[model.inputs()[i].name] = read(inputs[i], model.inputs()[i].dtype);
  const std::vector<Tensor>& results = model.run(given);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_output(model.outputs()[i].name, read(outputs[i], model.outputs()[i].dtype), results[i]);
}

void check_test(const CaseContext& context, const fs::path& folder) {
  try {
    onnx::Model model = onnx::Model::load(folder / "model.onnx", context_on(context.device, context.seed, true));
    int sets = 0;
    for (; fs::exists(folder / fmt::format("test_data_set_{}", sets)); ++sets) {
      check_data_set(model, folder / fmt::format("test_data_set_{}", sets));
    }
    if (sets == 0) throw NotRun("the test has no data: expected a folder test_data_set_0");
  } catch (const Error& error) {
    if (error.status() == Status::unsupported) throw Unsupported(error.what());
    throw Failure(error.what());
  }
}

}  // namespace

std::vector<Case> onnx_case_list(const std::filesystem::path& data) {
  if (!fs::is_directory(data))
    throw Error(
        fmt::format("conformance: profile onnx: the folder '{}' does not exist; --data names that of ONNX's tests, which Debian's package "
                    "libonnx-testdata installs in /usr/share/libonnx-testdata/data",
                    platform::text_of(data)));
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(data)) {
    if (entry.path().filename() == "model.onnx") folders.push_back(entry.path().parent_path());
  }
  std::ranges::sort(folders);
  std::vector<Case> cases;
  for (const fs::path& folder : folders) {
    const std::string test = fs::relative(folder, data).generic_string();
    // Few processes, as each loads the backend, but more than one, so that --jobs serves.
    const std::string group = fmt::format("onnx/{}", cases.size() / 64);
    const char* why = why_left_out(test);
    const auto run = [folder, why](CaseContext& context) {
      if (why != nullptr) throw NotRun(why);
      check_test(context, folder);
    };
    cases.push_back({"onnx/" + test, "onnx", group, TENON_DTYPE_NONE, why == nullptr, run});
  }
  if (cases.empty()) throw Error(fmt::format("conformance: profile onnx: no model.onnx in '{}'", platform::text_of(data)));
  return cases;
}

}  // namespace tenon::conformance
