'use strict';
/* Findings: filters, links and keys, bodies that are rendered when they are needed, and the state
 * of the page in its address: #f3&q=full&rule=CS102&theme=dark */
(function () {
	const root = document.documentElement, by = id => document.getElementById(id);
	const form = by('filters');
	let all = [], links = new Map(); /* articles; entries of the table of contents, by id */
	let now = '';   /* the id that the address names */
	root.classList.add('on');

	/* ---- markup that is text until it is needed. consan wrote it, with all names escaped ---- */

	function fill(finding) {
		const text = finding.querySelector(':scope > noscript');
		if (!text) return;
		const body = document.createElement('div');
		body.innerHTML = text.textContent;
		text.replaceWith(body);
		finding.classList.remove('far');
		finding.dispatchEvent(new Event('filled', { bubbles: true }));
	}

	const near = new IntersectionObserver(entries => {
		for (const e of entries)
			if (e.isIntersecting) {
				near.unobserve(e.target);
				fill(e.target);
			}
	}, { rootMargin: '600px' });

	function collect() {
		all = Array.from(document.querySelectorAll('article.finding'));
		links = new Map(Array.from(document.querySelectorAll('.toc a[href^="#f"]'),
			a => [a.getAttribute('href').slice(1), a]));
		document.querySelectorAll('article.far:not(.seen)').forEach(f => {
			f.classList.add('seen');
			near.observe(f);
		});
	}

	const batches = Array.from(document.querySelectorAll('script.batch'));
	function expand(n) {
		if (!batches.length) return;
		for (const b of batches.splice(0, n)) {
			b.insertAdjacentHTML('beforebegin', b.textContent);
			b.remove();
		}
		collect();
	}

	function expandWhenIdle() {
		if (!batches.length) return;
		(window.requestIdleCallback || setTimeout)(() => { expand(2); expandWhenIdle(); });
	}

	const PRINTED = 500; /* bodies of more findings are not printed */
	addEventListener('beforeprint', () => {
		all.filter(f => !f.hidden).slice(0, PRINTED).forEach(fill);
	});

	/* ---- state ---- */

	const fields = form ? { q: by('search'), rule: by('rule'), kernel: by('kernel') } : {};
	const boxes = form ? Array.from(form.querySelectorAll('[name=sev]')) : [];

	function save() {
		const parts = [now];
		for (const name in fields)
			if (fields[name].value)
				parts.push(name + '=' + encodeURIComponent(fields[name].value));
		const off = boxes.filter(b => !b.checked).map(b => b.value);
		if (off.length) parts.push('hide=' + off.join(','));
		if (root.dataset.theme) parts.push('theme=' + root.dataset.theme);
		const hash = parts.length > 1 || now ? '#' + parts.join('&') : location.pathname;
		history.replaceState(null, '', hash);
	}

	function load() {
		const [id, ...rest] = location.hash.slice(1).split('&');
		const state = new Map(rest.map(p => [p.slice(0, p.indexOf('=')),
			decodeURIComponent(p.slice(p.indexOf('=') + 1))]));
		now = id;
		if (!rest.length) return; /* a link within the page: the state stays */
		for (const name in fields) fields[name].value = state.get(name) || '';
		const off = (state.get('hide') || '').split(',');
		for (const b of boxes) b.checked = !off.includes(b.value);
		if (/^(dark|light)$/.test(state.get('theme'))) root.dataset.theme = state.get('theme');
	}

	by('theme').addEventListener('click', () => {
		const is = root.dataset.theme ||
			(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
		root.dataset.theme = is === 'dark' ? 'light' : 'dark';
		save();
	});

	/* ---- filters ---- */

	const words = new Map(); /* of each finding, in lower case */
	function wordsOf(f) {
		if (!words.has(f)) /* the body may still be markup in a text */
			words.set(f, f.textContent.replace(/<[^>]*>/g, ' ').replace(/&lt;/g, '<')
				.replace(/&gt;/g, '>').replace(/&amp;/g, '&').toLowerCase());
		return words.get(f);
	}

	function apply() {
		if (!form) return;
		expand(batches.length);
		const want = fields.q.value.toLowerCase().split(/\s+/).filter(Boolean);
		const rule = fields.rule.value, kernel = fields.kernel.value;
		const severities = new Set(boxes.filter(b => b.checked).map(b => b.value));
		let shown = 0;
		for (const f of all) {
			const ok = severities.has(f.dataset.s) && (!rule || f.dataset.r === rule) &&
				(!kernel || f.dataset.k === kernel) &&
				(!want.length || want.every(w => wordsOf(f).includes(w)));
			f.hidden = !ok;
			if (links.has(f.id)) links.get(f.id).hidden = !ok;
			shown += ok;
		}
		/* the consequences of a headline: open if they match and the headline does not */
		for (const g of document.querySelectorAll('.group')) {
			const head = g.firstElementChild, more = g.querySelector('.consequences');
			const any = more.querySelector('article:not([hidden])') !== null;
			more.hidden = !any;
			g.hidden = head.hidden && !any;
			if (head.hidden && any) more.open = true;
			if (links.has(head.id)) links.get(head.id).hidden = g.hidden;
		}
		by('findings').classList.toggle('empty', all.length > 0 && !shown);
		by('count').value = shown === all.length ? '' : shown + ' of ' + all.length;
	}

	let timer;
	function changed(delay) {
		clearTimeout(timer);
		timer = setTimeout(() => { apply(); save(); }, delay);
	}

	/* ---- where the reader is ---- */

	function reveal(scroll) {
		if (now && !by(now)) expand(batches.length);
		const at = now && by(now);
		document.querySelectorAll('.current').forEach(x => x.classList.remove('current'));
		const group = at && at.closest('.group');
		const head = group ? group.firstElementChild.id : now;
		for (const [id, a] of links)
			if (id === head) {
				a.setAttribute('aria-current', 'true');
				a.scrollIntoView({ block: 'nearest' });
			} else a.removeAttribute('aria-current');
		if (!at) return;
		if (at.hidden && form) {
			form.reset();
			apply();
			save();
		}
		for (let d = at; d; d = d.parentElement)
			if (d.tagName === 'DETAILS') d.open = true;
		if (at.tagName === 'ARTICLE') fill(at);
		at.classList.add('current');
		if (scroll) at.scrollIntoView();
	}

	function step(by_one) {
		const open = all.filter(f => !f.hidden);
		const at = open.findIndex(f => f.id === now);
		const to = open[at < 0 ? 0 : Math.min(Math.max(at + by_one, 0), open.length - 1)];
		if (!to) return;
		now = to.id;
		save();
		reveal(true);
		to.focus({ preventScroll: true });
	}

	addEventListener('hashchange', () => {
		load();
		apply();
		save();
		reveal(true);
	});
	addEventListener('keydown', e => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.key === 'Escape') return document.activeElement.blur();
		if (/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) return;
		if (e.key === '/' && form) { e.preventDefault(); fields.q.focus(); }
		if (e.key === 'j') step(1);
		if (e.key === 'k') step(-1);
	});
	if (form) {
		form.addEventListener('input', e => changed(e.target === fields.q ? 150 : 0));
		form.addEventListener('submit', e => e.preventDefault());
	}
	collect();
	load();
	if (location.hash.includes('&')) apply();
	reveal(Boolean(now));
	expandWhenIdle();
})();
