// SPDX-License-Identifier: Apache-2.0
// Safetensors files: a full disk, a killed process, a file with a hole.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <tenon/safetensors.h>

#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE_FIXTURE(InFolder, "safetensors: a full disk or a kill during save leaves the old checkpoint valid") {
  const std::string path = folder.file("checkpoint.safetensors");
  save_safetensors(path, {{"w", Tensor::scalar(1.0f)}});
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // the limit's signal kills the child during its write
    std::signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{4096, 4096}, no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_FSIZE, &limit);
    save_safetensors(path, {{"w", Tensor::zeros(DType::f32, {100000})}});
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(load_safetensors(path).find("w")->item() == 1.0);

  std::string text;
  {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{4096, before.rlim_max};
    auto* handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    text = message_of([&] { save_safetensors(path, {{"w", Tensor::zeros(DType::f32, {100000})}}); });
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }
  CHECK(text.find(path + ": cannot be written: File too large after 4096 bytes, ") == 0);
  CHECK(load_safetensors(path).find("w")->item() == 1.0);
  CHECK(folder.count_files() == 1);
}

TEST_CASE_FIXTURE(InFolder, "safetensors: a huge header of a huge file is rejected before it is read") {
  const std::string length("\x01\xe1\xf5\x05\0\0\0\0", 8);  // 100000001
  const std::string path = folder.write("sparse", length + "{}");
  REQUIRE(truncate(path.c_str(), off_t{1} << 33) == 0);  // a hole of 8 GiB: nothing on disk
  CHECK_ERROR_CONTAINS("expected a header of at most 100000000 bytes, got a length of 100000001", load_safetensors(path));
}
