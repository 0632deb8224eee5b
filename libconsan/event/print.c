/* event_print: one event as one line, for people (consan dump). */
#include "io.h"

#include "site.h"

#include <string.h>

static void add_place(struct text *out, uint32_t site)
{
	const char *file, *slash;
	uint32_t line;

	if (!site)
		return;
	site_where(site, &file, &line);
	slash = strrchr(file, '/');
	text_printf(out, "  %s:%u", slash ? slash + 1 : file, line);
}

static const char *space_name(uint8_t space)
{
	static const char *const name[] = {
		[SP_ANY] = "any", [SP_SHARED] = "shared", [SP_GLOBAL] = "global",
		[SP_LOCAL] = "local", [SP_CONST] = "const", [SP_PARAM] = "param",
		[SP_TMEM] = "tmem",
	};

	return space < ARRAY_SIZE(name) ? name[space] : "?";
}

static void add_addresses(struct text *out, const struct event *e)
{
	unsigned first = (unsigned)__builtin_ctz(e->lanes);

	bool mbarrier = e->kind >= EV_MB_INIT && e->kind <= EV_MB_SIGNAL;

	if (!e->lane_addr && !e->addr && !e->size && !e->stride && !mbarrier)
		return;
	text_printf(out, " addr=%#llx", (unsigned long long)event_lane_addr(e, first));
	if (!e->lane_addr && e->stride)
		text_printf(out, "%+dl", e->stride);
	for (unsigned l = first + 1; e->lane_addr && l < 32; l++)
		if (e->lanes >> l & 1)
			text_printf(out, ",%#llx", (unsigned long long)e->lane_addr[l]);
}

void event_print(const struct event *e, struct text *out)
{
	text_printf(out, "%-14s cta=%u warp=%u lanes=%08x", event_name(e->kind), e->cta,
		e->warp, e->lanes);
	if (e->space)
		text_printf(out, " %s", space_name(e->space));
	if (e->kind == EV_FAULT)
		text_printf(out, " %s (%s)", event_fault_rule(e->mode), event_fault_text(e->mode));
	else if (e->mode)
		text_printf(out, " mode=%u", e->mode);
	if (e->sem)
		text_printf(out, " %s", event_sem_name(e->sem));
	if (e->scope)
		text_printf(out, " %s", event_scope_name(e->scope));
	if (e->flags)
		text_printf(out, " flags=%#x", e->flags);
	if (e->peer != e->cta)
		text_printf(out, " peer=%u", e->peer);
	add_addresses(out, e);
#define NUMBER(id) \
	if (e->id) \
		text_printf(out, " " #id "=%llu", (unsigned long long)e->id);
	NUMBER(size)
	NUMBER(count)
	NUMBER(op)
	NUMBER(src_size)
#undef NUMBER
	if (e->tx)
		text_printf(out, " tx=%lld", (long long)e->tx);
	if (e->mask)
		text_printf(out, " mask=%08x", e->mask);
	if (e->kind == EV_BULK && e->mbar != EV_NO_MBAR)
		text_printf(out, " mbar=%u:%#x", e->mbar_peer, e->mbar);
	for (unsigned i = 0; i < e->nspans && i < 4; i++)
		text_printf(out, "%s%#x+%u", i ? "," : " spans=", e->spans[i].addr,
			e->spans[i].bytes);
	if (e->nspans > 4)
		text_printf(out, ",...(%u)", e->nspans);
	for (unsigned i = 0; i < e->ngspans && i < 4; i++)
		text_printf(out, "%s%#llx+%llu", i ? "," : " gspans=",
			(unsigned long long)e->gspans[i].addr,
			(unsigned long long)e->gspans[i].bytes);
	if (e->nregs_d || e->nregs_a)
		text_printf(out, " regs=%u+%u", e->nregs_d, e->nregs_a);
	if (e->text && *e->text)
		text_printf(out, " \"%s\"", e->text);
	add_place(out, e->site);
}
