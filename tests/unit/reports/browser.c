/* browser: the page in a browser, if one is installed: filters, state in the address, bodies that
 * are rendered when they are needed, timelines, and accessibility if axe-core is installed, too. */
#include "libconsan/finding/rule_codes.h"
#include "reports/reports.h"
#include "history_sample.h"
#include "tests/common/find.h"
#include "tests/common/limits.h"
#include "tests/common/shell.h"

#include <criterion/criterion.h>
#include <unistd.h>

static char dir[] = "/tmp/consan-browser-XXXXXX";
static bool installed;

static void enter(void)
{
	cr_assert_not_null(mkdtemp(dir));
	installed = !shell("chromium --version 2>&1");
	if (!installed)
		fprintf(stderr, "browser: chromium is not installed: the page is not tested in a browser "
			"(apt install chromium)\n");
}

static void leave(void)
{
	cr_assert_eq(shell("rm -r %s", dir), 0);
}

TestSuite(browser, .init = enter, .fini = leave, .timeout = TEST_LIMIT);

/* A race, a hang and a note; then n more races with histories of `steps` steps. */
static struct results sample(unsigned n, uint32_t steps)
{
	struct results r = { 0 };

	sample_three(&r);
	for (unsigned i = 0; i < n; i++) {
		struct finding f = sample_race("many.cu", i + 1);

		snprintf(f.kernel, sizeof f.kernel, "kernel%u", i % 7);
		f.rule = CS106;
		if (steps)
			f.history = sample_history(steps);
		results_add_finding(&r, &f);
		finding_free(&f);
	}
	results_finish(&r);
	return r;
}

/* Writes the page with a script that runs after it is loaded: `visit` is the body of an async
 * function that pushes what it sees to `saw`. `more`: a file with a further script, or NULL. */
static void write_page(const struct results *r, const char *visit, const char *more)
{
	char path[128];
	struct options o;
	FILE *out;

	snprintf(path, sizeof path, "%s/x.html", dir);
	out = fopen(path, "w");
	options_init(&o);
	report_html(r, &o, out);
	options_free(&o);
	if (more) {
		char *s = NULL;
		size_t size = 0;
		FILE *in = fopen(more, "r");

		fputs("<script>", out);
		while (in && getline(&s, &size, in) > 0)
			fputs(s, out);
		fputs("</script>", out);
		free(s);
		if (in)
			fclose(in);
	}
	fprintf(out, "<script>addEventListener('load', async () => {\n"
		"const saw = [], by = id => document.getElementById(id);\n"
		"const wait = ms => new Promise(done => setTimeout(done, ms));\n"
		"const shown = () => [...document.querySelectorAll('article')]"
		".filter(a => !a.hidden).length;\n"
		"const set = async (x, v) => { x.value = v;\n"
		"  x.dispatchEvent(new Event('input', { bubbles: true })); await wait(300); };\n"
		"const key = (k, at) => (at || window).dispatchEvent(new KeyboardEvent('keydown', "
		"{ key: k, bubbles: true }));\n"
		"try { %s } catch (e) { saw.push(e); }\n"
		"document.title = 'saw ' + saw.join(' ') + ' end';\n});</script>", visit);
	fclose(out);
}

/* Opens the page with this hash, and expects what the script saw. */
static void expect(const char *hash, const char *want)
{
	const char *title;

	shell("HOME=%s " LIMITED "chromium --headless=new --no-sandbox --disable-gpu "
		"--user-data-dir=%s/profile --enable-logging=stderr --window-size=1200,900 "
		"--virtual-time-budget=20000 --dump-dom 'file://%s/x.html%s' 2>&1", dir, dir, dir, hash);
	title = strstr(output, "<title>saw ");
	cr_assert_not_null(title, "%.400s", strstr(output, "<title>") ? strstr(output, "<title>") : output);
	title += strlen("<title>saw ");
	cr_expect(!strncmp(title, want, strlen(want)) && !strncmp(title + strlen(want), " end", 4),
		"%.*s, not %s", (int)(strstr(title, " end") - title), title, want);
	cr_expect_not(has(output, ":CONSOLE"), "%.600s", strstr(output, ":CONSOLE"));
}

Test(browser, filters_and_keys)
{
	struct results r = sample(0, 0);

	if (!installed)
		return;
	write_page(&r, "saw.push(shown());\n"
		"await set(by('rule'), 'CS703'); saw.push(shown()); await set(by('rule'), '');\n"
		"await set(by('search'), 'ring.cu:55'); saw.push(shown());\n"
		"await set(by('search'), 'nowhere'); saw.push(shown());\n"
		"await set(by('search'), '');\n"
		"const box = document.querySelector('[name=sev][value=note]'); box.click();\n"
		"await wait(50); saw.push(shown()); box.click();\n"
		"await set(by('kernel'), '1'); saw.push(shown()); await set(by('kernel'), '');\n"
		"key('j'); saw.push(location.hash); key('j'); saw.push(location.hash);\n"
		"key('k'); saw.push(location.hash, document.activeElement.tagName);\n", NULL);
	expect("", "3 1 1 0 2 1 #f1 #f2 #f1 ARTICLE");
	results_free(&r);
}

/* What the reader chose is in the address, and a page that is opened with it shows it. */
Test(browser, state_is_in_the_address)
{
	struct results r = sample(0, 0);

	if (!installed)
		return;
	write_page(&r, "await set(by('search'), 'ring.cu 55'); await set(by('rule'), 'CS703');\n"
		"by('theme').click(); saw.push(location.hash);\n"
		"location.hash = '#f1'; await wait(50); saw.push(location.hash, shown());\n", NULL);
	/* #f1 is filtered out: a link to it resets the filters */
	expect("", "#&amp;q=ring.cu%2055&amp;rule=CS703&amp;theme=dark #f1&amp;theme=dark 3");
	write_page(&r, "saw.push(shown(), by('search').value, document.documentElement.dataset.theme,\n"
		"document.querySelector('article:not([hidden])').dataset.r,\n"
		"document.querySelector('[name=sev][value=note]').checked);\n", NULL);
	expect("#&q=ring.cu%2055&hide=note&theme=dark", "1 ring.cu 55 dark CS703 false");
	results_free(&r);
}

/* A rule's code leads to what the rule says. */
Test(browser, rules_are_explained)
{
	struct results r = sample(0, 0);

	if (!installed)
		return;
	write_page(&r, "const rule = by('CS801'); saw.push(rule.open);\n"
		"document.querySelector('article[data-r=CS801] a.code').click(); await wait(50);\n"
		"saw.push(rule.open, rule.textContent.includes('D13'));\n", NULL);
	expect("", "false true true");
	results_free(&r);
}

Test(browser, timeline_zoom_and_search)
{
	struct results r = sample(0, 0);

	if (!installed)
		return;
	write_page(&r, "const t = document.querySelector('.timeline'), svg = t.querySelector('svg.tl');\n"
		"const pane = t.querySelector('.scroll.end'), width = svg.clientWidth;\n"
		"const names = t.querySelector('svg.names');\n"
		"const box = t.querySelector('input'), hits = t.querySelector('output');\n"
		"t.querySelector('[data-zoom-to=in]').click(); saw.push(svg.clientWidth > width);\n"
		"key('0', pane); saw.push(svg.clientWidth === width);\n"
		"t.querySelector('[data-zoom-to=fit]').click();\n"
		"saw.push(pane.scrollWidth <= pane.clientWidth, svg.clientHeight === names.clientHeight);\n"
		"await set(box, 'full'); const full = t.querySelectorAll('use.match').length;\n"
		"saw.push(full > 0, hits.value === full + ' steps');\n"
		"key('Enter', box); saw.push(t.querySelectorAll('use.at').length, hits.value[0]);\n"
		"await set(box, 'warp 1'); saw.push(t.querySelectorAll('.names .match').length);\n"
		"await set(box, ''); saw.push(t.querySelectorAll('.found, .match').length);\n", NULL);
	expect("", "true true true true true true 1 1 1 0");
	results_free(&r);
}

/* The later side is far from the end, where the timeline begins: it is scrolled to. */
Test(browser, timeline_shows_the_finding)
{
	struct results r = { 0 };
	struct finding hang = sample_hang();

	if (!installed)
		return;
	hang.history = sample_history(60);
	hang.history->side[0] = 8;
	hang.history->side[1] = -1;
	results_add_finding(&r, &hang);
	results_finish(&r);
	write_page(&r, "document.querySelector('.timeline').scrollIntoView();\n"
		"const pane = document.querySelector('.scroll.end'), band = pane.querySelector('.band');\n"
		"const seen = () => { const p = pane.getBoundingClientRect(), b = band.getBoundingClientRect();\n"
		"  return b.left >= p.left && b.right <= p.right; };\n"
		"for (let i = 0; i < 150 && !seen(); i++) await wait(100);\n"
		"saw.push(pane.scrollWidth > pane.clientWidth, seen());\n", NULL);
	expect("", "true true");
	finding_free(&hang);
	results_free(&r);
}

/* Consequences are folded, and unfolded if only they match, or a link leads to one. */
Test(browser, consequences)
{
	struct results r = sample(3, 0);

	if (!installed)
		return;
	for (size_t i = 0; i < r.finding.n; i++) { /* #1 with #2 to #4, #5, #6 */
		r.finding.at[i].rank = i < 4 ? (uint32_t)i : 0;
		r.finding.at[i].group = i < 4 ? 0 : (uint32_t)i - 3;
	}
	write_page(&r, "const g = document.querySelector('.group');\n"
		"const more = g.querySelector('details.consequences');\n"
		"saw.push(document.querySelectorAll('.group').length, more.open,\n"
		"document.querySelectorAll('.toc a[href^=\"#f\"]').length);\n"
		"await set(by('search'), 'many.cu:2'); saw.push(shown(), more.open, by('f1').hidden);\n"
		"await set(by('search'), ''); more.open = false;\n"
		"location.hash = '#f3'; await wait(50); saw.push(more.open,\n"
		"document.querySelector('.toc [aria-current]').getAttribute('href'));\n", NULL);
	expect("", "1 false 3 1 true true true #f1");
	results_free(&r);
}

/* Headings of all, bodies of those near the window, and a search through all. */
Test(browser, ten_thousand_findings)
{
	struct results r = sample(10000, 16);

	if (!installed)
		return;
	write_page(&r, "const t = performance.getEntriesByType('navigation')[0];\n"
		"saw.push(t.domContentLoadedEventEnd < 5000, shown() < 1000);\n"
		"location.hash = '#f9000'; await wait(100);\n"
		"saw.push(by('f9000').querySelector('.sides') !== null, shown());\n"
		"saw.push(by('f5000').querySelector('noscript') !== null);\n"
		"const from = performance.now(); await set(by('search'), 'many.cu:8765');\n"
		"saw.push(shown(), performance.now() - from < 5000);\n", NULL);
	/* a place is in the text of two findings as a side, and of two as a caller */
	expect("", "true true true 10003 true 4 true");
	results_free(&r);
}

/* ---- accessibility ---- */

/* axe.min.js: $AXE, of npm (npm install --global axe-core), or of Debian. "" if there is none. */
static const char *axe_core(void)
{
	static char path[512];

	if (getenv("AXE"))
		return getenv("AXE");
	shell("for f in \"$(npm root --global 2>/dev/null)\" /usr/share/javascript /usr/share/nodejs; do "
		"[ -f \"$f/axe-core/axe.min.js\" ] && echo \"$f/axe-core/axe.min.js\"; done");
	snprintf(path, sizeof path, "%.*s", (int)strcspn(output, "\n"), output);
	return path;
}

Test(browser, accessibility)
{
	static const char run[] = "const found = await axe.run(document, { rules: "
		"{ 'color-contrast': { enabled: true } } });\n"
		"saw.push(found.violations.map(v => v.id + ': ' + v.nodes[0].html.slice(0, 90)).join('; ')"
		" || 'none');\n";
	struct results r = sample(0, 0);

	if (!installed)
		return;
	if (!*axe_core()) {
		fprintf(stderr, "browser: axe-core is not installed: accessibility is not tested "
			"(npm install --global axe-core, or AXE=/path/of/axe.min.js)\n");
		results_free(&r);
		return;
	}
	write_page(&r, run, axe_core());
	expect("#&theme=light", "none");
	expect("#&theme=dark", "none");
	results_free(&r);
}
