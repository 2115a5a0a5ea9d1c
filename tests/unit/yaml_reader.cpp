// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <doctest/doctest.h>

#include "platform/system.h"
#include "rooted.h"
#include "temporary_folder.h"
#include "yaml/reader.h"

using namespace tenon;
using namespace tenon::yaml;
using namespace tenon::test;

namespace {

Node parse(const std::string& text) {
  return yaml::parse(text, std::make_shared<Source>(Source{"t.yaml", "", Origin::Kind::yaml}));
}

/// The error of parsing only.
std::string parse_error(const std::string& text) {
  return message_of([&] { parse(text); });
}

/// The error of reading the tree with `read`.
template <class Read>
std::string read_error(const std::string& text, Read read) {
  return message_of([&] {
    const Node tree = parse(text);
    Section top(tree);
    read(top);
    top.finish();
  });
}

}  // namespace

TEST_CASE("yaml: values have types and positions") {
  const Node tree = parse("a: 7\nb:\n  c: [x, 2.5]\n  d: \"5\"\ne:\n");
  Section top(tree);
  CHECK(top.get<int>("a", 0) == 7);
  Section b = *top.child("b");
  const yaml::Value list = *b.find("c");
  CHECK(list.mark().str() == "t.yaml:3:6");
  CHECK(list.items()[1].as_number() == 2.5);
  CHECK(list.items()[1].mark().str() == "t.yaml:3:10");
  CHECK(b.get("d", "") == "5");
  CHECK_FALSE(top.get_optional<int>("e").has_value());
  CHECK_FALSE(top.child("e").has_value());
  CHECK(top.find("e")->mark().str() == "t.yaml:5:1");
  top.finish();
}

TEST_CASE("yaml: text is UTF-8") {
  CHECK(parse("name: caf\xC3\xA9").entries[0].value.text == "caf\xC3\xA9");
  CHECK(parse("name: \"a\\0b\"").entries[0].value.text == std::string("a\0b", 3));
  CHECK(parse_error("a: 1\nname: caf\xE9") ==
        "t.yaml:2:7: expected text in UTF-8, got the byte 0xe9; convert the file by `iconv -t UTF-8`");
  CHECK(parse_error("\xFF: 1").find("got the byte 0xff") != std::string::npos);
}

TEST_CASE("yaml: an integer is decimal or hexadecimal, signed, and fits") {
  const auto read = [](const char* text) {
    const Node tree = parse(std::string("k: ") + text);
    return Section(tree).find("k")->as<std::int64_t>();
  };
  CHECK(read("-12") == -12);
  CHECK(read("+3") == 3);
  CHECK(read("0x1F") == 31);
  CHECK(read("9223372036854775807") == INT64_MAX);
  CHECK(read("-9223372036854775808") == INT64_MIN);
  for (const char* bad : {"9223372036854775808", "1e3", "1.0", "abc", "--1", "0x", "1_000", "true"}) {
    CAPTURE(bad);
    CHECK_ERROR("t.yaml:1:4: key 'k': expected an integer, got '" + std::string(bad) + "'", read(bad));
  }
  const Node big = parse("k: 18446744073709551615\nn: -1\n");
  CHECK(Section(big).get<std::uint64_t>("k", 0) == UINT64_MAX);
  CHECK_ERROR("t.yaml:2:4: key 'n': expected an integer of at least 0, got '-1'",
              static_cast<void>(Section(big).find("n")->as<std::uint64_t>()));
  CHECK_ERROR("t.yaml:1:4: key 'k': expected an integer, got '18446744073709551615'", static_cast<void>(Section(big).find("k")->as<int>()));
  CHECK_ERROR("t.yaml:1:4: key 'k': expected an integer of 32 bits, got '3000000000'",
              static_cast<void>(Section(parse("k: 3000000000")).find("k")->as<int>()));
}

TEST_CASE("yaml: a number is finite; a bool is true or false") {
  const auto number = [](const char* text) { return Section(parse(std::string("k: ") + text)).find("k")->as<double>(); };
  CHECK(number("1e-8") == 1e-8);
  CHECK(number("-.5") == -0.5);
  CHECK(number("3") == 3.0);
  for (const char* bad : {".inf", "nan", "inf", "1e999", "1,5", "x"}) {
    CAPTURE(bad);
    CHECK_ERROR("t.yaml:1:4: key 'k': expected a number, got '" + std::string(bad) + "'", number(bad));
  }
  const auto truth = [](const char* text) { return Section(parse(std::string("k: ") + text)).find("k")->as<bool>(); };
  for (const char* word : {"true", "True", "yes", "on"}) CHECK(truth(word));
  for (const char* word : {"false", "FALSE", "no", "off"}) CHECK_FALSE(truth(word));
  CHECK_ERROR("t.yaml:1:4: key 'k': expected true or false, got '1'", truth("1"));
  CHECK_ERROR("t.yaml:1:4: key 'k': expected true or false, got the text 'true'", truth("'true'"));
}

TEST_CASE("yaml: a value out of range names the range") {
  const auto message = [](const char* text, Range<std::int64_t> range) {
    return message_of([&] { static_cast<void>(Section(parse(std::string("k: ") + text)).find("k")->as<std::int64_t>(range)); });
  };
  CHECK(message("0", {1}) == "t.yaml:1:4: key 'k': expected an integer of at least 1, got '0'");
  CHECK(message("5", {0, 4}) == "t.yaml:1:4: key 'k': expected an integer in [0, 4], got '5'");
  CHECK(message("4", {0, 4}) == "no error");
  const auto number = [](const char* text, Range<double> range) {
    return message_of([&] { static_cast<void>(Section(parse(std::string("k: ") + text)).find("k")->as<double>(range)); });
  };
  CHECK(number("1", {0, 1, false, true}) == "t.yaml:1:4: key 'k': expected a number in [0, 1), got '1'");
  CHECK(number("0", {.lowest = 0, .above_lowest = true}) == "t.yaml:1:4: key 'k': expected a number above 0, got '0'");
  CHECK(number("0.999", {0, 1, false, true}) == "no error");
}

TEST_CASE("yaml: a type error has the full key, the expected and the actual type") {
  const auto names = [](Section& top) { (void)top.child("backends")->find("use")->as_names(); };
  CHECK(read_error("backends:\n  use: {a: 1}\n", names) == "t.yaml:2:8: key 'backends.use': expected a list of names, got a map");
  CHECK(read_error("backends:\n  use: [a, [b]]\n", names) == "t.yaml:2:12: key 'backends.use[1]': expected a name, got a list");
  CHECK(read_error("backends:\n  use:\n", names) == "t.yaml:2:3: key 'backends.use': expected a list of names, got nothing");
  CHECK(read_error("backends: 3\n", names) == "t.yaml:1:11: key 'backends': expected a map, got '3'");
  CHECK(read_error("k: \"5\"", [](Section& top) { top.get<int>("k", 0); }) == "t.yaml:1:4: key 'k': expected an integer, got the text '5'");
  CHECK(read_error("k: " + std::string(100, 'x'), [](Section& top) { top.get<int>("k", 0); }) ==
        "t.yaml:1:4: key 'k': expected an integer, got '" + std::string(40, 'x') + "...'");
  CHECK(read_error("- a\n", [](Section&) {}) == "t.yaml:1:1: expected keys and values (a map), got a list");
}

TEST_CASE("yaml: an unknown key is reported with the closest key or the list of known keys") {
  const auto read = [](Section& top) {
    top.get("device", "");
    top.get("precision", "");
    if (auto memory = top.child("memory")) memory->get<int>("limit_mb", 0);
  };
  CHECK(read_error("device: cpu\n\n  \nprecison: tf32\n", read) == "t.yaml:4:1: unknown key 'precison'; did you mean 'precision'?");
  CHECK(read_error("memory:\n  limitmb: 3\n", read) == "t.yaml:2:3: unknown key 'memory.limitmb'; did you mean 'memory.limit_mb'?");
  CHECK(read_error("banana: 1\n", read) == "t.yaml:1:1: unknown key 'banana'; known keys: device, precision, memory");
}

TEST_CASE("yaml: a missing key is reported, or its misspelling is") {
  const auto read = [](Section& top) {
    top.get("name", "");
    top.require<int>("units", "an integer of at least 1", {1});
  };
  CHECK(read_error("name: x\n", read) == "t.yaml:1:1: key 'units' is missing; expected an integer of at least 1");
  CHECK(read_error("name: x\nunit: 3\n", read) == "t.yaml:2:1: unknown key 'unit'; did you mean 'units'?");
}

TEST_CASE("yaml: two readers of one map report no false unknown keys") {
  const Node tree = parse("a: 1\nb: 2\nc: {d: 3}\n");
  Section top(tree);
  Section shared = top;
  CHECK(top.get<int>("a", 0) == 1);
  CHECK(shared.get<int>("b", 0) == 2);
  CHECK(shared.child("c")->get<int>("d", 0) == 3);
  top.finish();
}

TEST_CASE("yaml: an error has all mistakes of a file, a line for each; what a failed reader did not reach is not unknown") {
  const std::string text = "a: x\nb: [1]\nc: {d: y, e: 1}\nf: {g: z, h: 1}\nq: 1\n";
  const auto read = [](Section& top) {
    CHECK(top.get<int>("a", 5) == 5);
    top.get<bool>("b", true);
    top.child("c")->get<double>("d", 0);
    Section f = *top.child("f");
    f.attempt_keys([&] {
      static_cast<void>(f.find("g")->as_bool());
      f.get<int>("h", 0);
    });
    top.require<int>("n", "an integer");
  };
  CHECK(read_error(text, read) ==
        "t.yaml:1:4: key 'a': expected an integer, got 'x'\n"
        "t.yaml:2:4: key 'b': expected true or false, got a list\n"
        "t.yaml:1:1: key 'n' is missing; expected an integer\n"
        "t.yaml:3:8: key 'c.d': expected a number, got 'y'\n"
        "t.yaml:3:11: unknown key 'c.e'; known keys: d\n"
        "t.yaml:4:8: key 'f.g': expected true or false, got 'z'\n"
        "t.yaml:5:1: unknown key 'q'; known keys: a, b, c, f, n");
}

TEST_CASE("yaml: an error of very many mistakes has the first of them") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "k" + std::to_string(i) + "k: 1\n";
  const std::string message = read_error(text, [](Section&) {});
  CHECK(std::ranges::count(message, '\n') == 50);
  CHECK(message.ends_with("and more mistakes"));
}

TEST_CASE("yaml: an override of a key of a scalar keeps the scalar, under the key that it stands for") {
  const auto read = [](const std::string& text, const std::string& change) {
    Node tree = parse(text);
    const Assignment parts = parse_assignment(change);
    assign(tree, parts.key, parts.value, std::make_shared<Source>(Source{"--set " + change, "", Origin::Kind::command_line}));
    Section section = Section(tree).find("optimizer")->section_with("name");
    const std::string name = section.get("name", "none");
    const int rate = section.get<int>("rate", 1);
    section.finish();
    return name + " " + std::to_string(rate);
  };
  CHECK(read("optimizer: sgd", "epochs=1") == "sgd 1");
  CHECK(read("optimizer: sgd", "optimizer.rate=2") == "sgd 2");
  CHECK(read("optimizer: sgd", "optimizer.name=adam") == "adam 1");
  CHECK(read("optimizer: {name: sgd, rate: 3}", "optimizer.rate=2") == "sgd 2");
  CHECK(read("optimizer: {rate: 3}", "optimizer.name=sgd") == "sgd 3");
  CHECK(read("x: 1", "optimizer.rate=2") == "none 2");
  CHECK_ERROR("--set optimizer.rte=2: optimizer: unknown key 'rte'; did you mean 'rate'?", read("optimizer: sgd", "optimizer.rte=2"));
}

TEST_CASE("yaml: a choice lists its values and suggests a correction") {
  enum class Color { red, green };
  const std::vector<Choice<Color>> colors = {{"red", Color::red}, {"green", Color::green}};
  CHECK(Section(parse("k: green")).choice("k", Color::red, colors) == Color::green);
  CHECK(Section(parse("x: 1")).choice("k", Color::red, colors) == Color::red);
  CHECK_ERROR("t.yaml:1:4: key 'k': expected one of red, green, got 'grene'; did you mean 'green'?",
              static_cast<void>(Section(parse("k: grene")).find("k")->as_choice(colors)));
  CHECK_ERROR("t.yaml:1:4: key 'k': expected one of red, green, got a list",
              static_cast<void>(Section(parse("k: [green]")).find("k")->as_choice(colors)));
}

TEST_CASE("yaml: a key given twice is an error") {
  CHECK(parse_error("a: 1\nb: 2\na: 3\n") == "t.yaml:3:1: key 'a' is given twice; first at line 1");
  CHECK(parse_error("m: {x: 1, x: 2}\n") == "t.yaml:1:11: key 'x' is given twice; first at line 1");
}

TEST_CASE("yaml: tabs as indentation are reported with their position") {
  const char* message = ": tab character used for indentation; YAML expects spaces";
  CHECK(parse_error("a:\n\tb: 1\n") == std::string("t.yaml:2:1") + message);
  CHECK(parse_error("a:\n  b: 1\n\tc: 2\n") == std::string("t.yaml:3:1") + message);
  CHECK(parse_error("a:\n  \tb: 1\n") == std::string("t.yaml:2:3") + message);
  CHECK(parse_error("\ta: 1\n") == std::string("t.yaml:1:1") + message);
  CHECK(parse_error("a:\n\t- 1\n\t- 2\n") == std::string("t.yaml:2:1") + message);
  CHECK(parse_error("a: [1,\n\t2]\nb:\t3\n") == "no error");  // inside brackets and after a key a tab is whitespace
}

TEST_CASE("yaml: an empty file and a file of two documents are rejected") {
  CHECK(parse_error("") == "t.yaml:1:1: the file is empty; expected keys and values");
  CHECK(parse_error("# nothing\n\n") == "t.yaml:1:1: the file is empty; expected keys and values");
  CHECK(parse_error("a: 1\n---\nb: 2\n") ==
        "t.yaml:2:1: a second document starts here; expected one document, without '---' after the first");
  CHECK(read_error("text", [](Section&) {}) == "t.yaml:1:1: expected keys and values (a map), got 'text'");
}

TEST_CASE("yaml: a syntax error is explained") {
  CHECK(parse_error("a: b: c\n") == "t.yaml:1:5: a ':' where no key is allowed; check the indentation, or quote the text that contains it");
  CHECK(parse_error("a: [1, 2\nb: 3\n") == "t.yaml:2:2: the list opened with '[' is not closed with ']'");
  CHECK(parse_error("a: {x: 1\nb: 3\n") == "t.yaml:2:2: the map opened with '{' is not closed with '}'");
  CHECK(parse_error("a: ]\n") == "t.yaml:1:4: a ']' or '}' closes nothing");
  CHECK(parse_error("a: @b\n") == "t.yaml:1:4: a character reserved by YAML; quote the text");
  CHECK(parse_error("a: *b\n") == "t.yaml:1:4: the alias refers to an anchor that is not defined before it");
  CHECK(parse_error("a: \"x\nb: 1\n") == "t.yaml:1:4: the quote that opens here is not closed");
  CHECK(parse_error("a: 'it''s'\nb: \"x\\\"y\"\n") == "no error");
  CHECK(parse_error("a: \"two\n  lines\"\n") == "no error");
  CHECK(parse_error("[a]: 1\n") == "t.yaml:1:1: a key must be a plain word, not a list or a map");
  CHECK(parse_error(std::string(5000, '[')) == "t.yaml:1:1: lists and maps are nested too deeply");
}

TEST_CASE("yaml: anchors and merge keys work; keys next to `<<` win") {
  const Node tree = parse("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\nlist: [*b, *b]\n");
  Section top(tree);
  Section use = *top.child("use");
  CHECK(use.get<int>("x", 0) == 1);
  CHECK(use.get<int>("y", 0) == 3);
  CHECK(top.find("list")->items().size() == 2);
  CHECK(use.node().entries.size() == 2);
  CHECK(parse_error("a: &x [*x]\n") == "t.yaml:1:8: the alias is inside the anchor that it refers to");
  CHECK(parse_error("a: {<<: 3}\n") == "t.yaml:1:5: the merge key '<<' expects a map or a list of maps");
}

TEST_CASE("yaml: aliases of aliases cannot exhaust memory") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    text += "]\n";
  }
  CHECK(contains(parse_error(text), ": expected at most 100000 values in a YAML file, aliases counted each time, got more; "));
  // Few values, but many copies of a long text.
  std::string repeats = "a: &a " + std::string(1 << 18, 'x') + "\nb: [";
  for (int i = 0; i < 1000; ++i) repeats += "*a, ";
  CHECK(contains(parse_error(repeats + "]\n"), ": expected at most 16777216 bytes of YAML text, aliases counted each time, got more; "));
  // An anchor is a copy too.
  std::string nested = std::string(1 << 18, 'x');
  for (int i = 0; i < 100; ++i) nested = "&a" + std::to_string(i) + " [" + nested + "]";
  CHECK(contains(parse_error("a: " + nested + "\n"), "bytes of YAML text"));
}

TEST_CASE("yaml: a map of many keys is read in time that is linear in their number") {
  std::string text;
  for (int i = 0; i < 45000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  CHECK(parse(text).entries.size() == 45000);
  CHECK(parse_error(text + "key7: 2\n") == "t.yaml:45001:1: key 'key7' is given twice; first at line 8");
}

TEST_CASE_FIXTURE(InFolder, "yaml: a file that cannot be read is reported by name") {
  CHECK_ERROR(folder.file("none.yaml") + ": file not found", yaml::load(folder.file("none.yaml")));
  CHECK_ERROR(folder.path() + ": expected a file, got a folder", yaml::load(folder.path()));
  const std::string bad = folder.write("bad.yaml", "a: 1\r\nb: [\r\n");
  CHECK(message_of([&] { yaml::load(bad); }).rfind(bad + ":", 0) == 0);
  const std::string large = folder.write("large.yaml", std::string((16 << 20) + 1, '#'));
  CHECK_ERROR_CONTAINS(large + ": expected at most 16777216 bytes of YAML text, aliases counted each time, got 16777217; ",
                       yaml::load(large));
  const std::string good = folder.write("good.yaml",
                                        "\xEF\xBB\xBF"
                                        "a: 1\r\nb: x\r\n");
  const Node tree = yaml::load(good);
  CHECK(Section(tree).get<int>("a", 0) == 1);
  CHECK(Section(tree).get("b", "") == "x");
}

TEST_CASE("yaml: paths are relative to the file's folder, `~/` to home") {
  const Node tree =
      yaml::parse("a: data/x\nb: /abs/../y\nc: ~/z\nd: ~other/z\n", std::make_shared<Source>(Source{"f", "/base/dir", Origin::Kind::yaml}));
  Section top(tree);
  CHECK(top.find("a")->as_path() == rooted("/base/dir/data/x"));
  CHECK(top.find("b")->as_path() == rooted("/y"));
  CHECK(top.find("c")->as_path() == rooted(platform::home_folder() + "/z"));
  CHECK_ERROR("f:4:4: key 'd': only '~/' is supported, not the home folder of another user: '~other/z'", (void)top.find("d")->as_path());
}

TEST_CASE("yaml: overrides replace, create and reach into lists, and messages name them") {
  Node tree = parse("epochs: 5\nlayers:\n  - dense: {units: 3}\n  - flatten\n");
  const auto set = [&](const std::string& text) {
    const Assignment change = parse_assignment(text);
    assign(tree, change.key, change.value, std::make_shared<Source>(Source{"--set " + text, "", Origin::Kind::command_line}));
  };
  set("epochs=7");
  set("data.seed=4");
  set("layers.0.dense.units=9");
  set("metrics=[accuracy, mse]");
  Section top(tree);
  CHECK(top.get<int>("epochs", 0) == 7);
  CHECK(top.child("data")->get<int>("seed", 0) == 4);
  CHECK(top.find("layers")->items()[0].section().child("dense")->get<int>("units", 0) == 9);
  CHECK(top.find("metrics")->items().size() == 2);

  set("epochs=abc");
  CHECK_ERROR("--set epochs=abc: key 'epochs': expected an integer, got 'abc'", static_cast<void>(Section(tree).find("epochs")->as<int>()));
  set("epochs=");
  CHECK_ERROR("--set epochs=: key 'epochs': expected an integer, got nothing", static_cast<void>(Section(tree).find("epochs")->as<int>()));
  CHECK_ERROR("--set layers.5.x=1: key 'layers.5.x': index '5' is out of range for a list of 2", set("layers.5.x=1"));
  CHECK_ERROR("--set a..b=1: key 'a..b' has an empty part", set("a..b=1"));
  CHECK_ERROR("--set epochs=[1: the value is not YAML: the list opened with '[' is not closed with ']'", set("epochs=[1"));
  CHECK_ERROR("--set epochs: expected key=value, as in epochs=3", parse_assignment("epochs"));
  CHECK_ERROR("--set =3: expected key=value, as in epochs=3", parse_assignment("=3"));
}
