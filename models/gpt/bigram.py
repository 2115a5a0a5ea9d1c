#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bigram.py TEXT [SEQUENCE]: the test perplexity of a model of pairs of characters, with add-one smoothing.

Training and test text are those of train.yaml: sequences of SEQUENCE (128) characters, of which the last tenth is the test set.
"""
import collections
import math
import sys

text = open(sys.argv[1], encoding="utf-8").read()
sequence = int(sys.argv[2]) if len(sys.argv) > 2 else 128
count = (len(text) - 1) // sequence
kept = int(count * 0.9)
train, test = text[: kept * sequence + 1], text[kept * sequence : count * sequence + 1]
pairs, firsts = collections.Counter(zip(train, train[1:])), collections.Counter(train[:-1])
characters = len(set(text))
nats = -sum(math.log((pairs[pair] + 1) / (firsts[pair[0]] + characters)) for pair in zip(test, test[1:])) / (len(test) - 1)
print(f"{characters} characters, perplexity {math.exp(nats):.2f} on {len(test) - 1} characters of the test set")
