// A CUDA program that ends: `ends HOW FROM WHEN`. HOW it ends, or what else it does that could take
// the ground from under a launch; FROM which thread; WHEN. What does not end it leads to status 4.
// Apart from `before`, a kernel with a race has run before, so a finding is to be kept.
// `ends FIRST` does something before the kernel with the race, and ends with status 4.
#include <cuda.h>
#include <cuda_runtime.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <spawn.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define OK(call) do { const cudaError_t error = (call); if (error != cudaSuccess) { \
	printf("%s: %s\n", #call, cudaGetErrorName(error)); fflush(stdout); _exit(98); } } while (0)

__global__ void racy(int *out)
{
	__shared__ int tile[64];

	tile[threadIdx.x] = (int)threadIdx.x;
	out[threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void quick(int *out)
{
	out[threadIdx.x] = 1;
}

// Runs until the host says that it may end; four blocks.
__global__ void slow(volatile int *state, int *out)
{
	if (threadIdx.x == 0)
		state[0] = 1;
	for (long i = 0; !state[1] && i < 1000000000; i++)
		out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

// The same in a module that is loaded by the driver's API.
static const char slow_ptx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry slow(.param .u64 state, .param .u64 out)
{
	.reg .pred %p;
	.reg .b32 %r<4>;
	.reg .b64 %d<3>;
	ld.param.u64 %d1, [state];
	ld.param.u64 %d2, [out];
	mov.u32 %r1, 1;
	st.volatile.global.u32 [%d1], %r1;
next:
	atom.relaxed.gpu.global.add.u32 %r2, [%d2], 1;
	ld.volatile.global.u32 %r3, [%d1+4];
	setp.eq.u32 %p, %r3, 0;
	@%p bra next;
	ret;
}
)";

static volatile int *state;
static int *device;
static void *plugin;
static CUmodule module;

static sigjmp_buf back;
static pthread_t jumper; // the thread that `back` is of
static volatile sig_atomic_t armed;

// From a handler.
static void jump_back()
{
	if (armed && pthread_equal(pthread_self(), jumper)) {
		armed = 0;
		siglongjmp(back, 1);
	}
}

static void launch_quick()
{
	quick<<<1, 32>>>(device);
	if (cudaDeviceSynchronize() != cudaSuccess)
		puts("the launch failed");
}

static void in_child(void (*act)())
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		act();
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 9) {
		printf("child: %x\n", (unsigned)status);
		_exit(97);
	}
}

static void child_calls()
{
	int n;

	// CUDA does not support this; it fails, and does not hang
	_exit(cudaMalloc((void **)&n, 4) == cudaSuccess ? 1 : 9);
}

static void unload()
{
	if (module)
		cuModuleUnload(module);
	module = NULL;
}

static void close_plugin()
{
	if (plugin && dlclose(plugin))
		_exit(96);
	plugin = NULL;
}

static pthread_t launcher;

static void cancel()
{
	pthread_cancel(launcher);
}

static void end_thread()
{
	pthread_exit(NULL);
}

static const struct { const char *name; void (*act)(); } hows[] = {
	{ "return", [] { } },
	{ "exit", [] { exit(3); } },
	{ "quick_exit", [] { quick_exit(3); } },
	{ "_exit", [] { _exit(3); } },
	{ "abort", [] { abort(); } },
	{ "throw", [] { throw 1; } },
	{ "term", [] { kill(getpid(), SIGTERM); pause(); } },
	{ "kill", [] { kill(getpid(), SIGKILL); pause(); } },
	{ "segv", [] { *(volatile int *)8 = 0; } },
	{ "exec", [] { execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL); } },
	{ "pthread_exit", end_thread },
	{ "fork-exit", [] { in_child([] { exit(9); }); } },
	{ "fork-_exit", [] { in_child([] { _exit(9); }); } },
	{ "fork-calls", [] { in_child(child_calls); } },
	{ "fork-exec", [] { in_child([] { execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL); }); } },
	{ "jump", jump_back },
	{ "cancel", cancel },
	{ "cancel-at-once", cancel },
	{ "dlclose", close_plugin },
	{ "unload", unload },
	{ "launch", launch_quick },
	{ "free", [] { cudaFree(device); } },
	{ "reset", [] { cudaDeviceReset(); } },
};

static void (*act)();
static bool waits; // for the kernel that runs
static bool asynchronous; // the thread that launches is cancelled at any moment

static void *acting(void *)
{
	act();
	return NULL;
}

static void on_signal(int)
{
	act();
}

static void on_callback(void *)
{
	act();
}

static pthread_t spawn(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg))
		_exit(95);
	return t;
}

// In the thread that waits until the kernel runs.
struct plan { const char *from; pthread_t launching; };

static void *in_the_middle(void *arg)
{
	const plan *p = (const plan *)arg;

	while (!state[0])
		usleep(1000);
	usleep(5000);
	state[1] = waits && !strcmp(p->from, "thread");
	if (!strcmp(p->from, "handler"))
		pthread_kill(p->launching, SIGUSR1);
	else if (!strcmp(p->from, "process")) // any thread may get it
		kill(getpid(), SIGUSR1);
	else
		pthread_join(spawn(acting, NULL), NULL);
	usleep(20000);
	state[1] = act != jump_back; // which needs no help
	return NULL;
}

static void launch_slow()
{
	void *args[] = { &state, &device };
	CUfunction f;

	if (!module) {
		slow<<<4, 32>>>(state, device);
	} else if (cuModuleGetFunction(&f, module, "slow")
			|| cuLaunchKernel(f, 4, 1, 1, 32, 1, 1, 0, 0, args, NULL)) {
		puts("no launch");
		_exit(94);
	}
	OK(cudaGetLastError());
	OK(cudaDeviceSynchronize());
}

static void *launches(void *asynchronous)
{
	int type;

	pthread_setcanceltype(asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, &type);
	launch_slow();
	if (act == cancel) {
		pthread_testcancel();
		puts("not cancelled");
	}
	return NULL;
}

// It waits for what another thread launches, or (read) for input, when the handler jumps. Then launches
// work as before.
static int jumps(const char *from)
{
	plan p = { "handler", pthread_self() };
	pthread_t t;
	int ends[2];
	char c;

	jumper = pthread_self();
	armed = 1;
	if (!sigsetjmp(back, 1)) {
		t = spawn(in_the_middle, &p);
		if (!strcmp(from, "read")) {
			state[0] = 1;
			if (pipe(ends) || read(ends[0], &c, 1) != 1)
				return 90;
		} else if (!strcmp(from, "waiter")) {
			launcher = spawn(launches, NULL);
			while (!state[0])
				usleep(1000);
			OK(cudaDeviceSynchronize());
		} else {
			launch_slow();
		}
		return 89; // it was not left
	}
	pthread_join(t, NULL); // not before the kernel is left
	state[1] = 1;
	if (!strcmp(from, "waiter"))
		pthread_join(launcher, NULL);
	quick<<<1, 32>>>(device);
	OK(cudaDeviceSynchronize());
	return 4;
}

// Jumps out of calls of all kinds at any moment.
static int storm()
{
	const struct itimerval often = { { 0, 3000 }, { 0, 3000 } }, never = { { 0, 0 }, { 0, 0 } };
	volatile int left = 100;
	void *p;

	jumper = pthread_self();
	sigsetjmp(back, 1);
	setitimer(ITIMER_REAL, &often, NULL);
	while (left-- > 0)
		for (armed = 1; armed;) {
			quick<<<1, 128>>>(device);
			cudaDeviceSynchronize();
			if (cudaMalloc(&p, 1000) == cudaSuccess)
				cudaFree(p);
		}
	setitimer(ITIMER_REAL, &never, NULL);
	racy<<<1, 64>>>(device);
	OK(cudaDeviceSynchronize());
	return 4;
}

// From main: another thread launches.
static int during(const char *from)
{
	plan p = { from, pthread_self() };
	pthread_t t;
	void *result;

	if (act == jump_back)
		return !strcmp(from, "storm") ? storm() : jumps(from);
	if (!strcmp(from, "main")) {
		launcher = spawn(launches, asynchronous ? &asynchronous : NULL);
		while (!state[0])
			usleep(1000);
		state[1] = waits;
		act();
		state[1] = 1;
		pthread_join(launcher, &result);
		if (act == cancel && !asynchronous && result != PTHREAD_CANCELED)
			return 88;
		if (act == cancel)
			launch_quick();
		return 4;
	}
	if (!strcmp(from, "stays")) { // no thread ends the kernel
		slow<<<4, 32>>>(state, device);
		return cudaDeviceSynchronize() == cudaSuccess ? 92 : 4;
	}
	t = spawn(in_the_middle, &p);
	launch_slow();
	pthread_join(t, NULL);
	return 4;
}

// The launch is in a queue, and may not have begun.
static int queued()
{
	quick<<<1, 32>>>(device);
	act();
	return 4;
}

static int after(const char *from)
{
	if (!strcmp(from, "thread")) {
		pthread_join(spawn(acting, NULL), NULL);
	} else if (!strcmp(from, "handler")) {
		raise(SIGUSR1);
	} else if (!strcmp(from, "callback")) {
		OK(cudaLaunchHostFunc(0, on_callback, NULL));
		OK(cudaDeviceSynchronize());
	} else if (!strcmp(from, "atexit")) {
		atexit([] { act(); });
		exit(4);
	} else {
		act();
	}
	return 4;
}

// As a daemon: the program ends at once, and a process that is none of its children goes on.
static void daemonize()
{
	if (fork())
		_exit(4);
	setsid();
	if (fork())
		_exit(4);
	usleep(100000);
}

// All descriptors, and then their numbers are those of other files.
static void close_all()
{
	OK(cudaFree(NULL));
	for (int fd = 0; fd < 256; fd++)
		close(fd);
	for (int k = 0; k < 32; k++)
		open("ends.own", O_RDWR | O_CREAT | O_TRUNC, 0600);
}

// "start-HOW" starts "plain" in place of this process, with an environment that has no variable of consan.
static char self_path[] = "./ends", plain[] = "plain", own[] = "OWN=1", unwatched[] = "CONSAN_UNWATCHED=1";
static char *const argv_plain[] = { self_path, plain, NULL }, *const empty[] = { NULL }, *const some[] = { own, NULL };
static char *const opted_out[] = { unwatched, NULL };

static void launch_racy()
{
	OK(cudaMalloc((void **)&device, 4096));
	racy<<<1, 64>>>(device);
	OK(cudaDeviceSynchronize());
}

// As a fiber: on 64 KiB, with pages around it that must not be touched.
static void on_small_stack()
{
	const size_t size = 65536;
	char *pages = (char *)mmap(NULL, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static ucontext_t fiber, caller;

	if (pages == MAP_FAILED || mprotect(pages + size, size, PROT_READ | PROT_WRITE) || getcontext(&fiber))
		_exit(90);
	fiber.uc_stack.ss_sp = pages + size;
	fiber.uc_stack.ss_size = size;
	fiber.uc_link = &caller;
	makecontext(&fiber, launch_racy, 0);
	if (swapcontext(&caller, &fiber))
		_exit(90);
}

static int *registered;

static void register_page()
{
	// where nothing else is mapped when it is unmapped
	registered = (int *)mmap((void *)0x300000000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
		| MAP_FIXED_NOREPLACE, -1, 0);
	if (registered == MAP_FAILED)
		_exit(90);
	OK(cudaHostRegister(registered, 4096, 0));
	quick<<<1, 32>>>(registered);
	OK(cudaDeviceSynchronize());
}

// A kernel accesses registered memory that is unmapped.
static void unmap_registered()
{
	launch_racy();
	register_page();
	munmap(registered, 4096);
	quick<<<1, 32>>>(registered);
	cudaDeviceSynchronize();
}

// The program protects its memory, and has a handler for the access.
static void protect_registered()
{
	signal(SIGSEGV, [](int) { mprotect(registered, 4096, PROT_READ | PROT_WRITE); });
	register_page();
	mprotect(registered, 4096, PROT_NONE);
	*(volatile int *)registered = 2;
}

// Sizes whose product or sum is no 64-bit number.
static void impossible_sizes()
{
	const size_t most = (size_t)-1;

	OK(cudaMalloc((void **)&device, 4096));
	if (cudaMemcpy2D(device, most, device, most, most, most, cudaMemcpyDeviceToDevice) == cudaSuccess
			|| cudaMemcpy2D(device, most / 2, device, most / 2, 1, 5, cudaMemcpyDeviceToDevice) == cudaSuccess
			|| cudaMemset2D(device, most, 0, most, most) == cudaSuccess
			|| !cuMemsetD32((CUdeviceptr)device, 1, (most >> 2) + 2))
		_exit(90);
}

static void limit(__rlimit_resource what, rlim_t to)
{
	const struct rlimit l = { to, to };

	if (setrlimit(what, &l))
		_exit(90);
}

static void drop_rights()
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(90);
}

// Another root, in which nothing is.
static void change_root()
{
	char empty[] = "ends-XXXXXX";

	if (!mkdtemp(empty) || chroot(empty) || rmdir(empty) || chdir("/"))
		_exit(90);
}

// Something else is mounted where consan-run has its folder.
static void change_mounts()
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)
			|| mount("none", getenv("TMPDIR"), "tmpfs", 0, NULL))
		_exit(90);
}

static void remove_working_folder()
{
	char empty[] = "ends-XXXXXX";

	if (!mkdtemp(empty) || chdir(empty) || rmdir((std::string("../") + empty).c_str()))
		_exit(90);
}

static void shell(const char *command)
{
	if (system(command))
		_exit(90);
}

static void spawned(int error, pid_t pid)
{
	int status;

	if (error || waitpid(pid, &status, 0) != pid)
		_exit(90);
	_exit(WEXITSTATUS(status));
}

static const struct { const char *name; void (*act)(); } firsts[] = {
	{ "start-execve", [] { execve(self_path, argv_plain, some); } },
	{ "start-unwatched", [] { execve(self_path, argv_plain, opted_out); } },
	{ "start-execv", [] { environ = NULL; execv(self_path, argv_plain); } },
	{ "start-execvp", [] { environ = (char **)empty; execvp(self_path, argv_plain); } },
	{ "start-execvpe", [] { execvpe(self_path, argv_plain, empty); } },
	{ "start-execl", [] { environ = NULL; execl(self_path, self_path, plain, NULL); } },
	{ "start-execlp", [] { environ = NULL; execlp(self_path, self_path, plain, NULL); } },
	{ "start-execle", [] { execle(self_path, self_path, plain, NULL, some); } },
	{ "start-fexecve", [] { fexecve(open(self_path, O_RDONLY), argv_plain, empty); } },
	{ "start-spawn", [] { pid_t p = 0; int e = posix_spawn(&p, self_path, NULL, NULL, argv_plain, some); spawned(e, p); } },
	{ "start-spawnp", [] { pid_t p = 0; int e = posix_spawnp(&p, self_path, NULL, NULL, argv_plain, NULL); spawned(e, p); } },
	{ "start-vfork", [] { pid_t p = vfork(); if (!p) { execve(self_path, argv_plain, some); _exit(90); } spawned(0, p); } },
	{ "start-system", [] { clearenv(); _exit(WEXITSTATUS(system("./ends plain"))); } },
	{ "plain", [] { } },
	{ "clearenv", [] { clearenv(); } },
	{ "daemon", daemonize },
	{ "daemon-stays", daemonize },
	{ "close-all", close_all },
	{ "small-stack", on_small_stack },
	{ "unmap-registered", unmap_registered },
	{ "protect-registered", protect_registered },
	{ "impossible-sizes", impossible_sizes },
	{ "drop-rights", drop_rights },
	{ "change-root", change_root },
	{ "change-root-later", [] { launch_racy(); change_root(); } },
	{ "change-root-and-close-all", [] { change_root(); for (int fd = 3; fd < 1024; fd++) close(fd); } },
	{ "change-mounts", change_mounts },
	{ "change-mounts-and-start", [] { change_mounts(); execv(self_path, argv_plain); } },
	{ "working-folder-removed", remove_working_folder },
	{ "limit-descriptors", [] { limit(RLIMIT_NOFILE, 0); } },
	{ "limit-sizes", [] { limit(RLIMIT_FSIZE, 0); } },
	{ "limit-sizes-later", [] { launch_racy(); limit(RLIMIT_FSIZE, 0); } },
	{ "remove-folder", [] { shell("rm -r $TMPDIR/*"); } },
	{ "remove-folder-later", [] { launch_racy(); shell("rm -r $TMPDIR/*"); } },
	{ "remove-records", [] { launch_racy(); shell("find $TMPDIR -name '*.jsonl*' -delete"); } },
};

static int first(const char *name)
{
	struct stat st;
	bool known = false;

	for (auto &f : firsts)
		if (!strcmp(name, f.name)) {
			f.act();
			known = true;
		}
	if (!known)
		return 99;
	launch_racy();
	if (!strcmp(name, "daemon-stays"))
		sleep(30);
	return !strcmp(name, "close-all") && (stat("ends.own", &st) || st.st_size) ? 91 : 4;
}

static void *ends_last(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	exit(4);
}

int main(int argc, char **argv)
{
	static pthread_t self;

	if (argc == 2)
		return first(argv[1]);
	if (argc != 4)
		return 99;
	for (auto &h : hows)
		if (!strcmp(argv[1], h.name))
			act = h.act;
	if (!act)
		return 99;
	waits = act == launch_quick || !strcmp(argv[1], "free");
	asynchronous = !strcmp(argv[1], "cancel-at-once");
	self = pthread_self();
	signal(SIGALRM, on_signal);
	if (act == end_thread)
		spawn(ends_last, &self);
	signal(SIGUSR1, on_signal);
	if (!strcmp(argv[3], "before"))
		return after(argv[2]);
	if (!strcmp(argv[1], "dlclose"))
		plugin = dlopen("./plugin.so", RTLD_NOW);
	OK(cudaMalloc((void **)&device, 4096));
	if (!strcmp(argv[1], "unload") && cuModuleLoadData(&module, slow_ptx))
		return 93;
	OK(cudaHostAlloc((void **)&state, 64, cudaHostAllocMapped));
	state[0] = state[1] = 0;
	racy<<<1, 64>>>(device);
	OK(cudaDeviceSynchronize());
	if (!strcmp(argv[3], "queued"))
		return queued();
	return !strcmp(argv[3], "during") ? during(argv[2]) : after(argv[2]);
}
