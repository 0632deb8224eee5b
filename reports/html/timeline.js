'use strict';
/* Timelines: zoom (buttons, Ctrl and wheel, + - 0), pan (drag, arrow keys) and a search for warps,
 * barriers and places. Listens on the document, because a timeline may be rendered later. */
(function () {
	const LEAST = .25, MOST = 4;
	const of = x => x.closest && x.closest('.timeline');
	const paneOf = figure => figure.querySelector('.scroll.end');

	/* ---- zoom ---- */

	/* Without the script the pane is scrolled to its end by its direction. */
	function takeOver(pane) {
		if (pane.style.direction) return;
		const from_end = pane.scrollLeft; /* negative */
		pane.style.direction = 'ltr';
		pane.scrollLeft = pane.scrollWidth - pane.clientWidth + from_end;
	}

	/* Zooms to z; the point x of the pane stays where it is. */
	function zoom(figure, z, x) {
		const pane = paneOf(figure), before = Number(figure.dataset.zoom || 1);
		z = Math.min(Math.max(z, LEAST), MOST);
		takeOver(pane);
		const at = (pane.scrollLeft + x) / before;
		for (const svg of figure.querySelectorAll('.lanes svg')) {
			const box = svg.viewBox.baseVal;
			svg.setAttribute('width', box.width * z);
			svg.setAttribute('height', box.height * z);
		}
		figure.dataset.zoom = z;
		pane.scrollLeft = at * z - x;
	}

	function zoomBy(figure, what) {
		const pane = paneOf(figure), z = Number(figure.dataset.zoom || 1);
		const width = pane.querySelector('svg').viewBox.baseVal.width;
		const all = figure.querySelector('.lanes').clientWidth;
		const to = { in: z * 1.25, out: z / 1.25, one: 1, fit: all / (width + 140) }[what];
		zoom(figure, to, pane.clientWidth / 2);
	}

	/* ---- the part that is shown first ---- */

	/* Scrolls to the finding if the end of the timeline shows no side of it: in a hang, other warps make
	 * the last steps. */
	function showFinding(pane) {
		const p = pane.getBoundingClientRect();
		const bands = Array.from(pane.querySelectorAll('.band'), b => b.getBoundingClientRect());
		if (!bands.length || bands.some(b => b.right > p.left && b.left < p.right)) return;
		takeOver(pane);
		pane.scrollLeft += Math.max(...bands.map(b => b.left)) - p.left - p.width / 2;
	}

	const first = new IntersectionObserver(entries => {
		for (const e of entries)
			if (e.isIntersecting) {
				first.unobserve(e.target);
				showFinding(paneOf(e.target));
			}
	});
	const observe = part => part.querySelectorAll('.timeline').forEach(f => first.observe(f));
	addEventListener('filled', e => observe(e.target));
	observe(document);

	/* ---- search ---- */

	/* Words that end in a digit match whole numbers: "warp 1" is not warp 12. */
	function matcher(text) {
		const escaped = text.trim().toLowerCase().replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
		return new RegExp(escaped + (/\d$/.test(escaped) ? '(?!\\d)' : ''));
	}

	function find(figure, text) {
		const svg = paneOf(figure).querySelector('svg'), ok = matcher(text);
		const wanted = text.trim() !== '';
		let n = 0;
		svg.classList.toggle('found', wanted);
		for (const mark of svg.querySelectorAll('use')) {
			const title = mark.querySelector('title');
			const match = wanted && title && ok.test(title.textContent.toLowerCase());
			mark.classList.toggle('match', Boolean(match));
			mark.classList.remove('at');
			const label = svg.querySelector('[data-step="' + mark.dataset.step + '"].cl');
			if (label) label.classList.toggle('match', Boolean(match));
			n += Boolean(match);
		}
		for (const name of figure.querySelectorAll('.names text'))
			name.classList.toggle('match', wanted && ok.test(name.textContent.toLowerCase()));
		figure.querySelector('.hits').value = wanted ? n + ' step' + (n === 1 ? '' : 's') : '';
	}

	/* Scrolls to the next match, or the one before. */
	function walk(figure, by_one) {
		const pane = paneOf(figure), marks = Array.from(pane.querySelectorAll('use.match'));
		if (!marks.length) return;
		const last = marks.findIndex(m => m.classList.contains('at'));
		const to = (last + by_one + marks.length) % marks.length;
		if (last >= 0) marks[last].classList.remove('at');
		marks[to].classList.add('at');
		takeOver(pane);
		const r = marks[to].getBoundingClientRect(), p = pane.getBoundingClientRect();
		pane.scrollLeft += r.left - p.left - p.width / 2;
		figure.querySelector('.hits').value = to + 1 + ' of ' + marks.length;
	}

	addEventListener('click', e => {
		const button = e.target.closest('[data-zoom-to]');
		if (button) zoomBy(of(button), button.dataset.zoomTo);
	});
	addEventListener('input', e => {
		if (e.target.matches('.timeline input')) find(of(e.target), e.target.value);
	});
	addEventListener('keydown', e => {
		const figure = of(e.target);
		if (!figure) return;
		if (e.target.tagName === 'INPUT') {
			if (e.key === 'Enter') walk(figure, e.shiftKey ? -1 : 1);
			return;
		}
		const what = { '+': 'in', '=': 'in', '-': 'out', '0': 'one' }[e.key];
		if (what && e.target === paneOf(figure)) zoomBy(figure, what);
	});
	addEventListener('wheel', e => {
		const figure = e.ctrlKey && of(e.target);
		if (!figure) return;
		e.preventDefault();
		zoom(figure, Number(figure.dataset.zoom || 1) * (e.deltaY < 0 ? 1.15 : 1 / 1.15),
			e.clientX - paneOf(figure).getBoundingClientRect().left);
	}, { passive: false });

	/* ---- pan ---- */

	let drag = null;
	addEventListener('pointerdown', e => {
		const pane = e.target.closest('.scroll.end');
		if (!pane || e.button || e.pointerType === 'touch') return;
		takeOver(pane);
		drag = { pane, x: e.clientX, from: pane.scrollLeft };
		pane.classList.add('dragged');
	});
	addEventListener('pointermove', e => {
		if (drag) drag.pane.scrollLeft = drag.from - (e.clientX - drag.x);
	});
	addEventListener('pointerup', () => {
		if (drag) drag.pane.classList.remove('dragged');
		drag = null;
	});
})();
