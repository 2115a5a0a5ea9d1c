/* The template under another name: what a faulty plugin is when its fault is taken away. */
#include <tenon/backend.h>

#undef TENON_EXPORT
#define TENON_EXPORT
#define tenon_backend_query sound_query
tenon_status sound_query(const tenon_host_info* host, tenon_backend_info* out_info);
#include "../../plugins/template/template.c"
