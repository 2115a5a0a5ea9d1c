#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# train.sh <tenon> <source directory>: training, resuming, evaluation and prediction of a small model, and wrong inputs.
tenon=$1 source=$2
. "$(dirname "$0")/expect.sh"
fashion=$source/models/fashion_mnist/train.yaml
digits=(--set data.source=digits --set data.train_count=1600 --set data.test_count=400)

# Train, save, resume to the same bits, and load a model.
expect 0 'test: loss: ' "$tenon" train "$source/models/linear_regression/train.yaml"
expect 0 'mae: 0.1' "$tenon" train "$source/models/iris/train.yaml"
expect 0 'accuracy: 1.0' "$tenon" train "$source/models/iris/train_classifier.yaml"
expect 0 '101,770' "$tenon" summary "$fashion"
expect 0 ', batch of 7 ' "$tenon" summary "$fashion" --batch 7
expect 0 'Epoch 2/2' "$tenon" train "$fashion" "${digits[@]}" --set epochs=2 --set deterministic=true \
  --set checkpoint.directory="$work/straight" --json "$work/run.jsonl"
expect 0 '"event":"test"' tail -n 1 "$work/run.jsonl"
expect 0 '"samples_per_second":' head -n 1 "$work/run.jsonl"
expect 0 '' "$tenon" train "$fashion" "${digits[@]}" --set epochs=1 --set deterministic=true --set checkpoint.directory="$work/halves"
expect 0 'Resuming from' "$tenon" train "$fashion" "${digits[@]}" --set epochs=2 --set deterministic=true \
  --set checkpoint.directory="$work/halves" --set resume=auto
expect_same "$work/straight/epoch-000002.safetensors" "$work/halves/epoch-000002.safetensors"
expect 1 'of another run' "$tenon" train "$fashion" "${digits[@]}" --set epochs=1 --set checkpoint.directory="$work/halves"
expect 0 'accuracy: ' "$tenon" eval "$fashion" "${digits[@]}" --checkpoint "$work/straight"
expect 0 "Checkpoint: $work/straight/epoch-000002.yaml (epoch 2, step " "$tenon" eval "$fashion" "${digits[@]}" --checkpoint "$work/straight"

# Weights leave and enter under other names; a run starts from them.
printf 'dense_1/*: head.*\ndense/*: body.*\n' >"$work/names"
expect 0 'Wrote the weights of' "$tenon" weights export "$fashion" "$work/w.npz" --checkpoint "$work/straight" --map "$work/names" --transpose
expect 0 '4 of 4 parameters' "$tenon" weights import "$fashion" "$work/w.npz" --out "$work/imported" --map "$work/names" --transpose
expect 0 'No differences' "$tenon" weights diff "$work/imported" "$work/straight"
expect 1 'body.kernel' "$tenon" weights diff "$work/w.npz" "$work/straight"
expect 1 'missing: ' "$tenon" weights import "$fashion" "$work/w.npz" --out "$work/other"
expect 0 'Weights from ' "$tenon" train "$fashion" "${digits[@]}" --set "weights={file: $work/w.npz, map: $work/names, transpose: true}"
expect 0 ', expected ' "$tenon" predict "$fashion" "${digits[@]}" --checkpoint "$work/straight/epoch-000002.yaml" --count 3
expect 0 'input,class,name,probability,class_2,name_2,probability_2,expected' "$tenon" predict "$work/straight" --count 1 --top-k 2 --format csv
expect 0 "warning: layer 'dense': device 'gpu:9' not found" "$tenon" summary "$fashion" --set model.layers.1.dense.device=gpu:9
expect 0 'Run Tests' "$tenon" train "$fashion" "${digits[@]}" --set log_style=gorgonia

# A convolutional net learns other data by its last layer; the frozen ones keep their bits.
convnet=("$source/models/convnet/train.yaml" --set data.source=digits --set data.train_count=200 --set data.test_count=100 --set epochs=1)
expect 0 '' "$tenon" train "${convnet[@]}" --set checkpoint.directory="$work/base"
expect 0 'Weights from ' "$tenon" train "${convnet[@]}" --set data.seed=2 --set "weights=$work/base/epoch-000001.yaml" \
  --set 'trainable=[dense_1/*]' --set checkpoint.directory="$work/tuned"
"$tenon" weights diff "$work/tuned" "$work/base" >"$work/differences"
expect 0 '' grep -q '^dense_1/kernel ' "$work/differences"
expect 1 '' grep -E '^(conv2d|dense/)' "$work/differences"
expect 0 'of these frozen: 812,448 ' "$tenon" summary "$source/models/convnet/train.yaml" --set 'trainable=[dense_1/*]'

# Words as integers through an embedding; an SGD step updates only the rows that were read.
cat >"$work/words.yaml" <<'EOF'
model:
  name: bigrams
  input: {shape: [1]}
  layers:
    - embedding: {rows: 40, dim: 8}
    - flatten
    - dense: {units: 40, activation: softmax}
data: {source: ptb_like, vocabulary: 40, sequence: 1, train_count: 4001, test_count: 401}
loss: sparse_categorical_crossentropy
optimizer: {name: sgd, learning_rate: 1.0}
metrics: [accuracy, perplexity]
epochs: 2
EOF
expect 0 'test: loss: ' "$tenon" train "$work/words.yaml"
expect 0 'embedding (Embedding)' "$tenon" summary "$work/words.yaml"
expect 0 'ScatterAdd' "$tenon" explain "$work/words.yaml"
expect 1 'expected one of adam, adamw, amsgrad, sgd' "$tenon" train "$work/words.yaml" --set optimizer=adagard

# A text is learned as characters and continued; what the run does not know is refused before anything is printed.
for _ in $(seq 300); do printf 'abcde\n'; done >"$work/text.txt"
small=(--set data.sequence=12 --set model.input.shape=[12] --set model.layers.1.repeat.times=1 --set data.test_split=0.2)
expect 0 'perplexity: ' "$tenon" train "$source/models/gpt/train.yaml" --data "$work/text.txt" "${small[@]}" --set epochs=2 \
  --set checkpoint.directory="$work/gpt"
expect 0 'cde' "$tenon" generate "$work/gpt" --prompt ab --count 8 --temperature 0
expect 0 'labels, ' "$tenon" generate "$work/gpt" --count 8 --seed 2 --timing
expect 1 "prompt:1: expected one of the 6 characters that the model knows, got 'x'" "$tenon" generate "$work/gpt" --prompt x
expect 1 'top_p: expected a number in (0, 1], got 0' "$tenon" generate "$work/gpt" --top-p 0
expect 1 'expected text in UTF-8' "$tenon" train "$source/models/gpt/train.yaml" --data "$tenon"
expect 1 'expected a model whose samples are sequences of labels' "$tenon" generate "$fashion" "${digits[@]}" --checkpoint "$work/straight"

# Check gradients on data and on synthetic samples.
expect 0 'Gradients are right' "$tenon" gradcheck "$work/words.yaml" --samples 5
expect 0 'dense/kernel (784,128)' "$tenon" gradcheck "$fashion" "${digits[@]}" --samples 3
printf 'input: {shape: [5]}\nlayers: [{dense: {units: 4, activation: gelu}}, {dense: {units: 3, activation: softmax}}]\n' >"$work/bare.yaml"
expect 0 'Gradients are right' "$tenon" gradcheck "$work/bare.yaml"
expect 2 '' "$tenon" gradcheck "$work/bare.yaml" --samples 0

# Wrong inputs: exit code 1 and a message with the cause and the location.
expect 1 "unknown key 'epoch'; did you mean 'epochs'?" "$tenon" train "$fashion" --set epoch=1
expect 1 "key 'epochs': expected an integer" "$tenon" train "$fashion" --set epochs=many
expect 1 'give --data DIR' "$tenon" train "$fashion"
expect 1 "model.yaml: expected a train.yaml, whose \`data\` says what to read, got a model without it; write one with \`model: model.yaml\`" \
  "$tenon" train "$source/models/conv1d_signal/model.yaml"
printf 'a: "\\S"' >"$work/net.onnx"
expect 1 "net.onnx: expected a YAML file, got an ONNX model; name it in a YAML file next to it: \`model: {onnx: net.onnx}\`" \
  "$tenon" summary "$work/net.onnx"
expect 1 "models/conv1d_signal: expected a file, got a folder; did you mean $source/models/conv1d_signal/train.yaml?" \
  "$tenon" train "$source/models/conv1d_signal"
expect 1 "$work/nothing" "$tenon" train "$fashion" --data "$work/nothing"
expect 1 "device 'gpu:0' not found; available:" "$tenon" train "$fashion" "${digits[@]}" --device gpu:0
expect 1 'no checkpoint in' "$tenon" eval "$fashion" "${digits[@]}" --checkpoint "$work"
expect 1 'belongs to another model' "$tenon" eval "$source/models/mnist_mlp/train.yaml" "${digits[@]}" --checkpoint "$work/straight"
expect 1 'the loss is' "$tenon" train "$source/models/linear_regression/train.yaml" --set optimizer.learning_rate=1e30
expect 1 'none.yaml' "$tenon" train "$work/none.yaml"
expect 2 '' "$tenon" train
printf 'model: model.yaml\n\tdata: x\n' >"$work/tabs.yaml"
expect 1 'tabs.yaml:2' "$tenon" train "$work/tabs.yaml"
: >"$work/empty.yaml"
expect 1 'empty.yaml' "$tenon" train "$work/empty.yaml"
finish
