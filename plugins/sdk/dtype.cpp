// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/kernel.h>

namespace tenon::sdk {
namespace {
struct Row {
  const char* name;
  std::int64_t size;
};
constexpr Row rows[TENON_DTYPE_COUNT] = {{"none", 0},  {"f16", 2}, {"bf16", 2},       {"f32", 4},        {"f64", 8},      {"c64", 8},
                                         {"c128", 16}, {"i8", 1},  {"i16", 2},        {"i32", 4},        {"i64", 8},      {"u8", 1},
                                         {"u16", 2},   {"u32", 4}, {"u64", 8},        {"bool", 1},       {"f8e4m3fn", 1}, {"f8e5m2", 1},
                                         {"i4", 0},    {"u4", 0},  {"f8e4m3fnuz", 1}, {"f8e5m2fnuz", 1}, {"f4e2m1", 0},   {"f8e8m0", 1},
                                         {"i2", 0},    {"u2", 0}};
}  // namespace

std::int64_t size_of(tenon_dtype dtype) {
  return dtype < TENON_DTYPE_COUNT ? rows[dtype].size : 0;
}
const char* name_of(tenon_dtype dtype) {
  return dtype < TENON_DTYPE_COUNT ? rows[dtype].name : "unknown";
}

}  // namespace tenon::sdk
