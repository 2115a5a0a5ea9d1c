// SPDX-License-Identifier: Apache-2.0
// Ops of a backend's vendor in the SDK: schemas, deep copies of attributes, and checks of nodes against the declaration.
#include <tenon/sdk/vendor_op.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tenon/sdk/backend.h>

#include "sdk_testing.h"
#include "test_numbers.h"

namespace tenon::sdk_test {
namespace {

using test::contains;

std::string error_of(const char* schema) {
  try {
    sdk::VendorSchema::parse(schema);
  } catch (const sdk::Error& error) {
    CHECK(error.status() == TENON_INVALID_ARGUMENT);
    return error.what();
  }
  return "no error";
}

TEST_CASE("vendor schema: operands, results, and attributes with types and defaults") {
  const auto schema =
      sdk::VendorSchema::parse("x:T bias:f32|f64? -> y:T z:i64?; limit:float axes:ints=[0,-1] scales:floats=[] n:int=3 mode:string=");
  REQUIRE(schema.operands.size() == 2);
  CHECK(schema.operands[1].name == "bias");
  CHECK(schema.operands[1].types == "f32|f64");
  CHECK(schema.operands[1].optional);
  CHECK_FALSE(schema.operands[0].optional);
  CHECK(schema.results[1].optional);
  REQUIRE(schema.attributes.size() == 5);
  CHECK(schema.attributes[0].type == TENON_ATTRIBUTE_FLOAT);
  CHECK_FALSE(schema.attributes[0].default_value);
  CHECK(*schema.attributes[1].default_value == sdk::AttributeValue(std::vector<std::int64_t>{0, -1}));
  CHECK(*schema.attributes[2].default_value == sdk::AttributeValue(std::vector<double>{}));
  CHECK(*schema.attributes[3].default_value == sdk::AttributeValue(std::int64_t{3}));
  CHECK(*schema.attributes[4].default_value == sdk::AttributeValue(std::string()));
  CHECK(schema.str() == "x:T bias:f32|f64? -> y:T z:i64?; limit axes scales n mode");
  CHECK(sdk::VendorSchema::parse("x:T->y:T") == sdk::VendorSchema::parse(" x:T  -> y:T ;"));
}

TEST_CASE("vendor schema: what cannot be read is an error that quotes it") {
  CHECK(error_of("x:T; a:int") == "expected '<operands> -> <results>; <attributes>', got 'x:T; a:int'");
  CHECK(error_of("x:T ->") == "expected at least one result after '->', got 'x:T ->'");
  CHECK(contains(error_of("x -> y:T"), "as in 'x:T' or 'bias:T?', got 'x'"));
  CHECK(contains(error_of("2x:T -> y:T"), "got '2x:T'"));
  CHECK(contains(error_of("x:T? y:? -> y:T"), "got 'y:?'"));
  CHECK(contains(error_of("(x:T)* -> y:T"), "got '(x:T)*'"));
  CHECK(contains(error_of("x:T -> y:T; limit"), "got 'limit'"));
  CHECK(contains(error_of("x:T -> y:T; limit:number"), "of the types int, float, string, ints and floats, got 'limit:number'"));
  CHECK(contains(error_of("x:T -> y:T; n:int=2.5"), "expected a default of type int, got 'n:int=2.5'"));
  CHECK(contains(error_of("x:T -> y:T; l:ints=1,2"), "expected a default of type ints"));
  CHECK(error_of("x:T x:T -> y:T") == "expected operands of different names, got 'x' twice");
  CHECK(error_of("x:T -> y:T; a:int a:float") == "expected attributes of different names, got 'a' twice");
}

TEST_CASE("vendor schema: domains and names") {
  for (const char* domain : {"com.example", "a", "a1_b.c"}) CHECK(sdk::is_vendor_domain(domain));
  for (const char* domain : {"", ".", "com.", "Com.example", "com..example", "com.1", "com example"})
    CHECK_FALSE(sdk::is_vendor_domain(domain));
  for (const char* name : {"SoftClip", "x_2"}) CHECK(sdk::is_vendor_op_name(name));
  for (const char* name : {"", "2x", "a.b", "a-b"}) CHECK_FALSE(sdk::is_vendor_op_name(name));
}

// ---------------------------------------------------------------- a backend with an op

/// y = factor x + the sum of `offsets`, in `mode` twice two times that; bias is added if it is there.
template <class T>
void scaled(const sdk::Call& call) {
  const sdk::VendorAttributes attributes(call);
  T offset = 0;
  for (const std::int64_t o : attributes.integers("offsets")) offset += static_cast<T>(o);
  const T times = attributes.string("mode") == "twice" ? 2 : 1;
  for (std::int64_t i = 0; i < call.inputs[0].count; ++i) {
    call.output<T>(0)[i] = times * (static_cast<T>(attributes.number("factor")) * call.input<T>(0)[i] + offset);
    if (call.has_input(1)) call.output<T>(0)[i] += call.input<T>(1)[i];
  }
}
void infer(sdk::VendorInference& at) {
  if (at.input(0).dtype != TENON_DTYPE_F32)
    throw sdk::Error(TENON_INVALID_ARGUMENT, "expected x of f32, got " + sdk::describe(at.input(0)));
  at.result_like(0);
}
TENON_KERNEL(scaled, float)
TENON_VENDOR_INFER(scaled, infer)

constexpr tenon_op own_id = TENON_OP_VENDOR + 3;
constexpr tenon_vendor_op vendor_op_scaled{
    own_id, 1, "com.test", "Scaled", "x:T bias:T? -> y:T; factor:float offsets:ints mode:string", infer_scaled};
constexpr sdk::KernelRow rows[] = {{own_id, 1, 0, &kernel_scaled, &vendor_op_scaled}, {TENON_OP_NONE, 0, 0, nullptr}};

const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec own{
      "vendor", "0.1", "tests", "an op of its own", nullptr, 1, 0, {}, [](sdk::Host host) { return sdk::make_cpu_backend(host, "loops"); }};
  return own;
}
tenon_status query_vendor(const tenon_host_info* host, tenon_backend_info* out_info) {
  return sdk::query<spec, rows>(host, out_info);
}

/// The attributes of a node, in memory that a test may overwrite.
struct Given {
  double factor = 3;
  std::vector<std::int64_t> offsets{1, 10};
  std::string mode = "twice";
  std::vector<tenon_attribute> list{{"factor", &factor, TENON_ATTRIBUTE_FLOAT, 1},
                                    {"offsets", offsets.data(), TENON_ATTRIBUTE_INTEGERS, 2},
                                    {"mode", mode.data(), TENON_ATTRIBUTE_STRING, 5}};
  tenon_attributes_vendor attributes() const {
    return {sizeof(tenon_attributes_vendor), static_cast<std::uint32_t>(list.size()), list.data()};
  }
};

tenon_answer answer_of(Session& session, Net& net) {
  tenon_answer answer{};
  const tenon_plan_options given = options();
  ErrorText error;
  CHECK_MESSAGE(session.table->supports(session.device, &net.abi_graph(), &given, &answer, sizeof answer, error) == TENON_OK, error.text());
  return answer;
}

/// The answer for a node with these attributes.
tenon_answer answer_with(const tenon_attributes_vendor& attributes) {
  Session session(1, query_vendor);
  Net net;
  const std::uint32_t x = net.input({3}), y = net.output({3});
  net.node(own_id, {x}, {y}, attributes);
  return answer_of(session, net);
}

TEST_CASE("sdk: the query lists the ops of the vendor and their capabilities") {
  Session session(1, query_vendor);
  REQUIRE(session.info.vendor_op_count == 1);
  CHECK(session.info.vendor_op_stride == sizeof(tenon_vendor_op));
  CHECK(session.info.vendor_ops[0].id == own_id);
  CHECK(sdk::full_name(session.info.vendor_ops[0]) == "com.test.Scaled");
  REQUIRE(session.info.capability_count == 1);
  CHECK(session.info.capabilities[0].op == own_id);
  CHECK(session.info.capabilities[0].dtypes == TENON_DTYPE_BIT(TENON_DTYPE_F32));
}

TEST_CASE("sdk: a plan keeps a copy of the attributes of a vendor's op") {
  Session session(1, query_vendor);
  Net net;
  const std::uint32_t x = net.input({3}), bias = net.input({3}), inner = net.internal({3}), y = net.output({3});
  auto given = std::make_unique<Given>();
  net.node(own_id, {x}, {inner}, given->attributes());
  net.node(own_id, {inner, bias}, {y}, given->attributes());
  Run run(session, net);
  given->factor = 1000;
  given->offsets = {1000, 1000};
  given->mode = "never";
  given.reset();
  run({{x, {0, 1, 2}}, {bias, {100, 200, 300}}});
  CHECK(run.get(y) == Floats{254, 390, 526});  // 2 (3 (2 (3 x + 11)) + 11) + bias
}

TEST_CASE("sdk: a node that its declaration does not allow is a no, with what was expected") {
  const auto text = [](const tenon_answer& no, std::uint32_t reason) {
    CHECK(no.supported == 0);
    CHECK(no.reason == reason);
    return std::string(no.text);
  };
  const Given given;
  CHECK(answer_with(given.attributes()).supported == 1);
  Given fewer;
  fewer.list.pop_back();
  CHECK(text(answer_with(fewer.attributes()), TENON_REASON_ATTRIBUTES) == "com.test.Scaled: expected 3 attributes, got 2");
  Given swapped;
  std::swap(swapped.list[0], swapped.list[2]);
  CHECK(contains(text(answer_with(swapped.attributes()), TENON_REASON_ATTRIBUTES),
                 "expected attribute factor of type float, got mode of type string"));
  Given strange;
  strange.list[1].type = 99;
  CHECK(contains(text(answer_with(strange.attributes()), TENON_REASON_ATTRIBUTES),
                 "attribute 1: expected a name and a known type, got type 99"));
  CHECK(contains(text(answer_with({sizeof(tenon_attributes_vendor), 3, nullptr}), TENON_REASON_ATTRIBUTES),
                 "expected 3 attributes, got NULL"));
  CHECK(contains(text(answer_with({8, 0, nullptr}), TENON_REASON_ATTRIBUTES), "expected attributes of at least 16 bytes, got 8"));

  Session session(1, query_vendor);
  Net net;
  const std::uint32_t x = net.input({3}), other = net.output({4});
  net.node(own_id, {x}, {other}, given.attributes());
  CHECK(text(answer_of(session, net), TENON_REASON_SHAPE) == "com.test.Scaled: expected output y as f32(3), got f32(4)");
  net.nodes[0].inputs = {x, x, x};
  CHECK(contains(text(answer_of(session, net), TENON_REASON_SHAPE), "expected at most 2 inputs, got 3"));
  net.nodes[0] = {own_id, 2, {x}, {other}, net.nodes[0].attributes, 100};
  CHECK(contains(text(answer_of(session, net), TENON_REASON_OP), "version 2 has no kernel"));
  // The attributes of an op that is not declared are not looked at.
  net.nodes[0] = {own_id + 1, 1, {x}, {other}, {sizeof(tenon_attributes_vendor) | std::uint64_t{7} << 32, 1}, 100};
  text(answer_of(session, net), TENON_REASON_OP);
}

TEST_CASE("sdk: `infer` turns exceptions into a status, and leaves results untouched") {
  const Given given;
  const tenon_attributes_vendor attributes = given.attributes();
  const std::int64_t shape[] = {2, 3};
  tenon_tensor_desc inputs[] = {{shape, nullptr, 2, TENON_DTYPE_F64}, {}};
  tenon_vendor_result result{77, 0, {}};
  ErrorText error;
  CHECK(infer_scaled(inputs, 2, &attributes, &result, 1, error) == TENON_INVALID_ARGUMENT);
  CHECK(error.text() == "expected x of f32, got f64(2,3)");
  CHECK(result.dtype == 77);
  CHECK(infer_scaled(inputs, 2, &attributes, &result, 1, nullptr) == TENON_INVALID_ARGUMENT);
  inputs[0].dtype = TENON_DTYPE_F32;
  CHECK(infer_scaled(inputs, 2, &attributes, &result, 1, error) == TENON_OK);
  CHECK(result.dtype == TENON_DTYPE_F32);
  CHECK(result.rank == 2);
  CHECK(result.shape[1] == 3);
  CHECK(infer_scaled(inputs, 2, &attributes, &result, 2, error) == TENON_INTERNAL);  // it sets one result
  inputs[0].dtype = TENON_DTYPE_NONE;
  CHECK(infer_scaled(inputs, 2, &attributes, &result, 1, error) == TENON_INVALID_ARGUMENT);
  CHECK(error.text() == "expected operand 0, got none");
}

}  // namespace
}  // namespace tenon::sdk_test
