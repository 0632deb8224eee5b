'use strict';
(function () {
	const root = document.documentElement, by = id => document.getElementById(id);
	const all = Array.from(document.querySelectorAll('article.finding'));
	const link = new Map(Array.from(document.querySelectorAll('.toc a[href^="#f"]'),
		a => [a.getAttribute('href').slice(1), a]));
	const form = by('filters');
	root.classList.add('on');

	by('theme').addEventListener('click', () => {
		const now = root.dataset.theme ||
			(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
		root.dataset.theme = now === 'dark' ? 'light' : 'dark';
	});

	function apply() {
		const words = by('search').value.toLowerCase().split(/\s+/).filter(Boolean);
		const rule = by('rule').value, kernel = by('kernel').value;
		const boxes = Array.from(form.querySelectorAll('[name=sev]'));
		const severities = new Set(boxes.filter(b => b.checked).map(b => b.value));
		let shown = 0;
		for (const f of all) {
			const text = words.length ? f.textContent.toLowerCase() : '';
			const ok = severities.has(f.dataset.s) && (!rule || f.dataset.r === rule) &&
				(!kernel || f.dataset.k === kernel) && words.every(w => text.includes(w));
			f.hidden = !ok;
			if (link.has(f.id)) link.get(f.id).parentElement.hidden = !ok;
			shown += ok;
		}
		by('findings').classList.toggle('empty', all.length > 0 && !shown);
		by('count').value = shown === all.length ? '' : shown + ' of ' + all.length;
	}

	function reveal() {
		const f = document.getElementById(location.hash.slice(1));
		if (f && f.hidden) {
			form.reset();
			apply();
			f.scrollIntoView();
		}
		for (const [id, a] of link)
			if ('#' + id === location.hash) {
				a.setAttribute('aria-current', 'true');
				a.scrollIntoView({ block: 'nearest' });
			} else a.removeAttribute('aria-current');
	}

	function step(by_one) {
		const open = all.filter(f => !f.hidden);
		const at = open.findIndex(f => '#' + f.id === location.hash);
		const to = open[at < 0 ? 0 : Math.min(Math.max(at + by_one, 0), open.length - 1)];
		if (to) {
			location.hash = to.id;
			to.focus({ preventScroll: true });
		}
	}

	if (!form) return;
	form.addEventListener('input', apply);
	form.addEventListener('submit', e => e.preventDefault());
	addEventListener('hashchange', reveal);
	addEventListener('keydown', e => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.key === 'Escape') return document.activeElement.blur();
		if (/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) return;
		if (e.key === '/') { e.preventDefault(); by('search').focus(); }
		if (e.key === 'j') step(1);
		if (e.key === 'k') step(-1);
	});
	reveal();
})();
