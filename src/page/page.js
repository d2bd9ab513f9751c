/* page.js - draws the charts of vtwin's pages: data in, SVG out.
 *
 * vtwin.chart(element, spec) fills the element; it returns {update(spec), zoom([lo, hi] or
 * null)}. What a spec holds: struct vt_plot of page.h. */
(() => {
"use strict";
const groups = {}, isNum = v => typeof v === "number" && isFinite(v);

function add(parent, e, attrs, text) {
	for (const k in attrs) e.setAttribute(k, attrs[k]);
	if (text !== undefined) e.textContent = text;
	parent.appendChild(e);
	return e;
}
const html = (parent, name, attrs, text) => add(parent, document.createElement(name), attrs, text);
const svg = (parent, name, attrs, text) =>
	add(parent, document.createElementNS("http://www.w3.org/2000/svg", name), attrs, text);
const rule = (g, x1, y1, x2, y2, name) => svg(g, "line", {x1, y1, x2, y2, class: name});
const cut = (text, most) => text.length > most ? text.slice(0, Math.max(1, most - 1)) + "\u2026" : text;
const px = v => v.toFixed(1);

/* ---- numbers */

function short(v) {
	const a = Math.abs(v);
	for (const [k, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
		if (a >= (k === 1e3 ? 1e4 : k)) return parseFloat((v / k).toPrecision(6)) + name;
	return String(parseFloat(v.toPrecision(6)));
}
function number(v) {
	const a = Math.abs(v);
	if (a >= 1e7) return short(v);
	return v.toLocaleString("en-US", a >= 1000 ? {maximumFractionDigits: a >= 1e4 ? 0 : 1}
		: {maximumSignificantDigits: a >= 100 ? 4 : 3});
}
function clock(s) {
	const t = Math.round(s), two = n => (n < 10 ? "0" : "") + n, h = Math.floor(t / 3600);
	return h ? `${h}:${two(Math.floor(t / 60) % 60)}:${two(t % 60)}` : Math.floor(t / 60) + ":" + two(t % 60);
}
/* As one says it: units grow with it. */
function format(v, unit) {
	const a = Math.abs(v), by = (k, name) => number(v * k) + "\u00a0" + name;
	if (!isNum(v)) return "none";
	if (unit === "ms" && a >= 1e4) return by(1e-3, "s");
	if (unit === "ms" && a > 0 && a < 0.1) return by(1e3, "\u00b5s");
	if (unit === "s" && a >= 600) return clock(v);
	if (unit === "s" && a > 0 && a < 0.1) return by(1e3, "ms");
	return unit ? by(1, unit) : number(v);
}

/* ---- scales */

function scale([lo, hi], from, to, log) {
	const f = log ? Math.log10 : Number, a = f(lo), w = f(hi) - a || 1;
	return {
		lo, hi, log,
		at: v => from + (f(v) - a) / w * (to - from),
		of: p => { const t = a + (p - from) / (to - from) * w; return log ? 10 ** t : t; },
		has: v => isNum(v) && v >= Math.min(lo, hi) && v <= Math.max(lo, hi),
		takes: v => isNum(v) && !(log && v <= 0)
	};
}
const TIMES = [1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];
function ticks(s, most, unit) {
	const out = [];
	let step = (s.hi - s.lo) / most;
	if (s.log) {
		const decades = Math.log10(s.hi / s.lo), few = decades * 3 <= most, every = Math.ceil(decades / most) || 1;
		for (let e = Math.floor(Math.log10(s.lo)); e <= Math.log10(s.hi) + 1; e++)
			for (const k of few ? [1, 2, 5] : [1])
				if (s.has(k * 10 ** e) && (few || e % every === 0)) out.push(k * 10 ** e);
		if (out.length > 1) return out;
		out.length = 0;
	}
	if (unit === "s" && s.hi >= 600) step = TIMES.find(t => t >= step) || Math.ceil(step / 86400) * 86400;
	else {
		const e = 10 ** Math.floor(Math.log10(step));
		step = [1, 2, 5, 10].find(k => k >= step / e - 1e-9) * e;
	}
	for (let k = Math.ceil(s.lo / step - 1e-9); k * step <= s.hi + step * 1e-9; k++) out.push(k * step);
	return out;
}

/* ---- a chart */

function chart(box, first) {
	let spec, series = [], zoom = null, at = -1, drag = null, v = {}, stops = [];
	const hidden = {};
	box.replaceChildren();
	box.classList.add("chart");
	const title = html(box, "p", {class: "name"}), note = html(box, "p", {class: "note"});
	const reset = html(html(box, "div", {class: "tools"}), "button", {type: "button"}, "reset zoom");
	const legend = html(box, "div", {class: "legend"});
	const root = svg(box, "svg", {tabindex: 0, role: "img"});
	const tip = html(box, "div", {class: "tip", role: "status"});
	const self = {update, zoom: setZoom, cross};

	const kindOf = s => s.kind || spec.kind, isDots = s => kindOf(s) === "points";
	const visible = () => series.filter(s => !hidden[s.key]);
	const barred = () => spec.kind === "bars", flat = () => barred() && !!spec.y.categories;
	const nameOf = a => (a.label || "") + (a.unit ? a.label ? ` (${a.unit})` : a.unit : "");

	function update(next) {
		const known = new Set(series.map(s => s.key));
		let x = null;
		spec = Object.assign({x: {}, y: {}, series: [], marks: []}, next);
		series = spec.series.map((s, i) => {
			x = s.x || x || s.y.map((_, k) => k);
			const key = s.name || "#" + i;
			if (!known.has(key)) hidden[key] = !!s.hidden;
			return Object.assign({}, s, {x, key, place: i, colour: "s" + (s.colour === undefined ? i : s.colour) % 8});
		});
		title.textContent = spec.title || "";
		note.textContent = spec.note || "";
		root.setAttribute("aria-label", `${spec.title || "chart"}. ${spec.note || ""} Arrow keys read values.`);
		drawLegend();
		draw();
	}

	function drawLegend() {
		const named = series.filter(s => s.name);
		legend.replaceChildren();
		legend.hidden = named.length < 2 || spec.kind === "lanes";
		for (const s of named) {
			const b = html(legend, "button", {type: "button", class: s.colour, title: "show or hide"});
			const tell = () => b.setAttribute("aria-pressed", String(!hidden[s.key]));
			html(b, "i", {class: isDots(s) || barred() ? "dot" : s.dash ? "dash" : ""});
			b.append(s.name);
			tell();
			b.onclick = () => { hidden[s.key] = !hidden[s.key]; tell(); draw(); };
		}
	}

	/* The range of what is visible, within a window of x. */
	function domain(axis, within) {
		const a = spec[axis], valued = (axis === "x") === flat();
		const filled = /bars|area|steps|lanes/.test(spec.kind);
		let lo = Infinity, hi = -Infinity;
		const take = n => { if (isNum(n) && !(a.log && n <= 0)) { lo = Math.min(lo, n); hi = Math.max(hi, n); } };
		for (const s of visible())
			s[axis].forEach((n, i) => {
				if (within && !(s.x[i] >= within[0] && s.x[i] <= within[1])) return;
				take(n);
				if (valued) [s.lo, s.hi].forEach(r => r && take(r[i]));
			});
		if (lo > hi) [lo, hi] = a.log ? [1, 10] : [0, 1];
		for (const m of spec.marks)
			if (m.axis === axis && (a.log || m.at <= 4 * hi)) take(m.at);
		if (a.log) {
			if (lo === hi) { lo /= 2; hi *= 2; }
			if (valued || spec.kind === "points") { lo /= 1.12; hi *= 1.12; }
		} else {
			if (valued && lo > 0 && (filled || lo < 0.7 * hi)) lo = 0;
			if (valued && hi < 0) hi = 0;
			if (lo === hi) { hi += Math.abs(lo) * 0.1 || 1; if (!valued) lo -= Math.abs(lo) * 0.1; }
			if (valued || spec.kind === "points") {
				const pad = (hi - lo) * 0.06;
				if (hi) hi += pad;
				if (lo) lo -= pad;
			}
		}
		if (isNum(a.min) && !(a.log && a.min <= 0)) lo = a.min;
		if (isNum(a.max)) hi = a.max;
		return lo < hi ? [lo, hi] : [lo, lo + 1];
	}

	const tickText = (n, a) => a.unit === "s" && a === spec.x && !a.log && v.X.hi >= 600 ? clock(n) : short(n);

	function draw() {
		const W = Math.max(box.clientWidth, 160), cats = spec.x.categories, rows = spec.y.categories;
		const all = visible(), lanes = spec.kind === "lanes", top = 20, right = 14;
		let H = Math.round(Math.min(320, Math.max(210, W * 0.5))), bottom = 36, slant = false;
		const dx = cats ? [-0.5, cats.length - 0.5] : zoom || domain("x");
		const dy = rows ? [rows.length - 0.5, -0.5] : domain("y", cats ? null : dx);
		if (flat()) H = top + bottom + rows.length * Math.max(22, 9 + 11 * all.length);
		if (lanes) H = top + bottom + all.length * Math.max(14, Math.min(40, 480 / (all.length || 1)));
		hide();
		root.replaceChildren();
		reset.hidden = !zoom;
		v = {X: scale(dx, 0, W, spec.x.log)};
		const marks = lanes || rows ? [] : ticks(scale(dy, H, 0, spec.y.log), Math.max(3, H / 55), spec.y.unit);
		const names = lanes ? all.map(s => s.name || "") : rows || marks.map(n => tickText(n, spec.y));
		const left = Math.min(W * 0.42, 12 + 6.7 * Math.max(2, ...names.map(t => t.length)));
		if (cats) {
			const longest = Math.max(...cats.map(t => t.length)), more = Math.min(90, longest * 4.2);
			slant = cats.length * (longest * 6.4 + 8) > W - left - right;
			if (slant) { bottom += more; H += more; }
		}
		root.setAttribute("viewBox", `0 0 ${W} ${H}`);
		root.setAttribute("height", H);
		v = {W, H, left, top, end: W - right, base: H - bottom, taken: [],
			X: scale(dx, left, W - right, spec.x.log), Y: scale(dy, H - bottom, top, spec.y.log)};
		drawAxes(marks, slant);
		const id = "clip" + Math.random().toString(36).slice(2);
		svg(svg(root, "clipPath", {id}), "rect",
			{x: left, y: top - 4, width: Math.max(0, v.end - left + 4), height: Math.max(0, v.base - top + 5)});
		const g = svg(root, "g", {"clip-path": `url(#${id})`});
		if (barred()) drawBars(g, all);
		else {
			all.forEach((s, i) => isDots(s) || drawLine(g, s, lanes ? lane(all, i) : v.Y));
			all.forEach(s => isDots(s) && drawDots(g, s));
		}
		drawMarks();
		v.over = svg(root, "g", {});
		makeStops(all);
	}

	const words = (x, y, anchor, text, name) => svg(root, "text", {x, y, "text-anchor": anchor, class: name || ""}, text);

	/* The strip of one series. */
	function lane(all, i) {
		const each = (v.base - v.top) / all.length, y = v.top + each * (i + 1);
		words(v.left - 6, y - each / 2 + 4, "end", cut(all[i].name || "", (v.left - 8) / 6.2));
		rule(root, v.left, y, v.end, y, "grid");
		return scale([v.Y.lo, v.Y.hi], y - 1, y - each + 2, false);
	}

	function drawAxes(marks, slant) {
		const {X, Y, left, end, base} = v, rows = spec.y.categories || [];
		for (const t of marks) {
			rule(root, left, Y.at(t), end, Y.at(t), "grid");
			words(left - 6, Y.at(t) + 4, "end", tickText(t, spec.y));
		}
		rows.forEach((c, i) => words(left - 6, Y.at(i) + 4, "end", cut(c, (left - 8) / 6.2), "label"));
		if (spec.x.categories) spec.x.categories.forEach((c, i) => {
			const x = X.at(i) + (slant ? 4 : 0), t = words(x, base + (slant ? 13 : 16), slant ? "end" : "middle", cut(c, 24));
			if (slant) t.setAttribute("transform", `rotate(-38 ${x} ${base + 13})`);
		});
		else for (const t of ticks(X, Math.max(2, (end - left) / 62), spec.x.unit)) {
			rule(root, X.at(t), v.top, X.at(t), base, "grid");
			words(X.at(t), base + 16, "middle", tickText(t, spec.x));
		}
		rule(root, left, base, end, base, "grid base");
		words(rows.length ? left : 0, 11, "start", nameOf(spec.y));
		words(end, v.H - 3, "end", nameOf(spec.x));
	}

	const usable = (s, i, Y) => v.X.takes(s.x[i]) && Y.takes(s.y[i]);
	const floor = S => S.log ? S.lo : Math.max(S.lo, Math.min(0, S.hi));

	function drawLine(g, s, Y) {
		const X = v.X, kind = kindOf(s), parts = [], up = [], down = [], low = px(Y.at(floor(Y)));
		let part = null;
		s.x.forEach((x, i) => {
			if (!usable(s, i, Y)) { part = null; return; }
			const p = px(X.at(x)), q = px(Y.at(s.y[i]));
			if (part) part.d += kind === "steps" ? `H${p}V${q}` : `L${p} ${q}`;
			else parts.push(part = {from: p, d: `M${p} ${q}`});
			part.to = p;
			if (s.lo && s.hi && Y.takes(s.hi[i])) {
				up.push(`${p} ${px(Y.at(s.hi[i]))}`);
				down.unshift(`${p} ${px(Y.at(Y.takes(s.lo[i]) ? s.lo[i] : Y.lo))}`);
			}
			if (s.x.length <= 24 && kind === "lines") dot(g, X.at(x), Y.at(s.y[i]), s, 2.6);
		});
		if (up.length) svg(g, "path", {d: `M${up.concat(down).join("L")}Z`, class: "band " + s.colour});
		else if (kind === "area" || kind === "lanes") for (const t of parts)
			svg(g, "path", {d: `${t.d}L${t.to} ${low}L${t.from} ${low}Z`, class: "band " + s.colour});
		svg(g, "path", {d: parts.map(t => t.d).join(""), class: "line " + s.colour + (s.dash ? " dash" : "")});
	}

	/* Shapes differ, too. */
	function dot(g, x, y, s, r) {
		const a = r * 1.25, p = px(x), q = px(y - a), name = "dot " + s.colour;
		const d = [0, `M${px(x - r)} ${px(y - r)}h${2 * r}v${2 * r}h${-2 * r}z`, `M${p} ${q}l${a} ${1.9 * a}h${-2 * a}z`,
			`M${p} ${q}l${a} ${a}l${-a} ${a}l${-a} ${-a}z`][isDots(s) ? s.place % 4 : 0];
		if (d) svg(g, "path", {d, class: name});
		else svg(g, "circle", {cx: p, cy: px(y), r, class: name});
	}

	function drawDots(g, s) {
		const {X, Y, taken} = v;
		s.x.forEach((x, i) => {
			if (!usable(s, i, Y)) return;
			const p = X.at(x), q = Y.at(s.y[i]), text = s.labels && s.text && s.text[i], w = text ? text.length * 6.3 : 0;
			if (s.lo && s.hi) rule(g, p, Y.at(Y.takes(s.lo[i]) ? s.lo[i] : Y.lo), p, Y.at(s.hi[i]), "whisker");
			dot(g, p, q, s, s.x.length > 150 ? 2.4 : 4);
			if (!text || !X.has(x)) return;
			const l = p + w + 8 > v.end ? p - w - 8 : p + 7;
			for (const by of [0, 13, -13, 26, -26])
				if (l >= 0 && taken.every(t => t.l > l + w || t.l + t.w < l || Math.abs(t.q - q - by) > 12)) {
					taken.push({l, w, q: q + by});
					words(l, q + by + 4, "start", text, "label");
					return;
				}
		});
	}

	function drawBars(g, all) {
		const f = flat(), C = f ? v.Y : v.X, V = f ? v.X : v.Y, from = V.at(floor(V));
		const room = Math.abs(C.at(1) - C.at(0)) * 0.78, each = room / (all.length || 1), thick = Math.max(1, each - 1);
		const bar = (a, b, o) => f ? {x: Math.min(a, b), y: o, width: Math.max(1, Math.abs(b - a)), height: thick}
			: {x: o, y: Math.min(a, b), width: thick, height: Math.max(1, Math.abs(b - a))};
		all.forEach((s, k) => (f ? s.y : s.x).forEach((c, i) => {
			const n = (f ? s.x : s.y)[i], o = C.at(c) - room / 2 + k * each, mid = o + each / 2;
			if (!V.takes(n)) return;
			svg(g, "rect", Object.assign(bar(from, V.at(n), o), {class: "bar " + s.colour}));
			if (!s.lo || !s.hi || !V.takes(s.lo[i]) || !V.takes(s.hi[i])) return;
			const a = V.at(s.lo[i]), b = V.at(s.hi[i]);
			if (f) rule(g, a, mid, b, mid, "whisker");
			else rule(g, mid, a, mid, b, "whisker");
		}));
	}

	function drawMarks() {
		let lines = 0;
		for (const m of spec.marks) {
			const S = m.axis === "x" ? v.X : v.Y, p = S.at(m.at), late = p > (v.left + v.W) / 2;
			if (!S.has(m.at)) continue;
			if (m.axis === "x") {
				rule(root, p, v.top, p, v.base, "mark");
				words(p + (late ? -5 : 5), v.top + 11 + 14 * (lines++ % 4), late ? "end" : "start", m.label || "", "mark");
			} else {
				rule(root, v.left, p, v.end, p, "mark");
				words(v.end - 2, p - 4 < v.top + 6 ? p + 13 : p - 4, "end", m.label || "", "mark");
			}
		}
	}

	/* ---- values on hover */

	/* Where pointer and arrow keys stop: each x, dot, bar. */
	function makeStops(all) {
		const xs = new Set(), {X, Y} = v, f = flat();
		stops = [];
		if (barred()) {
			stops = (spec.x.categories || spec.y.categories || [])
				.map((_, i) => ({v: i, p: f ? null : X.at(i), q: f ? Y.at(i) : null}));
			return;
		}
		for (const s of all)
			s.x.forEach((x, i) => {
				if (!X.takes(x) || !X.has(x)) return;
				if (!isDots(s)) xs.add(x);
				else if (usable(s, i, Y)) stops.push({v: x, p: X.at(x), q: Y.at(s.y[i]), s, i});
			});
		for (const x of xs) stops.push({v: x, p: X.at(x), q: null});
		stops.sort((a, b) => a.p - b.p);
	}

	function nearest(m) {
		let best = -1, least = Infinity, dots = -1, close = 26;
		stops.forEach((t, i) => {
			const d = t.s ? Math.hypot(t.p - m.p, t.q - m.q) : t.p === null ? Math.abs(t.q - m.q) : Math.abs(t.p - m.p);
			if (t.s && d < close) { close = d; dots = i; }
			if (d < least) { least = d; best = i; }
		});
		return dots >= 0 ? dots : best;
	}

	const point = (s, i, y) => ({y, lo: s.lo && s.lo[i], hi: s.hi && s.hi[i], text: s.text && s.text[i]});
	/* At x: a value, or between two. */
	function valueAt(s, x) {
		let a = 0, b = s.x.length - 1;
		if (b < 0 || x < s.x[0] || x > s.x[b]) return null;
		while (b - a > 1) { const m = (a + b) >> 1; if (s.x[m] <= x) a = m; else b = m; }
		const i = s.x[b] === x ? b : a;
		if (s.x[i] === x || kindOf(s) === "steps") return point(s, i, s.y[i]);
		if (!isNum(s.y[a]) || !isNum(s.y[b])) return null;
		return {y: s.y[a] + (s.y[b] - s.y[a]) * (x - s.x[a]) / (s.x[b] - s.x[a])};
	}

	function row(colour, name, text) {
		const r = html(tip, "div", {});
		html(r, "span", {class: colour}, name);
		html(r, "span", {}, text);
	}
	function tell(s, got, unit) {
		const range = isNum(got.lo) && got.hi > got.lo ? ` (${number(got.lo)} to ${number(got.hi)})` : "";
		row(s.colour, s.name || spec.y.label || "", format(got.y, unit) + range + (got.text ? " " + got.text : ""));
	}

	function show(i, pointer) {
		const t = stops[i], {X, Y, over} = v, f = flat();
		if (!t) return;
		at = i;
		over.replaceChildren();
		tip.replaceChildren();
		if (t.s) {
			html(tip, "b", {}, t.s.text && t.s.text[t.i] || t.s.name || "");
			row(t.s.colour, spec.x.label || "x", format(t.v, spec.x.unit));
			row(t.s.colour, spec.y.label || "y", format(t.s.y[t.i], spec.y.unit));
			svg(over, "circle", {cx: t.p, cy: t.q, r: 7, class: "cross", fill: "none"});
		} else {
			html(tip, "b", {}, barred() ? (spec.x.categories || spec.y.categories)[t.v] : format(t.v, spec.x.unit));
			for (const s of visible().filter(q => !isDots(q))) {
				const k = barred() ? (f ? s.y : s.x).indexOf(t.v) : -1;
				const got = barred() ? k < 0 ? null : point(s, k, (f ? s.x : s.y)[k]) : valueAt(s, t.v);
				if (!got || !isNum(got.y)) continue;
				tell(s, got, f ? spec.x.unit : spec.y.unit);
				if (!barred() && spec.kind !== "lanes" && Y.takes(got.y) && Y.has(got.y)) dot(over, t.p, Y.at(got.y), s, 3.6);
			}
			if (!barred()) rule(over, t.p, v.top, t.p, v.base, "cross");
		}
		tip.hidden = false;
		const wide = tip.offsetWidth, x = t.p !== null ? t.p : pointer ? pointer.p : v.left + 40;
		const y = pointer ? pointer.q : t.q === null ? v.top + 10 : t.q;
		const down = root.getBoundingClientRect().top - box.getBoundingClientRect().top;
		tip.style.left = Math.max(0, Math.min(v.W - wide, x + 14 + wide > v.W ? x - wide - 14 : x + 14)) + "px";
		tip.style.top = down + Math.max(0, Math.min(v.H - 30, y + 10)) + "px";
		if (!barred()) others(c => c.cross(t.v));
	}
	function cross(n) {
		v.over.replaceChildren();
		tip.hidden = true;
		if (v.X.has(n)) rule(v.over, v.X.at(n), v.top, v.X.at(n), v.base, "cross");
	}
	function hide() {
		if (at >= 0) others(c => c.cross(null));
		at = -1;
		tip.hidden = true;
		if (v.over) v.over.replaceChildren();
	}
	const others = f => (spec.sync && groups[spec.sync] || []).forEach(c => c === self || f(c));

	/* ---- zoom */

	function setZoom(range, alone) {
		if (barred()) return;
		zoom = range;
		draw();
		if (!alone) others(c => c.zoom(range, true));
	}
	function place(e) {
		const r = root.getBoundingClientRect(), k = v.W / (r.width || 1);
		return {p: (e.clientX - r.left) * k, q: (e.clientY - r.top) * k};
	}
	const inside = p => Math.max(v.left, Math.min(v.end, p));

	function move(e) {
		const m = place(e), to = inside(m.p);
		if (drag === null) { show(nearest(m), m); return; }
		hide();
		svg(v.over, "rect", {x: Math.min(drag, to), y: v.top, width: Math.abs(to - drag), height: v.base - v.top, class: "pick"});
	}
	/* A finger reads values, for it scrolls, too. */
	root.onpointerdown = e => {
		if (e.pointerType === "touch" || barred()) { move(e); return; }
		if (e.button !== 0) return;
		drag = inside(place(e).p);
		root.setPointerCapture(e.pointerId);
	};
	root.onpointermove = move;
	root.onpointerup = e => {
		const from = drag, to = inside(place(e).p);
		if (from === null) return;
		drag = null;
		if (Math.abs(to - from) > 6) setZoom([v.X.of(Math.min(from, to)), v.X.of(Math.max(from, to))]);
		else move(e);
	};
	root.onpointercancel = () => { drag = null; hide(); };
	root.onpointerleave = e => { if (e.pointerType !== "touch" && drag === null) hide(); };
	root.onblur = hide;
	root.ondblclick = () => setZoom(null);
	reset.onclick = () => { setZoom(null); root.focus(); };
	root.onfocus = () => { if (at < 0 && root.matches(":focus-visible")) show(0); };
	root.onkeydown = e => {
		const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9}[e.key];
		if (by) show(Math.max(0, Math.min(stops.length - 1, at + by * (e.shiftKey ? 10 : 1))));
		else if (e.key === "Escape") { if (zoom) setZoom(null); else hide(); }
		else if (e.key === "+" && at >= 0) {
			const c = stops[at].p, w = (v.end - v.left) / 4;
			setZoom([v.X.of(inside(c - w)), v.X.of(inside(c + w))]);
		} else return;
		e.preventDefault();
	};

	update(first);
	if (spec.sync) (groups[spec.sync] = groups[spec.sync] || []).push(self);
	let width = box.clientWidth;
	new ResizeObserver(() => { if (box.clientWidth !== width) { width = box.clientWidth; draw(); } }).observe(box);
	return self;
}

window.vtwin = {chart, format, number};
for (const s of document.querySelectorAll(".chart > script[type='application/json']"))
	chart(s.parentNode, JSON.parse(s.textContent));
})();
