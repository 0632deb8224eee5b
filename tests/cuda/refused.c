/* Calls of the driver API with wrong arguments: each returns the error that cuda.h documents, and leaves
 * what it was called for as it was; beside them, the same calls as they are meant. `refused NAME` makes
 * those of one group. Exit status 0: as on a GPU. Long because it has a line for each such error of drv_memory.c,
 * drv_stream.c and drv_graph.c. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); bad++; } } while (0)
#define IS(error, x) do { CUresult e_ = (x); if (e_ != (error)) { \
	printf("line %d: %s: %d\n", __LINE__, #x, (int)e_); bad++; } } while (0)
#define OK(x) IS(CUDA_SUCCESS, x)
#define VALUE(x) IS(CUDA_ERROR_INVALID_VALUE, x)
#define HANDLE(x) IS(CUDA_ERROR_INVALID_HANDLE, x)
#define DEVICE(x) IS(CUDA_ERROR_INVALID_DEVICE, x)

static int bad;          /* calls that did not do what they should */
static CUcontext context;
static CUstream stream;
static const CUstream none = (CUstream)0x1230; /* no handle */
static CUdeviceptr memory, managed, host;
enum { BYTES = 4096 };

static const char ptx[] =
	".version 8.0\n"
	".target sm_80\n"
	".address_size 64\n"
	".visible .entry set(.param .u64 to, .param .u32 value)\n"
	"{\n"
	"	.reg .b32 %r<2>;\n"
	"	.reg .b64 %d<2>;\n"
	"	ld.param.u64 %d1, [to];\n"
	"	ld.param.u32 %r1, [value];\n"
	"	st.global.u32 [%d1], %r1;\n"
	"	ret;\n"
	"}\n";

static int word(CUdeviceptr at)
{
	int value = -1;

	OK(cuMemcpyDtoH_v2(&value, at, sizeof value));
	return value;
}

/* ---- before cuInit() and without a context ---- */

static void uninitialised(void)
{
	CUdeviceptr at;
	CUmemoryPool pool;
	CUgraph graph;
	CUevent event;
	CUmemPoolProps props = { .location.type = CU_MEM_LOCATION_TYPE_DEVICE };
	unsigned flags;
	void *p;

	IS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&at, 4));
	IS(CUDA_ERROR_NOT_INITIALIZED, cuMemAllocHost_v2(&p, 4));
	IS(CUDA_ERROR_NOT_INITIALIZED, cuMemHostGetFlags(&flags, &at));
	IS(CUDA_ERROR_NOT_INITIALIZED, cuStreamCreate(&stream, 0));
	IS(CUDA_ERROR_NOT_INITIALIZED, cuEventCreate(&event, 0));
	IS(CUDA_ERROR_NOT_INITIALIZED, cuGraphCreate(&graph, 0));
	IS(CUDA_ERROR_NOT_INITIALIZED, cuMemPoolCreate(&pool, &props));
	IS(CUDA_ERROR_NOT_INITIALIZED, cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096));
	OK(cuInit(0));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&at, 4));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemFree_v2(4096));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocPitch_v2(&at, (size_t *)&p, 4, 4, 4));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyDtoD_v2(4096, 8192, 4));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemsetD8_v2(4096, 0, 4));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocAsync(&at, 4, NULL));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemFreeAsync(4096, NULL));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuMemGetAddressRange_v2(&at, NULL, 4096));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuStreamCreate(&stream, 0));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(NULL));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuEventCreate(&event, 0));
}

/* ---- streams ---- */

static void CUDA_CB call_back(CUstream s, CUresult status, void *user)
{
	*(int *)user += status == CUDA_SUCCESS ? 1 : 100;
}

static void streams(void)
{
	unsigned flags = 7;
	int priority, called = 0;
	unsigned long long id, other;
	CUdevice device = 7;
	CUcontext c;
	CUgreenCtx green = (CUgreenCtx)1;
	CUstreamAttrValue value;
	CUstream s;

	VALUE(cuStreamCreate(NULL, 0));
	VALUE(cuStreamCreate(&s, 2));
	OK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -1));
	OK(cuStreamGetFlags(s, &flags));
	CHECK(flags == CU_STREAM_NON_BLOCKING);
	VALUE(cuStreamGetFlags(s, NULL));
	HANDLE(cuStreamGetFlags(none, &flags));
	OK(cuStreamGetPriority(s, &priority));
	CHECK(priority == -1);
	VALUE(cuStreamGetPriority(s, NULL));
	HANDLE(cuStreamGetPriority(none, &priority));
	OK(cuStreamGetId(s, &id));
	OK(cuStreamGetId(CU_STREAM_LEGACY, &other));
	CHECK(id != other);
	VALUE(cuStreamGetId(s, NULL));
	HANDLE(cuStreamGetId(none, &id));
	OK(cuStreamGetDevice(s, &device));
	CHECK(device == 0);
	VALUE(cuStreamGetDevice(s, NULL));
	HANDLE(cuStreamGetDevice(none, &device));
	OK(cuStreamGetCtx(s, &c));
	CHECK(c == context);
	VALUE(cuStreamGetCtx(s, NULL));
	HANDLE(cuStreamGetCtx(none, &c));
	OK(cuStreamGetCtx_v2(s, &c, &green));
	CHECK(c == context && !green);
	OK(cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
	VALUE(cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_PRIORITY, NULL));
	HANDLE(cuStreamGetAttribute(none, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
	OK(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
	HANDLE(cuStreamSetAttribute(none, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
	OK(cuStreamCopyAttributes(s, stream));
	HANDLE(cuStreamCopyAttributes(none, stream));
	HANDLE(cuStreamCopyAttributes(stream, none));
	OK(cuStreamAddCallback(s, call_back, &called, 0));
	VALUE(cuStreamAddCallback(s, call_back, &called, 1));
	VALUE(cuStreamAddCallback(s, NULL, &called, 0));
	HANDLE(cuStreamAddCallback(none, call_back, &called, 0));
	OK(cuStreamSynchronize(s));
	CHECK(called == 1);
	OK(cuStreamQuery(s));
	HANDLE(cuStreamSynchronize(none));
	HANDLE(cuStreamQuery(none));
	HANDLE(cuStreamDestroy_v2(none));
	OK(cuStreamAttachMemAsync(s, managed, 0, CU_MEM_ATTACH_SINGLE));
	OK(cuStreamAttachMemAsync(s, managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	VALUE(cuStreamAttachMemAsync(s, managed, 8, CU_MEM_ATTACH_GLOBAL));
	VALUE(cuStreamAttachMemAsync(s, managed, 0, 3));
	VALUE(cuStreamAttachMemAsync(s, memory, 0, CU_MEM_ATTACH_GLOBAL));
	HANDLE(cuStreamAttachMemAsync(none, managed, 0, CU_MEM_ATTACH_GLOBAL));
	OK(cuStreamDestroy_v2(s));
	HANDLE(cuStreamSynchronize(s));
}

static void events(void)
{
	CUevent a, b, plain;
	float ms = -1;

	VALUE(cuEventCreate(NULL, 0));
	VALUE(cuEventCreate(&a, 8));
	OK(cuEventCreate(&a, CU_EVENT_DEFAULT));
	OK(cuEventCreate(&b, CU_EVENT_BLOCKING_SYNC));
	OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	HANDLE(cuEventElapsedTime(&ms, a, b)); /* not recorded */
	OK(cuEventRecord(a, stream));
	OK(cuEventRecordWithFlags(b, stream, CU_EVENT_RECORD_DEFAULT));
	OK(cuEventRecord(plain, stream));
	VALUE(cuEventRecordWithFlags(b, stream, 2));
	HANDLE(cuEventRecord(a, none));
	HANDLE(cuEventRecord((CUevent)none, stream));
	OK(cuEventSynchronize(b));
	OK(cuEventQuery(b));
	HANDLE(cuEventSynchronize((CUevent)none));
	HANDLE(cuEventQuery((CUevent)none));
	OK(cuEventElapsedTime_v2(&ms, a, b));
	CHECK(ms >= 0);
	VALUE(cuEventElapsedTime(NULL, a, b));
	HANDLE(cuEventElapsedTime(&ms, a, plain));
	HANDLE(cuEventElapsedTime(&ms, a, (CUevent)none));
	OK(cuStreamWaitEvent(stream, a, CU_EVENT_WAIT_DEFAULT));
	VALUE(cuStreamWaitEvent(stream, a, 2));
	HANDLE(cuStreamWaitEvent(none, a, 0));
	HANDLE(cuStreamWaitEvent(stream, (CUevent)none, 0));
	OK(cuEventDestroy_v2(a));
	HANDLE(cuEventDestroy_v2(a));
}

static void values(void)
{
	CUstreamBatchMemOpParams op[6] = {
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = memory, .value = 5 } },
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = memory + 8, .value64 = 6 } },
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = memory, .value = 5,
			.flags = CU_STREAM_WAIT_VALUE_EQ } },
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = memory + 8, .value64 = 6,
			.flags = CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH } },
		{ .memoryBarrier = { .operation = CU_STREAM_MEM_OP_BARRIER } },
		{ .flushRemoteWrites = { .operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES } },
	};

	OK(cuStreamWriteValue32_v2(stream, memory, 3, 0));
	OK(cuStreamWaitValue32_v2(stream, memory, 3, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamWriteValue64_v2(stream, memory + 8, 4, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
	OK(cuStreamWaitValue64_v2(stream, memory + 8, 4, CU_STREAM_WAIT_VALUE_AND));
	OK(cuStreamSynchronize(stream));
	CHECK(word(memory) == 3 && word(memory + 8) == 4);
	VALUE(cuStreamWriteValue32_v2(stream, 0, 3, 0));
	VALUE(cuStreamWriteValue32_v2(stream, memory + 2, 3, 0));
	VALUE(cuStreamWriteValue64_v2(stream, memory + 4, 3, 0));
	VALUE(cuStreamWriteValue32_v2(stream, memory, 3, 2));
	VALUE(cuStreamWriteValue64_v2(stream, memory, 3, 2));
	VALUE(cuStreamWaitValue32_v2(stream, memory, 3, 4));
	VALUE(cuStreamWaitValue64_v2(stream, memory + 4, 3, 0));
	HANDLE(cuStreamWriteValue32_v2(none, memory, 3, 0));
	HANDLE(cuStreamWaitValue32_v2(none, memory, 3, 0));
	OK(cuStreamBatchMemOp_v2(stream, 6, op, 0));
	OK(cuStreamSynchronize(stream));
	CHECK(word(memory) == 5 && word(memory + 8) == 6);
	VALUE(cuStreamBatchMemOp_v2(stream, 6, NULL, 0));
	VALUE(cuStreamBatchMemOp_v2(stream, 257, op, 0));
	VALUE(cuStreamBatchMemOp_v2(stream, 6, op, 1));
	op[0].operation = 99;
	VALUE(cuStreamBatchMemOp_v2(stream, 1, op, 0));
	op[1].writeValue.flags = 2;
	VALUE(cuStreamBatchMemOp_v2(stream, 1, op + 1, 0));
}

static void capture(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus state = 7;
	const CUgraphNode *after;
	const CUgraphEdgeData *edges;
	CUgraphNode node;
	CUgraph graph, into;
	cuuint64_t id;
	size_t n;

	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	VALUE(cuThreadExchangeStreamCaptureMode(NULL));
	mode = 3;
	VALUE(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuStreamIsCapturing(stream, &state));
	CHECK(state == CU_STREAM_CAPTURE_STATUS_NONE);
	VALUE(cuStreamIsCapturing(stream, NULL));
	HANDLE(cuStreamIsCapturing(none, &state));
	VALUE(cuStreamBeginCapture_v2(stream, 3));
	HANDLE(cuStreamBeginCapture_v2(none, CU_STREAM_CAPTURE_MODE_GLOBAL));
	IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
		cuStreamBeginCapture_v2(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
	IS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
	IS(CUDA_ERROR_ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(stream, NULL, 0, 0));
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	IS(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
	OK(cuMemsetD32Async(memory, 1, 4, stream));
	OK(cuStreamGetCaptureInfo(stream, &state, &id));
	CHECK(state == CU_STREAM_CAPTURE_STATUS_ACTIVE && id);
	OK(cuStreamGetCaptureInfo_v2(stream, &state, &id, &into, &after, &n));
	CHECK(n == 1);
	OK(cuStreamGetCaptureInfo_v3(stream, &state, &id, &into, &after, &edges, &n));
	CHECK(n == 1 && !edges);
	OK(cuGraphAddEmptyNode(&node, into, NULL, 0));
	OK(cuStreamUpdateCaptureDependencies(stream, &node, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	OK(cuStreamGetCaptureInfo_v2(stream, &state, &id, &into, &after, &n));
	CHECK(n == 2);
	OK(cuStreamUpdateCaptureDependencies_v2(stream, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	VALUE(cuStreamUpdateCaptureDependencies(stream, &node, 1, 2));
	VALUE(cuStreamUpdateCaptureDependencies(stream, NULL, 1, 0));
	HANDLE(cuStreamEndCapture(none, &graph));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuGraphCreate(&into, 0));
	OK(cuGraphAddEmptyNode(&node, into, NULL, 0));
	VALUE(cuStreamBeginCaptureToGraph(stream, (CUgraph)none, NULL, NULL, 0, 0));
	VALUE(cuStreamBeginCaptureToGraph(stream, into, NULL, NULL, 1, 0));
	VALUE(cuStreamBeginCaptureToGraph(stream, into, &node, NULL, 1, 3));
	OK(cuStreamBeginCaptureToGraph(stream, into, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemsetD32Async(memory, 1, 4, stream));
	OK(cuStreamEndCapture(stream, NULL));
	OK(cuGraphGetNodes(into, NULL, &n));
	CHECK(n == 2);
	OK(cuGraphDestroy(into));
}

/* ---- memory ---- */

static void allocations(void)
{
	static char registered[2 * 4096];
	char *const page = (char *)(((uintptr_t)registered + 4095) / 4096 * 4096);
	CUdeviceptr at, base;
	size_t pitch, bytes, n;
	unsigned flags;
	void *p;

	VALUE(cuMemAlloc_v2(&at, 0));
	VALUE(cuMemAlloc_v2(NULL, 4));
	IS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&at, (size_t)1 << 60));
	VALUE(cuMemAllocManaged(&at, 0, CU_MEM_ATTACH_GLOBAL));
	VALUE(cuMemAllocManaged(&at, 4, 0));
	VALUE(cuMemAllocManaged(&at, 4, CU_MEM_ATTACH_SINGLE));
	OK(cuMemAllocPitch_v2(&at, &pitch, 100, 3, 16));
	CHECK(pitch >= 100 && pitch % 16 == 0);
	OK(cuMemGetAddressRange_v2(&base, &bytes, at + pitch));
	CHECK(base == at && bytes == 3 * pitch);
	OK(cuMemGetAddressRange_v2(NULL, NULL, at));
	IS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &bytes, 4096));
	VALUE(cuMemAllocPitch_v2(&base, &pitch, 100, 3, 3));
	VALUE(cuMemAllocPitch_v2(NULL, &pitch, 100, 3, 4));
	VALUE(cuMemAllocPitch_v2(&base, NULL, 100, 3, 4));
	VALUE(cuMemFree_v2(at + 4));
	VALUE(cuMemFree_v2(host));
	OK(cuMemFree_v2(at));
	VALUE(cuMemFree_v2(at));
	OK(cuMemFree_v2(0));
	OK(cuMemAllocAsync(&at, 64, stream));
	VALUE(cuMemAllocAsync(&base, 0, stream));
	VALUE(cuMemAllocAsync(NULL, 4, stream));
	HANDLE(cuMemAllocAsync(&base, 4, none));
	HANDLE(cuMemFreeAsync(at, none));
	OK(cuMemFreeAsync(at, stream));
	VALUE(cuMemFreeAsync(at, stream));
	OK(cuMemAllocHost_v2(&p, 64));
	OK(cuMemFreeHost(p));
	VALUE(cuMemFreeHost(p));
	VALUE(cuMemFreeHost((void *)memory));
	VALUE(cuMemHostAlloc(&p, 64, 8));
	OK(cuMemHostGetFlags(&flags, (void *)host));
	CHECK(flags & CU_MEMHOSTALLOC_PORTABLE);
	VALUE(cuMemHostGetFlags(NULL, (void *)host));
	VALUE(cuMemHostGetFlags(&flags, (void *)memory));
	VALUE(cuMemHostGetFlags(&flags, page));
	OK(cuMemHostGetDevicePointer_v2(&at, (void *)host, 0));
	CHECK(at == host);
	VALUE(cuMemHostGetDevicePointer_v2(&at, (void *)host, 1));
	VALUE(cuMemHostGetDevicePointer_v2(NULL, (void *)host, 0));
	VALUE(cuMemHostGetDevicePointer_v2(&at, (void *)memory, 0));
	VALUE(cuMemHostGetDevicePointer_v2(&at, page, 0));
	VALUE(cuMemHostRegister_v2(NULL, 4096, 0));
	VALUE(cuMemHostRegister_v2(page, 0, 0));
	VALUE(cuMemHostRegister_v2(page, 4096, 16));
	OK(cuMemHostRegister_v2(page, 4096, CU_MEMHOSTREGISTER_PORTABLE));
	IS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(page, 4096, 0));
	VALUE(cuMemFreeHost(page));
	OK(cuMemHostUnregister(page));
	IS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(page));
	OK(cuMemGetInfo_v2(&bytes, &n));
	CHECK(bytes && bytes <= n);
	VALUE(cuMemGetInfo_v2(NULL, &n));
	VALUE(cuMemGetInfo_v2(&n, NULL));
}

static void attributes(void)
{
	CUpointer_attribute all[] = { CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_IS_MANAGED };
	unsigned type[2] = { 0, 7 }, is_managed = 7, mapped = 0;
	unsigned long long id;
	CUdeviceptr at = 1, begin;
	CUcontext of = (CUcontext)-1l;
	size_t bytes = (size_t)-1;
	void *to[] = { &of, &type[0], &at, &bytes, &is_managed };
	int device = 7, on = 1;

	OK(cuPointerGetAttributes(5, all, to, memory + 8));
	CHECK(of && type[0] == CU_MEMORYTYPE_DEVICE && at == memory + 8 && bytes == BYTES && !is_managed);
	OK(cuPointerGetAttribute(type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host));
	CHECK(type[0] == CU_MEMORYTYPE_HOST && type[1] == 7);
	OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
	CHECK(is_managed == 1);
	OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
	CHECK(device == 0);
	OK(cuPointerGetAttribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 8));
	CHECK(begin == memory);
	OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, memory));
	CHECK(mapped == 1);
	OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
	OK(cuPointerGetAttribute(&at, CU_POINTER_ATTRIBUTE_HOST_POINTER, host));
	VALUE(cuPointerGetAttribute(&at, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory));
	VALUE(cuPointerGetAttribute(&at, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)&device));
	VALUE(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
	VALUE(cuPointerGetAttribute(&at, 0, memory));
	VALUE(cuPointerGetAttribute(&at, 1000, memory));
	/* of memory that CUDA does not know: NULL, all of it */
	of = (CUcontext)-1l;
	bytes = (size_t)-1;
	OK(cuPointerGetAttributes(5, all, to, (CUdeviceptr)&device));
	CHECK(!of && !at && !bytes && !type[0] && type[1] == 7);
	VALUE(cuPointerGetAttributes(5, NULL, to, memory));
	VALUE(cuPointerGetAttributes(5, all, NULL, memory));
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
	VALUE(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
	VALUE(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4096));
	VALUE(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MAPPED, memory));
}

static void copies(void)
{
	CUDA_MEMCPY3D box = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = 64,
		.srcHeight = 2, .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = memory + 1024,
		.dstPitch = 32, .dstHeight = 2, .WidthInBytes = 16, .Height = 2, .Depth = 2 };
	CUDA_MEMCPY2D plane = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = 64,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = memory + 2048, .dstPitch = 32,
		.WidthInBytes = 16, .Height = 2 };
	CUDA_MEMCPY3D_PEER peer = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = 64,
		.srcHeight = 2, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = memory + 3072,
		.dstPitch = 32, .dstHeight = 2, .WidthInBytes = 16, .Height = 2, .Depth = 2 };
	CUdeviceptr to[] = { memory + 512, 0, memory }, from[] = { memory, memory, memory };
	CUmemcpyAttributes how = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	size_t bytes[] = { 4, 4, 4 }, index = 0, failed = 77;
	int rows[2][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };

	OK(cuMemsetD32_v2(memory, 0, BYTES / 4));
	OK(cuMemcpyHtoD_v2(memory, rows[0], 16));
	OK(cuMemcpyHtoDAsync_v2(memory + 64, rows[1], 16, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpy3D_v2(&box));
	CHECK(word(memory + 1024 + 32) == 5);
	OK(cuMemcpy3DAsync_v2(&box, stream));
	OK(cuMemcpy2D_v2(&plane));
	OK(cuMemcpy2DUnaligned_v2(&plane));
	OK(cuMemcpy2DAsync_v2(&plane, stream));
	CHECK(word(memory + 2048 + 32) == 5);
	OK(cuMemcpy3DPeer(&peer));
	OK(cuMemcpy3DPeerAsync(&peer, stream));
	CHECK(word(memory + 3072 + 32) == 5);
	OK(cuMemcpyPeer(memory + 128, context, memory, context, 4));
	OK(cuMemcpyPeerAsync(memory + 128, context, memory, context, 4, stream));
	OK(cuMemcpy(memory + 132, memory + 4, 4));
	OK(cuMemcpyAsync(memory + 136, memory + 8, 4, stream));
	OK(cuMemcpyDtoDAsync_v2(memory + 140, memory + 12, 4, stream));
	OK(cuMemcpyDtoHAsync_v2(rows[1], memory + 128, 16, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(rows[1][0] == 1 && rows[1][1] == 2 && rows[1][2] == 3 && rows[1][3] == 4);
	VALUE(cuMemcpy3D_v2(NULL));
	VALUE(cuMemcpy2D_v2(NULL));
	VALUE(cuMemcpy3DPeer(NULL));
	box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	IS(CUDA_ERROR_INVALID_HANDLE, cuMemcpy3D_v2(&box));
	box.srcMemoryType = CU_MEMORYTYPE_HOST;
	box.srcHost = NULL;
	VALUE(cuMemcpy3D_v2(&box));
	plane.dstPitch = 8;
	VALUE(cuMemcpy2D_v2(&plane));
	plane.dstPitch = 32;
	plane.dstDevice = memory + BYTES - 32;
	VALUE(cuMemcpy2D_v2(&plane));
	VALUE(cuMemcpyDtoD_v2(memory, memory, BYTES + 1));
	VALUE(cuMemcpyDtoH_v2(NULL, memory, 4));
	VALUE(cuMemcpyHtoD_v2(memory, NULL, 4));
	HANDLE(cuMemcpyAsync(memory, memory, 4, none));
	OK(cuMemcpyBatchAsync(to, from, bytes, 1, &how, &index, 1, &failed, stream));
	CHECK(failed == SIZE_MAX);
	VALUE(cuMemcpyBatchAsync(to, from, bytes, 3, &how, &index, 1, &failed, stream));
	CHECK(failed == 1);
	VALUE(cuMemcpyBatchAsync(NULL, from, bytes, 3, &how, &index, 1, &failed, stream));
	CHECK(failed == SIZE_MAX);
	VALUE(cuMemcpyBatchAsync(to, from, bytes, 0, &how, &index, 1, &failed, stream));
	OK(cuMemcpyBatchAsync_v2(to, from, bytes, 1, &how, &index, 1, stream));
	VALUE(cuMemcpyBatchAsync_v2(to, from, NULL, 1, &how, &index, 1, stream));
}

static void fills(void)
{
	OK(cuMemsetD8_v2(memory, 1, 8));
	OK(cuMemsetD16_v2(memory, 0x202, 2));
	OK(cuMemsetD8Async(memory + 8, 3, 4, stream));
	OK(cuMemsetD16Async(memory + 12, 0x404, 2, stream));
	OK(cuMemsetD2D8_v2(memory + 64, 16, 5, 4, 2));
	OK(cuMemsetD2D16_v2(memory + 128, 16, 0x606, 2, 2));
	OK(cuMemsetD2D32_v2(memory + 192, 16, 0x07070707, 1, 2));
	OK(cuMemsetD2D8Async(memory + 256, 16, 8, 4, 2, stream));
	OK(cuMemsetD2D16Async(memory + 320, 16, 0x909, 2, 2, stream));
	OK(cuMemsetD2D32Async(memory + 384, 16, 0x0a0a0a0a, 1, 2, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(word(memory) == 0x02020202 && word(memory + 4) == 0x01010101);
	for (int k = 0; k < 2; k++)
		CHECK(word(memory + 8 + 4 * (unsigned)k) == 0x01010101 * (3 + k));
	for (int k = 0; k < 6; k++)
		CHECK(word(memory + 64 + 64 * (unsigned)k + 16) == 0x01010101 * (5 + k));
	VALUE(cuMemsetD16_v2(memory + 1, 0, 2));
	VALUE(cuMemsetD32_v2(memory + 2, 0, 2));
	VALUE(cuMemsetD2D32_v2(memory, 8, 0, 4, 2));
	VALUE(cuMemsetD8_v2(memory, 0, BYTES + 1));
	VALUE(cuMemsetD8_v2(4096, 0, 1));
	HANDLE(cuMemsetD8Async(memory, 0, 1, none));
}

static void hints(void)
{
	const CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, nowhere = { CU_MEM_LOCATION_TYPE_DEVICE, 7 },
		at_host = { CU_MEM_LOCATION_TYPE_HOST, 0 };

	OK(cuMemPrefetchAsync(managed, BYTES, 0, stream));
	OK(cuMemPrefetchAsync(managed, BYTES, CU_DEVICE_CPU, stream));
	DEVICE(cuMemPrefetchAsync(managed, BYTES, 7, stream));
	HANDLE(cuMemPrefetchAsync(managed, BYTES, 0, none));
	VALUE(cuMemPrefetchAsync(managed, 0, 0, stream));
	VALUE(cuMemPrefetchAsync(managed, 2 * BYTES, 0, stream));
	OK(cuMemPrefetchAsync_v2(managed, BYTES, at_host, 0, stream));
	VALUE(cuMemPrefetchAsync_v2(managed, BYTES, here, 1, stream));
	DEVICE(cuMemPrefetchAsync_v2(managed, BYTES, nowhere, 0, stream));
	OK(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, 7));
	OK(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
	DEVICE(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, 7));
	VALUE(cuMemAdvise(managed, BYTES, 0, 0));
	VALUE(cuMemAdvise(managed, BYTES, 7, 0));
	VALUE(cuMemAdvise(4096, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	OK(cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at_host));
	DEVICE(cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere));
	OK(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
		CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
}

static void pools(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	CUmemAccess_flags can = 0;
	CUmemoryPool pool, usual;
	cuuint64_t threshold = 5;
	CUdeviceptr at;

	VALUE(cuMemPoolCreate(NULL, &props));
	VALUE(cuMemPoolCreate(&pool, NULL));
	props.location.id = 7;
	DEVICE(cuMemPoolCreate(&pool, &props));
	props.location.id = 0;
	props.location.type = 0;
	VALUE(cuMemPoolCreate(&pool, &props));
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	threshold = 0;
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	CHECK(threshold == 5);
	VALUE(cuMemPoolGetAttribute(pool, 0, &threshold));
	VALUE(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
	VALUE(cuMemPoolSetAttribute(pool, 1000, &threshold));
	VALUE(cuMemPoolSetAttribute((CUmemoryPool)none, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(cuMemPoolSetAccess(pool, &access, 1));
	OK(cuMemPoolGetAccess(&can, pool, &here));
	CHECK(can == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	VALUE(cuMemPoolGetAccess(NULL, pool, &here));
	VALUE(cuMemPoolGetAccess(&can, pool, NULL));
	VALUE(cuMemPoolSetAccess((CUmemoryPool)none, &access, 1));
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE; /* the pool's own device always has access */
	DEVICE(cuMemPoolSetAccess(pool, &access, 1));
	OK(cuMemAllocFromPoolAsync(&at, 64, pool, stream));
	OK(cuMemFreeAsync(at, stream));
	VALUE(cuMemAllocFromPoolAsync(&at, 0, pool, stream));
	VALUE(cuMemAllocFromPoolAsync(NULL, 64, pool, stream));
	VALUE(cuMemAllocFromPoolAsync(&at, 64, (CUmemoryPool)none, stream));
	HANDLE(cuMemAllocFromPoolAsync(&at, 64, pool, none));
	OK(cuMemPoolTrimTo(pool, 0));
	VALUE(cuMemPoolTrimTo((CUmemoryPool)none, 0));
	OK(cuDeviceGetDefaultMemPool(&usual, 0));
	VALUE(cuMemPoolDestroy(usual));
	OK(cuMemPoolDestroy(pool));
	VALUE(cuMemPoolDestroy(pool));
}

/* ---- graphs ---- */

static CUgraph graph;
static CUgraphExec exec;
static const CUgraphNode lost = (CUgraphNode)0x1230;

static void CUDA_CB on_host(void *user)
{
	++*(int *)user;
}

static void kernel_nodes(void)
{
	void *values[] = { &memory, &(int){ 42 } }, *extra[] = { CU_LAUNCH_PARAM_END };
	CUDA_KERNEL_NODE_PARAMS p = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
		.blockDimY = 1, .blockDimZ = 1, .kernelParams = values }, is, by = p;
	CUmodule module;
	CUgraphNode node;
	unsigned on = 7;

	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&p.func, module, "set"));
	OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &p));
	VALUE(cuGraphAddKernelNode_v2(NULL, graph, NULL, 0, &p));
	VALUE(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, NULL));
	VALUE(cuGraphAddKernelNode_v2(&node, (CUgraph)lost, NULL, 0, &p));
	VALUE(cuGraphAddKernelNode_v2(&node, graph, &lost, 1, &p));
	by.func = p.func;
	by.kernelParams = NULL;
	by.extra = extra;
	IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &by));
	OK(cuGraphKernelNodeGetParams_v2(node, &is));
	CHECK(is.func == p.func && is.blockDimX == 1 && *(int *)is.kernelParams[1] == 42);
	VALUE(cuGraphKernelNodeGetParams_v2(node, NULL));
	VALUE(cuGraphKernelNodeGetParams_v2(lost, &is));
	OK(cuGraphKernelNodeSetParams_v2(node, &p));
	VALUE(cuGraphKernelNodeSetParams_v2(node, NULL));
	VALUE(cuGraphKernelNodeSetParams_v2(lost, &p));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	values[1] = &(int){ 43 };
	OK(cuGraphExecKernelNodeSetParams_v2(exec, node, &p));
	VALUE(cuGraphExecKernelNodeSetParams_v2(exec, node, NULL));
	VALUE(cuGraphExecKernelNodeSetParams_v2(exec, lost, &p));
	VALUE(cuGraphExecKernelNodeSetParams_v2((CUgraphExec)lost, node, &p));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(word(memory) == 43);
	OK(cuGraphNodeSetEnabled(exec, node, 0));
	OK(cuGraphNodeGetEnabled(exec, node, &on));
	CHECK(on == 0);
	VALUE(cuGraphNodeSetEnabled(exec, lost, 1));
	VALUE(cuGraphNodeGetEnabled(exec, node, NULL));
	VALUE(cuGraphNodeGetEnabled((CUgraphExec)lost, node, &on));
	OK(cuGraphExecDestroy(exec));
	VALUE(cuGraphExecDestroy(exec));
}

static void other_nodes(void)
{
	CUDA_MEMCPY3D box = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = 64,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = memory + 1024, .dstPitch = 64,
		.WidthInBytes = 16, .Height = 1, .Depth = 1 }, away = box;
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = memory, .elementSize = 4, .value = 9, .width = 4, .height = 1 }, is;
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = { .bytesize = 256, .poolProps = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } } }, was;
	int called = 0;
	CUDA_HOST_NODE_PARAMS call = { on_host, &called }, called_by;
	CUgraphNode copy, set, host_node, child, made, freed, empty, record, wait;
	CUgraphConditionalHandle handle;
	CUgraph inner, part;
	CUevent event, got;
	CUdeviceptr at;
	unsigned on;

	away.dstDevice = 4096;
	OK(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &box, context));
	VALUE(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, NULL, context));
	VALUE(cuGraphAddMemcpyNode(NULL, graph, NULL, 0, &box, context));
	VALUE(cuGraphAddMemcpyNode(&copy, (CUgraph)lost, NULL, 0, &box, context));
	VALUE(cuGraphAddMemcpyNode(&made, graph, NULL, 0, &away, context));
	OK(cuGraphMemcpyNodeSetParams(copy, &box));
	VALUE(cuGraphMemcpyNodeSetParams(copy, NULL));
	VALUE(cuGraphMemcpyNodeSetParams(lost, &box));
	OK(cuGraphAddMemsetNode(&set, graph, &copy, 1, &fill, context));
	VALUE(cuGraphAddMemsetNode(&set, graph, NULL, 0, NULL, context));
	VALUE(cuGraphAddMemsetNode(NULL, graph, NULL, 0, &fill, context));
	OK(cuGraphMemsetNodeGetParams(set, &is));
	CHECK(is.dst == memory && is.value == 9 && is.elementSize == 4 && is.width == 4);
	VALUE(cuGraphMemsetNodeGetParams(set, NULL));
	VALUE(cuGraphMemsetNodeGetParams(copy, &is));
	OK(cuGraphMemsetNodeSetParams(set, &fill));
	VALUE(cuGraphMemsetNodeSetParams(set, NULL));
	VALUE(cuGraphMemsetNodeSetParams(copy, &fill));
	OK(cuGraphAddHostNode(&host_node, graph, NULL, 0, &call));
	VALUE(cuGraphAddHostNode(&host_node, graph, NULL, 0, NULL));
	OK(cuGraphHostNodeGetParams(host_node, &called_by));
	CHECK(called_by.fn == on_host && called_by.userData == &called);
	VALUE(cuGraphHostNodeGetParams(host_node, NULL));
	VALUE(cuGraphHostNodeGetParams(set, &called_by));
	OK(cuGraphHostNodeSetParams(host_node, &call));
	VALUE(cuGraphHostNodeSetParams(host_node, NULL));
	OK(cuGraphCreate(&inner, 0));
	OK(cuGraphAddEmptyNode(&empty, inner, NULL, 0));
	OK(cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner));
	VALUE(cuGraphAddChildGraphNode(&child, graph, NULL, 0, (CUgraph)lost));
	OK(cuGraphChildGraphNodeGetGraph(child, &part));
	VALUE(cuGraphChildGraphNodeGetGraph(set, &part));
	VALUE(cuGraphChildGraphNodeGetGraph(child, NULL));
	OK(cuEventCreate(&event, 0));
	OK(cuGraphAddEventRecordNode(&record, graph, NULL, 0, event));
	OK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, event));
	IS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEventRecordNode(&made, (CUgraph)lost, NULL, 0, event));
	OK(cuGraphEventRecordNodeGetEvent(record, &got));
	CHECK(got == event);
	OK(cuGraphEventWaitNodeGetEvent(wait, &got));
	CHECK(got == event);
	VALUE(cuGraphEventRecordNodeGetEvent(wait, &got));
	VALUE(cuGraphEventWaitNodeGetEvent(wait, NULL));
	OK(cuGraphEventRecordNodeSetEvent(record, event));
	OK(cuGraphEventWaitNodeSetEvent(wait, event));
	OK(cuGraphAddMemAllocNode(&made, graph, NULL, 0, &alloc));
	VALUE(cuGraphAddMemAllocNode(&made, graph, NULL, 0, NULL));
	OK(cuGraphMemAllocNodeGetParams(made, &was));
	CHECK(was.bytesize == 256 && was.dptr == alloc.dptr && alloc.dptr);
	VALUE(cuGraphMemAllocNodeGetParams(set, &was));
	OK(cuGraphAddMemFreeNode(&freed, graph, &made, 1, alloc.dptr));
	VALUE(cuGraphAddMemFreeNode(&freed, graph, NULL, 0, 4096));
	OK(cuGraphMemFreeNodeGetParams(freed, &at));
	CHECK(at == alloc.dptr);
	VALUE(cuGraphMemFreeNodeGetParams(freed, NULL));
	OK(cuGraphConditionalHandleCreate(&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	VALUE(cuGraphConditionalHandleCreate(NULL, graph, context, 1, 0));
	VALUE(cuGraphConditionalHandleCreate(&handle, (CUgraph)lost, context, 1, 0));
	OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	OK(cuGraphExecMemcpyNodeSetParams(exec, copy, &box, context));
	VALUE(cuGraphExecMemcpyNodeSetParams(exec, lost, &box, context));
	VALUE(cuGraphExecMemcpyNodeSetParams(exec, copy, NULL, context));
	OK(cuGraphExecMemsetNodeSetParams(exec, set, &fill, context));
	VALUE(cuGraphExecMemsetNodeSetParams(exec, set, NULL, context));
	OK(cuGraphExecHostNodeSetParams(exec, host_node, &call));
	VALUE(cuGraphExecHostNodeSetParams(exec, set, &call));
	OK(cuGraphExecChildGraphNodeSetParams(exec, child, inner));
	VALUE(cuGraphExecChildGraphNodeSetParams(exec, child, (CUgraph)lost));
	OK(cuGraphExecEventRecordNodeSetEvent(exec, record, event));
	OK(cuGraphExecEventWaitNodeSetEvent(exec, wait, event));
	VALUE(cuGraphNodeSetEnabled(exec, host_node, 0));
	VALUE(cuGraphNodeGetEnabled(exec, child, &on));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(called == 1 && word(memory) == 9);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(inner));
}

static void any_node(void)
{
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = memory, .elementSize = 4, .value = 9, .width = 4, .height = 1 };
	CUDA_MEMCPY3D box = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = memory + 1024, .WidthInBytes = 16, .Height = 1,
		.Depth = 1 };
	CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUgraphEdgeData edge = { 0 };
	CUgraphNode first, second, third;

	OK(cuGraphAddNode(&first, graph, NULL, 0, &p));
	p.type = CU_GRAPH_NODE_TYPE_MEMSET;
	memcpy(&p.memset, &fill, sizeof fill);
	OK(cuGraphAddNode_v2(&second, graph, &first, NULL, 1, &p));
	p.type = CU_GRAPH_NODE_TYPE_MEMCPY;
	memset(&p.memcpy, 0, sizeof p.memcpy);
	p.memcpy.copyParams = box;
	OK(cuGraphAddNode(&third, graph, &second, 1, &p));
	IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode_v2(&third, graph, &second, &edge, 1, &p));
	p.type = CU_GRAPH_NODE_TYPE_KERNEL;
	memset(&p.kernel, 0, sizeof p.kernel);
	IS(CUDA_ERROR_INVALID_HANDLE, cuGraphAddNode(&third, graph, NULL, 0, &p)); /* no function */
	VALUE(cuGraphAddNode(&third, graph, NULL, 0, NULL));
	p.type = 99;
	VALUE(cuGraphAddNode(&third, graph, NULL, 0, &p));
}

static void edges(void)
{
	CUgraphNode a, b, c, list[8], to[8], found;
	CUgraphNodeType type;
	CUgraph clone;
	size_t n = 8;

	OK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(cuGraphAddEmptyNode(&b, graph, &a, 1));
	OK(cuGraphAddEmptyNode(&c, graph, &b, 1));
	VALUE(cuGraphAddEmptyNode(&c, graph, NULL, 1));
	OK(cuGraphAddDependencies(graph, &a, &c, 1));
	VALUE(cuGraphAddDependencies(graph, &a, &lost, 1));
	VALUE(cuGraphAddDependencies((CUgraph)lost, &a, &c, 1));
	VALUE(cuGraphAddDependencies(graph, &a, &a, 1));
	OK(cuGraphGetEdges(graph, list, to, &n));
	CHECK(n == 3);
	VALUE(cuGraphGetEdges(graph, list, to, NULL));
	VALUE(cuGraphGetEdges((CUgraph)lost, list, to, &n));
	n = 8;
	OK(cuGraphGetRootNodes(graph, list, &n));
	CHECK(n == 1 && list[0] == a);
	VALUE(cuGraphGetRootNodes(graph, list, NULL));
	n = 8;
	OK(cuGraphNodeGetDependencies(c, list, &n));
	CHECK(n == 2);
	VALUE(cuGraphNodeGetDependencies(lost, list, &n));
	n = 8;
	OK(cuGraphNodeGetDependentNodes(a, list, &n));
	CHECK(n == 2);
	VALUE(cuGraphNodeGetDependentNodes(a, list, NULL));
	n = 1;
	OK(cuGraphGetNodes(graph, list, &n));
	VALUE(cuGraphGetNodes((CUgraph)lost, list, &n));
	OK(cuGraphRemoveDependencies(graph, &a, &c, 1));
	VALUE(cuGraphRemoveDependencies(graph, &a, &c, 1));
	OK(cuGraphNodeGetType(b, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_EMPTY);
	VALUE(cuGraphNodeGetType(b, NULL));
	VALUE(cuGraphNodeGetType(lost, &type));
	OK(cuGraphClone(&clone, graph));
	VALUE(cuGraphClone(NULL, graph));
	VALUE(cuGraphClone(&clone, (CUgraph)lost));
	OK(cuGraphNodeFindInClone(&found, b, clone));
	CHECK(found != b);
	VALUE(cuGraphNodeFindInClone(NULL, b, clone));
	VALUE(cuGraphNodeFindInClone(&found, lost, clone));
	OK(cuGraphDestroyNode(c));
	VALUE(cuGraphDestroyNode(lost));
	OK(cuGraphDestroy(clone));
	VALUE(cuGraphDestroy(clone));
}

static void whole_graphs(void)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { .flags = 0 };
	CUgraphExecUpdateResultInfo info;
	CUgraph other;
	CUgraphNode node;
	cuuint64_t used = 7;
	CUuserObject object;
	int called = 0;

	VALUE(cuGraphCreate(NULL, 0));
	VALUE(cuGraphCreate(&other, 1));
	VALUE(cuGraphInstantiateWithFlags(&exec, graph, 16));
	VALUE(cuGraphInstantiateWithFlags(NULL, graph, 0));
	VALUE(cuGraphInstantiateWithFlags(&exec, (CUgraph)lost, 0));
	VALUE(cuGraphInstantiateWithParams(&exec, graph, NULL));
	OK(cuGraphInstantiateWithParams(&exec, graph, &params));
	CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
	OK(cuGraphUpload(exec, stream));
	VALUE(cuGraphUpload((CUgraphExec)lost, stream));
	VALUE(cuGraphLaunch((CUgraphExec)lost, stream));
	HANDLE(cuGraphLaunch(exec, none));
	OK(cuGraphExecUpdate_v2(exec, graph, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	VALUE(cuGraphExecUpdate_v2(exec, graph, NULL));
	VALUE(cuGraphExecUpdate_v2((CUgraphExec)lost, graph, &info));
	OK(cuGraphCreate(&other, 0));
	for (int k = 0; k < 9; k++)
		OK(cuGraphAddEmptyNode(&node, other, NULL, 0));
	IS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, other, &info));
	CHECK(info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS);
	OK(cuGraphExecDestroy(exec));
	OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
	CHECK(used == 0);
	OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used));
	VALUE(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
	VALUE(cuDeviceGetGraphMemAttribute(0, 99, &used));
	VALUE(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, NULL));
	OK(cuDeviceGetGraphMemAttribute(1, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used)); /* of two */
	DEVICE(cuDeviceGetGraphMemAttribute(2, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
	DEVICE(cuDeviceSetGraphMemAttribute(2, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used));
	OK(cuDeviceGraphMemTrim(1));
	DEVICE(cuDeviceGraphMemTrim(2));
	VALUE(cuUserObjectCreate(NULL, &called, on_host, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuUserObjectCreate(&object, &called, on_host, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuUserObjectRetain(object, 2));
	VALUE(cuUserObjectRetain((CUuserObject)lost, 1));
	OK(cuUserObjectRelease(object, 1));
	VALUE(cuUserObjectRelease((CUuserObject)lost, 1));
	OK(cuGraphRetainUserObject(other, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	VALUE(cuGraphRetainUserObject((CUgraph)lost, object, 1, 0));
	VALUE(cuGraphRetainUserObject(other, (CUuserObject)lost, 1, 0));
	VALUE(cuGraphReleaseUserObject((CUgraph)lost, object, 1));
	OK(cuGraphReleaseUserObject(other, object, 1));
	CHECK(!called);
	OK(cuUserObjectRelease(object, 1));
	OK(cuCtxSynchronize());
	CHECK(called == 1);
	OK(cuGraphDestroy(other));
}

static const struct { const char *name; void (*run)(void); } groups[] = {
	{ "streams", streams }, { "events", events }, { "values", values }, { "capture", capture },
	{ "allocations", allocations }, { "attributes", attributes }, { "copies", copies }, { "fills", fills },
	{ "hints", hints }, { "pools", pools }, { "kernel_nodes", kernel_nodes }, { "other_nodes", other_nodes },
	{ "any_node", any_node }, { "edges", edges }, { "whole_graphs", whole_graphs },
};

int main(int argc, char **argv)
{
	void *p;

	if (argc != 2)
		return 99;
	if (!strcmp(argv[1], "uninitialised")) {
		uninitialised();
		return bad != 0;
	}
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemAlloc_v2(&memory, BYTES));
	OK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemHostAlloc(&p, BYTES, CU_MEMHOSTALLOC_PORTABLE));
	host = (CUdeviceptr)p;
	OK(cuGraphCreate(&graph, 0));
	for (size_t k = 0; k < sizeof groups / sizeof *groups; k++) {
		if (strcmp(argv[1], groups[k].name))
			continue;
		groups[k].run();
		OK(cuCtxSynchronize());
		return bad != 0;
	}
	return 99;
}
