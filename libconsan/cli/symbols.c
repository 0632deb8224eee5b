/* symbols: functions and lines of the host's call stacks, by libdw from the objects' own debug
 * information. */
#include "symbols.h"

#include "libconsan/event/event.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRAMES = 64 };

struct object {
	char *path;
	Dwfl *dwfl;             /* NULL: cannot be read */
	Dwfl_Module *module;
};
struct known { uint32_t raw, resolved; };
struct symbols {
	VEC(struct object) object;
	VEC(struct known) known;
	VEC(char *) name;       /* function names without template arguments */
};

struct symbols *symbols_open(void)
{
	/* no report asks a server for debug information */
	unsetenv("DEBUGINFOD_URLS");
	return base_alloc(sizeof(struct symbols));
}

void symbols_close(struct symbols *s)
{
	for (size_t i = 0; i < s->object.n; i++) {
		if (s->object.at[i].dwfl)
			dwfl_end(s->object.at[i].dwfl);
		free(s->object.at[i].path);
	}
	vec_free(&s->object);
	vec_free(&s->known);
	for (size_t i = 0; i < s->name.n; i++)
		free(s->name.at[i]);
	vec_free(&s->name);
	free(s);
}

/* The program may have put something else in the place of its file: a pipe would be waited for. */
static int open_object(const char *path)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	return -1;
}

static struct object *object_of(struct symbols *s, const char *path)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	struct object o = { .path = NULL };
	int fd;

	for (size_t i = 0; i < s->object.n; i++)
		if (!strcmp(s->object.at[i].path, path))
			return &s->object.at[i];
	o.path = base_strdup(path);
	fd = open_object(path);
	o.dwfl = fd < 0 ? NULL : dwfl_begin(&callbacks);
	if (o.dwfl) {
		o.module = dwfl_report_offline(o.dwfl, path, path, fd);
		dwfl_report_end(o.dwfl, NULL, NULL);
	}
	if (fd >= 0 && !o.module)
		close(fd); /* else the module has it */
	vec_push(&s->object, o);
	return &s->object.at[s->object.n - 1];
}

void symbols_folders(struct symbols *s, const char *program, void (*each)(const char *folder))
{
	const struct object *o = object_of(s, program);
	char *folder = realpath(program, NULL), *slash = folder ? strrchr(folder, '/') : NULL;
	Dwarf_Die *cu = NULL;
	Dwarf_Attribute a;
	Dwarf_Addr bias;

	if (slash) {
		*slash = 0;
		each(folder);
	}
	free(folder);
	while (o->module && (cu = dwfl_module_nextcu(o->module, cu, &bias)))
		if (dwarf_attr(cu, DW_AT_comp_dir, &a) && dwarf_formstring(&a))
			each(dwarf_formstring(&a));
}

/* Frames of a stack, innermost first. */
struct frames {
	struct site_loc loc[FRAMES];
	unsigned n;
};

static void add(struct frames *f, struct site_loc loc)
{
	if (f->n < FRAMES)
		f->loc[f->n++] = loc;
}

static const char *name_of(struct symbols *s, Dwarf_Die *die)
{
	static const unsigned names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	const char *name = dwarf_diename(die);
	Dwarf_Attribute a;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (dwarf_attr_integrate(die, names[i], &a))
			return dwarf_formstring(&a);
	if (!name || !strchr(name, '<'))
		return name;
	vec_push(&s->name, drop_template_arguments(name));
	return s->name.at[s->name.n - 1];
}

static uint32_t number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute a;
	Dwarf_Word n;

	return dwarf_attr(die, name, &a) && !dwarf_formudata(&a, &n) ? (uint32_t)n : 0;
}

static const char *call_file(Dwarf_Die *cu, Dwarf_Die *inlined)
{
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(cu, &files, &n))
		return NULL;
	return dwarf_filesrc(files, number(inlined, DW_AT_call_file), NULL, NULL);
}

/* The scopes around an address, innermost first: those of the code. Those that dwarf_getscopes() gives
 * behind the innermost inlined function are of its definition. */
static int scopes_at(Dwarf_Die *cu, Dwarf_Addr address, Dwarf_Die **scope)
{
	Dwarf_Die inner;

	if (!cu || dwarf_getscopes(cu, address, scope) <= 0)
		return 0;
	inner = **scope;
	free(*scope);
	*scope = NULL;
	return dwarf_getscopes_die(&inner, scope);
}

/* The compilation unit of the code at an address. libdw finds it by .debug_aranges, which clang does not
 * write. */
static Dwarf_Die *unit_at(Dwfl_Module *m, Dwarf_Addr address, Dwarf_Addr *bias)
{
	Dwarf_Die *cu = dwfl_module_addrdie(m, address, bias);

	if (cu)
		return cu;
	while ((cu = dwfl_module_nextcu(m, cu, bias)) && dwarf_haspc(cu, address - *bias) <= 0)
		;
	return cu;
}

/* Adds the frame at an address, and those of the functions that it is inlined in. */
static bool add_lines(struct symbols *s, struct frames *f, Dwfl_Module *m, Dwarf_Addr address, const char *symbol)
{
	Dwarf_Addr bias = 0;
	Dwarf_Die *cu = unit_at(m, address, &bias), *scope = NULL;
	Dwarf_Line *line = cu ? dwarf_getsrc_die(cu, address - bias) : NULL;
	int nline = 0, col = 0, nscope;
	struct site_loc at = { .file = line ? dwarf_linesrc(line, NULL, NULL) : NULL };

	if (!at.file || dwarf_lineno(line, &nline))
		return false;
	dwarf_linecol(line, &col);
	at.line = (uint32_t)nline;
	at.col = (uint32_t)col;
	nscope = scopes_at(cu, address - bias, &scope);
	for (int i = 0; i < nscope; i++) {
		const int tag = dwarf_tag(&scope[i]);

		if (tag == DW_TAG_subprogram)
			break;
		if (tag != DW_TAG_inlined_subroutine || !call_file(cu, &scope[i]))
			continue;
		at.function = name_of(s, &scope[i]);
		add(f, at);
		at = (struct site_loc){ .file = call_file(cu, &scope[i]),
			.line = number(&scope[i], DW_AT_call_line), .col = number(&scope[i], DW_AT_call_column) };
	}
	at.function = symbol;
	add(f, at);
	free(scope);
	return true;
}

static void add_frame(struct symbols *s, struct frames *f, const struct site_loc *raw)
{
	struct object *o = object_of(s, raw->file);
	struct site_loc plain = *raw;
	GElf_Addr bias;
	Dwarf_Addr address;
	const char *symbol;

	plain.inlined_at = NULL;
	if (!o->module || !dwfl_module_getelf(o->module, &bias)) {
		add(f, plain);
		return;
	}
	address = raw->offset + bias;
	symbol = dwfl_module_addrname(o->module, address);
	if (add_lines(s, f, o->module, address, symbol))
		return;
	plain.function = symbol;
	add(f, plain);
}

/* A function of the CUDA runtime that is linked statically, or one of its header, such as the template
 * cudaLaunchKernelEx(). */
static bool is_runtime(const struct site_loc *l)
{
	static const char *const prefix[] = { "libcudart_static_", "_ZN6cudart", "__cudart", "cuda" };
	static const char header[] = "/cuda_runtime.h";
	const size_t n = l->file ? strlen(l->file) : 0;

	if (l->line && n > strlen(header) && !strcmp(l->file + n - strlen(header), header))
		return true;

	for (size_t i = 0; l->function && !l->line && i < ARRAY_SIZE(prefix); i++)
		if (!strncmp(l->function, prefix[i], strlen(prefix[i])))
			return true;
	return false;
}

/* nvcc's stub of a kernel: the host function of the kernel's name calls __device_stub__NAME(), for a
 * template through __wrapper__device_stub_NAME(); the stub may call a helper. The launch is where the host
 * function was called. */
static void drop_inner(struct frames *f)
{
	const char *stub = NULL, *wrapper = NULL;
	unsigned n = 0;

	while (n < f->n && is_runtime(&f->loc[n]))
		n++;
	for (unsigned i = n; i < f->n && f->loc[i].function; i++) {
		const char *name = f->loc[i].function;

		if (strstr(name, "__device_stub__"))
			stub = name;
		else if (strstr(name, "__wrapper__device_stub_"))
			wrapper = name;
		else if (!strstr(name, "__cudaLaunchKernel_helper") && !(stub && strstr(stub, name))
				&& !(wrapper && strstr(wrapper, name)))
			break;
		if (stub)
			n = i + 1;
	}
	if (n == f->n)
		return;
	memmove(f->loc, f->loc + n, (f->n - n) * sizeof *f->loc);
	f->n -= n;
}

/* Below main() is the start of every program. */
static bool is_main(const struct site_loc *l)
{
	return l->function && !strcmp(l->function, "main");
}

/* Of a main() that ends by a jump to what it calls, there is no frame. */
static bool is_start(const struct site_loc *l)
{
	return l->function && (!strncmp(l->function, "__libc_start", strlen("__libc_start"))
		|| !strcmp(l->function, "_start"));
}

uint32_t symbols_resolve(void *user, uint32_t raw)
{
	struct symbols *s = user;
	struct known known = { .raw = raw };
	struct site site = { .loc = NULL };
	struct frames f = { .n = 0 };

	for (size_t i = 0; i < s->known.n; i++)
		if (s->known.at[i].raw == raw)
			return s->known.at[i].resolved;
	for (const struct site_loc *l = site_get(raw)->loc; l; l = l->inlined_at) {
		if (l->line) { /* Python */
			add(&f, (struct site_loc){ .file = l->file, .line = l->line, .function = l->function });
			continue;
		}
		if (l->offset)
			add_frame(s, &f, l);
		if (f.n && is_start(&f.loc[f.n - 1])) {
			f.n--;
			break;
		}
		if (f.n && is_main(&f.loc[f.n - 1]))
			break;
	}
	drop_inner(&f);
	if (!f.n)
		return raw;
	for (unsigned i = 0; i + 1 < f.n; i++)
		f.loc[i].inlined_at = &f.loc[i + 1];
	site.loc = f.loc;
	known.resolved = site_intern(&site);
	vec_push(&s->known, known);
	return known.resolved;
}
