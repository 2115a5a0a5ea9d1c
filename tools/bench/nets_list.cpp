// SPDX-License-Identifier: Apache-2.0
#include "bench/nets_list.h"

namespace tenon::bench {
namespace {

constexpr Net nets[] = {
    {"hkbu", "FCN-S", "fcn_s", 64, true},
    {"hkbu", "FCN-8", "fcn_8", 64, true},
    {"hkbu", "FCN-5 (K40)", "fcn_5_k40", 8192, true},
    {"hkbu", "FCN-8 (K40)", "fcn_8_k40", 8192, true},
    {"hkbu", "AlexNet-S", "alexnet_s", 16, true},
    {"hkbu", "ResNet-50", "resnet_50", 16, true},
    {"hkbu", "FCN-R", "fcn_r", 1024, true},
    {"hkbu", "AlexNet-R", "alexnet_r", 1024, true},
    {"hkbu", "ResNet-56", "resnet_56", 128, true},
    {"hkbu", "LSTM-32", "lstm_32", 128, true},
    {"hkbu", "LSTM-64", "lstm_64", 128, true},

    {"cnn", "AlexNet", "alexnet", 16, false},
    {"cnn", "Inception-V1", "inception_v1", 16, false},
    {"cnn", "VGG-16", "vgg_16", 16, false},
    {"cnn", "VGG-19", "vgg_19", 16, false},
    {"cnn", "ResNet-18", "resnet_18", 16, false},
    {"cnn", "ResNet-34", "resnet_34", 16, false},
    {"cnn", "ResNet-50", "resnet_50", 16, false},
    {"cnn", "ResNet-101", "resnet_101", 16, false},
    {"cnn", "ResNet-152", "resnet_152", 16, false},
    {"cnn", "ResNet-200", "resnet_200", 16, false},

    {"convnet", "AlexNet-OWT", "alexnet_owt", 128, false},
    {"convnet", "Overfeat", "overfeat", 128, false},
    {"convnet", "VGG-A", "vgg_a", 64, false},
    {"convnet", "GoogLeNet-V1", "googlenet_v1", 128, false},

    {"layers", "L1", "conv_l1", 128, false},
    {"layers", "L2", "conv_l2", 128, false},
    {"layers", "L3", "conv_l3", 128, false},
    {"layers", "L4", "conv_l4", 128, false},
    {"layers", "L5", "conv_l5", 128, false},

    {"own", "convnet", "../convnet/train", 100, true},
    {"own", "LSTM-narrow", "lstm_narrow", 128, true},
};

}  // namespace

std::span<const Net> benchmark_nets() {
  return nets;
}

}  // namespace tenon::bench
