// Prefetch: a worker thread reads batch n + 1 while batch n trains. Prints the events in order. Each step here waits until the next batch
// has been read: without prefetch the first one would never end.
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include <tenon/tenon.h>

using namespace tenon;

namespace {

constexpr std::int64_t batch_size = 100, batches = 6;
std::mutex print_mutex, read_mutex;
std::condition_variable read_changed;
std::int64_t last_read = -1;  ///< guarded by read_mutex

void event(const char* what, std::int64_t batch) {
  const std::lock_guard lock(print_mutex);
  std::printf("%s batch %d\n", what, static_cast<int>(batch));
}

/// Wraps a data set and logs calls of gather, which the workers make. The data is not shuffled, so the first index gives the batch.
class LoggedDataset final : public Dataset {
 public:
  explicit LoggedDataset(std::shared_ptr<const Dataset> data) : Dataset(data->inputs(), data->targets()), data_(std::move(data)) {}
  const std::string& name() const override { return data_->name(); }
  std::int64_t size() const override { return data_->size(); }
  std::optional<std::int64_t> num_classes() const override { return data_->num_classes(); }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    data_->gather(indices, inputs, targets);
    event("  read", indices[0] / batch_size);
    const std::lock_guard lock(read_mutex);
    last_read = indices[0] / batch_size;
    read_changed.notify_all();
  }

 private:
  std::shared_ptr<const Dataset> data_;
};

}  // namespace

int main() {
  const Context context;
  Model model({layers::Flatten{}, layers::Dense{256, Activation::relu}, layers::Dense{10, Activation::softmax}});
  CompileOptions options;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  model.compile(context, options);

  const auto data = std::make_shared<LoggedDataset>(generate_digits({.count = batch_size * batches}));
  Batches stream(data, {.batch_size = batch_size, .shuffle = false, .workers = 1, .prefetch = 2});
  stream.start(0);
  while (const Batch* batch = stream.next()) {
    event("train begins:", batch->index);
    model.train_batch(batch->x(), batch->y());
    {
      std::unique_lock lock(read_mutex);
      read_changed.wait(lock, [&] { return last_read > batch->index || last_read == batches - 1; });
    }
    event("train ends:  ", batch->index);
  }
}
