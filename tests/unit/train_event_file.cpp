// SPDX-License-Identifier: Apache-2.0
// TensorBoard's files: the bytes were computed independently, in Python, from the specifications of the formats.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "temporary_folder.h"
#include "testing.h"
#include "train/log/event_file.h"

namespace tenon::train {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const char* const digits = "0123456789abcdef";
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

TEST_CASE("event file: CRC-32C has the check values of RFC 3720") {
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c("") == 0u);
}

TEST_CASE("event file: the first record states the version") {
  CHECK(hex(tf_record(version_event(1700000000.25))) == "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9");
}

TEST_CASE("event file: scalars with their tags and step") {
  const std::vector<std::pair<std::string, double>> scalars{{"epoch_loss", 0.5}, {"epoch_accuracy", 0.8125}};
  CHECK(hex(tf_record(scalars_event(1700000000.5, 300, scalars))) ==
        "3800000000000000a3797d570900002040fc54d94110ac022a2a0a110a0a65706f63685f6c6f7373150000003f0a150a0e65706f63685f6163637572616379"
        "150000503ffb6fc0b7");
}

TEST_CASE("event file: training and validation have separate folders with the same tags") {
  const test::TemporaryFolder folder;
  TensorBoard board({folder.path() + "/events"});
  board.epoch_end({0, {{"loss", 0.5}, {"val_loss", 0.25}}, 1, 10, 0.1});
  board.epoch_end({1, {{"loss", 0.4}, {"val_loss", 0.2}}, 1, 10, 0.1});
  for (const char* part : {"train", "validation"}) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/events/" + part)) files.push_back(entry.path());
    REQUIRE(files.size() == 1);
    CHECK(files[0].filename().string().starts_with("events.out.tfevents."));
    std::ostringstream text;
    text << std::ifstream(files[0], std::ios::binary).rdbuf();
    CHECK(test::contains(text.str(), "brain.Event:2"));
    CHECK(test::contains(text.str(), "epoch_loss"));
    CHECK(test::contains(text.str(), "epoch_learning_rate") == (part == std::string("train")));
  }
}

}  // namespace
}  // namespace tenon::train
