/* Part of devices.cu: memory and events that processes share. */

/* ---- two processes: the parent has the memory, the child opens it ---- */

__global__ void hand_over(int *flag, int *data)
{
	data[threadIdx.x] += 1000;
	__syncthreads();
	if (!threadIdx.x)
		asm volatile("st.release.sys.global.s32 [%0], 1;" : : "l"(flag) : "memory");
}
__global__ void take_over(int *flag, const int *data, int *to)
{
	int v = 0;
	if (!threadIdx.x)
		while (!v)
			asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	__syncthreads();
	to[threadIdx.x] = data[threadIdx.x];
}

static int channel[2]; /* of the parent, of the child */

static void send(int side, const void *at, size_t n) { CHECK(write(channel[side], at, n) == (ssize_t)n); }
static void receive(int side, void *at, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t k = read(channel[side], (char *)at + got, n - got);
		CHECK(k > 0);
		got += (size_t)k;
	}
}

static void send_fd(int side, int fd)
{
	char one = 0, space[CMSG_SPACE(sizeof fd)] = {};
	iovec v = { &one, 1 };
	msghdr m = {};
	m.msg_iov = &v;
	m.msg_iovlen = 1;
	m.msg_control = space;
	m.msg_controllen = sizeof space;
	cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	CHECK(sendmsg(channel[side], &m, 0) == 1);
}

static int receive_fd(int side)
{
	char one, space[CMSG_SPACE(sizeof(int))];
	iovec v = { &one, 1 };
	msghdr m = {};
	int fd;
	m.msg_iov = &v;
	m.msg_iovlen = 1;
	m.msg_control = space;
	m.msg_controllen = sizeof space;
	CHECK(recvmsg(channel[side], &m, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

static void both(void (*parent)(), void (*child)())
{
	int status;
	pid_t pid;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	pid = fork();
	if (!pid) {
		child();
		exit(0);
	}
	parent();
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void ipc_parent()
{
	int *data = array(0, 1024), *result = array(0, 32);
	cudaIpcMemHandle_t h;
	cudaIpcEventHandle_t he;
	cudaEvent_t e, plain;
	void *at;
	char ready;
	OK(cudaMemset(data, 0, 4096));
	OK(cudaEventCreate(&plain));
	IS(cudaErrorInvalidValue, cudaIpcGetEventHandle(&he, plain));
	IS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&e, cudaEventInterprocess));
	OK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
	OK(cudaIpcGetEventHandle(&he, e));
	OK(cudaIpcGetMemHandle(&h, data));
	IS(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle(&at, h, cudaIpcMemLazyEnablePeerAccess));
	IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&h, &ready));
	cudaGetLastError();
	fill<<<1, 32>>>(data, 100);
	OK(cudaEventRecord(e));
	send(0, &h, sizeof h);
	send(0, &he, sizeof he);
	/* while its kernel runs, the one of the child writes the flag */
	take_over<<<1, 32>>>(data + 512, data, result);
	OK(cudaDeviceSynchronize());
	CHECK(value(result + 3) == 1103);
	receive(0, &ready, 1);
	OK(cudaEventSynchronize(e));
	CHECK(value(data + 600) == 5);
	OK(cudaFree(data));
	OK(cudaEventDestroy(e));
}

static void ipc_child()
{
	cudaIpcMemHandle_t h;
	cudaIpcEventHandle_t he;
	cudaEvent_t e;
	cudaStream_t s;
	int *data, *again;
	receive(1, &h, sizeof h);
	receive(1, &he, sizeof he);
	OK(cudaSetDevice(1));
	OK(cudaIpcOpenMemHandle((void **)&data, h, cudaIpcMemLazyEnablePeerAccess));
	OK(cudaIpcOpenMemHandle((void **)&again, h, cudaIpcMemLazyEnablePeerAccess));
	CHECK(again == data);
	OK(cudaIpcCloseMemHandle(again));
	OK(cudaIpcOpenEventHandle(&e, he));
	OK(cudaStreamCreate(&s));
	OK(cudaStreamWaitEvent(s, e, 0));
	hand_over<<<1, 32, 0, s>>>(data + 512, data);
	OK(cudaStreamSynchronize(s));
	fill<<<1, 1, 0, s>>>(data + 600, 5);
	OK(cudaEventRecord(e, s));
	OK(cudaStreamSynchronize(s));
	send(1, "r", 1);
	OK(cudaIpcCloseMemHandle(data));
	IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(data));
}

static void ipc() { both(ipc_parent, ipc_child); }

/* A handle that is no longer true, or was never: it names a process, a descriptor, an inode and a size
 * (libconsan/cuda/ipc.c). */
struct forged { char magic[8]; int pid, fd, device; unsigned flags; unsigned long long inode, bytes; };
static int other;
static void forged_parent()
{
	int *data = array(0, 1024);
	cudaIpcMemHandle_t h;
	cudaIpcEventHandle_t he;
	cudaEvent_t e;
	char ready;
	OK(cudaIpcGetMemHandle(&h, data));
	OK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
	OK(cudaIpcGetEventHandle(&he, e));
	send(0, &h, sizeof h);
	send(0, &he, sizeof he);
	receive(0, &ready, 1);
	OK(cudaFree(data));
}
static void forged_child()
{
	const int flags = cudaIpcMemLazyEnablePeerAccess;
	cudaIpcMemHandle_t h, wrong;
	cudaIpcEventHandle_t he, wrong_event;
	forged *f = (forged *)&wrong, *fe = (forged *)&wrong_event;
	struct stat is;
	cudaEvent_t e;
	void *at;
	receive(1, &h, sizeof h);
	receive(1, &he, sizeof he);
	OK(cudaSetDevice(1));
	for (int k = 0; k < 6; k++) {
		wrong = h;
		if (k == 0) f->bytes = 1 << 30; /* not in the file */
		if (k == 1) f->bytes = ~0ull;
		if (k == 2) f->fd = 0;
		if (k == 3) f->inode++;
		if (k == 4) f->pid = 1 << 30;
		if (k == 5) { /* a file that is none of consan's */
			CHECK(!ftruncate(other, 1 << 20) && !fstat(other, &is));
			f->pid = getppid();
			f->fd = other;
			f->inode = is.st_ino;
		}
		IS(cudaErrorMapBufferObjectFailed, cudaIpcOpenMemHandle(&at, wrong, flags));
	}
	wrong_event = he;
	fe->inode++;
	IS(cudaErrorMapBufferObjectFailed, cudaIpcOpenEventHandle(&e, wrong_event));
	wrong_event = he;
	memcpy(fe->magic, f->magic, 8); /* of memory */
	IS(cudaErrorInvalidValue, cudaIpcOpenEventHandle(&e, wrong_event));
	cudaGetLastError();
	OK(cudaIpcOpenMemHandle(&at, h, flags));
	OK(cudaIpcCloseMemHandle(at));
	send(1, "r", 1);
}
static void forged_handles()
{
	other = memfd_create("another", 0);
	both(forged_parent, forged_child);
}

/* A process is killed before what it has recorded is done: waits for that end. */
static void killed_child()
{
	cudaIpcEventHandle_t he;
	cudaEvent_t e;
	int *data = array(0, 1024);
	receive(1, &he, sizeof he);
	OK(cudaIpcOpenEventHandle(&e, he));
	fill<<<1, 32>>>(data, 1);
	OK(cudaEventRecord(e)); /* runs when it waits */
	send(1, "r", 1);
	raise(SIGKILL);
}
static void killed()
{
	cudaIpcEventHandle_t he;
	cudaEvent_t e;
	cudaStream_t s;
	char ready;
	int status;
	pid_t pid;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	pid = fork();
	if (!pid) {
		killed_child();
		exit(1);
	}
	OK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
	OK(cudaIpcGetEventHandle(&he, e));
	send(0, &he, sizeof he);
	receive(0, &ready, 1);
	OK(cudaStreamCreate(&s));
	OK(cudaStreamWaitEvent(s, e, 0));
	OK(cudaStreamSynchronize(s));
	OK(cudaEventSynchronize(e));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	OK(cudaEventSynchronize(e));
}

/* Processes that synchronize by a pipe only: racy if the parent does not wait for its kernel, or its copy,
 * before it writes to the pipe. */
enum piped_how { WAITS, DOES_NOT, BLOCKS };
enum shared_how { BY_HANDLE, BY_POOL, BY_MAPPING };
template <shared_how By> static int *share()
{
	const cudaMemAllocationHandleType fds = cudaMemHandleTypePosixFileDescriptor;
	CUmemGenericAllocationHandle h;
	cudaMemPoolPtrExportData data;
	cudaMemPoolProps props = {};
	cudaIpcMemHandle_t ipc;
	cudaMemPool_t pool;
	int *at, fd;
	if (By == BY_HANDLE) {
		at = array(0, 1024);
		OK(cudaIpcGetMemHandle(&ipc, at));
		send(0, &ipc, sizeof ipc);
	} else if (By == BY_POOL) {
		props.allocType = cudaMemAllocationTypePinned;
		props.handleTypes = fds;
		props.location.type = cudaMemLocationTypeDevice;
		OK(cudaMemPoolCreate(&pool, &props));
		OK(cudaMallocFromPoolAsync(&at, 4096, pool, 0));
		OK(cudaStreamSynchronize(0));
		OK(cudaMemPoolExportToShareableHandle(&fd, pool, fds, 0));
		send_fd(0, fd);
		OK(cudaMemPoolExportPointer(&data, at));
		send(0, &data, sizeof data);
	} else {
		h = create(0, 2 * page);
		at = map(h, 2 * page, 1);
		OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		send_fd(0, fd);
		at += page / 4;
	}
	return at;
}
template <shared_how By> static int *shared_by_parent()
{
	CUmemGenericAllocationHandle h;
	cudaMemPoolPtrExportData data;
	cudaIpcMemHandle_t ipc;
	cudaMemPool_t pool;
	int *at;
	if (By == BY_HANDLE) {
		receive(1, &ipc, sizeof ipc);
		OK(cudaIpcOpenMemHandle((void **)&at, ipc, cudaIpcMemLazyEnablePeerAccess));
	}
	if (By == BY_POOL) {
		OK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(size_t)receive_fd(1),
			cudaMemHandleTypePosixFileDescriptor, 0));
		receive(1, &data, sizeof data);
		OK(cudaMemPoolImportPointer((void **)&at, pool, &data));
	}
	if (By == BY_MAPPING) {
		OK(cuMemImportFromShareableHandle(&h, (void *)(size_t)receive_fd(1),
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
		at = map(h, 2 * page, 1) + page / 4;
		OK(cuMemRelease(h));
	}
	return at;
}
template <piped_how How, shared_how By> static void piped_parent()
{
	int *data, host[1024] = { 0 };
	cudaStream_t s;
	char ready;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	OK(cudaStreamCreate(&s));
	data = share<By>();
	OK(cudaMemcpyAsync(data, host, 4096, cudaMemcpyHostToDevice, s));
	fill<<<1, 32, 0, s>>>(data, 100);
	if (How != DOES_NOT) OK(cudaStreamSynchronize(s));
	/* current drivers have copied when it returns */
	if (How == BLOCKS) OK(cudaMemcpy(data, host, 4096, cudaMemcpyHostToDevice));
	send(0, "r", 1);
	receive(0, &ready, 1);
	/* what the child did is over */
	fill<<<1, 32, 0, s>>>(data, 200);
	OK(cudaStreamSynchronize(s));
	if (By != BY_MAPPING) OK(cudaFree(data));
}
template <shared_how By> static void piped_child()
{
	cudaStream_t s;
	int *data, *result;
	char ready;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	data = shared_by_parent<By>();
	result = array(0, 32);
	OK(cudaStreamCreate(&s));
	receive(1, &ready, 1);
	OK(cudaMemcpyAsync(result, data, 128, cudaMemcpyDeviceToDevice, s));
	OK(cudaStreamSynchronize(s));
	send(1, "r", 1);
	if (By == BY_HANDLE) OK(cudaIpcCloseMemHandle(data));
	if (By == BY_POOL) OK(cudaFree(data));
	if (By == BY_MAPPING) OK(cuMemUnmap((CUdeviceptr)(data - page / 4), 2 * page));
}
template <piped_how How, shared_how By = BY_HANDLE> static void piped()
{
	both(piped_parent<How, By>, piped_child<By>);
}

static void shared_parent()
{
	CUmemGenericAllocationHandle h;
	cudaMemPoolPtrExportData data;
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;
	int *at, *mapped, fd;
	char ready;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	h = create(0, page);
	mapped = map(h, page, 1);
	OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	send_fd(0, fd);
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location.type = cudaMemLocationTypeDevice;
	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMallocFromPoolAsync(&at, 128, pool, 0));
	fill<<<1, 32>>>(at, 30);
	OK(cudaDeviceSynchronize());
	OK(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
	send_fd(0, fd);
	OK(cudaMemPoolExportPointer(&data, at));
	send(0, &data, sizeof data);
	receive(0, &ready, 1);
	CHECK(value(mapped + 4) == 44 && value(at + 4) == 44);
}

static void shared_child()
{
	CUmemGenericAllocationHandle h;
	cudaMemPoolPtrExportData data;
	cudaMemPool_t pool;
	int *at, *mapped;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	OK(cuMemImportFromShareableHandle(&h, (void *)(size_t)receive_fd(1),
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	mapped = map(h, page, 1);
	OK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(size_t)receive_fd(1),
		cudaMemHandleTypePosixFileDescriptor, 0));
	receive(1, &data, sizeof data);
	OK(cudaMemPoolImportPointer((void **)&at, pool, &data));
	CHECK(value(at + 4) == 34);
	fill<<<1, 32>>>(mapped, 40);
	fill<<<1, 32>>>(at, 40);
	OK(cudaDeviceSynchronize());
	send(1, "r", 1);
	OK(cudaFree(at));
}

static void shared() { both(shared_parent, shared_child); }
