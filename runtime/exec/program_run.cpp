// SPDX-License-Identifier: Apache-2.0
// Execution of a program: operands, plans and copies, and error reporting.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include <tenon/stream.h>

#include "core/log.h"
#include "exec/numerics.h"
#include "exec/program_state.h"
#include "text/counted.h"

namespace tenon {
namespace {

using exec::DeviceState;

std::string type_of(const ValueInfo& info) {
  return std::string(name_of(info.dtype)) + info.shape.str();
}

/// Copies from one device to another by the shortest available path. `staging` is host memory for the longest one.
void copy_between(DeviceState& from, std::uint64_t source, DeviceState& to, std::uint64_t destination, std::uint64_t size,
                  std::vector<char>& staging) {
  if (size == 0) return;
  if (&from == &to) {
    to.copy(TENON_COPY_DEVICE_TO_DEVICE, destination, source, size);
  } else if (from.loaded == to.loaded) {
    from.synchronize();
    to.copy(TENON_COPY_DEVICE_TO_DEVICE, destination, source, size, from.handle);
  } else if (from.host_addressable()) {
    from.synchronize();
    to.copy(TENON_COPY_HOST_TO_DEVICE, destination, source, size);
  } else if (to.host_addressable()) {
    from.copy(TENON_COPY_DEVICE_TO_HOST, destination, source, size);
    from.synchronize();
  } else {
    if (staging.size() < size) staging.resize(size);
    const auto host = reinterpret_cast<std::uintptr_t>(staging.data());
    from.copy(TENON_COPY_DEVICE_TO_HOST, host, source, size);
    from.synchronize();
    to.copy(TENON_COPY_HOST_TO_DEVICE, destination, host, size);
    to.synchronize();
  }
}

}  // namespace

const std::vector<Tensor>& Program::State::run(std::span<const Tensor> given, const RunOptions& options) {
  if (results.size() != visible) make_outputs(0);
  bind_inputs(given);
  execute(options);
  if (check != CheckNumerics::off) check_results();
  return results;
}

bool Program::State::run_into(std::span<const Tensor> given, std::span<Tensor> outputs_given, const RunOptions& options, Return returns) {
  if (outputs_given.size() != visible)
    throw Error(fmt::format("program: expected {}, got {}", counted(visible, "output"), outputs_given.size()));
  for (std::size_t i = 0; i < outputs_given.size(); ++i) {
    if (const std::string reason = why_not_output(i, outputs_given[i]); !reason.empty()) throw Error(reason);
  }
  bind_inputs(given);
  other_outputs.assign(outputs_given.begin(), outputs_given.end());
  const auto exchange = [&] {
    for (std::size_t i = 0; i < visible; ++i) {
      std::swap(own_outputs[i], other_outputs[i]);
      slots[outputs[i].slot] = own_outputs[i].defined() ? own_outputs[i].address() : 0;
    }
  };
  exchange();
  bool goes_on = false;
  try {
    goes_on = execute(options, returns);
    if (check != CheckNumerics::off) check_results();
  } catch (...) {
    exchange();
    other_outputs.clear();
    throw;
  }
  exchange();
  if (!goes_on) other_outputs.clear();
  return goes_on;
}

void Program::State::bind_inputs(std::span<const Tensor> given) {
  if (given.size() != inputs.size())
    throw Error(fmt::format("program: expected {}, got {}", counted(inputs.size(), "input"), given.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo& info = graph.info(inputs[i]);
    if (given[i].dtype() != info.dtype || !(given[i].shape() == info.shape)) {
      throw Error(fmt::format("input '{}': expected {}, got {}", info.name, type_of(info), given[i].str()));
    }
  }
  copies_from_host = false;
  for (InputUse& use : input_uses) {
    const Tensor& tensor = given[use.input];
    const std::vector<std::int64_t>& strides = graph.info(inputs[use.input]).strides;
    const bool there = tensor.storage()->device.get() == use.device.get();
    const bool in_reach = there || (use.device->host_addressable() && tensor.on_host());
    const bool fits = strides.empty() ? tensor.is_dense() : std::equal(strides.begin(), strides.end(), tensor.strides());
    const bool aligned = tensor.address() % use.device->alignment_of(tensor.dtype()) == 0;
    if (in_reach && fits && (aligned || tensor.count() == 0)) {
      slots[use.slot] = tensor.address();
      continue;
    }
    if (!strides.empty()) {
      throw Error(
          fmt::format("input '{}': expected an aligned view on {} with strides ({}), as declared, got {} with ({}); declare the "
                      "input without strides, and the program copies what it is given",
                      graph.info(inputs[use.input]).name, use.device->info.name, fmt::join(strides, ", "), tensor.str(),
                      fmt::join(std::span(tensor.strides(), tensor.shape().rank()), ", ")));
    }
    if (!use.staging.defined()) use.staging = Device(use.device).empty(tensor.dtype(), tensor.shape());
    const auto size = static_cast<std::uint64_t>(tensor.size_bytes());
    if (tensor.is_dense() && there) {
      use.device->copy(TENON_COPY_DEVICE_TO_DEVICE, use.staging.address(), tensor.address(), size);
    } else if (tensor.is_dense() && tensor.on_host()) {
      use.device->copy(TENON_COPY_HOST_TO_DEVICE, use.staging.address(), tensor.address(), size);
      copies_from_host = true;
    } else {
      use.device->upload(use.staging.address(), tensor.to_host().raw(), size);
    }
    slots[use.slot] = use.staging.address();
  }
}

bool Program::State::may_go_on_alone() const {
  return devices.size() == 1 && !devices.front()->inline_streams() && collectives.empty() && check == CheckNumerics::off && !sync_debug &&
         execution_id == 0 && !copies_from_host;
}

bool Program::State::execute(const RunOptions& options, Return returns) {
  const bool traced = trace->on();
  const exec::TraceScope scope(*trace, "run");
  exec::RunContext context(options);
  execution_id = 0;
  bool goes_on = false;
  if (traced) {
    for (const DevicePointer& device : devices) trace->add_memory(device->info.name, device->allocator->use().live_size_bytes);
  }
  if (!parameters->unset().empty()) expect_values();
  if (prologue != nullptr && seen_epoch != parameters->epoch()) run_prologue(options);
  submitted = 0;
  if (context.cancelled()) cancel("its first kernel");
  const std::uint64_t epoch = parameters->epoch();
  if (profile_requested || traced) execution_id = ++measured_runs;
  try {
    if (!collectives.empty()) choose_group();
    if (replay == nullptr || !run_recorded(epoch, traced, context)) run_parts(epoch, traced, context);
    if (device_group != nullptr) {
      const exec::TraceScope waiting(*trace, "wait");
      device_group->wait(static_cast<exec::GroupCommunicator&>(*communicator));
    }
    goes_on = returns == Return::when_submitted && may_go_on_alone();
    if (goes_on) {
      ++in_flight;
    } else {
      for (const DevicePointer& device : devices) wait_for(*device, nullptr);
      all_ended();
    }
  } catch (const std::exception& failure) {
    execution_id = 0;
    if (!collectives.empty()) communicator->abort(failure.what());  // other ranks would wait for this one, and the device for them
    if (replay != nullptr || copies_from_host) finish_submitted();
    throw;
  }
  for (const GraphUpdate& update : graph.updates()) parameters->touch(graph.info(update.parameter).name);
  return goes_on;
}

/// Notes that no run is in flight any more.
void Program::State::all_ended() {
  in_flight = 0;
  if (replay != nullptr) replay->ended();
}

/// Waits for what a failed run has submitted, or one that is given up: recordings may be destroyed, and inputs in host memory changed,
/// after that. The run has its error already.
void Program::State::finish_submitted() {
  for (const DevicePointer& device : devices) {
    try {
      device->synchronize();
    } catch (const std::exception& failure) {
      log::debug("device '{}': after a failed run: {}", device->info.name, failure.what());
    }
  }
  all_ended();
}

/// Runs the prologue if one of its parameters has changed.
void Program::State::run_prologue(const RunOptions& options) {
  std::uint64_t newest = 1;  // that of constants
  for (const ValueInfo& value : prologue->graph.values()) {
    if (value.kind == ValueKind::parameter) newest = std::max(newest, parameters->epoch(value.name));
  }
  if (newest != prologue_epoch) prologue->run({}, options);
  prologue_epoch = newest;
  seen_epoch = parameters->epoch();
}

std::uint64_t Program::State::last_change(const std::vector<std::string>& names) const {
  std::uint64_t newest = prologue_epoch;
  for (const std::string& name : names) newest = std::max(newest, parameters->epoch(name));
  return newest;
}

/// Throws for a run that is cancelled at `where`, when the devices have finished what they have of it.
void Program::State::cancel(const std::string& where) {
  for (const DevicePointer& device : devices) wait_for(*device, nullptr);
  throw Error(Status::cancelled,
              fmt::format("the run was cancelled at {}; parameters are as before the run, its results are undefined", where));
}

void Program::State::expect_values() const {
  std::string names;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.info(v);
    if (info.kind != ValueKind::parameter || !parameters->unset().contains(info.name)) continue;
    const bool read = std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const NodeInfo& node) {
      return std::find(node.inputs.begin(), node.inputs.end(), v) != node.inputs.end();
    });
    const bool shown = std::any_of(graph.outputs().begin(), graph.outputs().end(), [&](const GraphOutput& out) { return out.value == v; });
    if (read || shown) names += fmt::format("{}'{}' {}", names.empty() ? "" : ", ", info.name, type_of(info));
  }
  if (names.empty()) return;
  throw Error(
      fmt::format("program: expected a value of every parameter that it reads, got none of {}; give it by ParameterStore::set, or "
                  "call touch() after writing to its memory",
                  names));
}

tenon_bindings Program::State::bind(Part& part, std::uint64_t epoch, const tenon_run* run) {
  for (std::size_t i = 0; i < part.slots.size(); ++i) part.addresses[i] = slots[part.slots[i]];
  tenon_bindings bindings{};
  bindings.struct_size = sizeof bindings;
  bindings.address_count = static_cast<std::uint32_t>(part.addresses.size());
  bindings.addresses = part.addresses.data();
  bindings.parameters_epoch = part.fixed ? last_change(part.parameters) : epoch;
  bindings.run = run;
  bindings.execution_id = execution_id;
  return bindings;
}

void Program::State::choose_group() {
  auto* const ranks = dynamic_cast<exec::GroupCommunicator*>(communicator.get());
  if (ranks == nullptr || group_generation == ranks->generation()) return;
  device_group = nullptr;
  std::uint64_t dtypes = 0;
  DevicePointer device = collectives[0].device;
  for (const Collective& collective : collectives) {
    if (!collective.root) dtypes |= TENON_DTYPE_BIT(static_cast<tenon_dtype>(collective.dtype));  // every dtype can be moved
    if (collective.device != device) device = nullptr;                                            // they are on several
  }
  device_group = ranks->device_group(device, dtypes);
  group_generation = ranks->generation();
  report.reduced_by = device_group == nullptr ? "" : device_group->device()->loaded->backend->info().name;
}

/// Begins a collective, when the device has computed the values.
void Program::State::begin(Collective& collective) {
  if (device_group != nullptr) {
    requests.clear();
    for (const Piece& piece : collective.pieces) {
      requests.push_back({.kind = static_cast<std::uint32_t>(collective.root ? TENON_COLLECTIVE_BROADCAST : TENON_COLLECTIVE_ALL_REDUCE),
                          .dtype = static_cast<tenon_dtype>(collective.dtype),
                          .operation = static_cast<std::uint32_t>(collective.root ? 0 : TENON_REDUCE_SUM),
                          .peer = static_cast<std::uint32_t>(collective.root.value_or(0)),
                          .count = piece.count,
                          .source = slots[piece.slot],
                          .destination = slots[piece.slot],
                          .needs = 0,
                          .reserved = 0});
    }
    try {
      return device_group->begin(requests);
    } catch (const Error&) {
      static_cast<const exec::GroupCommunicator&>(*communicator).expect_alive();  // another rank's reason, if that has ended the group
      throw;
    }
  }
  DeviceState& device = *collective.device;
  if (device.host_addressable()) wait_for(device, nullptr);
  for (Piece& piece : collective.pieces) {
    std::uint64_t address = slots[piece.slot];
    if (!device.host_addressable()) {
      piece.staging.resize(piece.count * static_cast<std::uint64_t>(size_of(collective.dtype)));
      if (collective.root.value_or(communicator->rank()) == communicator->rank())
        device.download(address, piece.staging.data(), piece.staging.size());
      address = reinterpret_cast<std::uintptr_t>(piece.staging.data());
    }
    void* const data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
    const auto count = static_cast<std::int64_t>(piece.count);
    collective.id = collective.root ? communicator->begin_broadcast(data, count, collective.dtype, *collective.root)
                                    : communicator->begin_all_reduce(data, count, collective.dtype);
  }
}

void Program::State::finish_collectives(std::size_t count) {
  for (; finished < count; ++finished) {
    if (device_group != nullptr) {
      device_group->finish();
      continue;
    }
    Collective& collective = collectives[finished];
    const exec::TraceScope scope(*trace, collective.root ? "broadcast" : "all_reduce");
    communicator->wait(collective.id);
    for (const Piece& piece : collective.pieces) {
      if (!piece.staging.empty() && collective.root != communicator->rank())
        collective.device->upload(slots[piece.slot], piece.staging.data(), piece.staging.size());
    }
  }
}

void Program::State::run_parts(std::uint64_t epoch, bool traced, exec::RunContext& context) {
  finished = 0;
  const auto run_copy = [&](const Copy& copy) {
    if (copy.from != copy.to) wait_for(*copy.from, nullptr);
    copy_between(*copy.from, slots[copy.source], *copy.to, slots[copy.destination], copy.size, staging);
  };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Part& part = parts[p];
    if (!context.finishes() && context.cancelled()) cancel(fmt::format("plan {} of {}", p + 1, parts.size()));
    finish_collectives(part.after);
    for (const Copy& copy : before[p]) run_copy(copy);
    if (part.plan == nullptr) {
      begin(collectives[part.collective]);
      submitted = p + 1;
      context.finish();  // other ranks may update their parameters as soon as all have begun
      continue;
    }
    const tenon_bindings bindings = bind(part, epoch, context.get());
    const std::uint64_t begin_ns = traced ? exec::TraceRecorder::now_ns() : 0;
    const tenon_status status = exec::guarded_call("plan_execute", error, [&] {
      const auto lock = part.device->submission(part.device->stream);
      return part.device->table.plan_execute(part.plan, &bindings, part.workspace, part.device->stream, error);
    });
    if (status != TENON_OK) fail(status, *part.device, &part);
    submitted = p + 1;
    if (part.updates) context.finish();
    if (sync_debug || traced) wait_for(*part.device, &part);
    if (traced) record(part, begin_ns, exec::TraceRecorder::now_ns() - begin_ns);
  }
  finish_collectives(collectives.size());
  for (const Copy& copy : after) run_copy(copy);
  if (replay != nullptr) replay->executed(epoch);
}

const NodeInfo* Program::State::find_node(std::uint64_t abi_id) const {
  if (abi_id >> 32 == program_id) {
    const auto& nodes = graph.nodes();
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const NodeInfo& node) { return node.id == (abi_id & 0xffffffff); });
    if (found != nodes.end()) return &*found;
  }
  return prologue == nullptr ? nullptr : prologue->find_node(abi_id);
}

void Program::State::fail(tenon_status status, const DeviceState& device, const Part* part) {
  std::string where = fmt::format("device '{}'", device.info.name);
  std::string advice;
  const NodeInfo* node = find_node(error.node_id());
  if (node == nullptr && error.node_id() >> 32 != 0) {
    advice = "; it is a failure of another program on this device";
  } else if (node == nullptr) {
    if (part == nullptr) {  // detected while waiting: the failure of one of the plans that ran there
      std::size_t count = 0;
      for (std::size_t p = 0; p < submitted; ++p) {
        if (parts[p].device.get() != &device) continue;
        part = &parts[p];
        ++count;
      }
      if (count != 1) part = nullptr;
      if (count > 1) where += fmt::format(", one of {} plans", count);
      advice = "; set sync_debug: true to wait for each node and name the one that fails";
    }
    if (part != nullptr && part->nodes.size() == 1) node = &graph.nodes()[part->nodes[0]];
  }
  if (node != nullptr) {
    where += fmt::format(", node '{}' ({})", node->name, op_name(node->op));
    advice.clear();
  }
  if (status == TENON_CANCELLED && part != nullptr) cancel(where);
  const std::string text = error.text().empty() ? name_of(static_cast<Status>(status)) : error.text();
  throw Error(static_cast<Status>(status), fmt::format("{}: {}{}", where, text, advice));
}

void Program::State::wait_for(const DeviceState& device, const Part* part) {
  if (device.inline_streams()) return;
  const exec::TraceScope scope(*trace, "wait");
  const tenon_status status = device.table.stream_synchronize(device.stream, error);
  if (status != TENON_OK) fail(status, device, part);
}

void Program::State::wait_for(const Event& event) {
  if (in_flight == 0) return event.synchronize();  // no run of this program is before it
  const DeviceState& device = *devices.front();
  tenon_event* const handle = event.handle_on(device);
  const exec::TraceScope scope(*trace, "wait");
  const tenon_status status = device.table.event_synchronize(handle, error);
  if (--in_flight == 0) all_ended();
  if (status != TENON_OK) fail(status, device, nullptr);
}

void Program::State::check_results() {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    // Watched values follow the visible ones in node order: the first bad one names the failing node.
    const std::size_t at = outputs.size() == visible ? i : (i + visible) % outputs.size();
    const auto bad = exec::find_non_finite(own_outputs[at]);
    if (!bad) continue;
    std::string name = graph.outputs()[at].name;
    if (name.starts_with(watch_prefix)) name.erase(0, watch_prefix.size());
    throw Error(Status::internal,
                fmt::format("check_numerics: '{}' has {} at index {} of {}", name, bad->value, bad->index, own_outputs[at].str()));
  }
}

}  // namespace tenon
