/* nvtx: names that the program gives to streams by NVTX; see session/nvtx.c. */
#include "internal.h"

#define VISIBLE __attribute__((visibility("default")))

static void on_name(const void *handle, const char *line)
{
	struct stream *s = stream_of(handle);

	if (s && !device_ready())
		order_line_name(hb(), hb_line(s), line);
}

/* Returns 1: the program's calls of NVTX come here. */
VISIBLE int InitializeInjectionNvtx2(const void *(*get)(uint32_t id));
VISIBLE int InitializeInjectionNvtx2(const void *(*get)(uint32_t id))
{
	return consan_nvtx(get, on_name);
}
