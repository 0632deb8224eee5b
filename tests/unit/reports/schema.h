/* schema: checks a JSON document against a JSON Schema: the keywords of draft 7 that our
 * schemas use. An unknown keyword fails, so that no part of a schema is ignored. */
#ifndef CONSAN_TESTS_SCHEMA_H
#define CONSAN_TESTS_SCHEMA_H

#include "libconsan/base/base.h"

#include <jansson.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct schema {
	const json_t *root;
	char why[512];          /* "" while no error is found */
};

static bool schema_holds(struct schema *s, const json_t *rule, const json_t *v, const char *path);

static bool schema_fails(struct schema *s, const char *path, const char *what, const char *detail)
{
	if (!*s->why)
		snprintf(s->why, sizeof s->why, "%s: %s %s", path, what, detail ? detail : "");
	return false;
}

static bool schema_is_type(const char *type, const json_t *v)
{
	return (!strcmp(type, "object") && json_is_object(v))
		|| (!strcmp(type, "array") && json_is_array(v))
		|| (!strcmp(type, "string") && json_is_string(v))
		|| (!strcmp(type, "integer") && json_is_integer(v))
		|| (!strcmp(type, "number") && json_is_number(v))
		|| (!strcmp(type, "boolean") && json_is_boolean(v))
		|| (!strcmp(type, "null") && json_is_null(v));
}

static bool schema_type(const json_t *types, const json_t *v)
{
	if (json_is_string(types))
		return schema_is_type(json_string_value(types), v);
	for (size_t i = 0; i < json_array_size(types); i++)
		if (schema_is_type(json_string_value(json_array_get(types, i)), v))
			return true;
	return false;
}

static bool schema_matches(const char *pattern, const char *text)
{
	regex_t re;
	bool match;

	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB))
		return false;
	match = !regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return match;
}

static bool schema_object(struct schema *s, const json_t *rule, const json_t *v, const char *path)
{
	const json_t *properties = json_object_get(rule, "properties");
	const json_t *more = json_object_get(rule, "additionalProperties");
	const json_t *required = json_object_get(rule, "required");
	const char *key;
	json_t *at;

	for (size_t i = 0; i < json_array_size(required); i++) {
		key = json_string_value(json_array_get(required, i));
		if (!json_object_get(v, key))
			return schema_fails(s, path, "lacks", key);
	}
	json_object_foreach((json_t *)v, key, at) {
		const json_t *own = json_object_get(properties, key);
		char deeper[256];

		snprintf(deeper, sizeof deeper, "%.180s.%.60s", path, key);
		if (!own && json_is_false(more))
			return schema_fails(s, deeper, "is not in the schema", NULL);
		if (!own && json_is_object(more))
			own = more;
		if (own && !schema_holds(s, own, at, deeper))
			return false;
	}
	return true;
}

static bool schema_keyword(struct schema *s, const char *word, const json_t *x, const json_t *rule,
	const json_t *v, const char *path)
{
	if (!strcmp(word, "type"))
		return schema_type(x, v) || schema_fails(s, path, "has another type than", json_string_value(x));
	if (!strcmp(word, "const"))
		return json_equal(x, v) || schema_fails(s, path, "is not the constant", NULL);
	if (!strcmp(word, "enum")) {
		for (size_t i = 0; i < json_array_size(x); i++)
			if (json_equal(json_array_get(x, i), v))
				return true;
		return schema_fails(s, path, "is none of the values", json_string_value(v));
	}
	if (!strcmp(word, "minimum"))
		return !json_is_number(v) || json_number_value(v) >= json_number_value(x)
			|| schema_fails(s, path, "is too small", NULL);
	if (!strcmp(word, "maximum"))
		return !json_is_number(v) || json_number_value(v) <= json_number_value(x)
			|| schema_fails(s, path, "is too large", NULL);
	if (!strcmp(word, "minItems"))
		return !json_is_array(v) || json_array_size(v) >= (size_t)json_integer_value(x)
			|| schema_fails(s, path, "has too few items", NULL);
	if (!strcmp(word, "maxItems"))
		return !json_is_array(v) || json_array_size(v) <= (size_t)json_integer_value(x)
			|| schema_fails(s, path, "has too many items", NULL);
	if (!strcmp(word, "minLength"))
		return !json_is_string(v) || json_string_length(v) >= (size_t)json_integer_value(x)
			|| schema_fails(s, path, "is too short", NULL);
	if (!strcmp(word, "pattern"))
		return !json_is_string(v) || schema_matches(json_string_value(x), json_string_value(v))
			|| schema_fails(s, path, "does not match", json_string_value(x));
	if (!strcmp(word, "items")) {
		for (size_t i = 0; i < json_array_size(v); i++) {
			char deeper[256];

			snprintf(deeper, sizeof deeper, "%.220s[%zu]", path, i);
			if (!schema_holds(s, x, json_array_get(v, i), deeper))
				return false;
		}
		return true;
	}
	if (!strcmp(word, "properties"))
		return !json_is_object(v) || schema_object(s, rule, v, path);
	if (!strcmp(word, "additionalProperties") || !strcmp(word, "required"))
		return json_object_get(rule, "properties") || !json_is_object(v)
			|| schema_object(s, rule, v, path);
	if (!strcmp(word, "title") || !strcmp(word, "description") || !strcmp(word, "definitions")
			|| !strcmp(word, "$schema"))
		return true;
	return schema_fails(s, path, "the schema has the unknown keyword", word);
}

static bool schema_holds(struct schema *s, const json_t *rule, const json_t *v, const char *path)
{
	const char *ref = json_string_value(json_object_get(rule, "$ref")), *word;
	json_t *x;

	if (ref) {
		if (strncmp(ref, "#/definitions/", 14))
			return schema_fails(s, path, "bad reference", ref);
		return schema_holds(s, json_object_get(json_object_get(s->root, "definitions"), ref + 14),
			v, path);
	}
	if (!rule)
		return schema_fails(s, path, "no such definition", NULL);
	json_object_foreach((json_t *)rule, word, x)
		if (!schema_keyword(s, word, x, rule, v, path))
			return false;
	return true;
}

/* The first error, or "" if there is none. free() it. */
static inline char *schema_check_value(const json_t *root, const json_t *v)
{
	struct schema s = { .root = root };

	schema_holds(&s, root, v, "");
	return base_strdup(s.why);
}

static inline json_t *schema_load(const char *path, char **bad)
{
	json_error_t why;
	json_t *v = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	struct text t = { 0 };

	if (v)
		return v;
	text_printf(&t, "%s:%d: %s", path, why.line, why.text);
	*bad = t.at;
	return NULL;
}

/* As schema_check_value(), for two files. */
static inline char *schema_check(const char *schema, const char *document)
{
	char *bad = NULL;
	json_t *root = schema_load(schema, &bad), *v = root ? schema_load(document, &bad) : NULL;

	if (v)
		bad = schema_check_value(root, v);
	json_decref(v);
	json_decref(root);
	return bad;
}

#endif
