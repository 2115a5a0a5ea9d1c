// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "io/gzip.h"
#include "io/limits.h"
#include "platform/path.h"
#include "yaml/reader.h"

namespace tenon::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_line = "format: tenon-checkpoint-3\n", any_version = "format: tenon-checkpoint";
/// The version before has one checksum of all weights.
constexpr std::string_view first_line_2 = "format: tenon-checkpoint-2\n";
constexpr std::string_view last_line = "checksum: ";
constexpr std::int64_t max_count = std::int64_t{1} << 40;  ///< of steps, epochs, batches: far beyond any use, far below overflow

std::string content_of(const std::string& path) {
  const std::vector<std::uint8_t> bytes = io::read_file(path, io::Limit::yaml_bytes);
  return {bytes.begin(), bytes.end()};
}

/// A YAML text in double quotes.
std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      all += fmt::format("\\x{:02x}", c);
    } else {
      all += c;
    }
  }
  return all + "\"";
}

std::string checksum_line(std::string_view text) {
  io::Crc32 checksum;
  checksum.add(text.data(), text.size());
  return fmt::format("{}\"{:08x}\"\n", last_line, checksum.value());
}

[[noreturn]] void fail_format(const std::string& path, const std::string& text) {
  if (text.starts_with(any_version)) {
    throw Error(fmt::format("{}: expected '{}', got '{}': a checkpoint of another version of Tenon, which cannot be read", path,
                            first_line.substr(0, first_line.size() - 1), text.substr(0, text.find('\n')).substr(0, 60)));
  }
  const std::string beside = platform::text_of(platform::path_of(path).replace_extension(".yaml"));
  std::error_code ignored;
  const bool has_yaml = beside != path && fs::is_regular_file(platform::path_of(beside), ignored);
  throw Error(fmt::format("{}: is not a checkpoint: expected a YAML file that begins with '{}'{}", path,
                          first_line.substr(0, first_line.size() - 1), has_yaml ? "; give " + beside : std::string()));
}

/// The keys that only some checkpoints have. Numbers are written so that reading restores the same bits.
std::string optional_lines(const CheckpointFile& checkpoint) {
  const SavedProgress& s = checkpoint.progress;
  std::string text;
  if (!checkpoint.custom_loss.empty()) text += fmt::format("custom_loss: {}\n", quoted(checkpoint.custom_loss));
  if (s.batch > 0) {
    text += fmt::format("batch: {}\nbatches: {}\n", s.batch, s.batches);
    // After a non-finite loss the sums are not finite either; a resumed run restarts its means.
    if (std::all_of(s.means.sums.begin(), s.means.sums.end(), [](double sum) { return std::isfinite(sum); })) {
      text += fmt::format("weight: {}\nsums: [{}]\n", s.means.weight, fmt::join(s.means.sums, ", "));
    }
  }
  if (s.rate) text += fmt::format("learning_rate: {}\n", *s.rate);
  if (s.rate_scale != 1) text += fmt::format("learning_rate_scale: {}\n", s.rate_scale);
  if (!s.callbacks.empty()) text += "callbacks:\n";
  for (const auto& [key, state] : s.callbacks) {
    text += fmt::format("  {}: {{", quoted(key));
    const char* comma = "";
    for (const auto& [name, number] : state.numbers) {
      text += fmt::format("{}{}: {}", comma, quoted(name), number);
      comma = ", ";
    }
    text += "}\n";
  }
  return text;
}

/// The checksums of the weights.
std::string checksum_lines(const io::FileChecksum& checksum) {
  if (!checksum.has_parts) return fmt::format("weights_crc32: {}\n", checksum.crc32);
  std::string tensors;  // one text: there may be more tensors than a YAML file may have values
  for (const std::uint32_t tensor : checksum.tensors) tensors += fmt::format("{:08x}", tensor);
  return fmt::format("weights_header_crc32: {}\nweights_tensors_crc32: \"{}\"\n", checksum.header_crc32, tensors);
}

/// The checksums of the tensors, of which each has 8 hexadecimal digits.
std::vector<std::uint32_t> checksums_from(const std::string& text, const std::string& path) {
  constexpr std::size_t digits = 8;
  std::vector<std::uint32_t> checksums(text.size() / digits);
  bool valid = text.size() % digits == 0;
  for (std::size_t i = 0; valid && i < checksums.size(); ++i) {
    const char* const begin = text.data() + i * digits;
    const auto [end, error] = std::from_chars(begin, begin + digits, checksums[i], 16);
    valid = error == std::errc() && end == begin + digits;
  }
  if (!valid) throw Error(path + ": key 'weights_tensors_crc32': expected 8 hexadecimal digits for each tensor");
  return checksums;
}

/// The shape of an only input, or a map of shapes.
std::string samples_text(const std::map<std::string, std::vector<std::int64_t>>& samples) {
  std::string text;
  for (const auto& [name, shape] : samples) {
    const std::string sizes = fmt::format("[{}]", fmt::join(shape, ", "));
    if (samples.size() == 1) return sizes;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", quoted(name), sizes);
  }
  return "{" + text + "}";
}

}  // namespace

std::string CheckpointFile::str() const {
  return fmt::format("{} (epoch {}, step {}, seed {})", file, progress.epoch, progress.step, seed);
}

std::string callback_prefix(const std::string& key) {
  return "callback/" + key + "/";
}

bool is_checkpoint_file(const std::string& path) {
  try {
    return content_of(path).starts_with(any_version);
  } catch (const Error&) {
    return false;
  }
}

CheckpointFile read_checkpoint_file(const std::string& path) {
  const std::string text = content_of(path);
  if (!text.starts_with(first_line) && !text.starts_with(first_line_2)) fail_format(path, text);
  const std::size_t end = text.rfind(last_line);
  if (end == std::string::npos || text.substr(end) != checksum_line(std::string_view(text).substr(0, end)))
    throw DamagedCheckpoint(path + ": damaged: its last line is not the checksum of those before it");

  auto source = std::make_shared<yaml::Source>();
  source->name = path;
  source->folder = platform::text_of(platform::path_of(path).parent_path());
  const yaml::Node tree = yaml::parse(text, source);
  yaml::Section section(tree);
  const yaml::Range<std::int64_t> count{.lowest = 0, .highest = max_count};
  CheckpointFile checkpoint;
  SavedProgress& progress = checkpoint.progress;
  checkpoint.file = path;
  checkpoint.model = section.get("model", "");
  progress.run = section.require_value("run", "the identity of a run").as_text();
  checkpoint.weights = section.require_value("weights", "a file name").as_path();
  checkpoint.checksum.size_bytes = section.require<std::uint64_t>("weights_size_bytes", "a size in bytes");
  checkpoint.checksum.has_parts = text.starts_with(first_line);
  if (checkpoint.checksum.has_parts) {
    checkpoint.checksum.header_crc32 = section.require<std::uint32_t>("weights_header_crc32", "a checksum");
    checkpoint.checksum.tensors =
        checksums_from(section.require_value("weights_tensors_crc32", "a checksum for each tensor").as_text(), path);
  } else {
    checkpoint.checksum.crc32 = section.require<std::uint32_t>("weights_crc32", "a checksum");
  }
  checkpoint.optimizer = section.get("optimizer", "");
  checkpoint.custom_loss = section.get("custom_loss", "");
  progress.step = section.require<std::int64_t>("step", "a step number", count);
  progress.epoch = section.require<std::int64_t>("epoch", "an epoch number", count);
  checkpoint.seed = section.require<std::uint64_t>("seed", "a seed");
  const yaml::Value sample = section.require_value("sample", "a shape, or a map of inputs and shapes");
  const auto shape_of = [](const yaml::Value& value) {
    std::vector<std::int64_t> shape;
    for (const yaml::Value& size : value.items()) shape.push_back(size.as_integer({.lowest = 0}));
    return shape;
  };
  if (sample.is_map()) {
    for (const auto& [name, value] : sample.entries()) checkpoint.samples[name] = shape_of(value);
  } else {
    checkpoint.samples["x"] = shape_of(sample);
  }
  progress.batch = section.get<std::int64_t>("batch", 0, count);
  progress.batches = section.get<std::int64_t>("batches", 0, count);
  progress.means.weight = section.get<double>("weight", 0);
  if (const auto sums = section.find("sums")) {
    for (const yaml::Value& sum : sums->items()) progress.means.sums.push_back(sum.as_number());
  }
  progress.rate = section.get_optional<double>("learning_rate");
  progress.rate_scale = section.get<double>("learning_rate_scale", 1);
  if (const auto callbacks = section.find("callbacks")) {
    for (const auto& [key, numbers] : callbacks->entries()) {
      std::map<std::string, double>& own = progress.callbacks[key].numbers;  // also if it has only tensors
      for (const auto& [name, number] : numbers.entries()) own[name] = number.as_number();
    }
  }
  section.get("format", "");
  section.get("checksum", "");
  section.finish();
  return checkpoint;
}

std::string checkpoint_text(const CheckpointFile& c) {
  const SavedProgress& progress = c.progress;
  const std::string text = fmt::format(
      "{}model: {}\nrun: {}\nweights: {}\nweights_size_bytes: {}\n{}sample: {}\noptimizer: {}\nepoch: {}\nstep: {}\nseed: {}\n{}",
      c.checksum.has_parts ? first_line : first_line_2, quoted(c.model), quoted(progress.run),
      quoted(platform::text_of(platform::path_of(c.weights).filename())), c.checksum.size_bytes, checksum_lines(c.checksum),
      samples_text(c.samples), c.optimizer, progress.epoch, progress.step, c.seed, optional_lines(c));
  return text + checksum_line(text);
}

}  // namespace tenon::train
