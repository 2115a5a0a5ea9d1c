// SPDX-License-Identifier: Apache-2.0
#include "plugin.h"

#include <tenon/op_digests.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace tenon::fuzz {
namespace {

constexpr tenon_op_digest digests[] = TENON_OP_DIGESTS;

/// The plugin's answers. Global, since the query is a plain function: one load at a time.
struct Answers {
  tenon_backend_info info{};
  tenon_backend_table table{};
  tenon_blas_table blas{};
  tenon_capture_table capture{};
  /// Larger than the arrays, so that any strides and counts are safe: entries at the start, then zeros.
  alignas(8) unsigned char capabilities[1 << 16] = {};
  alignas(8) unsigned char options[1 << 16] = {};
  alignas(8) unsigned char vendor_ops[1 << 16] = {};
  std::string schema = "x:T bias:T? -> y:T; limit:float axes:ints=[] mode:string=soft";
  tenon_device_info device{};
  tenon_status create_status = TENON_OK, count_status = TENON_OK, device_status = TENON_OK;
  std::uint32_t device_count = 1;
  bool no_handle = false, no_table = false, other_answer = false;
  std::uint8_t says = 0;  ///< what is written into errors: nothing, a text, the whole buffer without NUL
  std::uint32_t queries = 0;
};
Answers answers;
tenon_host host;

const char* const strings[] = {nullptr, "", "fuzzed", "Fuzzed", "9", "x:y", "\xff\xfe", "linux-x86_64", "a|b|c", "%s%n{}{:d}", "a\nb"};
const char* odd_string(Bytes& bytes) {
  return strings[bytes.below(std::size(strings))];
}

void say(tenon_error* error) {
  if (error == nullptr || error->text == nullptr || answers.says == 0) return;
  std::memset(error->text, 'x', error->text_capacity);
  if (answers.says == 1) error->text[error->text_capacity - 1] = '\0';
  error->status = 4711;
  error->node_id = 12345;
}

tenon_status create(const tenon_host*, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* error) {
  say(error);
  if (answers.create_status != TENON_OK) return answers.create_status;
  *out_backend = answers.no_handle ? nullptr : reinterpret_cast<tenon_backend*>(&answers);
  *out_table = answers.no_table ? nullptr : &answers.table;
  return TENON_OK;
}

tenon_status query(const tenon_host_info*, tenon_backend_info* out_info) {
  *out_info = answers.info;
  if (answers.other_answer && answers.queries++ % 2 == 1) ++out_info->priority;
  return TENON_OK;
}

tenon_status device_count(tenon_backend*, std::uint32_t* out_count, tenon_error* error) {
  say(error);
  if (answers.count_status == TENON_OK) *out_count = answers.device_count;
  return answers.count_status;
}
tenon_status device_info(tenon_backend*, std::uint32_t, tenon_device_info* out_info, tenon_error* error) {
  say(error);
  if (answers.device_status == TENON_OK) *out_info = answers.device;
  return answers.device_status;
}

tenon_status infer(const tenon_tensor_desc*, std::uint32_t, const tenon_attributes_vendor*, tenon_vendor_result*, std::uint32_t,
                   tenon_error*) {
  return TENON_UNSUPPORTED;
}

void unused() {}

void reset() {
  answers.~Answers();
  new (&answers) Answers;
  const tenon_capability capability{TENON_OP_Relu, 14, TENON_DTYPE_BIT(TENON_DTYPE_F32), 0, 0};
  std::memcpy(answers.capabilities, &capability, sizeof capability);
  const tenon_option option{"threads", TENON_OPTION_INTEGER, 0, "1", nullptr, 1, 64, "threads to use"};
  std::memcpy(answers.options, &option, sizeof option);
  tenon_backend_info& info = answers.info;
  info.struct_size = sizeof info;
  info.abi_major = TENON_ABI_MAJOR;
  info.abi_minor_lowest = 0;
  info.abi_minor_highest = TENON_ABI_MINOR;
  info.name = "fuzzed";
  info.digests = digests;
  info.digest_count = std::size(digests);
  info.capabilities = reinterpret_cast<const tenon_capability*>(answers.capabilities);
  info.capability_count = 1;
  info.capability_stride = sizeof capability;
  info.options = reinterpret_cast<const tenon_option*>(answers.options);
  info.option_count = 1;
  info.option_stride = sizeof option;
  const tenon_vendor_op vendor_op{TENON_OP_VENDOR, 1, "com.example", "Op", answers.schema.c_str(), infer};
  std::memcpy(answers.vendor_ops, &vendor_op, sizeof vendor_op);
  info.vendor_ops = reinterpret_cast<const tenon_vendor_op*>(answers.vendor_ops);
  info.vendor_op_count = 1;
  info.vendor_op_stride = sizeof vendor_op;
  info.create = create;
  // Slots that the loader does not call only have to be set.
  void (*const slot)() = unused;
  for (std::size_t at = offsetof(tenon_backend_table, shutdown); at < offsetof(tenon_backend_table, blas); at += sizeof slot) {
    std::memcpy(reinterpret_cast<char*>(&answers.table) + at, &slot, sizeof slot);
  }
  answers.table.struct_size = sizeof answers.table;
  answers.table.shutdown = [](tenon_backend*) {};
  answers.table.destroy = [](tenon_backend*) {};
  answers.table.device_count = device_count;
  answers.table.device_info = device_info;
  answers.blas.struct_size = sizeof answers.blas;
  answers.capture.struct_size = sizeof answers.capture;
  answers.device.struct_size = sizeof answers.device;
  answers.device.name = "a device";
}

/// Limits a count so that the array fits its buffer, which no host can check.
void limit(std::uint32_t& count, std::uint32_t stride, std::size_t capacity) {
  if (stride == 0 || count > (1u << 20)) return;  // never read
  count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, capacity / stride));
}

void alter_query(Bytes& bytes) {
  tenon_backend_info& info = answers.info;
  while (!bytes.empty()) {
    switch (bytes.below(14)) {
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
        info.option_stride = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 5:
        info.option_count = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 6:
        info.capabilities = nullptr;
        break;
      case 7:
        info.options = nullptr;
        break;
      case 8:
        info.digest_count = static_cast<std::uint32_t>(odd_number(bytes));
        if (info.digest_count <= 1u << 20) info.digest_count = std::min<std::uint32_t>(info.digest_count, std::size(digests));
        break;
      case 9:
        if (bytes.below(2) == 0) {
          info.digests = nullptr;
        } else {
          info.create = nullptr;
        }
        break;
      case 10: {
        tenon_option option{};
        std::memcpy(&option, answers.options, sizeof option);
        option.name = odd_string(bytes);
        option.type = bytes.below(6);
        option.default_value = odd_string(bytes);
        option.choices = odd_string(bytes);
        std::memcpy(answers.options, &option, sizeof option);
        break;
      }
      case 11: {
        tenon_vendor_op op{};
        std::memcpy(&op, answers.vendor_ops, sizeof op);
        op.id = static_cast<tenon_op>(odd_number(bytes));
        op.domain = odd_string(bytes);
        op.name = odd_string(bytes);
        std::memcpy(answers.vendor_ops, &op, sizeof op);
        break;
      }
      case 12: {
        // Bytes of the schema change in place: its address is in the array.
        static constexpr char marks[] = "xT:?;|=[](), ->0e.";
        answers.schema[bytes.below(static_cast<std::uint32_t>(answers.schema.size()))] =
            marks[bytes.below(static_cast<std::uint32_t>(std::size(marks) - 1))];
        info.vendor_op_stride = bytes.below(8) == 0 ? static_cast<std::uint32_t>(odd_number(bytes)) : info.vendor_op_stride;
        break;
      }
      default:
        answers.other_answer = true;
    }
  }
  limit(info.vendor_op_count, info.vendor_op_stride, sizeof answers.vendor_ops);
  limit(info.capability_count, info.capability_stride, sizeof answers.capabilities);
  limit(info.option_count, info.option_stride, sizeof answers.options);
}

void alter_table(Bytes& bytes) {
  while (!bytes.empty()) {
    switch (bytes.below(12)) {
      case 0:
        answers.table.struct_size = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 1: {
        constexpr std::size_t slots = (offsetof(tenon_backend_table, blas) - offsetof(tenon_backend_table, shutdown)) / sizeof(void*);
        const std::size_t at = offsetof(tenon_backend_table, shutdown) + bytes.below(slots) * sizeof(void*);
        std::memset(reinterpret_cast<char*>(&answers.table) + at, 0, sizeof(void*));
        break;
      }
      case 2:
        answers.table.blas = &answers.blas;
        answers.blas.struct_size = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 3:
        answers.table.capture = &answers.capture;
        answers.capture.struct_size = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 4:
        answers.create_status = static_cast<tenon_status>(odd_number(bytes));
        break;
      case 5:
        answers.count_status = static_cast<tenon_status>(odd_number(bytes));
        break;
      case 6:
        answers.device_status = static_cast<tenon_status>(odd_number(bytes));
        break;
      case 7:
        answers.device_count = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      case 8:
        answers.says = static_cast<std::uint8_t>(bytes.below(3));
        break;
      case 9: {
        std::uint32_t* const fields[] = {&answers.device.struct_size, &answers.device.kind, &answers.device.flags};
        *fields[bytes.below(std::size(fields))] = static_cast<std::uint32_t>(odd_number(bytes));
        break;
      }
      case 10:
        answers.device.name = odd_string(bytes);
        answers.device.identity = odd_string(bytes);
        break;
      default:
        answers.no_handle = bytes.below(2) == 0;
        answers.no_table = bytes.below(2) == 0;
    }
  }
}

/// Checks that everything that the core reads later exists, in the sizes of this header.
void check(const loader::Backend& backend) {
  const tenon_backend_info& info = backend.info();
  demand(info.struct_size == sizeof info && backend.table().struct_size == sizeof(tenon_backend_table),
         "structs have the sizes of this header");
  demand(loader::host_info().abi_minor_lowest <= backend.abi_minor() && backend.abi_minor() <= loader::host_info().abi_minor_highest,
         "the core supports the negotiated minor version");
  demand(info.capability_stride == sizeof(tenon_capability) && info.option_stride == sizeof(tenon_option),
         "arrays have the strides of this header");
  for (std::uint32_t i = 0; i < info.option_count; ++i) {
    demand(info.options[i].name != nullptr && info.options[i].name[0] != '\0', "an option has a name");
    demand(info.options[i].type != TENON_OPTION_CHOICE || info.options[i].choices != nullptr, "an option of choices has choices");
  }
  if (const tenon_blas_table* blas = backend.table().blas)
    demand(blas->struct_size == sizeof *blas, "blocks have the sizes of this header");
  for (const tenon_device_info& device : backend.devices())
    demand(device.struct_size == sizeof device, "devices have the sizes of this header");
}

}  // namespace

void load_altered(Part part, const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  reset();
  if (part == Part::query) {
    alter_query(bytes);
  } else {
    alter_table(bytes);
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
  demand(!loader::describe(record).empty(), "every record has a description");
  for (const auto& backend : result.backends) check(*backend);
}

}  // namespace tenon::fuzz
