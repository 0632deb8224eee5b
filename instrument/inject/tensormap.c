/* tensormap: the bytes of the program's tensor maps, which exec/tensormap_bits.def describes. Whether
 * this driver and this GPU agree with it is seen at each map that the program encodes. */
#include "internal.h"

#include <stdatomic.h>
#include <string.h>

/* The driver encoded a map in another way. */
static atomic_bool foreign;

void inject_map_encoded(const CUtensorMap *map, const struct consan_tensormap_args *a)
{
	_Alignas(64) unsigned char ours[CONSAN_TENSORMAP_BYTES];
	struct consan_err e = { 0 };

	if (consan_tensormap(a, ours, &e) && gpu_same_map(map, ours))
		return;
	if (!atomic_exchange(&foreign, true))
		inject_remark(REMARK_NOTE, "this driver encodes tensor maps in another way than the one "
			"that is known (%s), so kernels that copy through them are not checked",
			e.text[0] ? e.text : "other bytes");
}

/* Called from threads of the check, which have no current context; the kernel may still run. */
static bool fetch(CUcontext context, uint64_t address, void *bytes)
{
	CUstream beside = inject_beside(context);
	bool good;

	if (!beside || !cu.p_cuCtxPushCurrent || !cu.p_cuCtxPopCurrent ||
			cu.p_cuCtxPushCurrent(context))
		return false;
	good = !cu.p_cuMemcpyDtoHAsync(bytes, (CUdeviceptr)address, CONSAN_TENSORMAP_BYTES, beside) &&
		!cu.p_cuStreamSynchronize(beside);
	cu.p_cuCtxPopCurrent(&context);
	return good;
}

bool inject_find_map(CUcontext context, uint64_t address, const void *param, void *bytes)
{
	const bool busy = inject_busy;
	bool here;

	if (foreign)
		return false;
	if (param) {
		memcpy(bytes, param, CONSAN_TENSORMAP_BYTES);
		return true;
	}
	inject_busy = true; /* the calling thread may be none that runs callbacks */
	here = fetch(context, address, bytes);
	inject_busy = busy;
	return here;
}
