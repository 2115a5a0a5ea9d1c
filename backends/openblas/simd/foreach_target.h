// SPDX-License-Identifier: Apache-2.0
// foreach_target.h - the source file that includes this first is compiled once for each instruction set, in a HWY_NAMESPACE of its own each
// time; HWY_ONCE is 1 in the last pass, which sees all of them.
#pragma once

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE __BASE_FILE__  // the file given to the compiler, by an absolute path as from CMake
#include <hwy/foreach_target.h>
