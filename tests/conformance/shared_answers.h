// shared_answers.h - what the checks of one instance of an op have in common is worked out once (harness.cpp).
#pragma once

namespace tenon::conformance {

/// Forgets it: another backend is under test.
void forget_shared_answers();

}  // namespace tenon::conformance
