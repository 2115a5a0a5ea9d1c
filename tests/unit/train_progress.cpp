// SPDX-License-Identifier: Apache-2.0
// The exact text of progress output.
#include <fstream>
#include <sstream>

#include "temporary_folder.h"
#include "testing.h"
#include "train/log/progress.h"

namespace tenon::train {
namespace {

TEST_CASE("progress: values have four digits, or an exponent if those would be zeros") {
  CHECK(format_value(0.82541) == "0.8254");
  CHECK(format_value(12.0) == "12.0000");
  CHECK(format_value(0.0005) == "5.0000e-04");
  CHECK(format_value(0.0) == "0.0000e+00");
}

TEST_CASE("progress: times have a suitable unit") {
  CHECK(format_remaining(5.9) == "5s");
  CHECK(format_remaining(65) == "1:05");
  CHECK(format_remaining(3661) == "1:01:01");
  CHECK(format_per_step(2.4) == " 2s/step");
  CHECK(format_per_step(0.0016) == " 2ms/step");
  CHECK(format_per_step(0.0000123) == " 12us/step");
}

struct Screen {
  std::string text;
  double now = 0;
  ProgressOptions options(int verbose, bool terminal) {
    return {verbose, terminal, [this](const std::string& s) { text += s; }, [this] { return now; }, true, [this] { return columns; }};
  }
  int columns = 0;
};

void two_epochs(Screen& screen, Callback& bar) {
  bar.train_begin(2, 3);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    bar.epoch_begin(epoch);
    for (std::int64_t batch = 0; batch < 3; ++batch) {
      screen.now += 1;
      bar.batch_end(batch, {{"loss", 0.5}}, {});
    }
    bar.epoch_end({epoch, {{"loss", 0.25}, {"accuracy", 0.8254}}, 3, 96});
  }
}

TEST_CASE("progress: one line per epoch if the output is not a terminal") {
  Screen screen;
  ProgressBar bar(screen.options(1, false));
  two_epochs(screen, bar);
  const std::string line = "3/3 ━━━━━━━━━━━━━━━━━━━━ 3s 1s/step - accuracy: 0.8254 - loss: 0.2500\n";
  CHECK(screen.text == "Epoch 1/2\n" + line + "Epoch 2/2\n" + line);
}

TEST_CASE("progress: on a terminal the bar is redrawn, completed green, rest grey") {
  Screen screen;
  ProgressBar bar(screen.options(1, true));
  bar.train_begin(1, 20);
  bar.epoch_begin(0);
  screen.now = 1;
  bar.batch_end(0, {{"loss", 0.5}}, {});
  CHECK(screen.text == "\r 1/20 \033[32m━\033[0m\033[37m━━━━━━━━━━━━━━━━━━━\033[0m 19s 1s/step - loss: 0.5000\033[K");
  screen.text.clear();
  screen.now = 1.04;  // too soon
  bar.batch_end(1, {{"loss", 0.5}}, {});
  CHECK(screen.text.empty());
}

TEST_CASE("progress: what is wider than the terminal leaves out the bar, and the end of lines that are redrawn") {
  const auto shown_in = [](int columns) {
    Screen screen;
    screen.columns = columns;
    ProgressBar bar(screen.options(1, true));
    bar.train_begin(1, 2);
    bar.epoch_begin(0);
    screen.now = 1;
    bar.batch_end(0, {{"loss", 0.5}}, {});
    bar.epoch_end({0, {{"loss", 0.25}}, 2, 64});
    return screen.text;
  };
  const std::string half = "\033[32m━━━━━━━━━━\033[0m\033[37m━━━━━━━━━━\033[0m", all = "\033[32m━━━━━━━━━━━━━━━━━━━━\033[0m\033[37m\033[0m";
  CHECK(shown_in(51) == "\r1/2 " + half + " 1s 1s/step - loss: 0.5000\033[K\r2/2 " + all + " 1s 1s/step - loss: 0.2500\033[K\n");
  CHECK(shown_in(50) == "\r1/2 1s 1s/step - loss: 0.5000\033[K\r2/2 1s 1s/step - loss: 0.2500\033[K\n");
  CHECK(shown_in(20) == "\r1/2 1s 1s/step - lo\033[K\r2/2 1s 1s/step - loss: 0.2500\033[K\n");
  CHECK(shown_in(1) == "\r\033[K\r2/2 1s 1s/step - loss: 0.2500\033[K\n");
}

TEST_CASE("progress: a bar without colours") {
  Screen screen;
  ProgressOptions options = screen.options(1, true);
  options.colour = false;
  ProgressBar bar(options);
  bar.train_begin(1, 2);
  bar.epoch_begin(0);
  screen.now = 1;
  bar.batch_end(0, {{"loss", 0.5}}, {});
  CHECK(screen.text == "\r1/2 ━━━━━━━━━━━━━━━━━━━━ 1s 1s/step - loss: 0.5000\033[K");
}

TEST_CASE("progress: a bar that is destroyed while its line is open, as after an error, ends the line") {
  Screen screen;
  {
    ProgressBar bar(screen.options(1, true));
    bar.train_begin(1, 20);
    bar.epoch_begin(0);
    screen.now = 1;
    bar.batch_end(0, {{"loss", 0.5}}, {});
    CHECK(screen.text.back() != '\n');
  }
  CHECK(screen.text.ends_with("loss: 0.5000\033[K\n"));
}

TEST_CASE("progress: a line is not cut inside of a character") {
  Screen screen;
  ProgressBar bar(screen.options(1, true));
  screen.columns = 28;
  bar.train_begin(1, 2);
  bar.epoch_begin(0);
  screen.now = 1;
  bar.batch_end(0, {{"verlustmaß", 0.5}}, {});
  CHECK(screen.text == "\r1/2 1s 1s/step - verlustma\033[K");
}

TEST_CASE("progress: verbose 2 has no bar, verbose 0 no output") {
  Screen screen;
  ProgressBar lines(screen.options(2, true));
  two_epochs(screen, lines);
  CHECK(screen.text.substr(0, 60) == "Epoch 1/2\n3/3 - 3s - 1s/step - accuracy: 0.8254 - loss: 0.25");
  Screen silent;
  ProgressBar none(silent.options(0, true));
  two_epochs(silent, none);
  CHECK(silent.text.empty());
}

TEST_CASE("log_style gorgonia prints the lines of its MNIST example") {
  std::string text;
  GorgoniaLog log(
      "cuda:0", [&](const std::string& s) { text += s; }, [] { return std::string("2026/01/02 03:04:05"); });
  log.train_begin(1, 600);
  log.epoch_end({0, {{"loss", 0.1234}}, 1, 60000});
  log.test_begin();
  log.test_end(0.5);
  CHECK(text ==
        "2026/01/02 03:04:05 Using backend cuda (cuda:0)\n2026/01/02 03:04:05 Batches 600\n2026/01/02 03:04:05 Epoch 0 | cost 0.1234\n"
        "2026/01/02 03:04:05 Run Tests\n2026/01/02 03:04:05 Epoch Test | cost 0.5000\n");
}

TEST_CASE("json: one object per epoch, the test last") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/run.jsonl";
  {
    JsonLines json({path});
    json.epoch_end({0, {{"loss", 0.5}, {"accuracy", 0.75}, {"val_loss", 0.625}}, 2, 100, 0.01});
    json.test({{"loss", 0.25}, {"accuracy", 1.0}});
  }
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  CHECK(
      content.str() ==
      "{\"epoch\":1,\"loss\":0.5,\"accuracy\":0.75,\"val_loss\":0.625,\"learning_rate\":0.01,\"seconds\":2.0,\"samples_per_second\":50.0}\n"
      "{\"event\":\"test\",\"loss\":0.25,\"accuracy\":1.0}\n");
  CHECK(tenon::test::contains(tenon::test::message_of([] { JsonLines({"/dev/null/x"}); }), "/dev/null/x: its folder cannot be created"));
}

}  // namespace
}  // namespace tenon::train
