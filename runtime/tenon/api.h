// SPDX-License-Identifier: Apache-2.0
// tenon/api.h - marks what libtenon exports; all other symbols are hidden.
//
//   TENON_API     a function that the library defines, or a class with such members
//   TENON_HIDDEN  a class nested in such a class that is internal to the library
//
// Programs that link the runtime as a static library on Windows define TENON_STATIC. Elsewhere the
// same objects serve both kinds of library. TENON_BUILDING is defined while the library is built.
#pragma once

#if !defined(_WIN32)
#define TENON_API __attribute__((visibility("default")))
#define TENON_HIDDEN __attribute__((visibility("hidden")))
#else
#define TENON_HIDDEN
#if defined(TENON_STATIC)
#define TENON_API
#elif defined(TENON_BUILDING)
#define TENON_API __declspec(dllexport)
#else
#define TENON_API __declspec(dllimport)
#endif
#endif
