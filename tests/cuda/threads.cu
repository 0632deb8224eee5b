/* Programs with several host threads: `threads NAME racy|fixed' runs one of the forms of a case.
 *
 * CASE(name, rule) has a race that is found without options. SEEN(name, rule) has one that is found with
 * --knob=host_threads=1 only, as what orders it by time is not seen; its fixed form shows an edge that is
 * seen. CLEAN(name) has no race: what synchronizes it is not seen, and is not to be doubted without the
 * knob. Compiled with --default-stream per-thread as well (threads_ptds): the cases PTDS. */
#include <atomic>
#include <condition_variable>
#include <deque>
#include <vector>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <future>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <thread>
#include <threads.h>
#include <unistd.h>

enum { N = 2048, BYTES = N * sizeof(int) };

__global__ void set(int *a, int v) { a[blockIdx.x * blockDim.x + threadIdx.x] = v; }
__global__ void add(const int *a, int *b)
{
	const int i = blockIdx.x * blockDim.x + threadIdx.x;
	b[i] = a[i] + 1;
}

static int *a, *b;
static cudaStream_t s, t;
static bool fixed;
#define SET(at, v, stream) set<<<8, 256, 0, stream>>>(at, v)
#define ADD(from, to, stream) add<<<8, 256, 0, stream>>>(from, to)

#define CASE(name, rule) static void name()
#define SEEN(name, rule) static void name()
#define CLEAN(name) static void name()
#define PTDS(name, rule) static void name()

/* Both threads have begun when they go on. */
static std::atomic<int> arrived;
static void meet()
{
	arrived++;
	while (arrived < 2) ;
}
static void write_a() { SET(a, 1, s); cudaStreamSynchronize(s); }
static void read_a() { ADD(a, b, t); cudaStreamSynchronize(t); }

CASE(at_once, CS1002)
{
	std::thread one([] { if (!fixed) meet(); write_a(); });
	if (fixed) one.join();
	std::thread two([] { if (!fixed) meet(); read_a(); });
	if (!fixed) one.join();
	two.join();
}
CASE(freed, CS1004)
{
	static int *x;
	SET(b, 1, t); // loads the module
	cudaMalloc(&x, BYTES);
	std::thread one([] { if (!fixed) meet(); SET(x, 1, s); cudaStreamSynchronize(s); });
	if (fixed) one.join();
	std::thread two([] { if (!fixed) { meet(); usleep(500); } cudaFree(x); });
	if (!fixed) one.join();
	two.join();
}
/* Each thread has its own stream under one name. */
CASE(per_thread_streams, CS1002)
{
	SET(a, 1, cudaStreamPerThread);
	if (fixed) cudaStreamSynchronize(cudaStreamPerThread);
	std::thread([] { ADD(a, b, cudaStreamPerThread); cudaDeviceSynchronize(); }).join();
}
/* The legacy default stream orders those of all threads. */
CASE(per_thread_legacy, CS1002)
{
	SET(a, 1, cudaStreamPerThread);
	if (fixed) SET(b, 1, cudaStreamLegacy);
	std::thread([] { ADD(a, b, cudaStreamPerThread); cudaDeviceSynchronize(); }).join();
}
CLEAN(spinning) // an atomic hands over
{
	static std::atomic<bool> ready;
	std::thread one([] { write_a(); ready = true; });
	std::thread two([] { while (!ready) ; read_a(); });
	one.join();
	two.join();
}
CLEAN(promised) // the fast path of std::future has no call
{
	std::promise<int> p;
	std::future<int> f = p.get_future();
	std::thread one([&p] { write_a(); p.set_value(1); });
	std::thread two([&f] { f.get(); read_a(); });
	one.join();
	two.join();
}
CLEAN(piped)
{
	static int fd[2];
	if (pipe(fd)) exit(2);
	std::thread one([] { write_a(); if (write(fd[1], "x", 1) != 1) exit(2); });
	std::thread two([] { char c; if (read(fd[0], &c, 1) != 1) exit(2); read_a(); });
	one.join();
	two.join();
}
CLEAN(host_function) // once it runs, what is before it in its stream is complete
{
	static std::atomic<bool> done;
	SET(a, 1, s);
	cudaLaunchHostFunc(s, [](void *) { done = true; }, nullptr);
	while (!done) ;
	ADD(a, b, t);
}

/* Workers hand buffers to each other by a queue, and use what stream they like; racy: one does not wait for
 * its own before it hands over. */
static std::mutex queue_lock;
static std::condition_variable queue_changed;
static std::deque<std::pair<int *, int>> jobs;
static int left;
static void worker(int number, bool waits)
{
	cudaStream_t own;
	cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
	for (;;) {
		std::unique_lock<std::mutex> l(queue_lock);
		queue_changed.wait(l, [] { return !left || !jobs.empty(); });
		if (!left) break;
		auto job = jobs.front();
		jobs.pop_front();
		l.unlock();
		ADD(job.first, job.first, job.second % 3 ? own : cudaStreamPerThread);
		if (waits || number) cudaStreamSynchronize(job.second % 3 ? own : cudaStreamPerThread);
		l.lock();
		if (job.second < 6) jobs.push_back({ job.first, job.second + 1 });
		else left--;
		queue_changed.notify_all();
	}
	cudaStreamDestroy(own);
}
CASE(pool, CS100) // CS1001 or CS1002: whichever access is compared first
{
	int *buffer;
	std::vector<std::thread> all;
	cudaMalloc(&buffer, 6 * BYTES);
	cudaMemset(buffer, 0, 6 * BYTES);
	cudaDeviceSynchronize();
	left = 6;
	for (int i = 0; i < left; i++) jobs.push_back({ buffer + i * N, 0 });
	for (int i = 0; i < 3; i++) all.emplace_back(worker, i, fixed);
	for (auto &x : all) x.join();
	cudaFree(buffer);
}

/* The first thread writes and hands over to the second, in time also where nothing does so visibly. */
static std::atomic<bool> hidden;
template <typename Release, typename Acquire> static void hand_over(Release release, Acquire acquire)
{
	std::thread one([release] { write_a(); if (fixed) release(); hidden = true; });
	std::thread two([acquire] { while (!hidden) ; if (fixed) acquire(); read_a(); });
	one.join();
	two.join();
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool flag;
SEEN(by_mutex, CS1010) { hand_over([] { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); },
	[] { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); }); }
SEEN(by_std_mutex, CS1010)
{
	static std::mutex m;
	hand_over([] { std::lock_guard<std::mutex> l(m); flag = true; }, [] { std::lock_guard<std::mutex> l(m); });
}
SEEN(by_condition, CS1010)
{
	static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	if (!fixed) { hand_over([] {}, [] {}); return; }
	std::thread two([] {
		pthread_mutex_lock(&mutex);
		while (!flag) pthread_cond_wait(&c, &mutex);
		pthread_mutex_unlock(&mutex);
		read_a();
	});
	usleep(20000);
	write_a();
	pthread_mutex_lock(&mutex);
	flag = true;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&mutex);
	two.join();
}
SEEN(by_std_condition, CS1010)
{
	static std::mutex m;
	static std::condition_variable c;
	if (!fixed) { hand_over([] {}, [] {}); return; }
	std::thread two([] {
		std::unique_lock<std::mutex> l(m);
		c.wait(l, [] { return flag; });
		l.unlock();
		read_a();
	});
	usleep(20000);
	write_a();
	{ std::lock_guard<std::mutex> l(m); flag = true; }
	c.notify_one();
	two.join();
}
SEEN(by_rwlock, CS1010)
{
	static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
	hand_over([] { pthread_rwlock_wrlock(&l); pthread_rwlock_unlock(&l); },
		[] { pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l); });
}
SEEN(by_semaphore, CS1010)
{
	static sem_t n;
	sem_init(&n, 0, 0);
	hand_over([] { sem_post(&n); }, [] { sem_wait(&n); });
}
SEEN(by_barrier, CS1010)
{
	static pthread_barrier_t at;
	pthread_barrier_init(&at, nullptr, 2);
	hidden = true;
	if (!fixed) { hidden = false; hand_over([] {}, [] {}); return; }
	hand_over([] { pthread_barrier_wait(&at); }, [] { pthread_barrier_wait(&at); });
}
SEEN(by_spin_lock, CS1010)
{
	static pthread_spinlock_t l;
	pthread_spin_init(&l, 0);
	hand_over([] { pthread_spin_lock(&l); pthread_spin_unlock(&l); },
		[] { pthread_spin_lock(&l); pthread_spin_unlock(&l); });
}
SEEN(by_once, CS1010)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (!fixed) { hand_over([] {}, [] {}); return; }
	std::thread one([] { pthread_once(&once, write_a); });
	std::thread two([] { pthread_once(&once, write_a); read_a(); });
	one.join();
	two.join();
}
SEEN(by_c_mutex, CS1010)
{
	static mtx_t m;
	mtx_init(&m, mtx_plain);
	hand_over([] { mtx_lock(&m); mtx_unlock(&m); }, [] { mtx_lock(&m); mtx_unlock(&m); });
}
SEEN(by_c_thread, CS1010)
{
	thrd_t one;
	if (!fixed) { hand_over([] {}, [] {}); return; }
	SET(b, 1, t);
	cudaStreamSynchronize(t);
	thrd_create(&one, [](void *) { SET(b, 2, t); write_a(); return 0; }, nullptr);
	thrd_join(one, nullptr);
	read_a();
}
SEEN(by_join, CS1010) // pthread_exit() ends the thread
{
	pthread_t one;
	if (!fixed) { hand_over([] {}, [] {}); return; }
	pthread_create(&one, nullptr, [](void *) -> void * { write_a(); pthread_exit(nullptr); }, nullptr);
	pthread_join(one, nullptr);
	read_a();
}
SEEN(one_stream, CS1010) // which of the two comes first in it is up to the threads
{
	std::thread one([] { SET(a, 1, s); if (fixed) pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); hidden = true; });
	std::thread two([] { while (!hidden) ; if (fixed) pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); ADD(a, b, s); });
	one.join();
	two.join();
}
SEEN(used_and_freed, CS1010)
{
	static int *x;
	SET(b, 1, t); // loads the module
	cudaMalloc(&x, BYTES);
	std::thread one([] { SET(x, 1, s); cudaStreamSynchronize(s); if (fixed) pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); hidden = true; });
	std::thread two([] { while (!hidden) ; if (fixed) pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); cudaFree(x); });
	one.join();
	two.join();
}

/* Stream 0 of each thread is its own. */
PTDS(default_stream, CS1002)
{
	SET(a, 1, 0);
	if (fixed) cudaStreamSynchronize(0);
	std::thread([] { ADD(a, b, 0); cudaDeviceSynchronize(); }).join();
}
PTDS(default_copy, CS1002) // cudaMemcpy waits for the stream of its thread only
{
	static int host[N];
	std::thread two([] { ADD(a, b, 0); cudaStreamSynchronize(0); });
	two.join();
	SET(b, 1, s);
	if (fixed) cudaStreamSynchronize(s);
	std::thread([] { cudaMemcpy(host, b, BYTES, cudaMemcpyDeviceToHost); cudaMemset(a, 0, BYTES); }).join();
}
PTDS(default_created, CS1002) // the legacy stream would order them
{
	SET(a, 1, s);
	ADD(a, b, fixed ? cudaStreamLegacy : 0);
}

static const struct { const char *name; void (*run)(); } cases[] = {
#define ROW(name) { #name, name }
	ROW(at_once), ROW(pool), ROW(freed), ROW(per_thread_streams), ROW(per_thread_legacy), ROW(spinning), ROW(promised),
	ROW(piped), ROW(host_function), ROW(by_mutex), ROW(by_std_mutex), ROW(by_condition), ROW(by_std_condition),
	ROW(by_rwlock), ROW(by_semaphore), ROW(by_barrier), ROW(by_spin_lock), ROW(by_once), ROW(by_c_mutex),
	ROW(by_c_thread), ROW(by_join), ROW(one_stream), ROW(used_and_freed), ROW(default_stream), ROW(default_copy),
	ROW(default_created),
};

int main(int argc, char **argv)
{
	cudaMalloc(&a, BYTES);
	cudaMalloc(&b, BYTES);
	cudaStreamCreate(&s);
	cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
	cudaMemset(a, 0, BYTES);
	cudaMemset(b, 0, BYTES);
	cudaDeviceSynchronize();
	fixed = argc > 2 && !strcmp(argv[2], "fixed");
	for (const auto &c : cases)
		if (argc > 1 && !strcmp(c.name, argv[1])) {
			c.run();
			cudaDeviceSynchronize();
			return 0;
		}
	return 2;
}
