/* nvjitlink: links PTX, LTO-IR and machine code. With -lto the linker emits either a cubin or, with
 * -ptx, PTX. So a second linker gets the same inputs and -ptx: LTO-IR becomes the same PTX as
 * inside of the first one. Inputs that are PTX or machine code already are joined to it. */
#include "makers.h"
#include "objects.h"

#include "libconsan/origin/origin.h"
#include "libconsan/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

enum { INPUT_LIBRARY = 6 }; /* NVJITLINK_INPUT_LIBRARY */

struct link {
	const struct maker *maker;
	void *twin;                /* the linker to PTX; NULL: there is no -lto */
	bool for_twin;             /* it has an input */
	struct parts parts;
};

static struct objects links = OBJECTS;

typedef int create_call(void **link, uint32_t n, const char **options);
typedef int destroy_call(void **link);
typedef int add_call(void *link, int type, const void *data, size_t n, const char *name);
typedef int add_file_call(void *link, int type, const char *path);
typedef int size_call(void *link, size_t *n);
typedef int get_call(void *link, void *to);

static bool has_option(uint32_t n, const char **options, const char *option)
{
	for (uint32_t k = 0; k < n; k++)
		if (!strcmp(options[k], option))
			return true;
	return false;
}

static void *new_twin(create_call *create, uint32_t n, const char **options)
{
	const char **more = base_alloc((n + 1) * sizeof *more);
	void *twin = NULL;

	memcpy(more, options, n * sizeof *more);
	more[n] = "-ptx";
	if (create(&twin, n + 1, more))
		twin = NULL;
	free(more);
	return twin;
}

int on_nvJitLinkCreate(const struct maker *m, void **link, uint32_t n, const char **options)
{
	create_call *create = (create_call *)maker_call(m, "nvJitLinkCreate");
	int result = create ? create(link, n, options) : MAKER_FAILED;
	struct link *l;

	if (result || has_option(n, options, "-ptx"))
		return result;
	l = base_alloc(sizeof *l);
	l->maker = m;
	if (has_option(n, options, "-lto")) {
		l->twin = new_twin(create, n, options);
		l->parts.lost = !l->twin;
	}
	objects_add(&links, *link, l);
	return result;
}

int on_nvJitLinkDestroy(const struct maker *m, void **link)
{
	destroy_call *destroy = (destroy_call *)maker_call(m, "nvJitLinkDestroy");
	struct link *l = link ? objects_take(&links, *link) : NULL;

	if (l && l->twin && destroy)
		destroy(&l->twin);
	if (l)
		parts_free(&l->parts);
	free(l);
	return destroy ? destroy(link) : MAKER_FAILED;
}

static void note_input(struct link *l, int type, const void *data, size_t n, const char *name)
{
	add_call *add = (add_call *)maker_call(l->maker, "nvJitLinkAddData");
	char suffix;

	if (type == INPUT_LIBRARY || fatbin_ptx_target(data, n, &suffix) || cubin_size(data, n))
		parts_add(&l->parts, data, n, 0, 0);
	else if (!l->twin || !add || add(l->twin, type, data, n, name))
		l->parts.lost = true;
	else
		l->for_twin = true;
}

int on_nvJitLinkAddData(const struct maker *m, void *link, int type, const void *data, size_t n,
	const char *name)
{
	add_call *add = (add_call *)maker_call(m, "nvJitLinkAddData");
	int result = add ? add(link, type, data, n, name) : MAKER_FAILED;
	struct link *l = objects_find(&links, link);

	if (!result && l)
		note_input(l, type, data, n, name);
	return result;
}

int on_nvJitLinkAddFile(const struct maker *m, void *link, int type, const char *path)
{
	add_file_call *add = (add_file_call *)maker_call(m, "nvJitLinkAddFile");
	int result = add ? add(link, type, path) : MAKER_FAILED;
	struct link *l = objects_find(&links, link);
	struct text data = { 0 };
	struct consan_err e = { 0 };

	if (!result && l) {
		if (text_read(&data, path, &e))
			note_input(l, type, data.at, data.n, path);
		else
			l->parts.lost = true;
		text_free(&data);
	}
	return result;
}

/* Adds the PTX that the twin makes of its inputs. */
static void link_twin(struct link *l)
{
	int (*complete)(void *) = (__typeof__(complete))maker_call(l->maker, "nvJitLinkComplete");
	size_call *size = (size_call *)maker_call(l->maker, "nvJitLinkGetLinkedPtxSize");
	get_call *get = (get_call *)maker_call(l->maker, "nvJitLinkGetLinkedPtx");
	size_t n = 0;
	char *ptx;

	l->for_twin = false;
	l->parts.lost = true;
	if (!complete || !size || !get || complete(l->twin) || size(l->twin, &n) || !n)
		return;
	ptx = base_alloc(n + 1);
	l->parts.lost = get(l->twin, ptx) != 0;
	if (!l->parts.lost)
		parts_add_ptx(&l->parts, ptx, n);
	free(ptx);
}

int on_nvJitLinkGetLinkedCubin(const struct maker *m, void *link, void *cubin)
{
	get_call *get = (get_call *)maker_call(m, "nvJitLinkGetLinkedCubin");
	size_call *size = (size_call *)maker_call(m, "nvJitLinkGetLinkedCubinSize");
	int result = get ? get(link, cubin) : MAKER_FAILED;
	struct link *l = objects_find(&links, link);
	size_t bytes = 0;

	if (result || !l || l->parts.lost || !size || size(link, &bytes))
		return result;
	if (l->for_twin)
		link_twin(l);
	parts_put(&l->parts, cubin, bytes);
	return result;
}
