/* explore.js - the page of vtwin explore: sliders to flags, answers to pictures. All numbers are
 * what commands print; what is computed here is money and what is drawn. */
(() => {
"use strict";
const $ = id => document.getElementById(id);
const form = $("controls"), LENGTHS = "lengths", STARTED = "started";

/* ---- numbers for people ---------------------------------------------------- */

const digits = (v, n) => Number(v).toLocaleString("en-US", {maximumSignificantDigits: n || 4});
const ms = v => v >= 10000 ? digits(v / 1000) + " s" : digits(v, v < 100 ? 3 : 4) + " ms";
const money = v => "$" + (v >= 100 ? digits(v, 3) : v.toFixed(v < 0.1 ? 4 : 2));
const many = (n, one, more) => n === 1 ? "1 " + one : digits(n) + " " + (more || one + "s");

/* ---- what is asked ----------------------------------------------------------- */

const limit = v => v === "0" ? "none" : ms(Number(v));
const times = (lo, hi) => [1, 10, 100, 1000, 10000].flatMap(d => [1, 1.5, 2, 3, 4, 5, 6, 8].map(k => k * d))
  .filter(v => v >= lo && v <= hi).concat(0);
/* Sliders go through lists of values. */
const sliders = {
  "tensor-parallel-size": {values: [1, 2, 4, 8, 16]},
  "instances": {values: [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64]},
  "random-input-len": {values: [16, 32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
    12288, 16384, 24576, 32768, 65536, 98304], show: digits},
  "random-output-len": {values: [1, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192],
    show: digits},
  "random-range-ratio": {values: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    show: v => v === "0" ? "none" : "\u00b1 " + digits(100 * v) + " %"},
  "random-prefix-len": {values: [0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384], show: digits},
  "burstiness": {values: ["", 0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.5, 2, 4, "inf"],
    show: v => v === "" ? "the workload's" : v === "inf" ? "even gaps" : v},
  "ttft-p99": {values: times(20, 60000), show: limit},
  "tpot-p99": {values: times(4, 1000), show: limit},
  "itl-p99": {values: times(4, 2000), show: limit},
  "e2e-p99": {values: times(200, 80000).concat(), show: limit},
  "load": {values: Array.from({length: 30}, (_, i) => 5 * (i + 1)), show: v => v + " %"},
};
const LIMITS = ["ttft-p99", "tpot-p99", "itl-p99", "e2e-p99"];
const usual = {"tensor-parallel-size": "1", "instances": "1", "random-input-len": "1024", "random-output-len": "128",
  "random-range-ratio": "0", "random-prefix-len": "0", "burstiness": "", "ttft-p99": "1000", "tpot-p99": "60",
  "itl-p99": "0", "e2e-p99": "0", "load": "80", "rate": "", "price": "", "workload": "chat"};
let start = null, state = {}, extra = {};

const fixedFlag = name => start.fixed.some(f => f.flag === name);
const modelFixed = () => ["profile", "latency", "hf-config", "hf-config-path", "model"].some(fixedFlag);
const trafficFixed = () => ["trace", "workload", "dataset-path"].some(fixedFlag);

/* The state that the command line asked for. */
function startState() {
  const given = Object.assign({}, start.state), s = Object.assign({}, usual);
  if (trafficFixed()) s.workload = STARTED;
  if (given.slo) {
    LIMITS.forEach(k => s[k] = "0");
    for (const part of given.slo.split(",")) {
      const [name, value] = part.split("=");
      const unit = /[^s]s$/.test(value) && !/ms$|us$/.test(value) ? 1000 : /us$/.test(value) ? 0.001 : 1;
      s[name === "e2el-p99" ? "e2e-p99" : name] = String(parseFloat(value) * unit);
    }
    delete given.slo;
  }
  if (given["dataset-name"] === "random" || Object.keys(given).some(k => /^random-|^(in|out)put-len$/.test(k)))
    s.workload = LENGTHS;
  if (given["input-len"] && s.workload === LENGTHS) given["random-input-len"] = given["input-len"];
  if (given["output-len"] && s.workload === LENGTHS) given["random-output-len"] = given["output-len"];
  if (given["request-rate"]) s.rate = given["request-rate"];
  for (const k of ["dataset-name", "request-rate", "input-len", "output-len", "num-prompts"]) delete given[k];
  extra = {};
  for (const k in given) if (form.elements[k]) s[k] = given[k]; else extra[k] = given[k];
  return s;
}

/* What a command is asked: pairs of flag and value. */
function flags(more) {
  const out = [], put = (k, v) => { if (v !== "" && v !== undefined) out.push([k, v]); };
  if (!modelFixed()) put("model", state.model);
  put("gpu", state.gpu);
  put("tensor-parallel-size", modelFixed() && state["tensor-parallel-size"] === "1" ? "" : state["tensor-parallel-size"]);
  const engines = Number(state.instances) + (more || 0);
  if (engines > 1) put("instances", String(engines));
  if (engines > 1) put("routing", state.routing);
  for (const k of ["max-num-seqs", "max-num-batched-tokens", "max-model-len", "gpu-memory-utilization",
    "kv-cache-dtype", "quantization", "enable-prefix-caching"]) put(k, state[k]);
  if (state.workload === LENGTHS) {
    put("dataset-name", "random");
    for (const k of ["random-input-len", "random-output-len", "random-range-ratio", "random-prefix-len"])
      if (k.includes("put") || state[k] !== "0") put(k, state[k]);
  } else if (state.workload !== STARTED) put("workload", state.workload);
  put("burstiness", state.burstiness);
  const limits = LIMITS.filter(k => Number(state[k]) > 0).map(k => `${k}=${state[k]}ms`);
  put("slo", limits.join(",") || "ttft-p99=0ms");
  for (const k in extra) put(k, extra[k]);
  return out;
}
function pointFlags(rate) {
  const n = Math.min(20000, Math.max(100, Math.round(300 * rate)));
  return flags().concat([["request-rate", String(rate)], ["num-prompts", String(n)]]);
}
const query = pairs => pairs.map(([k, v]) => k + "=" + encodeURIComponent(v)).join("&");

async function ask(what, pairs, signal) {
  const r = await fetch(`api/v1/${what}?${query(pairs)}`, {signal});
  const d = await r.json();
  if (!r.ok) throw new Error(d.error || r.statusText);
  return d;
}

/* ---- pictures ------------------------------------------------------------------ */

const charts = {};
function draw(id, spec) {
  const box = $("chart-" + id);
  if (charts[id]) charts[id].update(spec); else charts[id] = vtwin.chart(box, spec);
}
function figures(id, list) {
  $(id).replaceChildren(...list.filter(f => f).map(([label, value, unit, bad]) => {
    const div = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = label;
    dd.textContent = value;
    if (unit) dd.append(Object.assign(document.createElement("small"), {textContent: unit}));
    if (bad) div.className = "bad";
    div.append(dt, dd);
    return div;
  }));
}
function stale(yes) {
  for (const id of ["answer", "figures", "more", "point-figures"]) $(id).classList.toggle("stale", yes);
}

const gpusOf = engines => engines * Number(state["tensor-parallel-size"]) * Number(extra["pipeline-parallel-size"] || 1) *
  Number(extra["data-parallel-size"] || 1);
const price = () => Number(state.price) || 0;
const atCapacity = a => a.points.find(p => p.rate === a.capacity) || {};
/* Dollars for a million output tokens when it runs at its capacity. */
const perMillion = (a, gpus) => {
  const tokens = atCapacity(a).output_tok_per_s;
  return tokens > 0 ? price() * gpus / (tokens * 3600) * 1e6 : NaN;
};

function limitsText() {
  const names = {"ttft-p99": "TTFT", "tpot-p99": "TPOT", "itl-p99": "ITL", "e2e-p99": "E2E"};
  return LIMITS.filter(k => Number(state[k]) > 0).map(k => `${names[k]} p99 \u2264 ${ms(Number(state[k]))}`).join(", ") ||
    "no limit but that it is borne";
}

function tellCapacity(d, preview) {
  const a = d.answer, gpus = gpusOf(Number(state.instances)), knee = a.capacity > 0;
  const where = `${gpus} \u00d7 ${a.settings.gpu || state.gpu || "GPU"}`;
  $("sentence").textContent = knee
    ? `${preview ? "About " : ""}${a.at_least ? "at least " : ""}${digits(a.capacity, preview ? 2 : 4)} requests a second on ${where} ` +
      `within ${limitsText()}` + (a.binding && a.failed_rate > 0 ? `: at ${digits(a.failed_rate, preview ? 2 : 4)} ` +
      (a.binding === "rate" ? "not all is borne." : `${a.binding} breaks.`) : ".")
    : `No rate keeps the limits on ${where}` + (d.error ? `: ${d.error.replace(/^no rate keeps the limits: /, "")}` : ".");
  const trust = $("trust");
  trust.replaceChildren();
  const line = (text, name) => trust.append(Object.assign(document.createElement("p"), {textContent: text, className: name || ""}));
  if (a.basis) {
    const p = document.createElement("p"), e = a.expected_error_pct || {};
    p.append(Object.assign(document.createElement("span"), {className: "basis", textContent: a.basis}));
    p.append(` ${a.profile}` + (e.e2e ? `; usually within ${digits(e.e2e, 2)} % (E2E), ${digits(e.ttft, 2)} % (TTFT)` : ""));
    trust.append(p);
  }
  if (knee && !preview) line(`${digits(a.interval[0])} to ${digits(a.interval[1])} with the error of seeds and model; ` +
    `over ${digits(a.run_s)} s, ${digits(a.run_requests, 6)} requests in each run`);
  for (const n of d.notes) line(n.replace(/^(warning|note): /, ""), "outside");
  for (const o of a.outside && a.outside.notes || []) line(o, "outside");
  const p = atCapacity(a), kv = a.settings.num_gpu_blocks * a.settings.block_size;
  figures("figures", [
    ["capacity", knee ? (preview ? "\u2248 " : "") + digits(a.capacity, preview ? 2 : 4) : "0", "req/s", !knee],
    ["output at capacity", p.output_tok_per_s ? digits(p.output_tok_per_s) : "none", "tok/s"],
    ["KV cache of an engine", digits(kv, 3), "tokens"],
    p.kv_usage_peak !== undefined && ["KV use there", digits(100 * p.kv_usage_peak, 3), "% at most"],
    ["GPUs", String(gpus), ""],
    price() > 0 && ["cost", money(price() * gpus), "an hour"],
    price() > 0 && knee && ["a million output tokens", money(perMillion(a, gpus)), "at capacity"],
  ]);
  $("serve").textContent = a.vllm_serve || "";
  $("capacity-line").textContent = d.command;
}

function drawCurve(d, preview) {
  const a = d.answer, top = a.capacity > 0 ? 1.75 * a.capacity : Infinity;
  const points = a.points.filter(p => p.rate <= top), x = points.map(p => p.rate);
  const marks = a.capacity > 0 ? [{axis: "x", at: a.capacity, label: `${preview ? "about " : ""}${digits(a.capacity, preview ? 2 : 4)} req/s`}] : [];
  const series = (name, get, more) => Object.assign({name, x, y: points.map(get)}, more);
  /* A run that was given up says how late requests were, not how many were served. */
  const whole = (name, get, more) => series(name, p => p.passed > 0 || preview && p.broken === "rate" ? get(p) : null, more);
  const limitMark = k => Number(state[k]) > 0 ? marks.concat({axis: "y", at: Number(state[k]), label: "limit " + ms(Number(state[k]))}) : marks;
  const axis = {label: "offered", unit: "req/s"};
  /* Room above the limit, for its name and the knee's. */
  const high = (k, key) => Number(state[k]) > 0
    ? Math.max(3 * Number(state[k]), ...points.map(p => 1.2 * p[key].p99)) : undefined;
  draw("ttft", {kind: "lines", title: "Time to first token", x: axis, y: {label: "TTFT", unit: "ms", log: true, max: high("ttft-p99", "ttft_ms")}, marks: limitMark("ttft-p99"),
    series: [series("p50", p => p.ttft_ms.p50, {dash: preview}), series("p99", p => p.ttft_ms.p99, {dash: preview})]});
  draw("tpot", {kind: "lines", title: "Time per output token", x: axis, y: {label: "TPOT", unit: "ms", log: true, max: high("tpot-p99", "tpot_ms")}, marks: limitMark("tpot-p99"),
    series: [series("p50", p => p.tpot_ms.p50, {dash: preview}), series("p99", p => p.tpot_ms.p99, {dash: preview})]});
  draw("tokens", {kind: "lines", title: "Throughput", x: axis, y: {label: "output", unit: "tok/s", min: 0}, marks,
    series: [whole("output tokens", p => p.output_tok_per_s, {dash: preview, colour: 2})]});
  draw("kv", {kind: "lines", title: "KV cache in use, at most", x: axis, y: {label: "in use", unit: "%", min: 0, max: 100}, marks,
    series: [whole("KV cache", p => 100 * p.kv_usage_peak, {dash: preview, colour: 3})]});
  $("curve-note").textContent = preview
    ? "A preview by a few hundred requests at each rate; the vertical line is about where the first limit breaks."
    : "Each point is a rate that capacity tried; the vertical line is the highest that keeps the limits. " +
      "Runs that had broken a limit for certain ended there.";
}

let moreAnswers = [];
function tellMore(preview) {
  const [one, two] = moreAnswers, table = $("more"), n = Number(state.instances);
  table.replaceChildren();
  $("more-note").textContent = "";
  if (!one || !two) return;
  const row = (cells, tag, tone) => {
    const tr = document.createElement("tr");
    tr.append(...cells.map((text, i) => Object.assign(document.createElement(tag), {textContent: text, className: i ? "" : "l"})));
    if (tone) tr.className = tone;
    return tr;
  };
  const head = ["engines", "GPUs", "req/s", "req/s a GPU"];
  if (price() > 0) head.push("$ an hour", "$ a million output tokens");
  table.append(document.createElement("thead"), document.createElement("tbody"));
  table.tHead.append(row(head, "th"));
  [one, two].forEach((a, i) => {
    const gpus = gpusOf(n + i), cells = [digits(n + i), digits(gpus), digits(a.capacity), digits(a.capacity / gpus, 3)];
    if (price() > 0) cells.push(money(price() * gpus), a.capacity > 0 ? money(perMillion(a, gpus)) : "none");
    table.tBodies[0].append(row(cells, "td", i ? "" : "best"));
  });
  const gain = two.capacity - one.capacity, step = gpusOf(n + 1) - gpusOf(n);
  $("more-note").textContent = `${preview ? "About: one" : "One"} more engine is ${many(step, "GPU")} more` +
    (price() > 0 ? `, ${money(price() * step)} an hour,` : "") + ` and bears ${digits(gain, 3)} req/s more` +
    (price() > 0 && gain > 0 ? `: ${money(price() * step / gain)} an hour for each further request a second.` : ".");
}

function tellPoint(d, rate) {
  const a = d.answer, broken = a.slo && !a.slo.kept;
  $("point-title").textContent = `At ${digits(rate)} requests a second`;
  $("point-note").textContent = `${digits(a.requests, 6)} requests in ${digits(a.duration_s)} s` +
    (a.slo ? `, ${digits(100 * a.slo.attainment, 4)} % of them within the limits` : "") + (broken && d.error ? `: ${d.error}.` : ".");
  const over = (k, v) => Number(state[k]) > 0 && v > Number(state[k]);
  figures("point-figures", [
    ["TTFT p50", ms(a.ttft_ms.p50), ""], ["TTFT p99", ms(a.ttft_ms.p99), "", over("ttft-p99", a.ttft_ms.p99)],
    ["TPOT p50", ms(a.tpot_ms.p50), ""], ["TPOT p99", ms(a.tpot_ms.p99), "", over("tpot-p99", a.tpot_ms.p99)],
    ["E2E p99", ms(a.e2e_ms.p99), "", over("e2e-p99", a.e2e_ms.p99)],
    ["output", digits(a.output_tok_per_s), "tok/s"], ["KV use at most", digits(100 * a.kv_usage_peak, 3), "%"],
    ["preemptions", digits(a.preemptions, 6), ""],
  ]);
  const box = $("point-charts"), nameOf = spec => "over-" + spec.title.toLowerCase().replace(/[^a-z]+/g, "-");
  for (const e of box.children) e.hidden = !a.charts.some(spec => "chart-" + nameOf(spec) === e.id);
  for (const spec of a.charts) {
    if (!charts[nameOf(spec)]) box.append(Object.assign(document.createElement("div"), {id: "chart-" + nameOf(spec)}));
    draw(nameOf(spec), spec);
  }
  $("point-line").textContent = d.command;
}

/* ---- the course of an answer ------------------------------------------------------ */

/* A move of a slider ends all but a preview under way: that is drawn, so that the curve follows a
 * slider that keeps moving, and the next one begins behind it. */
let work = null, pointWork = null, previewing = false, again = false, moved = 0, chosen = NaN, last = null;

function stage(name, text) {
  const p = $("stage");
  p.className = "stage " + name;
  p.replaceChildren(Object.assign(document.createElement("b"), {textContent: name}), text);
  document.body.dataset.stage = name;
}
function fail(e) {
  if (e.name === "AbortError") return;
  stage("failed", "");
  $("sentence").textContent = e.message;
  $("trust").replaceChildren();
}
const since = () => Math.round(performance.now() - moved);
const tidy = v => Number(v.toPrecision(3));
const rateOf = a => Number(state.rate) || tidy(a.capacity * Number(state.load) / 100);

async function point(a) {
  const rate = rateOf(a);
  if (pointWork) pointWork.abort();
  if (!(rate > 0)) return;
  pointWork = new AbortController();
  chosen = rate;
  try {
    tellPoint(await ask("point", pointFlags(rate), pointWork.signal), rate);
    document.body.dataset.point = String(rate);
  } catch (e) {
    if (e.name === "AbortError") return;
    $("point-note").textContent = e.message;
  }
}

async function refine(mine, preview) {
  const two = await ask("preview", flags(1), mine.signal);
  moreAnswers = [preview.answer, two.answer];
  tellMore(true);
  await point(preview.answer);
  const d = await ask("capacity", flags(), mine.signal);
  last = d;
  drawCurve(d, false);
  tellCapacity(d, false);
  document.body.dataset.finalMs = String(since());
  stage("final", `exactly what vtwin capacity prints; ${digits(since() / 1000, 2)} s after the change`);
  if (rateOf(d.answer) !== chosen) await point(d.answer);
  moreAnswers = [d.answer, (await ask("capacity", flags(1), mine.signal)).answer];
  tellMore(false);
  document.body.dataset.stage = "done";
}

/* The first look; null: it failed, or a newer one is due. */
async function look() {
  const began = moved;
  previewing = true;
  stale(true);
  try {
    const d = await ask("preview", flags());
    last = d;
    drawCurve(d, true);
    tellCapacity(d, true);
    document.body.dataset.previewMs = String(Math.round(performance.now() - began));
    stage("preview", `by short runs, ${Math.round(performance.now() - began)} ms after the change; being refined`);
    return again ? null : d;
  } catch (e) {
    if (!again) fail(e);
    return null;
  } finally {
    previewing = false;
    stale(again);
  }
}

async function go() {
  moved = performance.now();
  if (work) work.abort();
  if (pointWork) pointWork.abort();
  delete document.body.dataset.finalMs;
  save();
  if (previewing) { again = true; return; }
  const mine = work = new AbortController(), d = await look();
  if (again) { again = false; go(); return; }
  if (d) await refine(mine, d).catch(fail);
}

/* ---- controls ------------------------------------------------------------------ */

function showSlider(name) {
  const s = sliders[name], input = $(name), v = String(state[name]);
  let i = s.values.findIndex(k => String(k) === v);
  if (i < 0) { /* a value of a link or command line */
    i = s.values.findIndex(k => Number(k) > Number(v));
    if (i < 0) i = s.values.length;
    s.values.splice(i, 0, v);
  }
  input.min = 0; input.max = s.values.length - 1; input.step = 1; input.value = i;
  const shown = s.show ? s.show(v) : v;
  form.querySelector(`output[for="${name}"]`).textContent = shown;
  input.setAttribute("aria-valuetext", shown);
}
function show() {
  for (const name in sliders) showSlider(name);
  for (const e of form.elements) if (e.name && !sliders[e.name]) e.value = state[e.name] || "";
  $("lengths").hidden = state.workload !== LENGTHS;
  const w = start.workloads.find(k => k.name === state.workload);
  $("about").textContent = w ? w.about : "";
}
function save() {
  const p = new URLSearchParams();
  for (const k in state) if (state[k] !== "" && state[k] !== undefined) p.set(k, state[k]);
  history.replaceState(null, "", "#" + p);
}
function restore() {
  state = startState();
  const p = new URLSearchParams(location.hash.slice(1));
  for (const [k, v] of p) if (form.elements[k]) state[k] = v;
  if (location.hash.length > 1) for (const k of ["rate", "price", "routing", "burstiness"]) if (!p.has(k)) state[k] = "";
  show();
}
function onInput(e) {
  const name = e.target.name, s = sliders[name];
  if (!name) return;
  const v = s ? String(s.values[Number(e.target.value)]) : e.target.value.trim();
  if (name === "model") {
    const known = start.models.some(m => m.name.toLowerCase() === v.toLowerCase());
    e.target.classList.toggle("wrong", !known);
    if (!known) return;
  }
  if (!s && !e.target.validity.valid) return;
  if (state[name] === v) return;
  state[name] = v;
  if (name === "load") { state.rate = ""; form.elements.rate.value = ""; }
  if (s) showSlider(name);
  if (name === "workload") show();
  if (name === "price" && last) {
    save(); tellCapacity(last, !!last.answer.sketch); tellMore(!!last.answer.sketch);
  } else if ((name === "load" || name === "rate") && last) {
    save(); point(last.answer);
  } else go();
}

async function copy(text) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = Object.assign(document.createElement("textarea"), {value: text});
    document.body.append(area); area.select(); document.execCommand("copy"); area.remove();
  }
  $("told").textContent = "copied";
  setTimeout(() => $("told").textContent = "", 2000);
}
async function download(name) {
  const pairs = chosen > 0 ? pointFlags(chosen) : flags();
  try {
    const r = await fetch(`api/v1/${name}?${query(pairs)}`);
    if (!r.ok) throw new Error((await r.json()).error);
    const a = Object.assign(document.createElement("a"), {href: URL.createObjectURL(await r.blob()), download: name});
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10000);
  } catch (e) { $("told").textContent = e.message; }
}

function fill() {
  const option = (value, text) => Object.assign(document.createElement("option"), {value, textContent: text || value});
  $("version").textContent = start.version;
  $("models").append(...start.models.map(m => option(m.name)));
  $("gpu").append(...start.gpus.map(g => option(g.name, `${g.name}, ${digits(g.memory_gb)} GB`)));
  if (trafficFixed()) $("workload").append(option(STARTED, "as the command line says"));
  $("workload").append(...start.workloads.map(w => option(w.name)), option(LENGTHS, "lengths of your own"));
  for (const e of form.querySelectorAll("[data-for]")) e.hidden = modelFixed() && (e.dataset.for === "model" || !start.state.gpu);
  if (start.fixed.length) {
    $("fixed").hidden = false;
    $("fixed").textContent = "Fixed by the command line: " + start.fixed.map(f => `--${f.flag} ${f.value || ""}`).join(" ");
  }
  for (const b of document.querySelectorAll("[data-copy]")) b.onclick = () => copy($(b.dataset.copy).textContent);
  for (const b of document.querySelectorAll("[data-file]")) b.onclick = () => download(b.dataset.file);
  $("link").onclick = () => copy(location.href);
  form.addEventListener("input", onInput);
  form.addEventListener("submit", e => e.preventDefault());
  addEventListener("hashchange", () => { restore(); go(); });
}

(async () => {
  try {
    start = await (await fetch("api/v1/start")).json();
    fill();
    restore();
    go();
  } catch (e) { fail(e); }
})();
})();
