// SPDX-License-Identifier: Apache-2.0
// Makes named cases from the signatures of blas/. blas_verdict.cpp checks the results.
#include "blas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include <tenon/sdk/kernel.h>

#include "case.h"
#include "memory.h"

namespace tenon::conformance::blas {

const std::vector<Line>& lines() {
  static const std::vector<Line> all{
#define TENON_BLAS(id, routine, level, signature, dtypes) {#routine, level, #signature, #dtypes, offsetof(tenon_blas_table, routine)},
#include <tenon/blas.def>
#undef TENON_BLAS
  };
  return all;
}

// ---------------------------------------------------------------- running trials

/// How a trial is called.
struct How {
  bool numbers_on_device = false;
  unsigned char poison = 0xFF;  ///< of bytes that belong to no element
  bool longer_record = false;
  std::uint32_t needs = 0, math = TENON_MATH_STRICT, deterministic = 0;
  std::uint32_t threads = 0;  ///< of the run; 0: without one

  std::string describe() const { return fmt::format("needs 0x{:x}, math {}, deterministic {}", needs, math, deterministic); }
};

/// Runs trials of a routine in one dtype on a device: the one under test, or another of its backend.
class Stage {
 public:
  Stage(const Device& device, const Line& line, tenon_dtype dtype) : line_(line), device_(device) {
    const tenon_blas_table* table = device.table().blas;
    if (table == nullptr) throw Unsupported("the backend offers no BLAS (tenon_backend_table.blas is NULL)");
    std::uint64_t dtypes = 0;
    if (line.offset + sizeof slot_ + sizeof dtypes <= table->struct_size) {
      const auto* const bytes = reinterpret_cast<const unsigned char*>(table) + line.offset;
      std::memcpy(&slot_, bytes, sizeof slot_);
      std::memcpy(&dtypes, bytes + sizeof slot_, sizeof dtypes);
    }
    if (slot_ == nullptr) throw Unsupported(fmt::format("the backend's BLAS has no {}", line.routine));
    if ((dtypes & TENON_DTYPE_BIT(dtype)) == 0) {
      throw Unsupported(fmt::format("{}_dtypes of the backend's BLAS is without {}", line.routine, sdk::name_of(dtype)));
    }
  }

  /// Every part of the call must be honoured, and the results right.
  void run(Trial& trial, const How& how = {}) {
    if (const tenon_status status = send(trial, how); status != TENON_OK) {
      const char* const claim = status == TENON_UNSUPPORTED ? ", though the table has its dtype and nothing else may be refused" : "";
      throw Failure(fmt::format("{} failed with {}{}: {} ({})", line_.routine, status_name(status), claim, text_, trial.describe()));
    }
    expect_right(trial.judge(), trial);
  }
  /// The same, but the backend may refuse. Returns whether it did.
  bool run_or_refuse(Trial& trial, const How& how) {
    const tenon_status status = send(trial, how);
    if (status == TENON_UNSUPPORTED) {
      expect_untouched(trial, how);
      return true;
    }
    if (status != TENON_OK)
      throw Failure(fmt::format("{}: {} failed with {}: {}", how.describe(), line_.routine, status_name(status), text_));
    expect_right(trial.judge(), trial);
    return false;
  }
  /// A call that no backend understands: it must be refused before it reads or writes anything.
  void expect_refused(Trial& trial, const How& how) {
    const tenon_status status = send(trial, how);
    if (status != TENON_UNSUPPORTED) {
      throw Failure(fmt::format("{}: expected UNSUPPORTED from {}, got {}", how.describe(), line_.routine, status_name(status)));
    }
    expect_untouched(trial, how);
  }

  static void expect_same(const Trial& first, const Trial& second, const char* what) {
    Wrong wrong = first.difference(second);
    if (!wrong.empty()) wrong.text = fmt::format("{}: {}", what, wrong.text);
    expect_right(std::move(wrong), first);
  }
  static bool shares(const Trial& trial) { return trial.shares_; }
  /// The kinds of cases that apply to a trial.
  struct Offers {
    bool alpha, beta, shares, numbers, infinity, all_floats;
  };
  static Offers offers(const Trial& trial) {
    const auto any = [&](auto f) { return std::any_of(trial.operands_.begin(), trial.operands_.end(), f); };
    return {trial.alpha_,
            trial.beta_,
            trial.shares_,
            any([](const auto& o) { return o.number; }),
            trial.spreads_infinity_,
            !any([](const auto& o) { return o.dtype == TENON_DTYPE_I64; })};
  }

 private:
  static void expect_right(Wrong wrong, const Trial& trial) {
    if (wrong.empty()) return;
    wrong.facts.shapes = trial.describe();
    wrong.facts.strides = trial.steps();
    throw Failure(fmt::format("{} ({})", wrong.text, wrong.facts.shapes), wrong.facts);
  }
  /// Lays the trial out, calls, waits, and collects what the call left.
  tenon_status send(Trial& trial, const How& how) {
    trial.lay_out(how.poison, device_.device_info().operand_alignment_bytes);
    if (trial.content_.size() > capacity_) {
      memory_.reset();
      capacity_ = trial.content_.size() * 2;
      memory_ = std::make_unique<Memory>(device_, capacity_);
    }
    std::vector<unsigned char> host = trial.content_;
    ErrorText error;
    expect_ok("a copy to the device", &Device::upload, device_, memory_->address, trial.content_.data(), trial.content_.size());
    tenon_blas_call call{};
    call.struct_size = sizeof call;
    call.needs = how.needs;
    call.dtype = trial.dtype_;
    call.math = how.math;
    call.deterministic = how.deterministic;
    call.device = device_.handle();
    call.stream = device_.stream();
    const tenon_run run{.struct_size = sizeof run, .threads = how.threads, .priority = 0, .reserved = 0, .context = nullptr};
    if (how.threads > 0) call.run = &run;
    const tenon_status status =
        trial.submit(slot_, call, {memory_->address, host.data(), how.numbers_on_device ? 1U : 0U}, how.longer_record, error);
    text_ = error.text();
    expect_ok("stream_synchronize", &Device::synchronize, device_);
    trial.after_.resize(trial.content_.size());
    expect_ok("a copy from the device", &Device::download, device_, trial.after_.data(), memory_->address, trial.after_.size());
    if (!how.numbers_on_device) {
      for (const Trial::Operand& operand : trial.operands_) {
        if (!operand.number) continue;
        const auto size = static_cast<std::uint64_t>(operand.capacity * sdk::size_of(operand.dtype));
        std::memcpy(trial.after_.data() + operand.origin, host.data() + operand.origin, size);
      }
    }
    return status;
  }
  void expect_untouched(const Trial& trial, const How& how) const {
    if (trial.after_ != trial.content_) throw Failure(fmt::format("{}: {} wrote before it refused", how.describe(), line_.routine));
    if (text_.empty()) throw Failure(fmt::format("{}: {} refused without a text", how.describe(), line_.routine));
  }

  const Line& line_;
  const Device& device_;
  const void* slot_ = nullptr;
  std::unique_ptr<Memory> memory_;
  std::uint64_t capacity_ = 0;
  std::string text_;  ///< of the last call's error
};

namespace {

/// A routine in one dtype and layout: the subject of a case.
struct Subject {
  const Line* line;
  const Signature* signature;
  tenon_dtype dtype;
  std::uint32_t layout;
  std::vector<Flag> flags;
  std::string name;  ///< "gemv/f32/row"

  Trial trial(TrialKind kind, std::uint64_t seed, std::vector<Setting> settings) const {
    Trial trial(*line, dtype, layout, kind, seed, std::move(settings));
    signature->build(trial);
    return trial;
  }
  /// Calls f(settings) for every combination of flags.
  template <class F>
  void each_flags(F&& f) const {
    std::vector<std::size_t> index(flags.size(), 0);
    for (;;) {
      std::vector<Setting> settings;
      for (std::size_t i = 0; i < flags.size(); ++i) settings.push_back({flags[i].name, flags[i].values[index[i]]});
      f(std::move(settings));
      std::size_t i = 0;
      while (i < flags.size() && ++index[i] == flags[i].values.size()) index[i++] = 0;
      if (i == flags.size()) return;
    }
  }
  std::vector<Setting> drawn_flags(Random& random) const {
    std::vector<Setting> settings;
    for (const Flag& flag : flags) {
      settings.push_back(
          {flag.name, flag.values[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(flag.values.size())))]});
    }
    return settings;
  }
  std::vector<Setting> drawn(Random& random, const std::vector<std::int64_t>& sizes) const {
    std::vector<Setting> settings = drawn_flags(random);
    for (const char* size : signature->sizes) {
      settings.push_back({size, sizes[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(sizes.size())))]});
    }
    return settings;
  }
};

int often(int full) {
  return small_sizes() ? std::max(1, full / 4) : full;
}
std::vector<std::int64_t> few_sizes() {
  return small_sizes() ? std::vector<std::int64_t>{0, 1, 3, 7} : std::vector<std::int64_t>{0, 1, 2, 3, 7, 17};
}

/// All flags and small sizes; increments, leading dimensions, alpha and beta are random.
void check_values(CaseContext& context, const Subject& at) {
  Stage stage(context.device, *at.line, at.dtype);
  const std::vector<std::int64_t> sizes = few_sizes();
  std::size_t combinations = 1;
  for (const Flag& flag : at.flags) combinations *= flag.values.size();
  for (std::size_t i = 0; i < at.signature->sizes.size(); ++i) combinations *= sizes.size();
  const int rounds = std::max(1, often(400) / static_cast<int>(combinations));
  std::uint64_t index = seed_for(context.seed, at.name);
  const auto each_size = [&](const std::vector<Setting>& flags) {
    std::vector<std::size_t> place(at.signature->sizes.size(), 0);
    for (;;) {
      std::vector<Setting> settings = flags;
      for (std::size_t i = 0; i < place.size(); ++i) settings.push_back({at.signature->sizes[i], sizes[place[i]]});
      Trial trial = at.trial(TrialKind::none, ++index, std::move(settings));
      stage.run(trial);
      std::size_t i = 0;
      while (i < place.size() && ++place[i] == sizes.size()) place[i++] = 0;
      if (i == place.size()) return;
    }
  };
  for (int round = 0; round < rounds; ++round) at.each_flags(each_size);
}

/// Sizes of 64 and 257, random flags.
void check_blocks(CaseContext& context, const Subject& at) {
  Stage stage(context.device, *at.line, at.dtype);
  Random random(seed_for(context.seed, at.name + "/blocks"));
  const int trials = often(at.line->level == 3 ? 4 : 8);
  for (int i = 0; i < trials; ++i) {
    Trial trial = at.trial(i % 4 == 3 ? TrialKind::none : TrialKind::full, random.bits(), at.drawn(random, {64, 257, 64, 257, 9}));
    stage.run(trial);
  }
}

/// The largest sizes. Plain loops take seconds for a product of 1024, and so does the oracle for complex ones.
void check_large(CaseContext& context, const Subject& at) {
  Stage stage(context.device, *at.line, at.dtype);
  std::int64_t n = small_sizes() ? 50000 : 1000000;
  if (at.line->level == 3) {
    const bool several = std::strstr(at.line->routine, "batched") != nullptr;
    n = context.device.is_oracle() || small_sizes() ? 300 : several ? 400 : is_complex(at.dtype) ? 700 : 1024;
  }
  Random random(seed_for(context.seed, at.name + "/large"));
  Trial trial = at.trial(TrialKind::full, random.bits(), at.drawn(random, {n}));
  stage.run(trial);
}

/// Bytes that belong to no element are 0xFF, NaN, in every trial; the result must not change if they are 3.0, nor if the record is that
/// of a newer header.
void check_guards(CaseContext& context, const Subject& at) {
  Stage stage(context.device, *at.line, at.dtype);
  Random random(seed_for(context.seed, at.name + "/guards"));
  for (int i = 0; i < often(40); ++i) {
    const std::uint64_t seed = random.bits();
    const std::vector<Setting> settings = at.drawn(random, {1, 3, 7, 17, 33});
    Trial first = at.trial(TrialKind::none, seed, settings), second = at.trial(TrialKind::none, seed, settings);
    stage.run(first);
    stage.run(second, {.poison = 0x40, .longer_record = true});
    Stage::expect_same(first, second, "the result depends on bytes outside the operands, or on fields behind the record's end");
  }
}

void check_kind(CaseContext& context, const Subject& at, TrialKind kind, const char* what, int rounds) {
  Stage stage(context.device, *at.line, at.dtype);
  Random random(seed_for(context.seed, at.name + "/" + what));
  for (int round = 0; round < often(rounds); ++round) {
    at.each_flags([&](std::vector<Setting> settings) {
      const std::int64_t same = random.integer(1, 9);
      for (const char* size : at.signature->sizes) {
        settings.push_back({size, kind == TrialKind::aliasing ? same : random.integer(0, 9) < 8 ? random.integer(1, 8) : 35});
      }
      Trial trial = at.trial(kind, random.bits(), std::move(settings));
      if (kind == TrialKind::aliasing && !Stage::shares(trial)) return;
      stage.run(trial);
    });
  }
}

/// Each size 0 in turn. Addresses of operands that are not accessed are NULL.
void check_nothing(CaseContext& context, const Subject& at) {
  Stage stage(context.device, *at.line, at.dtype);
  Random random(seed_for(context.seed, at.name + "/nothing"));
  for (std::size_t zero = 0; zero < at.signature->sizes.size(); ++zero) {
    at.each_flags([&](std::vector<Setting> settings) {
      for (std::size_t i = 0; i < at.signature->sizes.size(); ++i) {
        settings.push_back({at.signature->sizes[i], i == zero ? 0 : random.integer(0, 6)});
      }
      Trial trial = at.trial(TrialKind::nothing, random.bits(), std::move(settings));
      stage.run(trial);
    });
  }
}

/// alpha, beta, parameters and results in device memory give correct results, as in host memory. Their bits may differ: a backend that
/// knows the numbers of a call may take another way, and a library may round on the processor what it rounds on the device.
void check_device_scalars(CaseContext& context, const Subject& at) {
  Stage stage(context.device, *at.line, at.dtype);
  Random random(seed_for(context.seed, at.name + "/device_scalars"));
  for (int i = 0; i < often(40); ++i) {
    const std::uint64_t seed = random.bits();
    const std::vector<Setting> settings = at.drawn(random, {0, 1, 3, 7, 17});
    for (const bool on_device : {false, true}) {
      Trial trial = at.trial(TrialKind::none, seed, settings);
      stage.run(trial, {.numbers_on_device = on_device});
    }
  }
}

/// Equal bits at every call and on hosts of other thread counts, from operands that are worth dividing among threads too.
void check_deterministic(CaseContext& context, const Subject& at) {
  Random random(seed_for(context.seed, at.name + "/deterministic"));
  const std::int64_t divided = at.line->level == 3 ? 160 : at.line->level == 2 ? 700 : 100000;
  for (const std::int64_t n : {std::int64_t{17}, std::int64_t{130}, divided}) {
    if (n == divided && (small_sizes() || context.device.is_oracle())) continue;
    const std::uint64_t seed = random.bits();
    const std::vector<Setting> settings = at.drawn(random, {n});
    const auto trial = [&] { return at.trial(TrialKind::none, seed, settings); };
    const auto refuses = [&](const Device& device, Trial& made, std::uint32_t budget = 0) {
      return Stage(device, *at.line, at.dtype).run_or_refuse(made, {.deterministic = 1, .threads = budget});
    };
    Trial first = trial();
    if (refuses(context.device, first)) {
      context.remark = "refused";
      return;
    }
    for (const std::uint32_t threads : {0U, 1U, 3U}) {
      Trial again = trial();
      refuses(threads == 0 ? context.device : context.device.on_threads(threads), again);
      Stage::expect_same(first, again, threads == 0 ? "different bits the second time" : "different bits on a host of other threads");
    }
    Trial in_a_run = trial();
    refuses(context.device, in_a_run, 1);
    Stage::expect_same(first, in_a_run, "different bits in a run of one thread");
  }
}

/// Every math is honoured or refused: within its rounding in the f32 and c64 products of level 3, in full elsewhere.
void check_math(CaseContext& context, const Subject& at) {
  Stage stage(context.device, *at.line, at.dtype);
  Random random(seed_for(context.seed, at.name + "/math"));
  const bool rounds = at.line->level == 3 && real_of(at.dtype) == TENON_DTYPE_F32;
  static constexpr struct {
    std::uint32_t math;
    double step;
    const char* name;
  } policies[] = {{TENON_MATH_TF32, 0x1p-10, "TF32"}, {TENON_MATH_BF16, 0x1p-7, "BF16"}};
  for (const auto& policy : policies) {
    Trial trial = at.trial(TrialKind::full, random.bits(), at.drawn(random, {33}));
    if (rounds) trial.allow_rounding(policy.step);
    if (stage.run_or_refuse(trial, {.math = policy.math})) context.remark += std::string(policy.name) + " is refused; ";
  }
}

/// A bit of `needs`, a math and a determinism that no header defines.
void check_refusals(CaseContext& context, const Subject& at) {
  Stage stage(context.device, *at.line, at.dtype);
  Random random(seed_for(context.seed, at.name + "/refusals"));
  const std::vector<Setting> settings = at.drawn(random, {7});
  for (const How& how : {How{.needs = TENON_NEEDS_TEST}, How{.math = 77}, How{.deterministic = 77}}) {
    Trial trial = at.trial(TrialKind::full, random.bits(), settings);
    stage.expect_refused(trial, how);
  }
}

const std::vector<std::pair<std::string, Signature>>& signatures() {
  // Cases point into it.
  static const std::vector<std::pair<std::string, Signature>> all = all_signatures();
  return all;
}
const Signature* signature_of(const Line& line) {
  for (const auto& [name, signature] : signatures()) {
    const auto is_line = [&](const char* routine) { return std::strcmp(routine, line.routine) == 0; };
    if (name == line.signature && std::any_of(signature.routines.begin(), signature.routines.end(), is_line)) return &signature;
  }
  return nullptr;
}

tenon_dtype dtype_of(char letter) {
  return letter == 's'   ? tenon_dtype{TENON_DTYPE_F32}
         : letter == 'd' ? tenon_dtype{TENON_DTYPE_F64}
         : letter == 'c' ? tenon_dtype{TENON_DTYPE_C64}
                         : tenon_dtype{TENON_DTYPE_C128};
}

void add_cases(const Subject& at, std::vector<Case>& out) {
  const auto add = [&](const char* what, auto check) {
    out.push_back({at.name + "/" + what, at.line->routine, at.line->signature, at.dtype, true,
                   [at, check](CaseContext& context) { check(context, at); }});
  };
  const auto add_kind = [&](const char* what, TrialKind kind, int rounds) {
    add(what, [what, kind, rounds](CaseContext& context, const Subject& subject) { check_kind(context, subject, kind, what, rounds); });
  };
  std::vector<Setting> settings;
  for (const Flag& flag : at.flags) settings.push_back({flag.name, flag.values.front()});
  for (const char* size : at.signature->sizes) settings.push_back({size, 3});
  const Stage::Offers offers = Stage::offers(at.trial(TrialKind::aliasing, 1, std::move(settings)));
  const bool sized = !at.signature->sizes.empty();
  add("values", check_values);
  if (sized) add("blocks", check_blocks);
  // One large case per routine and dtype: the layout alternates.
  const bool row = at.dtype == TENON_DTYPE_F32 || at.dtype == TENON_DTYPE_C128;
  const bool selected_layout = at.layout == 0 || row == (at.layout == TENON_LAYOUT_ROW_MAJOR);
  if (sized && at.line->level != 2 && selected_layout) add("large", check_large);
  add("guards", check_guards);
  if (offers.beta) add_kind("beta_zero", TrialKind::beta_zero, 8);
  if (offers.alpha && at.line->level > 1) add_kind("alpha_zero", TrialKind::alpha_zero, 8);
  if (sized) add("nothing", check_nothing);
  if (sized && offers.all_floats) add_kind("nan", TrialKind::nan, 16);
  if (offers.infinity) add_kind("infinity", TrialKind::infinite, 16);
  if (offers.shares) add_kind("aliasing", TrialKind::aliasing, 8);
  if (offers.numbers) add("device_scalars", check_device_scalars);
  add("deterministic", check_deterministic);
  add("math", check_math);
  add("refusals", check_refusals);
}

}  // namespace

std::vector<std::string> gaps() {
  std::vector<std::string> result;
  for (const Line& line : lines()) {
    if (signature_of(line) == nullptr) {
      result.push_back(fmt::format("{}: no case in tests/conformance/blas/{}.cpp", line.routine, line.signature));
    } else if (signature_of(line)->why == nullptr) {
      result.push_back(fmt::format("{}: a bound without a reason in tests/conformance/blas/{}.cpp", line.routine, line.signature));
    }
  }
  return result;
}

}  // namespace tenon::conformance::blas

namespace tenon::conformance {

std::vector<Case> blas_case_list() {
  std::vector<Case> cases;
  for (const blas::Line& line : blas::lines()) {
    const blas::Signature* signature = blas::signature_of(line);
    if (signature == nullptr) continue;  // gaps() says so
    for (const char* letter = line.dtypes; *letter != 0; ++letter) {
      const tenon_dtype dtype = blas::dtype_of(*letter);
      const auto flags = signature->flags == nullptr ? std::vector<blas::Flag>{} : signature->flags(line, dtype);
      const std::string name = fmt::format("{}/{}", line.routine, sdk::name_of(dtype));
      if (!signature->layouts) {
        blas::add_cases({&line, signature, dtype, 0, flags, name}, cases);
        continue;
      }
      blas::add_cases({&line, signature, dtype, TENON_LAYOUT_ROW_MAJOR, flags, name + "/row"}, cases);
      blas::add_cases({&line, signature, dtype, TENON_LAYOUT_COLUMN_MAJOR, flags, name + "/column"}, cases);
    }
  }
  return cases;
}

}  // namespace tenon::conformance
