// SPDX-License-Identifier: Apache-2.0
// Tables of numbers: headers, quotes, labels of every kind, and positions of errors.
#include <doctest/doctest.h>

#include "data_testing.h"
#include "gzip_writer.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;
using Header = CsvOptions::Header;
using Target = CsvOptions::Target;

namespace {

CsvData load(const std::string& text, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  return load_csv(folder.write("t.csv", text), options);
}

/// The error of a text, from the line number on.
std::string refusal_of(const std::string& text, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", text);
  const std::string message = message_of([&] { load_csv(path, options); });
  return message.rfind(path + ":", 0) == 0 ? message.substr(path.size() + 1) : message;
}

const std::string iris = "length,width,species\n5.1,3.5,setosa\n6.2,2.9,versicolor\n4.9,3.0,setosa\n";

}  // namespace

TEST_CASE("csv: a header, numbers, and text labels as classes in order") {
  const CsvData csv = load(iris);
  CHECK(csv.features == std::vector<std::string>{"length", "width"});
  CHECK(csv.label == "species");
  CHECK(csv.classes == std::vector<std::string>{"setosa", "versicolor"});
  CHECK(csv.data->num_classes() == 2);
  CHECK(csv.data->name() == "t.csv");
  const auto [x, y] = gather(*csv.data, {1, 2});
  CHECK(values_of<float>(x) == std::vector<float>{6.2f, 2.9f, 4.9f, 3.0f});
  CHECK(values_of<std::int64_t>(y) == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("csv: the label column by name, by index or from the end") {
  const std::string text = "a,b,c\n1,20,3\n4,50,6\n";
  for (const auto& [label, expected] : {std::pair<const char*, const char*>{"", "c"}, {"b", "b"}, {"0", "a"}, {"-2", "b"}}) {
    CsvOptions options;
    options.label = label;
    CHECK(load(text, options).label == expected);
  }
  CsvOptions options;
  options.label = "species";
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", text);
  CHECK_ERROR(path + ": expected a label column 'species', got 3 columns: a, b, c", load_csv(path, options));
  options.label = "3";
  CHECK_ERROR(path + ": expected a label column '3', got 3 columns: a, b, c", load_csv(path, options));
}

TEST_CASE("csv: integers are classes and other numbers values, unless specified") {
  CHECK(load("1,0\n2,3\n").data->num_classes() == 4);
  CHECK(load("1,0\n2,3\n").classes.empty());
  const CsvData values = load("1,0.5\n2,3\n");
  CHECK_FALSE(values.data->num_classes().has_value());
  CHECK(values.data->y().str() == "f32(2,1)");
  CHECK_FALSE(load("1,-1\n2,1\n").data->num_classes().has_value());
  CHECK_FALSE(load("1,250000\n2,310000\n").data->num_classes().has_value());  // prices, not classes
  CsvOptions options;
  options.target = Target::values;
  CHECK_FALSE(load("1,0\n2,3\n", options).data->num_classes().has_value());
  options.target = Target::classes;
  CHECK(load("1,-1\n2,1\n", options).classes == std::vector<std::string>{"-1", "1"});
  options.classes = {"1", "-1", "0"};
  CHECK(load("1,-1\n2,1\n", options).data->y().to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("csv: headers are detected or specified") {
  CHECK(load("1,2\n3,4\n").features == std::vector<std::string>{"0"});
  CHECK(load("1,2\n3,4\n").data->size() == 2);
  CsvOptions options;
  options.header = Header::present;
  CHECK(load("1,2\n3,4\n", options).data->size() == 1);
  CHECK(load("1,2\n3,4\n", options).label == "2");
  options.header = Header::absent;
  CHECK(refusal_of("a,b\n1,2\n", options) == "1:1: column '0': expected a finite number, got 'a'");
}

TEST_CASE("csv: quotes, blanks, delimiters, line ends, byte order marks and gzip") {
  const std::vector<float> expected = {1, 2, 3, -4};
  for (const char* text :
       {"1,2,0\n3,-4,1\n", "1,2,0\r\n3,-4,1\r\n", "\xef\xbb\xbf\"1\",\"2\",0\n\n3,-4,\"1\"", " +1 , 2,0\n\r\n3,-4e0, 1"}) {
    CAPTURE(text);
    CHECK(values_of<float>(load(text).data->x()) == expected);
    CHECK(values_of<std::int64_t>(load(text).data->y()) == std::vector<std::int64_t>{0, 1});
  }
  CsvOptions options;
  options.delimiter = '\t';
  CHECK(values_of<float>(load("1\t2\t0\n3\t-4\t1\n", options).data->x()) == expected);
  CHECK(load("a,\"the \"\"label\"\",\nlong\"\n1,x\n").label == "the \"label\",\nlong");
  const TemporaryFolder folder;
  CHECK(load_csv(folder.write("t.csv.gz", tenon::test::gzip(iris))).data->size() == 3);
}

TEST_CASE("csv: a column of sample weights is no feature") {
  const std::string table = "w,a,b,label\n0.5,1,2,0\n0,3,4,1\n";
  CsvOptions options;
  for (const char* column : {"w", "0", "-4"}) {
    options.sample_weight = column;
    const CsvData read = load(table, options);
    CHECK(values_of<float>(read.data->sample_weights()) == std::vector<float>{0.5F, 0});
    CHECK(values_of<float>(read.data->x()) == std::vector<float>{1, 2, 3, 4});
    CHECK(read.features == std::vector<std::string>{"a", "b"});
    CHECK(read.label == "label");
  }
  CHECK_FALSE(load(table).data->sample_weights().defined());
  CHECK(refusal_of("w,a,label\n1,1,0\n-2,3,1\n", {.sample_weight = "w"}) ==
        "3:1: column 'w': expected a sample weight of at least 0, got '-2'");
  CHECK(
      contains(refusal_of(table, {.sample_weight = "weight"}), "expected a sample_weight column 'weight', got 4 columns: w, a, b, label"));
  CHECK(
      contains(refusal_of(table, {.sample_weight = "label"}), "column 'label' is both the label and sample_weight; expected two columns"));
  CHECK(contains(refusal_of("w,label\n1,0\n", {.sample_weight = "w"}), "expected a feature beside the label and sample_weight"));
}

TEST_CASE("csv: an error has line and column") {
  CHECK(refusal_of("a,b,c\n1,2,3\n4,wide,6\n") == "3:3: column 'b': expected a finite number, got 'wide'");
  CHECK(refusal_of("a,b,c\n1,2,3\n4,,6\n") == "3:3: column 'b': expected a finite number, got an empty field");
  CHECK(refusal_of("a,b,c\n1,  nan,3\n") == "2:5: column 'b': expected a finite number, got 'nan'");
  CHECK(refusal_of("a,b\n1e39,3\n") == "2:1: column 'a': expected a number that f32 can hold, up to 3.4e38, got '1e39'; scale the column");
  CHECK(contains(refusal_of("a,b\n1,0.5\n1,-1e39\n"), "3:3: column 'b': expected a number that f32 can hold"));
  CHECK(refusal_of("a,b\n1e999,3\n") == "2:1: column 'a': expected a finite number, got '1e999'");
  CHECK(refusal_of("a,b,c\n1,2,3\n4,5\n") == "3:1: expected 3 fields as in the first line, got 2");
  CHECK(refusal_of("a,b\n1,2,\n") == "2:1: expected 2 fields as in the first line, got 3");
  CHECK(refusal_of("a,b\n\"1,2\n3,4\n") == "2:1: the quote is not closed");
  CHECK(refusal_of("a,b\n\"1\"x,2\n") == "2:4: unexpected text after a closing quote");
  CHECK(refusal_of("\"a\nb\",c\nx,2\n") == "3:1: column 'a\nb': expected a finite number, got 'x'");
  CHECK(refusal_of("1;2\n") == "1:1: expected at least two columns, a feature and the label, got 1; check the delimiter");
  CHECK(refusal_of("") == " the file is empty; expected rows of numbers");
  CHECK(refusal_of("a,b\n") == " expected at least one row after the header, got none");
  CsvOptions options;
  options.target = Target::values;
  CHECK(refusal_of(iris, options) == "2:9: column 'species': expected a finite number, got 'setosa'");
  options.target = Target::detect;
  options.classes = {"virginica", "setosa"};
  CHECK(refusal_of(iris, options) == "3:9: column 'species': expected a class of virginica, setosa, got 'versicolor'");
}
