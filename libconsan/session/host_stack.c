/* host_stack: call stacks of the host, and calls of the CUDA API that failed. Frames are recorded as
 * offsets in objects; consan-run looks up their lines when the program has ended. */
#include "internal.h"

#include "libconsan/event/event.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { MOST = 64, KEPT = 32 }; /* frames: unwound, recorded */

struct object {
	uintptr_t pc;            /* to find */
	uintptr_t bias;
	char path[4096];
	bool found;
};

static int has_pc(struct dl_phdr_info *info, size_t size, void *user)
{
	struct object *o = user;

	(void)size;
	for (int k = 0; k < info->dlpi_phnum && !o->found; k++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[k];

		o->found = p->p_type == PT_LOAD
			&& o->pc - (info->dlpi_addr + p->p_vaddr) < p->p_memsz;
	}
	if (!o->found)
		return 0;
	o->bias = info->dlpi_addr;
	snprintf(o->path, sizeof o->path, "%s", info->dlpi_name ? info->dlpi_name : "");
	return 1;
}

/* The object with the code at pc. The program itself has no name there. */
static bool find_object(uintptr_t pc, struct object *o)
{
	const char *started = (const char *)getauxval(AT_EXECFN);
	ssize_t n;

	*o = (struct object){ .pc = pc };
	if (!dl_iterate_phdr(has_pc, o))
		return false;
	if (*o->path)
		return true;
	n = readlink("/proc/self/exe", o->path, sizeof o->path - 1);
	o->path[n > 0 ? n : 0] = 0;
	if (n <= 0 && started && *started == '/') /* /proc is not mounted */
		snprintf(o->path, sizeof o->path, "%s", started);
	return *o->path;
}

/* Frames of these are between the program's call and ours. */
static bool is_cuda(const char *path)
{
	static const char *const name[] = { "libcudart.so", "libcuda.so", "libcupti.so" };
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		if (!strncmp(base, name[i], strlen(name[i])))
			return true;
	return false;
}

/* The C library's code to which the handler of a signal returns (mov $SYS_rt_sigreturn, %rax; syscall):
 * the frame above was interrupted, and its pc is no return address. */
static bool is_trampoline(const void *pc)
{
	static const unsigned char code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };

	return !memcmp(pc, code, sizeof code);
}

/* Finds the first frame that is the caller's. *entry: the last one that is ours. */
static int skip_own(void *const *pc, int n, void **entry)
{
	struct object own, o;
	int i;

	if (!find_object((uintptr_t)consan_host_stack, &own))
		return n;
	/* the first frame may be a sanitizer's, which intercepts backtrace() */
	for (i = 0; i < n && find_object((uintptr_t)pc[i] - 1, &o) && o.bias != own.bias; i++)
		;
	for (; i < n && find_object((uintptr_t)pc[i] - 1, &o); i++) {
		if (o.bias == own.bias)
			*entry = pc[i];
		else if (!is_cuda(o.path))
			break;
	}
	return i;
}

int consan_host_frames(struct consan *c, void **pc, int n)
{
	return c->opt.show_backtrace == BACKTRACE_YES ? backtrace(pc, n) : 0;
}

static uint32_t resolve(void *const *pc, int n, const char **call)
{
	struct site_loc loc[KEPT];
	char path[KEPT][256];
	struct site s = { .loc = loc };
	void *entry = NULL;
	struct object o;
	Dl_info info;
	unsigned kept = 0;
	int i = skip_own(pc, n, &entry);
	const bool faulted = i < n && is_trampoline(pc[i]);

	*call = entry && dladdr((char *)entry - 1, &info) && info.dli_sname
		? info.dli_sname + strspn(info.dli_sname, "_") : "";
	for (i += faulted; i < n && kept < KEPT; i++) {
		/* a return address may be that of the next line, or function */
		if (!find_object((uintptr_t)pc[i] - !(faulted && !kept), &o))
			continue;
		snprintf(path[kept], sizeof path[kept], "%.255s", o.path);
		loc[kept] = (struct site_loc){ .file = path[kept], .offset = o.pc - o.bias };
		if (kept)
			loc[kept - 1].inlined_at = &loc[kept];
		kept++;
	}
	return kept ? site_intern(&s) : 0;
}

/* Programs issue operations in loops: most stacks have been seen before. An object that is unloaded
 * may leave its addresses to another one: stale is what such a stack may be. */
enum { SEEN = 256 };
static struct seen { int n; void *pc[MOST]; uint32_t site; const char *call; } *seen[SEEN];
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t consan_stack_of(void *const *pc, int n, const char **call)
{
	const char *name;
	uint64_t hash = 0;
	struct seen *s;
	uint32_t site;

	for (int i = 0; i < n; i++)
		hash = (hash ^ (uintptr_t)pc[i]) * 0x9e3779b97f4a7c15ull;
	hash ^= hash >> 32;
	pthread_mutex_lock(&seen_lock);
	s = seen[hash % SEEN];
	if (!s)
		s = seen[hash % SEEN] = base_alloc(sizeof *s);
	if (s->n != n || memcmp(s->pc, pc, (size_t)n * sizeof *pc)) {
		s->site = resolve(pc, n, &s->call);
		s->n = n;
		memcpy(s->pc, pc, (size_t)n * sizeof *pc);
	}
	site = s->site;
	name = s->call ? s->call : "";
	pthread_mutex_unlock(&seen_lock);
	if (call)
		*call = name;
	return site;
}

uint32_t consan_host_stack(const char **call)
{
	void *pc[MOST];

	return consan_stack_of(pc, backtrace(pc, MOST), call);
}

void consan_on_stack(struct consan *c, uint32_t (*stack)(void))
{
	pthread_mutex_lock(&c->launching);
	c->stack = c->opt.show_backtrace == BACKTRACE_YES ? stack : NULL;
	pthread_mutex_unlock(&c->launching);
}
