/* Trains a model of the tree by the C API, tests it, saves it, and predicts with what was saved.
 *
 *   train_mnist models/mnist_mlp/train.yaml [folder of MNIST's files]
 *
 * Without MNIST's files it trains on generated digits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/runtime.h>

/* Ends the program if a call failed. */
static void check(TenonError* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s: %s\n", tenon_status_name(tenon_error_status(error)), tenon_error_message(error));
  tenon_release(error);
  exit(1);
}

/* Prints the means after every hundredth batch: `user` is the number of the epoch. */
static TenonError* show_batch(void* user, const TenonBatchEnd* batch) {
  if (batch->batch % 100 == 99)
    printf("epoch %lld, batch %lld: %s %.4f\n", *(long long*)user + 1, (long long)batch->batch + 1, batch->names[0], batch->means[0]);
  return NULL;
}

static TenonError* show_epoch(void* user, const char* json) {
  printf("%s\n", json);
  ++*(long long*)user;
  return NULL;
}

int main(int argc, char** argv) {
  const char* const model_file = argc > 1 ? argv[1] : "models/mnist_mlp/train.yaml";
  char definition[1024] = "{source: digits, train_count: 10000, test_count: 1000}";
  long long epoch = 0;
  char* text = NULL;
  TenonContext* context = NULL;
  TenonModel *model = NULL, *saved = NULL;
  TenonData *train = NULL, *test = NULL;
  TenonTensor *images = NULL, *labels = NULL, *probabilities = NULL;
  TenonFitCallbacks callbacks;
  const int64_t first[] = {0};
  const int64_t* label = NULL;
  float scores[10];
  int best = 0;

  if (argc > 2) snprintf(definition, sizeof definition, "{source: mnist, directory: \"%s\"}", argv[2]);
  check(tenon_context_create(NULL, &context));
  check(tenon_model_load(context, model_file, NULL, &model));
  check(tenon_model_summary(model, 0, &text));
  printf("%s", text);
  tenon_string_free(text);

  check(tenon_data_load(definition, TENON_DATA_TRAIN, &train));
  check(tenon_data_load(definition, TENON_DATA_TEST, &test));
  memset(&callbacks, 0, sizeof callbacks);
  callbacks.struct_size = (uint32_t)sizeof callbacks;
  callbacks.user = &epoch;
  callbacks.batch_end = show_batch;
  callbacks.epoch_end = show_epoch;
  check(tenon_model_fit(model, train, NULL, "{epochs: 2, batch_size: 100}", &callbacks, NULL, NULL));
  check(tenon_model_evaluate(model, test, 100, NULL, &text));
  printf("test: %s\n", text);
  tenon_string_free(text);

  check(tenon_model_save(model, "mnist_saved"));
  check(tenon_model_load(context, "mnist_saved", NULL, &saved));
  check(tenon_data_gather(test, first, 1, &images, 1, &labels, 1));
  check(tenon_model_predict(saved, NULL, (const TenonTensor* const*)&images, 1, 0, TENON_PREDICT_PROBABILITIES, NULL, &probabilities, 1));
  check(tenon_tensor_read(probabilities, scores, sizeof scores));
  check(tenon_tensor_data(labels, (const void**)&label));
  for (int i = 1; i < 10; ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  printf("the first test image is a %lld; predicted: %d, with probability %.3f\n", (long long)*label, best, (double)scores[best]);

  tenon_release(probabilities);
  tenon_release(labels);
  tenon_release(images);
  tenon_release(test);
  tenon_release(train);
  tenon_release(saved);
  tenon_release(model);
  tenon_release(context);
  return tenon_object_count() == 0 ? 0 : 1;
}
