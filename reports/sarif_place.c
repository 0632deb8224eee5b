/* sarif_place: files and places in them. Paths below the working directory are relative to
 * SRCROOT. PTX that is embedded in a program is a nested artifact, with the program as its parent. */
#include "reports/sarif.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_escaped(struct text *t, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"-._~/+@,=";

	for (; *path; path++) {
		if (strchr(plain, *path))
			text_add(t, path, 1);
		else
			text_printf(t, "%%%02X", (unsigned char)*path);
	}
}

/* Frees the text. */
static json_t *string_of(struct text *t)
{
	json_t *j = json_string(t->at);

	text_free(t);
	return j;
}

json_t *sarif_root(void)
{
	char cwd[PATH_MAX];
	struct text t = { 0 };

	text_printf(&t, "file://");
	add_escaped(&t, getcwd(cwd, sizeof cwd) ? cwd : "");
	if (t.at[t.n - 1] != '/')
		text_add(&t, "/", 1);
	return string_of(&t);
}

/* The location of a file. */
static json_t *file_location(const struct options *o, const char *file)
{
	char *path = display_path(o, file);
	struct text t = { 0 };
	json_t *at = json_object();

	text_printf(&t, *path == '/' ? "file://" : "");
	add_escaped(&t, path);
	json_object_set_new(at, "uri", string_of(&t));
	if (*path != '/')
		json_object_set_new(at, "uriBaseId", json_string("SRCROOT"));
	free(path);
	return at;
}

/* The index of the artifact with this location (taken over), which is added the first time.
 * parent: index of the file that contains it, or -1. */
static json_int_t artifact(struct sarif_places *p, json_t *location, json_int_t parent,
	const char *description)
{
	json_t *a;
	size_t i;

	json_array_foreach(p->artifacts, i, a)
		if (json_equal(json_object_get(a, "location"), location)) {
			json_decref(location);
			return (json_int_t)i;
		}
	a = json_object();
	json_object_set_new(a, "location", location);
	if (parent >= 0)
		json_object_set_new(a, "parentIndex", json_integer(parent));
	if (description)
		json_object_set_new(a, "description", sarif_message(description));
	json_array_append_new(p->artifacts, a);
	return (json_int_t)json_array_size(p->artifacts) - 1;
}

/* The program of a module "prog: module 2", or NULL. */
static const char *program_of(const struct sarif_places *p, const char *module, size_t n)
{
	for (size_t i = 0; i < p->r->process.n; i++) {
		const char *name = file_base_name(p->r->process.at[i].program);

		if (strlen(name) == n && !strncmp(name, module, n))
			return p->r->process.at[i].program;
	}
	return NULL;
}

json_t *sarif_module(struct sarif_places *p, const char *module)
{
	const char *inner = strstr(module, ": module ");
	const char *program = inner ? program_of(p, module, (size_t)(inner - module)) : NULL;
	json_t *location, *at;
	json_int_t index;
	struct text t = { 0 };

	if (!inner) {
		location = file_location(p->o, module);
	} else {
		/* the path of a nested artifact begins at its parent */
		text_printf(&t, "/");
		add_escaped(&t, inner + strlen(": "));
		text_printf(&t, ".ptx");
		location = json_object();
		json_object_set_new(location, "uri", string_of(&t));
	}
	at = json_deep_copy(location);
	index = artifact(p, location, program ? artifact(p, file_location(p->o, program), -1, NULL) : -1,
		inner ? "PTX that the program contains; cuobjdump -ptx writes it" : NULL);
	json_object_set_new(at, "index", json_integer(index));
	return at;
}

static json_t *source_location(struct sarif_places *p, const char *file)
{
	json_t *location = file_location(p->o, file), *at = json_deep_copy(location);

	json_object_set_new(at, "index", json_integer(artifact(p, location, -1, NULL)));
	return at;
}

static json_t *physical(struct sarif_places *p, const struct site *s, const struct site_loc *l)
{
	json_t *at = json_object(), *region = json_object();

	json_object_set_new(at, "artifactLocation", l ? source_location(p, l->file)
		: sarif_module(p, s->module));
	json_object_set_new(region, "startLine", json_integer(l ? l->line : s->ptx_line));
	if (l && l->col)
		json_object_set_new(region, "startColumn", json_integer(l->col));
	if (!l && s->ptx && *s->ptx)
		json_object_set_new(region, "snippet", sarif_message(s->ptx));
	json_object_set_new(at, "region", region);
	return at;
}

json_t *sarif_location(struct sarif_places *p, uint32_t site, const struct site_loc *l,
	const char *text)
{
	const struct site *s = site_get(site);
	const char *function = l && l->function && *l->function ? l->function : s->kernel;
	json_t *at = json_object(), *logical;

	if ((l && l->line) || s->ptx_line)
		json_object_set_new(at, "physicalLocation", physical(p, s, l && l->line ? l : NULL));
	if (function && *function) {
		char *name = demangle(function, NAME_BARE);

		logical = json_object();
		json_object_set_new(logical, "name", rj_string(name));
		json_object_set_new(logical, "decoratedName", rj_string(function));
		json_object_set_new(logical, "kind", json_string("function"));
		json_object_set_new(at, "logicalLocations", json_pack("[o]", logical));
		free(name);
	}
	if (text)
		json_object_set_new(at, "message", sarif_message(text));
	return at;
}
