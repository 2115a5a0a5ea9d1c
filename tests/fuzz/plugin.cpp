#include "plugin.h"

#include <tenon/op_digests.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tenon::fuzz {
namespace {

constexpr tenon_op_digest digests[] = TENON_OP_DIGESTS;

/// What is sent. One load at a time: the query is a plain function.
struct Bent {
  tenon_backend_info info{};
  tenon_backend_table table{};
  tenon_blas_table blas{};
  tenon_capture_table capture{};
  /// Room behind the arrays, so that strides and counts may be odd: entries in front, zeros behind.
  alignas(8) unsigned char capabilities[1 << 16] = {};
  alignas(8) unsigned char knobs[1 << 16] = {};
  tenon_device_info device{};
  tenon_status create_status = TENON_OK, count_status = TENON_OK, device_status = TENON_OK;
  std::uint32_t device_count = 1;
  bool no_handle = false, no_table = false, other_answer = false;
  std::uint8_t says = 0;  ///< what is written into errors: nothing, a sentence, all of the room without an end
  std::uint32_t queries = 0;
};
Bent bent;
tenon_host host;

const char* const strings[] = {nullptr, "", "fuzzed", "Fuzzed", "9", "x:y", "\xff\xfe", "linux-x86_64", "a|b|c", "%s%n{}{:d}", "a\nb"};
const char* odd_string(Bytes& bytes) {
  return strings[bytes.below(std::size(strings))];
}

void say(tenon_error* error) {
  if (error == nullptr || error->text == nullptr || bent.says == 0) return;
  std::memset(error->text, 'x', error->text_capacity);
  if (bent.says == 1) error->text[error->text_capacity - 1] = '\0';
  error->status = 4711;
  error->node = 12345;
}

tenon_status create(const tenon_host*, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* error) {
  say(error);
  if (bent.create_status != TENON_OK) return bent.create_status;
  *out_backend = bent.no_handle ? nullptr : reinterpret_cast<tenon_backend*>(&bent);
  *out_table = bent.no_table ? nullptr : &bent.table;
  return TENON_OK;
}

tenon_status query(const tenon_host_info*, tenon_backend_info* out_info) {
  *out_info = bent.info;
  if (bent.other_answer && bent.queries++ % 2 == 1) ++out_info->priority;
  return TENON_OK;
}

tenon_status device_count(tenon_backend*, std::uint32_t* out_count, tenon_error* error) {
  say(error);
  if (bent.count_status == TENON_OK) *out_count = bent.device_count;
  return bent.count_status;
}
tenon_status device_info(tenon_backend*, std::uint32_t, tenon_device_info* out_info, tenon_error* error) {
  say(error);
  if (bent.device_status == TENON_OK) *out_info = bent.device;
  return bent.device_status;
}

void unused() {}

void straighten() {
  bent.~Bent();
  new (&bent) Bent;
  const tenon_capability capability{TENON_OP_Relu, 14, TENON_DTYPE_BIT(TENON_DTYPE_F32), 0, 0};
  std::memcpy(bent.capabilities, &capability, sizeof capability);
  const tenon_knob knob{"threads", TENON_KNOB_INTEGER, 0, "1", nullptr, 1, 64, "threads to use"};
  std::memcpy(bent.knobs, &knob, sizeof knob);
  tenon_backend_info& info = bent.info;
  info.struct_size = sizeof info;
  info.abi_major = TENON_ABI_MAJOR;
  info.abi_minor_lowest = 0;
  info.abi_minor_highest = TENON_ABI_MINOR;
  info.name = "fuzzed";
  info.digests = digests;
  info.op_count = std::size(digests);
  info.capabilities = reinterpret_cast<const tenon_capability*>(bent.capabilities);
  info.capability_count = 1;
  info.capability_stride = sizeof capability;
  info.knobs = reinterpret_cast<const tenon_knob*>(bent.knobs);
  info.knob_count = 1;
  info.knob_stride = sizeof knob;
  info.create = create;
  // Slots that the loader does not call only have to be there.
  void (*const slot)() = unused;
  for (std::size_t at = offsetof(tenon_backend_table, shutdown); at < offsetof(tenon_backend_table, blas); at += sizeof slot) {
    std::memcpy(reinterpret_cast<char*>(&bent.table) + at, &slot, sizeof slot);
  }
  bent.table.struct_size = sizeof bent.table;
  bent.table.shutdown = [](tenon_backend*) {};
  bent.table.destroy = [](tenon_backend*) {};
  bent.table.device_count = device_count;
  bent.table.device_info = device_info;
  bent.blas.struct_size = sizeof bent.blas;
  bent.capture.struct_size = sizeof bent.capture;
  bent.device.struct_size = sizeof bent.device;
  bent.device.name = "a device";
}

/// Counts and strides that reach beyond what is there are no host's to find out: they are cut to it.
void keep_inside(std::uint32_t& count, std::uint32_t stride, std::size_t room) {
  if (stride == 0 || count > (1u << 20)) return;  // never read
  count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, room / stride));
}

void bend_query(Bytes& bytes) {
  tenon_backend_info& info = bent.info;
  while (!bytes.empty()) {
    switch (bytes.below(12)) {
      case 0: {
        std::uint32_t* const fields[] = {&info.struct_size,       &info.abi_major, &info.abi_minor_lowest,
                                         &info.abi_minor_highest, &info.flags,     &info.sanitizer};
        *fields[bytes.below(std::size(fields))] = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      }
      case 1: {
        const char** const fields[] = {&info.name,   &info.version,     &info.build_id,    &info.platform,
                                       &info.vendor, &info.description, &info.requirements};
        *fields[bytes.below(std::size(fields))] = odd_string(bytes);
        break;
      }
      case 2:
        info.capability_stride = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 3:
        info.capability_count = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 4:
        info.knob_stride = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 5:
        info.knob_count = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 6:
        info.capabilities = nullptr;
        break;
      case 7:
        info.knobs = nullptr;
        break;
      case 8:
        info.op_count = static_cast<std::uint32_t>(odd_number(bytes));
        if (info.op_count <= 1u << 20) info.op_count = std::min<std::uint32_t>(info.op_count, std::size(digests));
        break;
      case 9:
        if (bytes.below(2) == 0) {
          info.digests = nullptr;
        } else {
          info.create = nullptr;
        }
        break;
      case 10: {
        tenon_knob knob{};
        std::memcpy(&knob, bent.knobs, sizeof knob);
        knob.name = odd_string(bytes);
        knob.type = bytes.below(6);
        knob.default_value = odd_string(bytes);
        knob.choices = odd_string(bytes);
        std::memcpy(bent.knobs, &knob, sizeof knob);
        break;
      }
      default:
        bent.other_answer = true;
    }
  }
  keep_inside(info.capability_count, info.capability_stride, sizeof bent.capabilities);
  keep_inside(info.knob_count, info.knob_stride, sizeof bent.knobs);
}

void bend_table(Bytes& bytes) {
  while (!bytes.empty()) {
    switch (bytes.below(12)) {
      case 0:
        bent.table.struct_size = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 1: {
        constexpr std::size_t slots = (offsetof(tenon_backend_table, blas) - offsetof(tenon_backend_table, shutdown)) / sizeof(void*);
        const std::size_t at = offsetof(tenon_backend_table, shutdown) + bytes.below(slots) * sizeof(void*);
        std::memset(reinterpret_cast<char*>(&bent.table) + at, 0, sizeof(void*));
        break;
      }
      case 2:
        bent.table.blas = &bent.blas;
        bent.blas.struct_size = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 3:
        bent.table.capture = &bent.capture;
        bent.capture.struct_size = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 4:
        bent.create_status = static_cast<tenon_status>(odd_number(bytes));
        break;
      case 5:
        bent.count_status = static_cast<tenon_status>(odd_number(bytes));
        break;
      case 6:
        bent.device_status = static_cast<tenon_status>(odd_number(bytes));
        break;
      case 7:
        bent.device_count = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 8:
        bent.says = static_cast<std::uint8_t>(bytes.below(3));
        break;
      case 9: {
        std::uint32_t* const fields[] = {&bent.device.struct_size, &bent.device.kind, &bent.device.flags};
        *fields[bytes.below(std::size(fields))] = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      }
      case 10:
        bent.device.name = odd_string(bytes);
        bent.device.identity = odd_string(bytes);
        break;
      default:
        bent.no_handle = bytes.below(2) == 0;
        bent.no_table = bytes.below(2) == 0;
    }
  }
}

/// What the core reads later has to be there, in the sizes of this header.
void look_at(const loader::Backend& backend) {
  const tenon_backend_info& info = backend.info();
  demand(info.struct_size == sizeof info && backend.table().struct_size == sizeof(tenon_backend_table), "what is kept has our sizes");
  demand(loader::host_info().abi_minor_lowest <= backend.abi_minor() && backend.abi_minor() <= loader::host_info().abi_minor_highest,
         "the minor that was agreed on is one the core speaks");
  demand(info.capability_stride == sizeof(tenon_capability) && info.knob_stride == sizeof(tenon_knob), "arrays have our strides");
  for (std::uint32_t i = 0; i < info.knob_count; ++i) {
    demand(info.knobs[i].name != nullptr && info.knobs[i].name[0] != '\0', "a knob has a name");
    demand(info.knobs[i].type != TENON_KNOB_CHOICE || info.knobs[i].choices != nullptr, "a knob of choices has choices");
  }
  if (const tenon_blas_table* blas = backend.table().blas) demand(blas->struct_size == sizeof *blas, "blocks have our sizes");
  for (const tenon_device_info& device : backend.devices()) demand(device.struct_size == sizeof device, "devices have our sizes");
}

}  // namespace

void load_bent(Part part, const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  straighten();
  if (part == Part::query) {
    bend_query(bytes);
  } else {
    bend_table(bytes);
  }
  loader::Options options;
  options.core_digests = digests;
  options.registered = {{"fuzzed", query}};
  options.make_host = [](const tenon_backend_info&, std::uint32_t) { return &host; };
  const loader::Result result = loader::load(options);
  demand(result.records.size() == 1, "one candidate leaves one record");
  const loader::Record& record = result.records[0];
  demand(record.healthy || (!record.text.empty() && !record.remedy.empty()), "a refusal has a reason and a remedy");
  demand(!record.healthy || !record.devices.empty(), "a healthy backend has devices");
  demand(!loader::describe(record).empty(), "every record can be told");
  for (const auto& backend : result.backends) look_at(*backend);
}

}  // namespace tenon::fuzz
