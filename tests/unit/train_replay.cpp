// Training on a device that records: steps are replayed, and learn what executed steps learn, bit for bit.
#include "exec_testing.h"

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "exec/context_state.h"

namespace tenon {
namespace {

using test::test_config;

/// The reference backend under the name `reel`: its streams keep what they are given until they are waited for, and can be recorded.
struct Reel {
  using Work = std::vector<std::function<tenon_status(tenon_error*)>>;
  struct Stream {
    tenon_stream* real;
    Work pending;
    std::unique_ptr<Work> recorded;
    void give(Work::value_type work) { (recorded != nullptr ? *recorded : pending).push_back(std::move(work)); }
  };

  static inline const loader::Backend* real = nullptr;
  static inline tenon_backend_table table;
  static inline std::vector<tenon_capability> capabilities;
  static inline int recorded = 0, replayed = 0, executed = 0;  ///< executed: plans, by whatever way

  static Stream& of(tenon_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
  static tenon_status create_stream(tenon_device* device, tenon_stream** out_stream, tenon_error* error) {
    tenon_stream* inner = nullptr;
    const tenon_status status = real->table().stream_create(device, &inner, error);
    if (status == TENON_OK) *out_stream = reinterpret_cast<tenon_stream*>(new Stream{inner, {}, nullptr});
    return status;
  }
  static void destroy_stream(tenon_stream* stream) {
    real->table().stream_destroy(of(stream).real);
    delete &of(stream);
  }
  static tenon_status synchronize(tenon_stream* stream, tenon_error* error) {
    tenon_status status = TENON_OK;
    for (const auto& work : std::exchange(of(stream).pending, {})) {
      if (status == TENON_OK) status = work(error);
    }
    return status;
  }
  static tenon_status copy(tenon_device* device, const tenon_copy* transfer, tenon_stream* stream, tenon_error* error) {
    if (transfer->direction != TENON_COPY_DEVICE_TO_DEVICE) {  // the host's memory may change at once
      const tenon_status status = synchronize(stream, error);
      return status != TENON_OK ? status : real->table().copy(device, transfer, of(stream).real, error);
    }
    of(stream).give([=, bytes = *transfer](tenon_error* late) { return real->table().copy(device, &bytes, of(stream).real, late); });
    return TENON_OK;
  }
  static tenon_status execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                              tenon_error*) {
    const std::vector<std::uint64_t> addresses(bindings->addresses, bindings->addresses + bindings->address_count);
    of(stream).give([=, inner = of(stream).real, epoch = bindings->parameters_epoch](tenon_error* late) {
      ++executed;
      const tenon_bindings bound{sizeof bound, static_cast<std::uint32_t>(addresses.size()), addresses.data(), epoch};
      return real->table().plan_execute(plan, &bound, workspace, inner, late);
    });
    return TENON_OK;
  }
  static tenon_status begin(tenon_stream* stream, tenon_error*) {
    of(stream).recorded = std::make_unique<Work>();
    return TENON_OK;
  }
  static tenon_status end(tenon_stream* stream, tenon_capture** out_capture, tenon_error*) {
    ++recorded;
    *out_capture = reinterpret_cast<tenon_capture*>(of(stream).recorded.release());
    return TENON_OK;
  }
  static tenon_status replay(tenon_capture* capture, tenon_stream* stream, tenon_error*) {
    ++replayed;
    for (const auto& work : *reinterpret_cast<Work*>(capture)) of(stream).give(work);
    return TENON_OK;
  }
  static void destroy(tenon_capture* capture) { delete reinterpret_cast<Work*>(capture); }
  static constexpr tenon_capture_table capture_block{sizeof(tenon_capture_table), 0, begin, end, replay, destroy};

  static tenon_status create(const tenon_host*, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error*) {
    table = real->table();
    table.stream_create = create_stream;
    table.stream_destroy = destroy_stream;
    table.stream_synchronize = synchronize;
    table.copy = copy;
    table.plan_execute = execute;
    table.capture = &capture_block;
    table.blas = nullptr;
    table.shutdown = [](tenon_backend*) {};
    table.destroy = [](tenon_backend*) {};
    *out_backend = real->handle();
    *out_table = &table;
    return TENON_OK;
  }
  static tenon_status query(const tenon_host_info*, tenon_backend_info* out_info) {
    const std::uint32_t size = out_info->struct_size;
    *out_info = real->info();
    out_info->struct_size = size;
    out_info->name = "reel";
    const std::span list(out_info->capabilities, out_info->capability_count);
    capabilities.assign(list.begin(), list.end());
    for (tenon_capability& c : capabilities) c.features |= TENON_FEATURE_CAPTURE_SAFE;
    out_info->capabilities = capabilities.data();
    out_info->create = create;
    return TENON_OK;
  }
};

/// A context whose default device is reel:0.
Context with_reel(const Config& config) {
  Context context(config);
  exec::ContextState& state = *context.state();
  exec::DeviceEntry entry = state.entries[state.find(parse_device_name("reference:0"))];
  Reel::real = entry.loaded->backend.get();
  Reel::recorded = Reel::replayed = Reel::executed = 0;
  loader::Options options;
  options.registered = {{"reel", Reel::query}};
  options.make_host = [&](const tenon_backend_info&, std::uint32_t) { return entry.loaded->services->table(); };
  const loader::Result result = loader::load(options);
  REQUIRE(result.backends.size() == 1);
  REQUIRE_MESSAGE(result.records[0].healthy, result.records[0].text);
  entry.loaded = std::make_shared<exec::LoadedBackend>(exec::LoadedBackend{entry.loaded->services, result.backends[0]});
  entry.info.name = "reel:0";
  entry.info.backend = "reel";
  entry.info.flags &= ~(TENON_DEVICE_INLINE_STREAMS | TENON_DEVICE_HOST_ADDRESSABLE);
  state.entries.push_back(entry);
  state.infos.push_back(entry.info);
  state.available.push_back({"reel", 0, DeviceKind::accelerator});
  state.opened.resize(state.entries.size());
  state.config.device = "reel:0";
  return context;
}

struct Trained {
  std::vector<double> losses;  ///< of each epoch, of training and of validation
  std::vector<float> weights;
};

/// Two epochs of 10 batches of Adam with a schedule and dropout, then validation on 4 batches: what changes each step lies in device
/// memory.
Trained train(Capture capture, int workers, std::int64_t accumulate = 1) {
  Config config = test_config();
  config.capture = capture;
  config.seed = 7;
  const Context context = with_reel(config);
  Model model({layers::flatten(), layers::dense(12, Activation::relu), layers::dropout(0.25), layers::dense(10, Activation::softmax)});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  options.optimizer.schedule.kind = Schedule::Kind::exponential;
  options.optimizer.schedule.gamma = 0.9;
  options.metrics = {Metric::accuracy};
  model.compile(context, options);
  GeneratedOptions digits;
  digits.count = 200;
  FitOptions fit;
  fit.epochs = 2;
  fit.batch_size = 20;
  fit.workers = workers;
  fit.accumulate = accumulate;
  GeneratedOptions others = digits;
  others.count = 80;
  others.split = Split::test;
  fit.validation = generate_digits(others);
  Trained result;
  for (const EpochLogs& epoch : model.fit(generate_digits(digits), fit)) {
    for (const auto& [name, value] : epoch.logs) result.losses.push_back(value);
  }
  for (const auto& [name, tensor] : model.parameters().all()) {
    const std::vector<float> values = test::floats(tensor);
    result.weights.insert(result.weights.end(), values.begin(), values.end());
  }
  return result;
}

TEST_CASE("replay: training steps are replayed from the third on, and learn the same bits") {
  for (const int workers : {0, 1}) {
    CAPTURE(workers);
    const Trained executed = train(Capture::off, workers);
    CHECK(Reel::recorded == 0);
    const Trained replayed = train(Capture::automatic, workers);
    // The step; validation twice: not before the parameters have changed it shows that plans do not mind.
    CHECK(Reel::recorded == 3);
    CHECK(Reel::replayed == 20 - 2 + 8 - 2);
    CHECK(executed.losses == replayed.losses);
    CHECK(executed.weights == replayed.weights);
  }
}

TEST_CASE("replay: with gradients summed over batches the programs of a batch and of a step are replayed") {
  const Trained executed = train(Capture::off, 0, 2);
  const Trained replayed = train(Capture::automatic, 0, 2);
  CHECK(Reel::recorded == 5);  // the first batch, those that follow it, the step, validation twice
  CHECK(executed.losses == replayed.losses);
  CHECK(executed.weights == replayed.weights);
}

}  // namespace
}  // namespace tenon
