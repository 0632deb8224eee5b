/* consan-rescue FILE BYTES DEVICE OUT: copies the records of a kernel that the GPU stopped out
 * of device memory of another process. FILE and OUT are file descriptors of the memory and of
 * the copy. Started by rescue.c only. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "instrument/record/record.h"

#define CALLS(CALL) \
	CALL(cuInit) CALL(cuDeviceGet) CALL(cuDevicePrimaryCtxRetain) CALL(cuCtxSetCurrent) \
	CALL(cuMemImportFromShareableHandle) CALL(cuMemAddressReserve) CALL(cuMemMap) \
	CALL(cuMemSetAccess) CALL(cuMemcpyDtoH)

static struct {
#define CALL(name) __typeof__(&name) p_##name;
	CALLS(CALL)
#undef CALL
} cu;

static int open_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return 0;
#define NAME_1(name) #name
#define NAME(name) NAME_1(name)
#define CALL(name) \
	cu.p_##name = (__typeof__(cu.p_##name))dlsym(lib, NAME(name)); \
	if (!cu.p_##name) \
		return 0;
	CALLS(CALL)
#undef CALL
	return 1;
}

static CUdeviceptr map(int file, size_t bytes, int number)
{
	CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
		.id = number }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READ };
	CUmemGenericAllocationHandle handle;
	CUdevice device;
	CUdeviceptr at;
	CUcontext context;

	if (cu.p_cuInit(0) || cu.p_cuDeviceGet(&device, number)
			|| cu.p_cuDevicePrimaryCtxRetain(&context, device) ||
			cu.p_cuCtxSetCurrent(context)
			|| cu.p_cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
			|| cu.p_cuMemAddressReserve(&at, bytes, 0, 0, 0)
			|| cu.p_cuMemMap(at, bytes, 0, handle, 0))
		return 0;
	if (cu.p_cuMemSetAccess(at, bytes, &access, 1)) {
		access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		if (cu.p_cuMemSetAccess(at, bytes, &access, 1))
			return 0;
	}
	return at;
}

int main(int argc, char **argv)
{
	struct record_head head;
	uint64_t most, n;
	size_t bytes;
	CUdeviceptr at;
	void *to;

	if (argc < 5 || !open_driver())
		return 1;
	bytes = strtoull(argv[2], NULL, 10);
	at = map(atoi(argv[1]), bytes, atoi(argv[3]));
	if (!at || cu.p_cuMemcpyDtoH(&head, at, sizeof head))
		return 1;
	most = RECORD_CHUNKS(bytes);
	n = head.next ? head.next - 1 : 0;
	n = 1 + (n < most ? n : most);
	if (ftruncate(atoi(argv[4]), (off_t)(n * RECORD_CHUNK_BYTES)))
		return 1;
	to = mmap(NULL, n * RECORD_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[4]),
		0);
	if (to == MAP_FAILED || cu.p_cuMemcpyDtoH(to, at, n * RECORD_CHUNK_BYTES))
		return 1;
	return 0;
}
