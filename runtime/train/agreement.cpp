// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/definition_text.h>

#include "io/checksum.h"
#include "layers/definition.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::train {
namespace {

/// What has to be the same everywhere, by name. Texts are shown in messages.
using Facts = std::vector<std::pair<std::string, std::string>>;

std::string types_of(const std::vector<SampleType>& types) {
  std::string text;
  for (const SampleType& type : types)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", type.name, name_of(type.dtype), type.shape.str());
  return text;
}

/// The first sample of the data, which differs between most data sets of one size.
std::string first_sample(const Dataset& data) {
  if (data.size() == 0) return "none";
  std::vector<Tensor> inputs, targets;
  for (const SampleType& type : data.inputs()) inputs.push_back(Tensor::empty(type.dtype, type.shape.with_batch(1)));
  for (const SampleType& type : data.targets()) targets.push_back(Tensor::empty(type.dtype, type.shape.with_batch(1)));
  const std::int64_t first = 0;
  data.gather({&first, 1}, inputs, targets);
  io::Crc32 checksum;
  for (const auto* tensors : {&inputs, &targets}) {
    for (const Tensor& tensor : *tensors) checksum.add(tensor.raw(), static_cast<std::uint64_t>(tensor.size_bytes()));
  }
  return fmt::format("checksum {:08x}", checksum.value());
}

std::string text_of(const OptimizerDefinition& optimizer) {
  std::string text = name_of(optimizer.kind);
  for (const std::optional<double>& number :
       {optimizer.learning_rate, optimizer.beta1, optimizer.beta2, optimizer.epsilon, optimizer.rho, optimizer.momentum,
        optimizer.weight_decay, optimizer.initial_accumulator, optimizer.clip.value, optimizer.clip.norm, optimizer.clip.global_norm})
    text += number ? fmt::format(" {}", *number) : " -";
  for (const bool flag : {optimizer.amsgrad, optimizer.epsilon_outside_root.value_or(false), optimizer.centered, optimizer.nesterov})
    text += flag ? " yes" : " no";
  return text + ", " + counted(optimizer.groups.size(), "group");
}

/// The optimizer state that process 0 has of all ranks, as loaded, goes to those.
void share_optimizer_state(Model::State& state) {
  exec::ProcessGroup& processes = *state.setup.processes;
  const bool has_state = state.gathered_step == state.progress.saved().step && !state.gathered_state.empty();
  if (!state.setup.shards_optimizer() || !processes.any(processes.rank() == 0 && has_state)) return;
  std::map<std::string, Tensor> values;
  const std::map<std::string, std::pair<DType, Shape>> types = state.parameters.types(true);
  for (const auto& [name, owner] : state.parameters.owners_of_state()) {
    const auto kept = state.gathered_state.find(name);
    if (!processes.any(processes.rank() == 0 && kept != state.gathered_state.end())) continue;  // it begins with the start value
    Tensor host = Tensor::empty(types.at(name).first, types.at(name).second);
    if (processes.rank() == 0) host.copy_from(kept->second);
    processes.broadcast(host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
    values.emplace(name, std::move(host));
  }
  state.give_optimizer_state(std::move(values));
  if (processes.rank() > 0) state.gathered_state.clear();
}

Facts facts_of(const Model::State& state, const Dataset& data, const FitOptions& options) {
  const ModelSetup& setup = state.setup;
  const CompileOptions& compile = setup.options;
  const SavedProgress& progress = state.progress.saved();
  Facts facts;
  facts.emplace_back("the version of Tenon", TENON_VERSION);
  facts.emplace_back("the seed", std::to_string(setup.context->config().seed));
  facts.emplace_back("the precision", name_of(setup.context->config().precision));
  std::string parameters;
  for (const ParameterSpec& spec : state.parameters.weights())
    parameters += fmt::format("{}{} {}{}{}", parameters.empty() ? "" : ", ", spec.name, name_of(spec.dtype), spec.shape.str(),
                              spec.frozen ? " frozen" : "");
  facts.emplace_back("the parameters", parameters);
  std::string values;
  for (const auto& [name, tensor] : state.parameters.store()->all()) {
    if (!state.parameters.store()->unset().contains(name) && !setup.shards(name)) values += " " + name;
  }
  facts.emplace_back("the values that there are", values);
  facts.emplace_back("the number of devices", std::to_string(setup.device_count()));
  facts.emplace_back("the model", to_yaml(setup.definition));
  facts.emplace_back("the optimizer", text_of(compile.optimizer) + (setup.shards_optimizer() ? ", sharded" : ""));
  for (const OutputLoss& loss : setup.losses)
    facts.emplace_back("the loss", fmt::format("{} {} {}", loss.output, loss.loss.str(), loss.weight));
  for (const ModelSetup::Logged& logged : setup.logged) facts.emplace_back("the metrics", logged.name);
  facts.emplace_back("the data",
                     fmt::format("{}, {} samples: {} -> {}", data.name(), data.size(), types_of(data.inputs()), types_of(data.targets())));
  facts.emplace_back("the first sample of the data", first_sample(data));
  facts.emplace_back("the batches", fmt::format("batch size {}, shuffle {}, accumulate {}, steps per epoch {}", options.batch_size,
                                                options.shuffle, options.accumulate, options.steps_per_epoch));
  facts.emplace_back("the epochs", std::to_string(options.epochs));
  facts.emplace_back("the position", fmt::format("epoch {}, batch {}, step {}", progress.epoch, progress.batch, progress.step));
  return facts;
}

std::string text_of(const Facts& facts) {
  std::string text;
  for (const auto& [what, value] : facts) text += fmt::format("{}\x1f{}\x1e", what, value);
  return text;
}

Facts facts_from(const std::string& text) {
  Facts facts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t middle = text.find('\x1f', begin), end = text.find('\x1e', begin);
    facts.emplace_back(text.substr(begin, middle - begin), text.substr(middle + 1, end - middle - 1));
    begin = end + 1;
  }
  return facts;
}

/// The lines of both texts that differ first, for a message.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] == '\n') begin = i + 1;
  }
  const auto line = [&](const std::string& text) { return text.substr(begin, text.find('\n', begin) - begin); };
  return {line(a), line(b)};
}

}  // namespace

void agree(Model::State& state, const Dataset& data, const FitOptions& options) {
  exec::ProcessGroup& processes = *state.setup.processes;
  const std::vector<std::string> texts = processes.gather(text_of(facts_of(state, data, options)));
  const Facts first = facts_from(texts[0]);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const Facts own = facts_from(texts[rank]);
    for (std::size_t i = 0; i < std::max(first.size(), own.size()); ++i) {
      if (i < first.size() && i < own.size() && first[i] == own[i]) continue;
      const std::string what = i < first.size() ? first[i].first : own[i].first;
      const auto value_in = [&](const Facts& facts) { return i < facts.size() && facts[i].first == what ? facts[i].second : "none"; };
      const auto [expected, got] = first_difference(value_in(first), value_in(own));
      throw Error(
          fmt::format("process {} differs from process 0 in {}: expected '{}', got '{}'; every process needs the same files, data and "
                      "options",
                      rank, what, expected, got));
    }
  }
  ParameterStore& store = *state.parameters.store();
  for (const auto& [name, tensor] : std::map(store.all())) {
    if (store.unset().contains(name) || state.setup.shards(name)) continue;
    Tensor host = Tensor::empty(tensor.dtype(), tensor.shape());
    host.copy_from(tensor.to_host());
    processes.broadcast(host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
    if (processes.rank() > 0) store.set(name, host);
  }
  share_optimizer_state(state);
}

CheckpointAnswer verdict_on(const std::vector<CheckpointAnswer>& answers, std::size_t rank) {
  using Kind = CheckpointAnswer::Kind;
  const CheckpointAnswer& own = answers[rank];
  const auto has_name = [](const CheckpointAnswer& answer) { return !answer.checkpoint.empty(); };
  const auto first = std::ranges::find_if(answers, has_name);
  const auto other = std::find_if(first, answers.end(), [&](const auto& a) { return has_name(a) && a.checkpoint != first->checkpoint; });
  if (other != answers.end()) {
    return {own.checkpoint, Kind::failed,
            fmt::format("process {} loads {}, process {} loads {}; every process loads the same checkpoints in the same order",
                        first - answers.begin(), first->checkpoint, other - answers.begin(), other->checkpoint)};
  }
  for (const Kind kind : {Kind::failed, Kind::damaged}) {
    const auto found = std::ranges::find(answers, kind, &CheckpointAnswer::kind);
    if (found == answers.end()) continue;
    if (own.kind == kind) return own;
    return {own.checkpoint, kind, fmt::format("process {}: {}", found - answers.begin(), found->reason)};
  }
  return own;
}

void agree_on_checkpoint(exec::ProcessGroup& processes, const CheckpointFile* checkpoint, const std::exception_ptr& failure) {
  using Kind = CheckpointAnswer::Kind;
  constexpr const char *what = "the checkpoint", *failed = "what was read of it", *damaged = "damage";
  CheckpointAnswer own;
  if (checkpoint != nullptr) {
    const std::string name = platform::text_of(platform::path_of(checkpoint->file).stem());
    own.checkpoint = fmt::format("{} of run {}, step {}", name, checkpoint->progress.run, checkpoint->progress.step);
  }
  try {
    if (failure != nullptr) std::rethrow_exception(failure);
  } catch (const DamagedCheckpoint& error) {
    own = {own.checkpoint, Kind::damaged, error.what()};
  } catch (const std::exception& error) {
    own = {own.checkpoint, Kind::failed, error.what()};
  }
  Facts facts{{what, own.checkpoint}};
  if (own.kind != Kind::good) facts.emplace_back(own.kind == Kind::damaged ? damaged : failed, own.reason);
  std::vector<CheckpointAnswer> answers;
  for (const std::string& text : processes.gather(text_of(facts))) {
    const Facts got = facts_from(text);
    CheckpointAnswer& answer = answers.emplace_back();
    answer.checkpoint = got.empty() || got[0].first != what ? "none" : got[0].second;  // none: it does something else
    if (got.size() < 2 || answer.checkpoint == "none") continue;
    answer.kind = got[1].first == damaged ? Kind::damaged : Kind::failed;
    answer.reason = got[1].second;
  }
  const CheckpointAnswer verdict = verdict_on(answers, static_cast<std::size_t>(processes.rank()));
  if (verdict.kind == Kind::good) return;
  if (verdict.kind == own.kind && verdict.reason == own.reason) std::rethrow_exception(failure);
  if (verdict.kind == Kind::damaged) throw DamagedCheckpoint(verdict.reason);
  throw Error(verdict.reason);
}

}  // namespace tenon::train
