// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include <tenon/error.h>
#include <tenon/op_digests.h>
#include <tenon/sdk/kernel.h>

#include "case.h"
#include "memory.h"
#include "platform/path.h"

namespace tenon::conformance {
namespace {

constexpr unsigned char guard_byte = 0xA5;
constexpr std::uint64_t guard_bytes = 4096;  // on each side of an operand: more than a vector, a row of a tile or a cache line
constexpr tenon_op_digest core_digests[] = TENON_OP_DIGESTS;

/// Lowest and highest element offset of an operand that has elements.
struct Span {
  std::int64_t lowest = 0, highest = 0;
};
Span span_of(const Dims& shape, const Dims& strides) {
  Span span;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t reach = strides[d] * (shape[d] - 1);
    (reach < 0 ? span.lowest : span.highest) += reach;
  }
  return span;
}

/// Writes dense elements at their strided positions; `origin` is the byte of element (0, ..., 0).
void scatter(const Array& array, const Dims& strides, unsigned char* origin) {
  const Dims& shape = array.shape();
  if (strides == dense_strides(shape)) {
    if (array.size_bytes() > 0) std::memcpy(origin, array.bytes(), array.size_bytes());
    return;
  }
  Dims index(shape.size(), 0);
  const std::int64_t size = array.element_size();
  for (std::int64_t i = 0; i < array.count(); ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) offset += index[d] * strides[d];
    std::memcpy(origin + offset * size, array.bytes() + i * size, static_cast<std::size_t>(size));
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

std::string status_name(tenon_status status) {
  static constexpr const char* names[] = {
      "OK",           "INVALID_ARGUMENT", "UNSUPPORTED", "OUT_OF_MEMORY", "DEVICE_NOT_FOUND", "DEVICE_LOST",
      "INCOMPATIBLE", "NOT_READY",        "CANCELLED",   "VENDOR_ERROR",  "INTERNAL",         "FORKED"};
  return status < std::size(names) ? names[status] : fmt::format("status {}", status);
}

// ---------------------------------------------------------------- Device

Device::Device(const Source& source) : source_(source), before_(process_state()) {
  loader::Options options;
  options.core_digests = core_digests;
  options.make_host = [this](const tenon_backend_info& info, std::uint32_t abi_minor) {
    try {
      first_host_ = std::make_shared<Host>(info, abi_minor, source_.options);
    } catch (const Error& e) {
      throw WrongUse(e.what());
    }
    return first_host_->table();
  };
  if (source.query != nullptr) {
    options.registered.emplace_back(source.name, source.query);
  } else {
    options.places.push_back({source.file, "command line"});
  }
  const loader::Result result = loader::load(options);
  for (const auto& backend : result.backends) {
    if (backend->record().healthy) backend_ = backend;
  }
  if (backend_ == nullptr) {
    const std::string where = source.query != nullptr ? source.name : platform::text_of(source.file);
    if (result.records.empty()) throw Error(Status::device_not_found, "conformance: " + where + " is not a backend file");
    const loader::Record& record = result.records[0];
    const std::string text = "conformance: " + loader::describe(record);
    // A healthy backend without a device is not judged.
    if (record.reached == loader::Stage::created && record.status == TENON_DEVICE_NOT_FOUND) throw WrongUse(text);
    throw Error(Status::device_not_found, text);
  }
  host_ = first_host_;
  open();
}

Device::Device(SecondInstance other)
    : source_(other.loaded.source_),
      before_(other.loaded.before_),
      first_host_(other.loaded.first_host_),
      backend_(other.loaded.backend_),
      host_(std::make_shared<Host>(info(), backend_->abi_minor(), source_.options, other.parallelism)) {
  ErrorText error;
  const tenon_backend_table* sent = nullptr;
  const tenon_status status = info().create(host_->table(), &own_, &sent, error);
  if (status != TENON_OK)
    throw Error(Status{status}, fmt::format("conformance: create of a second {} failed: {}", info().name, error.text()));
  loader::complete_table(*sent, own_table_);
  open();
}

void Device::open() {
  tenon_backend* backend = own_ != nullptr ? own_ : backend_->handle();
  ErrorText error;
  tenon_status status = table().device_open(backend, 0, &device_, error);
  if (status == TENON_OK) {
    status = table().stream_create(device_, nullptr, &stream_, error);
    if (status != TENON_OK) table().device_close(device_);
  }
  if (status != TENON_OK) {
    if (own_ != nullptr) table().destroy(own_);
    throw Error(Status{status}, fmt::format("conformance: {}:0 cannot be opened: {}", backend_->name(), error.text()));
  }
}

const Device& Device::on_threads(std::uint32_t threads) const {
  std::unique_ptr<Device>& device = on_threads_[threads];
  if (device == nullptr) device = std::make_unique<Device>(SecondInstance{*this, {.threads = threads, .shuffled = true}});
  return *device;
}

Device::~Device() {
  on_threads_.clear();
  table().stream_destroy(stream_);
  table().device_close(device_);
  if (own_ != nullptr) {
    table().shutdown(own_);
    table().destroy(own_);
  }
  backend_.reset();  // before its host services
}

bool Device::computes_with(const Net& net) const {
  return std::ranges::all_of(net.values, [&](const Net::Value& value) { return computes_with(value.dtype); });
}

std::uint64_t Device::capability(tenon_op op, std::uint32_t version) const {
  for (std::uint32_t i = 0; i < info().capability_count; ++i) {
    const tenon_capability& row = info().capabilities[i];
    if (row.op == op && row.version == version) return row.dtypes;
  }
  return 0;
}

namespace {
tenon_status transfer(const Device& device, tenon_stream* stream, std::uint32_t direction, std::uint64_t to, std::uint64_t from,
                      std::uint64_t size, tenon_error* error) {
  tenon_copy copy{.struct_size = sizeof copy, .direction = direction, .destination = to, .source = from, .size_bytes = size};
  return device.table().copy(device.handle(), &copy, stream, error);
}
std::uint64_t host_address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
}  // namespace

tenon_status Device::upload(std::uint64_t address, const void* bytes, std::uint64_t size, tenon_error* error) const {
  const tenon_status status = transfer(*this, stream_, TENON_COPY_HOST_TO_DEVICE, address, host_address(bytes), size, error);
  return status == TENON_OK ? synchronize(error) : status;
}

tenon_status Device::download(void* bytes, std::uint64_t address, std::uint64_t size, tenon_error* error) const {
  const tenon_status status = transfer(*this, stream_, TENON_COPY_DEVICE_TO_HOST, host_address(bytes), address, size, error);
  return status == TENON_OK ? synchronize(error) : status;
}

// ---------------------------------------------------------------- Net and AbiGraph

std::uint32_t Net::input(Array array, Layout layout, std::uint32_t kind) {
  const tenon_dtype dtype = array.dtype();
  Dims shape = array.shape();
  values.push_back({kind, dtype, std::move(shape), std::move(array), std::move(layout)});
  return static_cast<std::uint32_t>(values.size() - 1);
}
std::uint32_t Net::output(tenon_dtype dtype, Dims shape) {
  values.push_back({TENON_VALUE_OUTPUT, dtype, std::move(shape), {}, {}});
  return static_cast<std::uint32_t>(values.size() - 1);
}
std::uint32_t Net::internal(tenon_dtype dtype, Dims shape) {
  values.push_back({TENON_VALUE_INTERNAL, dtype, std::move(shape), {}, {}});
  return static_cast<std::uint32_t>(values.size() - 1);
}
void Net::node(tenon_op op, std::uint32_t version, const void* attributes, std::vector<std::uint32_t> inputs,
               std::vector<std::uint32_t> outputs) {
  std::uint32_t size = 0;
  std::memcpy(&size, attributes, sizeof size);
  std::vector<std::uint64_t> copy((size + 7) / 8);
  std::memcpy(copy.data(), attributes, size);
  nodes.push_back({op, version, std::move(copy), std::move(inputs), std::move(outputs), fmt::format("node_{}", nodes.size())});
}

AbiGraph::AbiGraph(const Net& net) : donations_(net.donations) {
  static std::atomic<std::uint64_t> graphs{0};
  const std::uint64_t first_id = ++graphs << 40;
  for (std::uint32_t v = 0; v < net.values.size(); ++v) {
    const Net::Value& value = net.values[v];
    tenon_value abi_value{};
    abi_value.desc.shape = value.shape.data();
    abi_value.desc.strides = value.layout.strides.empty() ? nullptr : value.layout.strides.data();
    abi_value.desc.rank = static_cast<std::uint32_t>(value.shape.size());
    abi_value.desc.dtype = value.dtype;
    abi_value.kind = value.kind;
    abi_value.binding = TENON_NO_INDEX;
    abi_value.packed = value.packed;
    if (value.kind == TENON_VALUE_CONSTANT) {
      abi_value.data = value.array.bytes();
    } else if (value.kind != TENON_VALUE_INTERNAL) {
      abi_value.binding = static_cast<std::uint32_t>(bound.size());
      bound.push_back(v);
    }
    values.push_back(abi_value);
  }
  for (const Net::Node& node : net.nodes) {
    operands_.push_back(node.inputs);
    const auto& inputs = operands_.back();
    operands_.push_back(node.outputs);
    const auto& outputs = operands_.back();
    tenon_node abi_node{.op = node.op,
                        .version = node.version,
                        .inputs = inputs.data(),
                        .outputs = outputs.data(),
                        .input_count = static_cast<std::uint32_t>(inputs.size()),
                        .output_count = static_cast<std::uint32_t>(outputs.size()),
                        .attributes = node.attributes.data(),
                        .name = node.name.c_str(),
                        .id = first_id + 10 * nodes.size()};
    nodes.push_back(abi_node);
  }
  graph.struct_size = sizeof graph;
  graph.value_count = static_cast<std::uint32_t>(values.size());
  graph.values = values.data();
  graph.value_stride = sizeof(tenon_value);
  graph.node_count = static_cast<std::uint32_t>(nodes.size());
  graph.nodes = nodes.data();
  graph.node_stride = sizeof(tenon_node);
  graph.donation_count = static_cast<std::uint32_t>(donations_.size());
  graph.donations = donations_.data();
  graph.binding_count = static_cast<std::uint32_t>(bound.size());
}

// ---------------------------------------------------------------- Plan

Plan::Plan(const Device& device, const Net& net, PlanOptions requested) : device_(device), net_(net), abi_graph_(net) {
  if (!device.computes_with(net)) throw NotRun("the device does not compute with one of the dtypes");
  const tenon_backend_table& table = device.table();
  tenon_plan_options options{.struct_size = sizeof options, .deterministic = requested.deterministic, .fusion = requested.fusion};

  std::vector<tenon_answer> answers(abi_graph_.nodes.size() + 1);
  std::memset(static_cast<void*>(answers.data()), 0x7F, answers.size() * sizeof(tenon_answer));  // a missing answer is neither yes nor no
  ErrorText error;
  tenon_status status = table.supports(device.handle(), &abi_graph_.graph, &options, answers.data(), sizeof(tenon_answer), error);
  if (status != TENON_OK) {
    failure_ = fmt::format("`supports` failed with {} ({}), expected yes or no", status_name(status), error.text());
    return;
  }
  if (answers.back().supported != 0x7F7F7F7F) {
    failure_ = fmt::format("`supports` wrote more answers than the graph has nodes ({})", abi_graph_.nodes.size());
    return;
  }
  for (std::size_t n = 0; n < abi_graph_.nodes.size(); ++n) {
    const tenon_answer& answer = answers[n];
    if (answer.supported > 1) {
      failure_ = fmt::format("`supports` gave node {} no answer (`supported` is {})", n, answer.supported);
      return;
    }
    if (answer.supported == 1) continue;
    const bool ends = std::memchr(answer.text, 0, sizeof answer.text) != nullptr;
    if (!ends || answer.text[0] == 0 || answer.reason == TENON_REASON_NONE) {
      failure_ = fmt::format("`supports` refused node {} without {}", n,
                             answer.reason == TENON_REASON_NONE ? "a reason code" : "a text that says why");
      return;
    }
    if (!refused_) {
      refused_ = true;
      reason_ = answer.reason;
      refusal_ = answer.text;
    }
  }
  const bool strided = std::ranges::any_of(net.values, [](const Net::Value& value) { return !value.layout.strides.empty(); });
  if (refused_ && is_about_strides(reason_) && !strided) {
    failure_ = fmt::format("`supports` refused dense operands because of their strides ({}): the core has nothing left to copy", refusal_);
    return;
  }
  tenon_plan* plan = nullptr;
  status = table.plan_create(device.handle(), &abi_graph_.graph, &options, &plan, error);
  if (refused_) {
    if (status == TENON_OK) {
      failure_ = fmt::format("`supports` said no ({}), yet plan_create made a plan", refusal_);
      table.plan_destroy(plan);
    } else if (plan != nullptr) {
      failure_ = "plan_create failed but wrote its out-parameter";
    } else if (error.text().empty()) {
      failure_ = fmt::format("plan_create failed with {} and no message", status_name(status));
    }
    return;
  }
  if (status != TENON_OK) {
    failure_ = fmt::format("`supports` said yes to every node, yet plan_create failed with {}: {}", status_name(status), error.text());
    return;
  }
  info_.struct_size = sizeof info_;
  status = table.plan_info(plan, &info_, error);
  if (status != TENON_OK) {
    failure_ = fmt::format("plan_info failed with {}: {}", status_name(status), error.text());
    table.plan_destroy(plan);
    return;
  }
  plan_ = plan;
}

Plan::~Plan() {
  if (plan_ != nullptr) device_.table().plan_destroy(plan_);
}

Outcome Plan::run(unsigned char poison, tenon_stream* stream) const {
  Bindings bindings(*this, poison);
  return bindings.execute(1, stream);
}

// ---------------------------------------------------------------- Bindings

Plan::Bindings::Bindings(const Plan& plan, unsigned char poison, Edge edge)
    : plan_(plan), poison_(poison), edge_(edge), buffers_(plan.net_.values.size()) {
  for (const tenon_donation& d : plan.net_.donations) buffers_[d.output].donated = d.input;
  for (std::uint32_t v = 0; v < buffers_.size(); ++v) {
    const Net::Value& value = plan.net_.values[v];
    Buffer& buffer = buffers_[v];
    if (value.kind == TENON_VALUE_CONSTANT || value.kind == TENON_VALUE_INTERNAL || buffer.donated != TENON_NO_INDEX) continue;
    const auto size = static_cast<std::uint64_t>(Array(value.dtype, {}).element_size());
    const std::int64_t count = count_of(value.shape);
    Span span;
    if (count > 0) {
      span = span_of(value.shape, value.layout.strides.empty() ? dense_strides(value.shape) : value.layout.strides);
      buffer.extent = static_cast<std::uint64_t>(span.highest - span.lowest + 1) * size;
    }
    const std::uint64_t alignment = std::max(size, plan.device_.device_info().operand_alignment_bytes);
    allocate(buffer, alignment, static_cast<std::uint64_t>(value.layout.offset));
    buffer.origin = buffer.begin + static_cast<std::uint64_t>(-span.lowest) * size;
    fill(v);
  }
  for (const std::uint32_t v : plan.abi_graph_.bound) {
    const Buffer& own = buffers_[v];
    const Buffer& buffer = own.donated != TENON_NO_INDEX ? buffers_[own.donated] : own;
    addresses_.push_back(buffer.address + buffer.origin);
  }
  const std::uint64_t alignment = std::max<std::uint64_t>(plan.info_.workspace_alignment_bytes, 1);
  workspace_.extent = plan.info_.workspace_size_bytes;
  allocate(workspace_, alignment, edge == Edge::bytes ? 1 : 0);
  workspace_.origin = workspace_.begin;
}

void Plan::Bindings::allocate(Buffer& buffer, std::uint64_t alignment, std::uint64_t offset) {
  if (edge_ != Edge::bytes) {
    buffer.begin = offset * alignment;
    buffer.content.assign(buffer.begin + buffer.extent, guard_byte);
    buffer.pages = std::make_shared<GuardedPages>(buffer.content.size(), alignment, edge_ == Edge::page_behind);
    buffer.address = host_address(buffer.pages->data());
    return;
  }
  // No better aligned than requested: a few multiples of the alignment behind a much larger one.
  const std::uint64_t larger = 16 * alignment;
  buffer.content.assign(guard_bytes + larger + offset * alignment + buffer.extent + guard_bytes, guard_byte);
  const Device& device = plan_.device_;
  ErrorText error;
  Made made;
  const tenon_status status =
      conformance::allocate(device.table(), device.handle(), TENON_MEMORY_DEVICE, buffer.content.size(), made, error);
  buffer.memory = made.memory;
  buffer.address = made.address;
  if (status != TENON_OK) throw Error(Status{status}, fmt::format("{} bytes of device memory: {}", buffer.content.size(), error.text()));
  const std::uint64_t first = buffer.address + guard_bytes;
  buffer.begin = guard_bytes + (larger - first % larger) % larger + offset * alignment;
}

Plan::Bindings::~Bindings() {
  const tenon_backend_table& table = plan_.device_.table();
  for (const Buffer& buffer : buffers_) {
    if (buffer.memory != nullptr) table.memory_free(buffer.memory);
  }
  if (workspace_.memory != nullptr) table.memory_free(workspace_.memory);
}

void Plan::Bindings::fill(std::uint32_t v) {
  const Net::Value& value = plan_.net_.values[v];
  Buffer& buffer = buffers_[v];
  std::fill_n(buffer.content.data() + buffer.begin, buffer.extent, poison_);
  if (value.kind == TENON_VALUE_OUTPUT) return;
  scatter(value.array, value.layout.strides.empty() ? dense_strides(value.shape) : value.layout.strides,
          buffer.content.data() + buffer.origin);
}

void Plan::Bindings::set(std::uint32_t v, const Array& array) {
  const Net::Value& value = plan_.net_.values[v];
  scatter(array, value.layout.strides.empty() ? dense_strides(value.shape) : value.layout.strides,
          buffers_[v].content.data() + buffers_[v].origin);
}

tenon_status Plan::Bindings::send(std::string& out_text, tenon_stream* stream) {
  const Device& device = plan_.device_;
  ErrorText error;
  std::fill_n(workspace_.content.data() + workspace_.begin, workspace_.extent, poison_);
  const auto send_one = [&](const Buffer& buffer) {
    return transfer(device, stream, TENON_COPY_HOST_TO_DEVICE, buffer.address, host_address(buffer.content.data()), buffer.content.size(),
                    error);
  };
  tenon_status status = workspace_.content.empty() ? tenon_status{TENON_OK} : send_one(workspace_);
  for (const Buffer& buffer : buffers_) {
    if (status == TENON_OK && !buffer.content.empty()) status = send_one(buffer);
  }
  if (status != TENON_OK) out_text = "copy to the device: " + error.text();
  return status;
}

tenon_bindings Plan::Bindings::abi(std::uint64_t epoch) const {
  return {.struct_size = sizeof(tenon_bindings),
          .address_count = static_cast<std::uint32_t>(addresses_.size()),
          .addresses = addresses_.data(),
          .parameters_epoch = epoch,
          .run = run,
          .execution_id = execution_id};
}

tenon_status Plan::Bindings::execute_bare(std::uint64_t epoch, tenon_error* error) {
  const tenon_bindings abi_bindings = abi(epoch);
  const Device& device = plan_.device_;
  return device.table().plan_execute(plan_.plan_, &abi_bindings, workspace_.address + workspace_.origin, device.stream(), error);
}

Outcome Plan::Bindings::execute(std::uint64_t epoch, tenon_stream* stream) {
  const Device& device = plan_.device_;
  if (stream == nullptr) stream = device.stream();
  Outcome outcome;
  outcome.status = send(outcome.text, stream);
  if (outcome.status != TENON_OK) return outcome;

  const tenon_bindings abi_bindings = abi(epoch);
  ErrorText error;
  outcome.status = device.table().plan_execute(plan_.plan_, &abi_bindings, workspace_.address + workspace_.origin, stream, error);
  if (outcome.status == TENON_OK) outcome.status = device.table().stream_synchronize(stream, error);
  outcome.text = error.text();
  outcome.node_id = error.node_id();

  std::vector<unsigned char> after;
  const auto fetch = [&](const Buffer& buffer) {
    after.resize(buffer.content.size());
    if (after.empty()) return;
    ErrorText ignored;
    tenon_status status =
        transfer(device, stream, TENON_COPY_DEVICE_TO_HOST, host_address(after.data()), buffer.address, after.size(), ignored);
    if (status == TENON_OK) status = device.table().stream_synchronize(stream, ignored);
    if (status != TENON_OK && outcome.status == TENON_OK) {
      outcome.status = status;
      outcome.text = "copy from the device: " + ignored.text();
    }
  };
  // Bytes outside [from, to) must not have changed. `what` names the buffer.
  const auto guard = [&](const Buffer& buffer, std::uint64_t from, std::uint64_t to, const std::string& what) {
    const auto same = [&](std::uint64_t begin, std::uint64_t end) {
      return begin >= end || std::memcmp(after.data() + begin, buffer.content.data() + begin, end - begin) == 0;
    };
    if (same(0, from) && same(to, after.size())) return;
    for (std::uint64_t i = 0; i < after.size() && outcome.damage.empty(); ++i) {
      if ((i >= from && i < to) || after[i] == buffer.content[i]) continue;
      const auto end = buffer.begin + buffer.extent;
      outcome.damage = i < buffer.begin ? fmt::format("wrote {} bytes before {}", buffer.begin - i, what)
                       : i >= end       ? fmt::format("wrote {} bytes past the end of {}", i - end + 1, what)
                                        : fmt::format("changed byte {} of {}", i - buffer.begin, what);
    }
  };
  std::vector<bool> donated(buffers_.size(), false);
  for (const Buffer& buffer : buffers_) {
    if (buffer.donated != TENON_NO_INDEX) donated[buffer.donated] = true;
  }
  std::uint32_t inputs = 0, outputs = 0;
  for (std::uint32_t v = 0; v < buffers_.size(); ++v) {
    const Net::Value& value = plan_.net_.values[v];
    if (value.kind == TENON_VALUE_INTERNAL || value.kind == TENON_VALUE_CONSTANT) continue;
    const bool is_output = value.kind == TENON_VALUE_OUTPUT;
    const Buffer& buffer = buffers_[v].donated != TENON_NO_INDEX ? buffers_[buffers_[v].donated] : buffers_[v];
    const std::string what = is_output ? fmt::format("output {}", outputs++) : fmt::format("input {}", inputs++);
    fetch(buffer);
    const bool may_change = is_output || donated[v];
    guard(buffer, may_change ? buffer.begin : 0, may_change ? buffer.begin + buffer.extent : 0, what);
    if (!is_output) continue;
    Array result(value.dtype, value.shape);
    if (result.size_bytes() > 0) std::memcpy(result.bytes(), after.data() + buffer.begin, result.size_bytes());
    outcome.outputs.push_back(std::move(result));
  }
  fetch(workspace_);
  guard(workspace_, workspace_.begin, workspace_.begin + workspace_.extent, "the workspace");
  return outcome;
}

}  // namespace tenon::conformance
