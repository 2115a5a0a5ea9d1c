// SPDX-License-Identifier: Apache-2.0
// sanitized.h - TENON_IS_SANITIZED: the program is built with AddressSanitizer or ThreadSanitizer, whose allocator is not the system's.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENON_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TENON_IS_SANITIZED 1
#endif
#endif
#ifndef TENON_IS_SANITIZED
#define TENON_IS_SANITIZED 0
#endif
