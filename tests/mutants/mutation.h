// SPDX-License-Identifier: Apache-2.0
// mutation.h - which defect a backend has. It includes nothing else: one source for each plugin includes it.
#pragma once

namespace tenon::mutants {

#define UNMODIFIED(name, ...) name,
#define MUTANT(name, ...) name,
enum class Mutation {
#include "mutants.def"
};
#undef UNMODIFIED
#undef MUTANT

/// The mutation of this plugin. Defined by a generated source, the only one that differs between plugins.
extern const Mutation mutation;
extern const char* const mutation_name;

}  // namespace tenon::mutants
