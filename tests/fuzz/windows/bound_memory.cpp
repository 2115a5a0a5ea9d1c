// SPDX-License-Identifier: Apache-2.0
#include "bound_memory.h"

#include <windows.h>

namespace tenon::fuzz {

void bound_memory() {
  const HANDLE job = CreateJobObjectW(nullptr, nullptr);  // kept open until the process ends
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY;
  limits.ProcessMemoryLimit = std::size_t{4} << 30;
  SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
  AssignProcessToJobObject(job, GetCurrentProcess());
}

}  // namespace tenon::fuzz
