// SPDX-License-Identifier: Apache-2.0
// tenon generate RUN: continues a prompt with a language model.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <tenon/decoder.h>
#include <tenon/predictor.h>

#include "cli/common.h"
#include "cli/standard_streams.h"
#include "cli/train_run.h"
#include "cli/verbs.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string run, checkpoint, data, prompt;
  std::int64_t count = 200, context = 0;
  Sampling sampling;
  bool timing = false;
};

void run_generate(const Arguments& arguments) {
  Predictor predictor = prepare_predictor(arguments.run, arguments.checkpoint, arguments.data, arguments.common);
  TextGenerator generator(std::move(predictor.run()), predictor.preprocessing(), arguments.context);
  using Clock = std::chrono::steady_clock;
  Clock::time_point first{};
  std::int64_t pieces = 0;
  generator.generate(arguments.prompt, arguments.count, arguments.sampling, [&](const std::string& piece) {
    print(pieces == 0 ? arguments.prompt + piece : piece);
    if (pieces++ == 0) first = Clock::now();
    return true;
  });
  print("\n");
  if (!arguments.timing || pieces < 2) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - first).count();
  const double rate = static_cast<double>(pieces - 1) / seconds;
  fmt::print(stderr, "{} labels, {:.1f} per second after the first; a step reads {:.1f} MB of weights, keys and values: {:.1f} GB/s\n",
             pieces, rate, static_cast<double>(generator.decoder().size_bytes()) * 1e-6,
             static_cast<double>(generator.decoder().size_bytes()) * rate * 1e-9);
}

}  // namespace

void add_generate_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("generate", "continue a text with a trained language model");
  command->add_option("run", arguments->run, "train.yaml, a folder of checkpoints, or the YAML of a checkpoint")
      ->required()
      ->type_name("RUN");
  command->add_option("--prompt", arguments->prompt, "the text to continue; default: the start of a line")->type_name("TEXT");
  command->add_option("--count", arguments->count, "number of characters or words")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--temperature", arguments->sampling.temperature, "divides the scores; 0: always the best label")
      ->type_name("T")
      ->capture_default_str();
  command->add_option("--top-k", arguments->sampling.top_k, "draw from the K best labels only; 0: all")
      ->type_name("K")
      ->capture_default_str();
  command->add_option("--top-p", arguments->sampling.top_p, "draw from the best labels whose probabilities sum up to P only")
      ->type_name("P")
      ->capture_default_str();
  command->add_option("--seed", arguments->sampling.seed, "of the draws")->type_name("N")->capture_default_str();
  command->add_option("--context", arguments->context, "number of steps that are kept; default: those of the model's samples")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command->add_flag("--timing", arguments->timing, "say on stderr how many labels per second there were");
  command->add_option("--data", arguments->data, "the text that the run was trained on, if its folder has no run.json")->type_name("PATH");
  command->add_option("--checkpoint", arguments->checkpoint, "weights: the YAML of a checkpoint, or a folder of checkpoints")
      ->type_name("PATH");
  arguments->common.add_to(*command);
  command->callback([arguments] { run_generate(*arguments); });
}

}  // namespace tenon::cli
