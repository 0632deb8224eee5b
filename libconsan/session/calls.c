/* calls: findings about calls of the CUDA API that failed. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

bool consan_call_implicit(uint32_t stack)
{
	static const char *const library[] = { "libcu", "libnv", "libnccl" };
	const struct site_loc *l = site_get(stack)->loc;
	const char *file = l ? l->file : "", *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;

	for (size_t i = 0; i < ARRAY_SIZE(library); i++)
		if (!strncmp(base, library[i], strlen(library[i])))
			return true;
	return false;
}

bool consan_reports_calls(struct consan *c, bool implicit)
{
	return c->opt.report_api_errors == API_ERRORS_ALL
		|| (c->opt.report_api_errors == API_ERRORS_EXPLICIT && !implicit);
}

void consan_call_failed(struct consan *c, const struct consan_call *call)
{
	const unsigned rule = rule_by_code(call->rule);
	struct finding f = { .rule = rule, .severity = rule_get(rule)->severity,
		.nsides = 1, .seen = 1, .side[0] = { .site = call->stack, .host = true, .lane = -1 } };

	finding_set_kernel(f.kernel, call->kernel);
	snprintf(f.side[0].what, sizeof f.side[0].what, "%s", call->name);
	snprintf(f.edge, sizeof f.edge, "%s", call->error);
	snprintf(f.hint, sizeof f.hint, "%s", call->reason);
	session_take(c, &f);
}

void consan_deadlock(struct consan *c, const char *code, const struct consan_stuck *stuck, size_t n,
	const char *waits, const char *hint)
{
	const unsigned rule = rule_by_code(code);
	struct finding f = { .rule = rule, .severity = rule_get(rule)->severity, .seen = 1 };

	f.nsides = n < 2 ? (unsigned)n : 2;
	finding_set_kernel(f.kernel, n ? stuck[0].kernel : "");
	for (unsigned i = 0; i < f.nsides; i++) {
		struct finding_side *s = &f.side[i];

		*s = (struct finding_side){ .site = stuck[i].stack, .host = true, .lane = -1 };
		snprintf(s->what, sizeof s->what, "wait");
		snprintf(s->actor, sizeof s->actor, "%s", stuck[i].actor);
	}
	snprintf(f.edge, sizeof f.edge, "%s", waits);
	snprintf(f.hint, sizeof f.hint, "%s", hint);
	session_take(c, &f);
}

void consan_call_unasked(struct consan *c, const void *thread, uint32_t stack)
{
	pthread_mutex_lock(&c->lock);
	vec_push(&c->unasked, ((struct unasked_call){ thread, stack }));
	pthread_mutex_unlock(&c->lock);
}

void consan_call_asked(struct consan *c, const void *thread)
{
	size_t kept = 0;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->unasked.n; i++)
		if (c->unasked.at[i].thread != thread)
			c->unasked.at[kept++] = c->unasked.at[i];
	c->unasked.n = kept;
	pthread_mutex_unlock(&c->lock);
}

static void ignored(struct consan *c, uint32_t stack)
{
	static const char never[] = "no later call of cudaGetLastError() asked for this error";

	for (size_t i = 0; i < c->findings.n; i++) {
		struct finding *f = &c->findings.at[i]->f;
		const size_t n = strlen(f->hint);

		if (!f->side[0].host || f->side[0].site != stack || strstr(f->hint, never))
			continue;
		snprintf(f->hint + n, sizeof f->hint - n, "%s%s", n ? "; " : "", never);
		c->findings.at[i]->recorded = 0; /* consan_close() writes it again */
	}
}

void session_end_calls(struct consan *c)
{
	for (size_t i = 0; i < c->unasked.n; i++)
		ignored(c, c->unasked.at[i].stack);
	vec_free(&c->unasked);
}
