/* SPDX-License-Identifier: Apache-2.0 */
/* What Visual Studio's libraries would add to the template, of which there are none here: the entry point, the mark of a file that uses
 * floating point, and two functions under the names that MinGW's headers give them. The rest is in msvcrt.dll, a part of Windows. */
#include <stdarg.h>
#include <stddef.h>

__declspec(dllimport) int __stdcall QueryPerformanceCounter(long long* out_count);
__declspec(dllimport) int __stdcall QueryPerformanceFrequency(long long* out_per_second);
__declspec(dllimport) int __cdecl _vsnprintf(char* text, size_t capacity, const char* format, va_list arguments);

int _fltused = 1;

int __stdcall DllMain(void* self, unsigned long reason, void* reserved) {
  (void)self, (void)reason, (void)reserved;
  return 1;
}

int __ms_vsnprintf(char* text, size_t capacity, const char* format, va_list arguments) {
  const int length = _vsnprintf(text, capacity, format, arguments);
  if (capacity > 0) text[capacity - 1] = 0; /* which _vsnprintf leaves out */
  return length;
}

struct timespec {
  long long tv_sec;
  long tv_nsec;
};
int clock_gettime(int clock, struct timespec* out_time) {
  long long now, per_second;
  (void)clock;
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&per_second);
  out_time->tv_sec = now / per_second;
  out_time->tv_nsec = (long)(now % per_second * 1000000000 / per_second);
  return 0;
}
