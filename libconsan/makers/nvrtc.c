/* nvrtc: compiled for a real architecture, an NVRTC program has its PTX as well as its cubin. */
#include "makers.h"

#include "libconsan/origin/origin.h"

#include <stdlib.h>

typedef int get(void *program, char *to);
typedef int get_size(void *program, size_t *n);

int on_nvrtcGetCUBIN(const struct maker *m, void *program, char *cubin)
{
	get *get_cubin = (get *)maker_call(m, "nvrtcGetCUBIN");
	get *get_ptx = (get *)maker_call(m, "nvrtcGetPTX");
	get_size *cubin_bytes = (get_size *)maker_call(m, "nvrtcGetCUBINSize");
	get_size *ptx_bytes = (get_size *)maker_call(m, "nvrtcGetPTXSize");
	int result = get_cubin ? get_cubin(program, cubin) : MAKER_FAILED;
	size_t n = 0, bytes = 0;
	char *ptx;

	if (result || !cubin_bytes || !ptx_bytes || !get_ptx || cubin_bytes(program, &bytes)
			|| ptx_bytes(program, &n) || !n)
		return result;
	ptx = base_alloc(n + 1);
	if (!get_ptx(program, ptx))
		origin_put(cubin, bytes, ptx, n - 1); /* n counts the NUL */
	free(ptx);
	return result;
}
