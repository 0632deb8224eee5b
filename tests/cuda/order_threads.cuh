// Pairs of order.cu: several threads of the host beside grids that are suspended, each with a mailbox of its own or
// with a part of the data of one. Racy forms leave out one thing.
enum { THREADS = 4, TURNS = 20 };
static mailbox *box(unsigned k) { return (mailbox *)(managed + 1024) + k; } // all in one page
static int *in(unsigned k) { return host + 32 * k; }
static int *out(unsigned k) { return host + 1024 + 32 * k; }
static void run_threads(unsigned n, void (*run)(unsigned))
{
	std::thread other[THREADS];
	for (unsigned k = 1; k < n; k++) other[k] = std::thread(run, k);
	run(0);
	for (unsigned k = 1; k < n; k++) other[k].join();
}
static void serve_threads(unsigned n, unsigned turns)
{
	cudaStream_t stream[THREADS];
	for (unsigned k = 0; k < n; k++) {
		cudaStreamCreateWithFlags(&stream[k], cudaStreamNonBlocking);
		serve<<<1, 32, 0, stream[k]>>>(box(k), in(k), out(k), 16, turns, WELL);
	}
}
static void client(unsigned k, unsigned turns, unsigned early, bool sleeps)
{
	for (unsigned r = 1; r <= turns; r++) {
		for (int i = 0; i < 16; i++) in(k)[i] = i + (int)r;
		ask(box(k), r);
		if (r == early) in(k)[3] = 7; // what the grid reads, or has read
		while (box(k)->done != r) if (sleeps) usleep(20);
		for (int i = 0; !early && i < 16; i++) if (out(k)[i] != i + (int)r + 1) exit(4);
	}
}
static void well(unsigned k) { client(k, TURNS, 0, false); }
static void sleepy(unsigned k) { client(k, TURNS, 0, true); }
static void mixed(unsigned k) { client(k, TURNS, 0, k & 1); }
static void last_early(unsigned k) { client(k, TURNS, !fixed && k == 1 ? TURNS / 2 : 0, false); }
CASE(threads_two_early, CS1003) { serve_threads(2, TURNS); run_threads(2, last_early); }
CASE(threads_four_early, CS1003) { serve_threads(4, TURNS); run_threads(4, last_early); }
// one thread writes the data, the other one signals, before or after that
static std::atomic<bool> asked, done;
static void until(std::atomic<bool> &is) { while (!is) std::this_thread::yield(); }
static void writer_or_signaler(unsigned k)
{
	if (k) {
		if (!fixed) until(asked);
		fill(in(0), 1);
		done = true;
	} else {
		if (fixed) until(done);
		ask(box(0), 1);
		asked = true;
		until(done);
		await(box(0), 1);
	}
}
CASE(threads_written_late, CS1003) { serve_threads(1, 1); run_threads(2, writer_or_signaler); }
// a thread reads what another one has waited for, or has not
static void waiter_or_reader(unsigned k)
{
	if (k) {
		until(asked);
		printf("%d\n", sum(out(0)));
		done = true;
	} else {
		ask(box(0), 1);
		if (fixed) await(box(0), 1);
		asked = true;
		until(done);
		await(box(0), 1);
	}
}
CASE(threads_read_early, CS1003) { serve_threads(1, 1); run_threads(2, waiter_or_reader); }

QUIET(quiet_two) { serve_threads(2, TURNS); run_threads(2, well); }
QUIET(quiet_three) { serve_threads(3, TURNS); run_threads(3, well); }
QUIET(quiet_four) { serve_threads(4, TURNS); run_threads(4, well); }
QUIET(quiet_sleepers) { serve_threads(4, TURNS); run_threads(4, sleepy); }
QUIET(quiet_mixed) { serve_threads(3, TURNS); run_threads(3, mixed); }
static void launch_and_serve(unsigned k) // each thread launches its own
{
	cudaStream_t own;
	cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
	serve<<<1, 32, 0, own>>>(box(k), in(k), out(k), 16, TURNS, WELL);
	well(k);
	cudaStreamSynchronize(own);
}
QUIET(quiet_launchers) { run_threads(3, launch_and_serve); }
static void pass_on(unsigned k) // the word of one grid is given to the other one by a thread
{
	for (unsigned r = 1; r <= TURNS; r++) {
		if (!k) {
			fill(in(0), (int)r);
			ask(box(0), r);
			await(box(0), r);
		}
		while (k && box(0)->done < r) ;
		if (k) { ask(box(1), r); await(box(1), r); }
		else while (box(1)->done < r) ;
	}
}
QUIET(quiet_chain)
{
	serve<<<1, 32, 0, s_free>>>(box(0), in(0), in(1), 16, TURNS, WELL);
	serve<<<1, 32, 0, t_free>>>(box(1), in(1), out(1), 16, TURNS, WELL);
	run_threads(2, pass_on);
}
QUIET(quiet_waiter) // one thread waits for the device, others serve
{
	serve_threads(3, TURNS);
	std::thread a(well, 0), b(well, 1), c(sleepy, 2);
	cudaDeviceSynchronize();
	a.join();
	b.join();
	c.join();
}
static std::atomic<unsigned> turn;
static void in_turns(unsigned k) // threads that poll memory of their own, too
{
	for (unsigned r = 1; r <= TURNS; r++) {
		while (turn % 2 != k) std::this_thread::yield();
		fill(in(0), (int)r);
		ask(box(0), turn + 1);
		await(box(0), turn + 1);
		if (sum(out(0)) != SERVED * (int)r + SERVED * (SERVED + 1) / 2) exit(4);
		turn++;
	}
}
QUIET(quiet_in_turns)
{
	serve<<<1, 32, 0, s_free>>>(box(0), in(0), out(0), SERVED, 2 * TURNS, WELL);
	run_threads(2, in_turns);
}

QUIET(quiet_elsewhere) // a thread that never comes is not waited for each time
{
	static std::atomic<bool> ends;
	std::thread other([] { while (!ends) ; });
	serve_threads(2, TURNS);
	run_threads(2, well);
	ends = true;
	other.join();
}
static void bytes(unsigned k) // a thread that writes much data, by functions of the C library and one by one
{
	enum { LARGE = 20000 };
	static char *large;
	if (!k) return well(0);
	cudaMallocHost(&large, LARGE);
	for (int r = 0; r < 3; r++) {
		memset(large, r, LARGE);
		memcpy(large + LARGE / 2, large + 7, LARGE / 3);
		for (int i = 0; i < 2000; i++) large[i]++;
	}
}
QUIET(quiet_bytes) { serve_threads(1, TURNS); run_threads(2, bytes); }

#define THREADS_CASES \
	C(threads_two_early), C(threads_four_early), C(threads_written_late), C(threads_read_early), C(quiet_two), \
	C(quiet_three), C(quiet_four), C(quiet_sleepers), C(quiet_mixed), C(quiet_launchers), C(quiet_chain), \
	C(quiet_waiter), C(quiet_in_turns), C(quiet_elsewhere), C(quiet_bytes),
