// SPDX-License-Identifier: Apache-2.0
// What processes that read a checkpoint in parts do about what each has found: all of them the same.
#include <cstddef>
#include <string>
#include <vector>

#include "testing.h"
#include "train/agreement.h"

namespace tenon::test {
namespace {

using train::CheckpointAnswer;
using Kind = CheckpointAnswer::Kind;

const CheckpointAnswer good{.checkpoint = "a"}, other_good{.checkpoint = "b"};
const CheckpointAnswer damaged{.checkpoint = "a", .kind = Kind::damaged, .reason = "a bit"};
const CheckpointAnswer failed{.checkpoint = "a", .kind = Kind::failed, .reason = "no memory"};
const CheckpointAnswer nothing{.checkpoint = "", .kind = Kind::failed, .reason = "no folder"};

/// The reasons by process, if all of them come to this kind.
std::vector<std::string> reasons(Kind kind, const std::vector<CheckpointAnswer>& answers) {
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    const CheckpointAnswer verdict = train::verdict_on(answers, rank);
    CHECK(verdict.kind == kind);
    all.push_back(verdict.reason);
  }
  return all;
}
using Texts = std::vector<std::string>;

TEST_CASE("agreement: a checkpoint that all have read is good") {
  CHECK(reasons(Kind::good, {good, good, good}) == Texts{"", "", ""});
}

TEST_CASE("agreement: damage that any process has found is damage for all") {
  CHECK(reasons(Kind::damaged, {good, damaged, good}) == Texts{"process 1: a bit", "a bit", "process 1: a bit"});
  CHECK(reasons(Kind::damaged, {damaged, damaged}) == Texts{"a bit", "a bit"});
}

TEST_CASE("agreement: another error of any process comes before damage") {
  CHECK(reasons(Kind::failed, {damaged, failed, good}) == Texts{"process 1: no memory", "no memory", "process 1: no memory"});
  CHECK(reasons(Kind::failed, {failed, damaged}) == Texts{"no memory", "process 0: no memory"});
  CHECK(reasons(Kind::failed, {failed, nothing}) == Texts{"no memory", "no folder"});
}

TEST_CASE("agreement: a process that has no checkpoint to read says why") {
  CHECK(reasons(Kind::failed, {good, nothing}) == Texts{"process 1: no folder", "no folder"});
  CHECK(reasons(Kind::failed, {nothing, damaged}) == Texts{"no folder", "process 0: no folder"});
  CHECK(reasons(Kind::failed, {nothing, nothing}) == Texts{"no folder", "no folder"});
}

TEST_CASE("agreement: processes that read different checkpoints all fail, whatever they have found") {
  const std::string text = "process 0 loads a, process 1 loads b; every process loads the same checkpoints in the same order";
  CHECK(reasons(Kind::failed, {good, other_good}) == Texts{text, text});
  CHECK(reasons(Kind::failed, {damaged, other_good}) == Texts{text, text});
  CHECK(reasons(Kind::failed, {failed, other_good, damaged}) == Texts{text, text, text});
  CHECK(contains(reasons(Kind::failed, {nothing, good, other_good})[0], "process 1 loads a, process 2 loads b"));
}

}  // namespace
}  // namespace tenon::test
