// Pairs of order.cu: host code beside a grid that is suspended, or has ended without a wait of the host for it.
// A grid that goes on for some rounds, with the host, by words in memory that both access: it waits for ask,
// reads `in`, writes `out`, and sets `done`. Racy forms leave out one thing.
struct mailbox { volatile unsigned ask, done; unsigned pad[30]; };
enum served { WELL, NO_FENCE, NO_ACQUIRE, DEVICE_FENCE, DEVICE_FLAG, DONE_EARLY };
__global__ void serve(mailbox *m, const int *in, int *out, int n, unsigned rounds, served how)
{
	for (unsigned r = 1; r <= rounds; r++) {
		if (!threadIdx.x) {
			while (m->ask < r) ;
			if (how != NO_ACQUIRE) __threadfence_system();
			if (how == DONE_EARLY) m->done = r;
		}
		__syncthreads();
		for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = in[i] + 1;
		__syncthreads();
		if (!threadIdx.x) {
			if (how == DEVICE_FENCE) __threadfence();
			else if (how != NO_FENCE) __threadfence_system();
			if (how == DEVICE_FLAG) atomicExch((unsigned *)&m->done, r);
			else if (how != DONE_EARLY) m->done = r;
		}
	}
}
__global__ void serve_in_time(mailbox *m, int *data)
{
	const long long begin = clock64();

	while (m->ask < 1 && clock64() - begin < 4000000000ll) ;
	__threadfence_system();
	++*data;
	__threadfence_system();
	m->done = 1;
}

enum { SERVED = 24 };
static mailbox *box() { return (mailbox *)(managed + 1024); } // in another page than host
static void ask(mailbox *m, unsigned round) { m->ask = round; }
static void await(mailbox *m, unsigned round) { while (m->done != round) ; }
static void fill(int *in, int v) { for (int i = 0; i < SERVED; i++) in[i] = v + i; }
static int sum(const int *out) { int n = 0; for (int i = 0; i < SERVED; i++) n += out[i]; return n; }
static void one_round(served how)
{
	serve<<<1, 32, 0, s>>>(box(), host, host + 512, SERVED, 1, how);
	fill(host, 1);
	ask(box(), 1);
	await(box(), 1);
	printf("%d\n", sum(host + 512));
}
CASE(served_early, CS1003) // the host reads before it has waited
{
	serve<<<1, 32, 0, s>>>(box(), host, host + 512, SERVED, 1, WELL);
	fill(host, 1);
	ask(box(), 1);
	if (!fixed) printf("%d\n", host[512]);
	await(box(), 1);
	printf("%d\n", sum(host + 512));
}
CASE(served_slept, CS1003) // ... or has only slept
{
	serve<<<1, 32, 0, s>>>(box(), host, host + 512, SERVED, 1, WELL);
	fill(host, 1);
	ask(box(), 1);
	if (fixed) await(box(), 1);
	else usleep(50000);
	printf("%d\n", sum(host + 512));
}
CASE(served_overwritten, CS1003)
{
	serve<<<1, 32, 0, s>>>(box(), host, host + 512, SERVED, 1, WELL);
	fill(host, 1);
	ask(box(), 1);
	if (fixed) await(box(), 1);
	host[3] = 7;
	await(box(), 1);
}
CASE(served_late, CS1003) // the input is written behind the flag
{
	serve<<<1, 32, 0, s>>>(box(), host, host + 512, SERVED, 1, WELL);
	if (fixed) fill(host, 1);
	ask(box(), 1);
	if (!fixed) fill(host, 1);
	await(box(), 1);
}
CASE(served_no_fence, CS1003) { one_round(fixed ? WELL : NO_FENCE); }
CASE(served_no_acquire, CS1003) { one_round(fixed ? WELL : NO_ACQUIRE); }
CASE(served_device_fence, CS1003) { one_round(fixed ? WELL : DEVICE_FENCE); }
CASE(served_device_flag, CS1003) { one_round(fixed ? WELL : DEVICE_FLAG); }
CASE(served_done_early, CS1003) { one_round(fixed ? WELL : DONE_EARLY); }
CASE(served_twice, CS1003) // the next input comes before the first one has been read
{
	serve<<<1, 32, 0, s>>>(box(), host, host + 512, SERVED, 2, WELL);
	fill(host, 1);
	ask(box(), 1);
	if (fixed) await(box(), 1);
	fill(host, 2);
	await(box(), 1);
	printf("%d\n", sum(host + 512));
	ask(box(), 2);
	await(box(), 2);
	printf("%d\n", sum(host + 512));
}
CASE(served_one_page, CS1003) // flags and data in one page
{
	mailbox *m = (mailbox *)host;
	memset(m, 0, sizeof *m);
	serve<<<1, 32, 0, s>>>(m, host + 64, host + 128, SERVED, 2, WELL);
	for (unsigned r = 1; r <= 2; r++) {
		fill(host + 64, r);
		ask(m, r);
		if (fixed || r == 1) await(m, r);
		printf("%d\n", sum(host + 128));
	}
	await(m, 2);
}
CASE(served_by_atomics, CS1003)
{
	mailbox *m = box();
	serve<<<1, 32, 0, s>>>(m, host, host + 512, SERVED, 2, WELL);
	for (unsigned r = 1; r <= 2; r++) {
		fill(host, r);
		__atomic_fetch_add((unsigned *)&m->ask, 1, __ATOMIC_ACQ_REL);
		if (fixed || r == 1)
			for (unsigned is = r; !__atomic_compare_exchange_n((unsigned *)&m->done, &is, r, false,
				__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); is = r) ;
		printf("%d\n", sum(host + 512));
	}
	await(m, 2);
}
CASE(served_rounds, CS1003)
{
	enum { ROUNDS = 1000 };
	int all = 0;

	serve<<<1, 32, 0, s>>>(box(), host, host + 512, 4, ROUNDS, WELL);
	for (unsigned r = 1; r <= ROUNDS; r++) {
		host[r % 4] = (int)r;
		ask(box(), r);
		if (fixed || r != 700) await(box(), r);
		all += host[512 + r % 4];
	}
	printf("%d\n", all);
}
CASE(served_copied, CS1002) // what the host has acquired is before what it issues
{
	serve<<<1, 32, 0, s_free>>>(box(), host, a, SERVED, 1, WELL);
	fill(host, 1);
	ask(box(), 1);
	if (fixed) await(box(), 1);
	cudaMemcpyAsync(b, a, 4 * SERVED, cudaMemcpyDeviceToDevice, t_free);
}
CASE(served_copy, CS1002) // ... and a grid that acquires what the host knows is after it
{
	serve<<<1, 32, 0, s_free>>>(box(), a, b, SERVED, 2, WELL);
	ask(box(), 1);
	await(box(), 1);
	SET(a, 5, t_free);
	if (fixed) cudaStreamSynchronize(t_free);
	ask(box(), 2);
	await(box(), 2);
	cudaStreamSynchronize(t_free);
}

// programs without a finding, and all of whose accesses are seen: run by tests/unit/cuda/order.c
#define QUIET(name) static void name()
static void rounds(mailbox *m, int *in, int *out, int n, unsigned count)
{
	for (unsigned r = 1; r <= count; r++) {
		for (int i = 0; i < n; i++) in[i] = i + (int)r;
		ask(m, r);
		await(m, r);
		for (int i = 0; i < n; i++) if (out[i] != i + (int)r + 1) exit(4);
	}
}
QUIET(quiet_large) // more words of a page than the steps that it gets
{
	enum { LARGE = 20000, ROUNDS = 3 };
	int *in, *out;
	cudaMallocHost(&in, LARGE * 4);
	cudaMallocHost(&out, LARGE * 4);
	serve<<<1, 32, 0, s>>>(box(), in, out, LARGE, ROUNDS, WELL);
	rounds(box(), in, out, LARGE, ROUNDS);
}
QUIET(quiet_one_page) // flags among many words
{
	mailbox *m = (mailbox *)managed;
	serve<<<1, 32, 0, s>>>(m, managed + 64, managed + 500, 400, 20, WELL);
	rounds(m, managed + 64, managed + 500, 400, 20);
}
QUIET(quiet_thread) // another thread serves while this one waits
{
	std::thread other([] { rounds(box(), host, host + 512, 16, 50); });
	serve<<<1, 32, 0, s>>>(box(), host, host + 512, 16, 50, WELL);
	cudaDeviceSynchronize();
	other.join();
}
QUIET(quiet_launches) // no call of the API waits for any of them
{
	for (unsigned r = 1; r <= 200; r++) {
		host[0] = (int)r;
		box()->ask = r;
		serve<<<1, 32, 0, s>>>(box(), host, host + 512, 1, 1, WELL);
		await(box(), 1);
		if (host[512] != (int)r + 1) exit(4);
		box()->done = 0;
	}
}
QUIET(quiet_clock) // a loop that time could end
{
	serve_in_time<<<1, 1, 0, s>>>(box(), host);
	host[0] = 5;
	ask(box(), 1);
	await(box(), 1);
	if (host[0] != 6) exit(4);
}
__global__ void take_packet(volatile int *packet, int *out)
{
	while (packet[3] != 1) ;
	__threadfence_system();
	*out = packet[0] + packet[1] + packet[2];
	__threadfence_system();
	packet[3] = 2;
}
QUIET(quiet_packet) // data and flag in one store
{
	volatile int *packet = host + 64;
	take_packet<<<1, 1, 0, s>>>(host + 64, managed);
	_mm_store_si128((__m128i *)(host + 64), _mm_set_epi32(1, 3, 2, 1));
	while (packet[3] != 2) ;
	if (managed[0] != 6) exit(4);
}
QUIET(quiet_stream_wait) // a stream waits for memory of the host, which is protected then
{
	cuStreamWaitValue32(s, (CUdeviceptr)&box()->ask, 1, CU_STREAM_WAIT_VALUE_GEQ);
	SET(a, 1, s);
	std::thread other([] { usleep(20000); ask(box(), 1); });
	cudaStreamSynchronize(s);
	other.join();
}
QUIET(quiet_stream_write) // a stream signals a grid, and waits for its signal
{
	serve<<<1, 32, 0, s_free>>>(box(), host, host + 512, 16, 1, WELL);
	for (int i = 0; i < 16; i++) host[i] = i;
	cuStreamWriteValue32(t_free, (CUdeviceptr)&box()->ask, 1, 0);
	cuStreamWaitValue32(t_free, (CUdeviceptr)&box()->done, 1, CU_STREAM_WAIT_VALUE_GEQ);
	cudaStreamSynchronize(t_free);
	if (host[512] != 1) exit(4);
}
QUIET(quiet_beside_copies) // a wait of the host for others lets it go on
{
	serve<<<1, 32, 0, s_free>>>(box(), host, host + 512, 16, 2, WELL);
	ask(box(), 1);
	await(box(), 1);
	cudaMemcpyAsync(b, a, 64, cudaMemcpyDeviceToDevice, t_free);
	cudaStreamSynchronize(t_free);
	ask(box(), 2);
}

#define SERVED_CASES \
	C(served_early), C(served_slept), C(served_overwritten), C(served_late), C(served_no_fence), \
	C(served_no_acquire), C(served_device_fence), C(served_device_flag), C(served_done_early), \
	C(served_twice), C(served_one_page), C(served_by_atomics), C(served_rounds), C(served_copied), \
	C(served_copy), C(quiet_large), C(quiet_one_page), C(quiet_thread), C(quiet_launches), C(quiet_clock), C(quiet_packet), \
	C(quiet_stream_wait), C(quiet_stream_write), C(quiet_beside_copies),
