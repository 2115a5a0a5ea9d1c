/* A vendor's library that is there when a plugin is linked and gone when it is loaded. */
#include <tenon/backend.h>

TENON_EXPORT int tenon_absent_function(void);
int tenon_absent_function(void) {
  return 0;
}
