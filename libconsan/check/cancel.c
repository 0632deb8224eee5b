/* cancel: clusterlaunchcontrol. The response of try_cancel is a bulk load into shared memory
 * (async.c). Here are the rules of its contents: what must not follow a failed request. */
#include "internal.h"
#include "libconsan/finding/rule_codes.h"

/* G12: no thread of the CTA may ask again after one has seen a failure. */
void on_try_cancel(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct cta *k = &c->cta[w->cta];
	struct finding *f = k->refused.site ? report_new(c, CS505, rule_severity(CS505), e->site,
		k->refused.site) : NULL;

	if (f) {
		report_side(c, f, w->index, only_lane(e->lanes), e->site, "clusterlaunchcontrol.try_cancel");
		report_side(c, f, k->refused.warp, k->refused.lane, k->refused.site, "query_cancel, false");
		report_edge(f, "the CTA has seen that an earlier request failed");
		report_send(c, f);
	}
	on_bulk(c, e);
}

/* G13 */
static void check_ctaid(struct cluster *c, const struct event *e, struct warp *w)
{
	struct finding *f = report_new(c, CS506, rule_severity(CS506), e->site, 0);

	if (!f)
		return;
	report_side(c, f, w->index, __builtin_ctz(e->query_cancel.failed), e->site,
		"query_cancel.get_first_ctaid");
	report_edge(f, "the response says that no cluster was canceled");
	report_send(c, f);
}

void on_query_cancel(struct cluster *c, const struct event *e)
{
	const uint32_t failed = e->query_cancel.failed;
	struct warp *w = warp_of(c, e);
	struct cta *k = &c->cta[w->cta];

	if (!failed)
		return;
	if (e->query_cancel.first_ctaid)
		check_ctaid(c, e, w);
	else if (!k->refused.site) {
		k->refused.site = e->site;
		k->refused.warp = (uint16_t)w->index;
		k->refused.lane = (int8_t)__builtin_ctz(failed);
	}
}
