// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <tenon/device_name.h>
#include <tenon/error.h>

#include "testing.h"

using namespace tenon;
using namespace tenon::test;
using Kind = DeviceName::Kind;

TEST_CASE("device name: every accepted form yields kind, backend and index") {
  struct Row {
    const char* typed;
    Kind kind;
    const char* backend;
    int index;
    const char* canonical;
  };
  const Row rows[] = {
      {"auto", Kind::automatic, "", -1, "auto"},
      {"AUTO", Kind::automatic, "", -1, "auto"},
      {"cpu", Kind::alias_cpu, "", -1, "cpu:0"},
      {"cpu:0", Kind::alias_cpu, "", 0, "cpu:0"},
      {"CPU:3", Kind::alias_cpu, "", 3, "cpu:3"},
      {"gpu", Kind::alias_gpu, "", -1, "gpu:0"},
      {"gpu:1", Kind::alias_gpu, "", 1, "gpu:1"},
      {"Gpu:12", Kind::alias_gpu, "", 12, "gpu:12"},
      {"cuda", Kind::backend, "cuda", -1, "cuda:0"},
      {"cuda:1", Kind::backend, "cuda", 1, "cuda:1"},
      {"CUDA:1", Kind::backend, "cuda", 1, "cuda:1"},
      {"openblas:0", Kind::backend, "openblas", 0, "openblas:0"},
      {"reference", Kind::backend, "reference", -1, "reference:0"},
      {"my_npu2:7", Kind::backend, "my_npu2", 7, "my_npu2:7"},
      {"x:65535", Kind::backend, "x", 65535, "x:65535"},
      {"/gpu:0", Kind::alias_gpu, "", 0, "gpu:0"},
      {"/cpu:0", Kind::alias_cpu, "", 0, "cpu:0"},
      {"/GPU:1", Kind::alias_gpu, "", 1, "gpu:1"},
      {"/device:GPU:0", Kind::alias_gpu, "", 0, "gpu:0"},
      {"/device:CPU:1", Kind::alias_cpu, "", 1, "cpu:1"},
      {"/device:gpu", Kind::alias_gpu, "", -1, "gpu:0"},
      {"/device:GPU:*", Kind::alias_gpu, "", -1, "gpu:0"},
      {"/device:CUDA:1", Kind::backend, "cuda", 1, "cuda:1"},
      {"device:GPU:0", Kind::alias_gpu, "", 0, "gpu:0"},
      {"/job:localhost/replica:0/task:0/device:CPU:0", Kind::alias_cpu, "", 0, "cpu:0"},
      {"/job:localhost/replica:0/task:0/device:GPU:1", Kind::alias_gpu, "", 1, "gpu:1"},
      {"/JOB:LOCALHOST/REPLICA:0/TASK:0/DEVICE:GPU:1", Kind::alias_gpu, "", 1, "gpu:1"},
      {"/job:localhost/replica:0/task:0/cpu:0", Kind::alias_cpu, "", 0, "cpu:0"},
      {"/job:localhost/device:GPU:0", Kind::alias_gpu, "", 0, "gpu:0"},
      {"/replica:0/task:0/device:GPU:2", Kind::alias_gpu, "", 2, "gpu:2"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.typed);
    const DeviceName name = parse_device_name(row.typed);
    CHECK(name.kind == row.kind);
    CHECK(name.backend == row.backend);
    CHECK(name.index == row.index);
    CHECK(name.str() == row.canonical);
    CHECK(name.typed == row.typed);
  }
}

TEST_CASE("device name: every rejected form has a reason") {
  struct Row {
    const char* typed;
    const char* reason;
  };
  const Row rows[] = {
      {"", "the name is empty"},
      {" cpu", "it contains a space"},
      {"cpu: 0", "it contains a space"},
      {"cpu:", "the index after ':' is missing"},
      {"cpu:x", "index 'x' is not a non-negative integer"},
      {"gpu:-1", "index '-1' is not a non-negative integer"},
      {"gpu:1.5", "index '1.5' is not a non-negative integer"},
      {"gpu:+1", "index '+1' is not a non-negative integer"},
      {"gpu:01", "index '01' has a leading zero"},
      {"gpu:65536", "index 65536 is above 65535"},
      {"gpu:99999999999999999999", "index 99999999999999999999 is above 65535"},
      {"auto:0", "'auto' takes no index"},
      {":0", "the name is empty"},
      {"0", "'0' is not a backend name (a letter, then letters, digits and '_')"},
      {"2cuda:0", "'2cuda' is not a backend name (a letter, then letters, digits and '_')"},
      {"my-npu:0", "'my-npu' is not a backend name (a letter, then letters, digits and '_')"},
      {"cuda:0:1", "it has more than one ':'"},
      {"cuda:*", "index '*' is not a non-negative integer"},
      {"/", "'' has no device type"},
      {"/device:", "'device:' has no device type"},
      {"/device", "'device' has no device type"},
      {"/device:GPU:0:1", "'device:gpu:0:1' has too many parts"},
      {"/device:GPU:", "the index after ':' is missing"},
      {"/device:auto", "'auto' cannot be combined with other parts"},
      {"/device:XLA_GPU:0", "XLA_CPU and XLA_GPU are ways to execute, not devices (see the key 'fusion')"},
      {"XLA_CPU:0", "XLA_CPU and XLA_GPU are ways to execute, not devices (see the key 'fusion')"},
      {"device", "'device' is the prefix of TensorFlow names and not a backend name"},
      {"/job:worker/replica:0/task:0/device:GPU:0", "job 'worker' is not this process; expected job 'localhost'"},
      {"/job:localhost/replica:1/task:0/device:GPU:0", "replica '1' is not this process; expected replica '0'"},
      {"/job:localhost/replica:0/task:2/device:GPU:0", "task '2' is not this process; expected task '0'"},
      {"/job:localhost/replica:0/task:0", "it names a process but not a device"},
      {"/job/device:GPU:0", "'job' is not of the form job:VALUE"},
      {"/job:localhost/job:localhost/device:GPU:0", "'job' is given twice"},
      {"/gpu:0/cpu:0", "'device' is given twice"},
      {"uuid=GPU-1", "an identity follows a backend's name and ':'"},
      {"pci=0000:41:00.0", "an identity follows a backend's name and ':'"},
      {"cuda:=1", "the key before '=' is missing"},
      {"cuda:uuid=", "the value after '=' is missing"},
      {"my-npu:uuid=1", "'my-npu' is not a backend name (a letter, then letters, digits and '_')"},
  };
  const std::string tail =
      "; expected auto, cpu, gpu, cpu:N, gpu:N, <backend>:N, <backend>:uuid=..., <backend>:pci=... or a TensorFlow name such as "
      "/device:GPU:0";
  for (const Row& row : rows) {
    CAPTURE(row.typed);
    CHECK_ERROR("device '" + std::string(row.typed) + "': " + row.reason + tail, parse_device_name(row.typed));
  }
}

namespace {
const std::vector<AvailableDevice> two_cpus = {{"openblas", 0, DeviceKind::cpu}, {"reference", 0, DeviceKind::cpu}};
const std::vector<AvailableDevice> mixed = {{"cuda", 0, DeviceKind::gpu},        {"cuda", 1, DeviceKind::gpu},
                                            {"npu", 0, DeviceKind::accelerator}, {"openblas", 0, DeviceKind::cpu},
                                            {"sycl", 0, DeviceKind::gpu},        {"reference", 0, DeviceKind::cpu}};
}  // namespace

TEST_CASE("device: an identity selects a device wherever it is in the order") {
  const std::vector<AvailableDevice> devices = {{"cuda", 0, DeviceKind::gpu, "uuid=GPU-0123-ab pci=0000:41:00.0"},
                                                {"cuda", 1, DeviceKind::gpu, "uuid=GPU-4567-cd pci=0000:42:00.0"},
                                                {"opencl", 0, DeviceKind::gpu, "pci=0000:42:00.0"},
                                                {"openblas", 0, DeviceKind::cpu, "host"}};
  CHECK(find_device("cuda:uuid=GPU-4567-cd", devices) == 1);
  CHECK(find_device("CUDA:UUID=gpu-0123-AB", devices) == 0);
  CHECK(find_device("cuda:pci=0000:42:00.0", devices) == 1);
  CHECK(find_device("opencl:pci=0000:42:00.0", devices) == 2);
  CHECK(find_device("gpu:pci=0000:41:00.0", devices) == 0);
  const DeviceName name = parse_device_name("cuda:uuid=GPU-4567-cd");
  CHECK(name.kind == Kind::backend);
  CHECK(name.str() == "cuda:uuid=gpu-4567-cd");
  CHECK(shown_name(name, devices[1]) == "cuda:1 (cuda:uuid=GPU-4567-cd)");
  CHECK_ERROR(
      "device 'cuda:uuid=GPU-4567' not found; identities: cuda:0 is uuid=GPU-0123-ab pci=0000:41:00.0, cuda:1 is uuid=GPU-4567-cd "
      "pci=0000:42:00.0",
      find_device("cuda:uuid=GPU-4567", devices));
  CHECK_ERROR("device 'hip:pci=0000:42:00.0' not found; available: cuda:0 (gpu:0), cuda:1 (gpu:1), opencl:0 (gpu:2), openblas:0 (cpu:0)",
              find_device("hip:pci=0000:42:00.0", devices));
}

TEST_CASE("device: a missing device is DEVICE_NOT_FOUND with the list of available ones") {
  CHECK_ERROR("device 'gpu:1' not found; available: openblas:0 (cpu:0), reference:0 (cpu:1)", find_device("gpu:1", two_cpus));
  try {
    find_device("gpu:1", two_cpus);
    FAIL("no error");
  } catch (const Error& problem) {
    CHECK(problem.status() == Status::device_not_found);
  }
  CHECK_ERROR("device '/device:GPU:0' not found; available: openblas:0 (cpu:0), reference:0 (cpu:1)",
              find_device("/device:GPU:0", two_cpus));
  CHECK_ERROR("device 'openblas:1' not found; available: openblas:0 (cpu:0), reference:0 (cpu:1)", find_device("openblas:1", two_cpus));
  CHECK_ERROR("device 'opneblas' not found; available: openblas:0 (cpu:0), reference:0 (cpu:1); did you mean 'openblas'?",
              find_device("opneblas", two_cpus));
  CHECK_ERROR("device 'auto' not found; available: none", find_device("auto", {}));
}

TEST_CASE("device: auto is the first in order, and aliases count CPUs and GPUs in that order") {
  CHECK(find_device("auto", mixed) == 0);
  CHECK(find_device("auto", two_cpus) == 0);
  CHECK(find_device("cpu", mixed) == 3);
  CHECK(find_device("cpu:1", mixed) == 5);
  CHECK(find_device("gpu:0", mixed) == 0);
  CHECK(find_device("gpu:2", mixed) == 4);
  CHECK(find_device("cuda:1", mixed) == 1);
  CHECK(find_device("sycl", mixed) == 4);
  CHECK(find_device("npu:0", mixed) == 2);
  CHECK(find_device("/job:localhost/replica:0/task:0/device:CPU:1", two_cpus) == 1);
  CHECK(describe(mixed) == "cuda:0 (gpu:0), cuda:1 (gpu:1), npu:0, openblas:0 (cpu:0), sycl:0 (gpu:2), reference:0 (cpu:1)");
}

TEST_CASE("device: messages show the canonical name, and the alias if one was given") {
  CHECK(shown_name(parse_device_name("gpu:2"), mixed[4]) == "sycl:0 (gpu:2)");
  CHECK(shown_name(parse_device_name("/device:GPU:2"), mixed[4]) == "sycl:0 (/device:GPU:2)");
  CHECK(shown_name(parse_device_name("sycl"), mixed[4]) == "sycl:0");
  CHECK(shown_name(parse_device_name("auto"), mixed[0]) == "cuda:0");
}
