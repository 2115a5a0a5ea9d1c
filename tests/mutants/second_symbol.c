/* What a backend must not have: a second public symbol. */
#include <tenon/backend.h>

TENON_EXPORT int tenon_second_symbol(void);
int tenon_second_symbol(void) {
  return 2;
}
