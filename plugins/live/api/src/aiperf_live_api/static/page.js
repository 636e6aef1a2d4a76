/* The page of one run, under way or finished.  All text of the run is set as text, never as markup. */
"use strict";
(function () {
  const {Chart, element, number, clock} = Charts;
  const MOST_LINES = 2000, MOST_POINTS = 7200, FIRST_SERIES = 4, MOST_LINES_OF_CHART = 16;
  const COLUMNS = ["avg", "min", "max", "p50", "p90", "p95", "p99", "std", "count"];
  const at = (id) => document.getElementById(id);

  let run = {status: "waiting"}, snapshot = null, finish = null, step = null;
  let history = empty(), waiting = null, charts = new Map(), seriesCharts = new Map(), known = "";
  let drawn = false;

  function empty() { return {times: [], series: {}}; }

  /* The course of the run. */
  async function load() {
    waiting = [];
    try {
      const loaded = await (await Feed.get("api/history")).json();
      history = {times: loaded.times, series: {}};
      for (const [name, series] of Object.entries(loaded.series)) history.series[name] = series;
    } catch { history = empty(); }
    const missed = waiting;
    waiting = null;
    for (const each of missed) append(each);
    later();
  }

  function append(document) {
    if (waiting !== null) { waiting.push(document); return; }
    const times = history.times;
    if (document.at_s === undefined || !document.points || (times.length && document.at_s <= times[times.length - 1])) return;
    for (const [name, value] of Object.entries(document.points)) {
      if (!(name in history.series)) {
        const counter = name.startsWith("done.") || name === "sent" || name === "failed";
        history.series[name] = {kind: counter ? "counter" : "gauge", values: times.map(() => (counter ? 0 : null)), ...(document.described || {})[name]};
      }
    }
    times.push(document.at_s);
    for (const [name, series] of Object.entries(history.series)) {
      const value = document.points[name];
      const values = series.values;
      values.push(value === undefined || value === null ? (series.kind === "counter" && values.length ? values[values.length - 1] : null) : value);
    }
    if (times.length > MOST_POINTS) load();
  }

  /* Differences of a counter by time, so that the curve's sum is the count. */
  function rate(name) {
    const series = history.series[name];
    if (!series) return null;
    const [times, values] = [history.times, series.values];
    return values.map((value, i) => {
      const [before, since] = i ? [values[i - 1], times[i - 1]] : [0, 0];
      const seconds = times[i] - since;
      return seconds > 0 ? Math.max(0, (value - before) / seconds) : null;
    });
  }

  const values = (name) => (history.series[name] ? history.series[name].values : null);

  function limits(tag) {
    return ((snapshot && snapshot.objectives) || []).filter((each) => each.tag === tag && typeof each.bound === "number")
      .map((each) => ({label: each.title, value: each.bound}));
  }

  function wanted() {
    const list = [];
    const rates = [["done.profiling", "done"], ["done.warmup", "warmup"], ["failed", "failed"]].filter(([name]) => values(name));
    if (rates.length) list.push({key: "rate", title: "Requests", unit: "requests/s", lines: rates.map(([name, label]) => ({label, data: () => rate(name)}))});
    if (values("in_flight")) list.push({key: "in_flight", title: "Requests in flight", unit: "", lines: [{label: "in flight", data: () => values("in_flight")}]});
    const tags = new Map();
    for (const [name, series] of Object.entries(history.series)) {
      const match = /^metric\.(.+)\.(p50|p90|p99|avg)$/.exec(name);
      if (match) {
        if (!tags.has(match[1])) tags.set(match[1], {title: series.title || match[1], unit: series.unit || "", names: []});
        tags.get(match[1]).names.push([match[2], name]);
      }
    }
    for (const [tag, about] of tags) {
      list.push({key: `metric.${tag}`, title: `${about.title}, last 10 s`, unit: about.unit, limits: limits(tag), lines: about.names.map(([label, name]) => ({label, data: () => values(name)}))});
    }
    const workers = Object.keys(history.series).filter((name) => name.startsWith("worker.")).slice(0, MOST_LINES_OF_CHART);
    if (workers.length) list.push({key: "workers", title: "CPU of workers", unit: "% of a core", lines: workers.map((name) => ({label: history.series[name].title || name, data: () => values(name)}))});
    return list;
  }

  function telemetry() {
    const found = new Map();
    for (const [name, series] of Object.entries(history.series)) {
      if (!name.startsWith("series.")) continue;
      const key = `${series.source || ""} ${series.title || name}`;
      if (!found.has(key)) found.set(key, {key, title: series.title || name, unit: series.unit || "", source: series.source || "", lines: []});
      const about = found.get(key);
      if (about.lines.length < MOST_LINES_OF_CHART) about.lines.push({label: [series.target, series.labels].filter(Boolean).join(" ") || "value", data: () => values(name)});
    }
    return found;
  }

  function place(parent, made, about) {
    const shape = JSON.stringify([about.lines.map((line) => line.label), about.limits || []]);
    let entry = made.get(about.key);
    if (entry && entry.shape !== shape) { entry.chart.remove(); made.delete(about.key); entry = null; }
    if (!entry) {
      entry = {shape, chart: new Chart(parent, {title: about.title, unit: about.unit, name: about.key.replace(/[^\w.-]+/g, "_"), series: about.lines, limits: about.limits})};
      made.set(about.key, entry);
    }
    entry.chart.set([history.times, ...about.lines.map((line) => line.data() || history.times.map(() => null))]);
  }

  function drawCharts() {
    for (const about of wanted()) place(at("charts"), charts, about);
    const found = telemetry();
    at("telemetry").hidden = found.size === 0;
    const names = [...found.keys()].join("\n");
    if (names !== known) {
      known = names;
      const chosen = at("series").value;
      at("series").replaceChildren(...[...found.values()].map((about) => element("option", {value: about.key, text: `${about.source}: ${about.title}`})));
      if (found.has(chosen)) at("series").value = chosen;
      const prefer = [...found.keys()].sort((a, b) => interest(b) - interest(a)).slice(0, FIRST_SERIES);
      if (seriesCharts.size === 0) for (const key of prefer) seriesCharts.set(key, null);
    }
    for (const key of [...seriesCharts.keys()]) {
      if (seriesCharts.get(key) === null) seriesCharts.delete(key);
      const about = found.get(key);
      if (about) place(at("series-charts"), seriesCharts, about);
    }
  }

  function interest(key) { return ["running", "waiting", "cache_usage", "util", "queue", "power"].filter((word) => key.includes(word)).length; }

  /* Tables and tiles. */
  function table(caption, head, rows) {
    return element("table", {}, element("caption", {text: caption}),
      element("thead", {}, element("tr", {}, ...head.map(([text, kind]) => element("th", {scope: "col", class: kind, text})))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((value, i) => element("td", {class: head[i][1], text: value}))))));
  }

  function tile(name, value, more, kind) {
    return element("div", {class: "tile"}, element("div", {class: "name", text: name}), element("div", {class: `value ${kind || ""}`, text: value}), element("div", {class: "more", text: more || ""}));
  }

  function metric(tag) { return snapshot.metrics.find((each) => each.tag === tag); }

  function drawTiles() {
    if (!snapshot) { at("tiles").replaceChildren(); return; }
    const tiles = [];
    const now = (value) => (value === null || value === undefined ? "" : `${number(value)} in the last 10 s`);
    tiles.push(tile("Requests/s", number(snapshot.rate), now(snapshot.recent_rate)));
    tiles.push(tile("Done", number(snapshot.completed + snapshot.errors), `${number(snapshot.sent)} sent`));
    tiles.push(tile("In flight", number(snapshot.in_flight)));
    const phase = snapshot.phases.find((each) => each.name === snapshot.phase);
    const failed = phase ? Math.max(phase.failed, phase.errors) : snapshot.errors;
    const done = snapshot.completed + snapshot.errors;
    const share = done ? (100 * failed) / done : 0;
    tiles.push(tile("Failed", number(failed), done ? `${number(share)} %` : "", failed === 0 ? "good" : share <= 10 ? "warn" : "bad"));
    for (const [tag, name] of [["time_to_first_token", "TTFT p99"], ["inter_token_latency", "ITL p99"], ["request_latency", "Latency p99"]]) {
      const found = metric(tag);
      if (found && found.so_far.p99 !== null && found.so_far.p99 !== undefined) tiles.push(tile(name, `${number(found.so_far.p99)} ${found.unit}`, `p50 ${number(found.so_far.p50)}${found.recent && found.recent.p99 ? `, last 10 s p99 ${number(found.recent.p99)}` : ""}`));
    }
    const tokens = metric("output_token_throughput");
    if (tokens) tiles.push(tile("Output tokens/s", number(tokens.so_far.avg), tokens.recent ? now(tokens.recent.avg) : ""));
    if (snapshot.good) {
      const good = snapshot.good;
      tiles.push(tile("Good requests", good.judged ? `${number((100 * good.met) / good.judged)} %` : "–", `${number(good.met)} of ${number(good.judged)}`));
    }
    at("tiles").replaceChildren(...tiles);
  }

  function drawPhases() {
    const phases = snapshot ? snapshot.phases : [];
    at("phases").hidden = phases.length === 0;
    at("bars").replaceChildren(...phases.map((phase) => {
      const share = phase.status === "Complete" ? 1 : phase.share;
      const label = `${phase.name}: ${phase.status}`;
      const parts = [`${number(phase.completed + phase.errors)}${phase.planned ? ` of ${number(phase.planned)}` : ""} done`, clock(phase.elapsed_s)];
      if (phase.due !== null && phase.due !== undefined) parts.push(`${number(phase.due)} due, ${number(phase.late || 0)} late`);
      if (phase.eta_s) parts.push(`${clock(phase.eta_s)} left`);
      return element("div", {class: "bar"}, element("span", {text: label}),
        element("progress", {max: "1", value: share === null || share === undefined ? null : String(share), "aria-label": label}),
        element("span", {class: "soft", text: parts.join(" · ")}));
    }));
  }

  function drawTables() {
    if (!snapshot) return;
    const window_ = at("window").value;
    const place = (each) => [each.headline ?? 1e9, each.order ?? 1e9];
    const sorted = [...snapshot.metrics].sort((a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1]);
    const rows = sorted.filter((each) => each[window_]).map((each) => [each.title, each.unit, ...COLUMNS.map((name) => number(each[window_][name]))]);
    at("metrics").hidden = snapshot.metrics.length === 0;
    at("metric-table").replaceChildren(table(window_ === "recent" ? "of requests reduced in the last 10 s" : `of the phase ${snapshot.phase}`, [["metric"], ["unit", "text"], ...COLUMNS.map((name) => [name])], rows));
    const failures = snapshot.failures || [];
    at("failures").hidden = failures.length === 0;
    const list = failures.map((each) => [each.code === null || each.code === undefined ? "–" : String(each.code), each.type, number(each.count), each.text]);
    if (snapshot.further_failures) list.push(["", "other kinds", number(snapshot.further_failures), ""]);
    at("failure-table").replaceChildren(table("the commonest kinds, each with its first text", [["code"], ["type", "text"], ["requests"], ["first text", "text"]], list));
    const workers = snapshot.workers || [];
    at("workers").hidden = workers.length === 0;
    const sites = workers.some((each) => each.site);
    at("worker-table").replaceChildren(table("processes that send", [["worker"], ...(sites ? [["site", "text"]] : []), ["status", "text"], ["in flight"], ["done"], ["failed"], ["CPU %"], ["memory MB"], ["received MB"]],
      workers.map((each) => [String(each.index), ...(sites ? [each.site || ""] : []), each.status, number(each.in_flight), number(each.completed), number(each.errors), number(each.cpu_pct), mega(each.memory_bytes), mega(each.received_bytes)])));
  }

  function mega(bytes) { return bytes === null || bytes === undefined ? "–" : number(Math.round(bytes / 1e5) / 10); }

  function drawVerdict() {
    const verdict = (finish && finish.verdict) || (snapshot && snapshot.verdict);
    at("verdict").hidden = !verdict;
    if (!verdict) return;
    const delays = (snapshot && snapshot.delays) || {};
    const own = [["slip", delays.slip_ms], ["loop lag", delays.loop_lag_ms], ["client error", delays.client_error_ms]].filter(([, value]) => value !== null && value !== undefined);
    at("verdict-text").replaceChildren(
      element("p", {class: verdict.verdict === "trustworthy" ? "good" : "warn", text: verdict.verdict + (finish ? "" : " so far")}),
      element("ul", {}, ...[...(verdict.reasons || []), ...(verdict.notes || [])].map((text) => element("li", {text}))),
      own.length ? element("p", {class: "soft", text: `the client's own part, p99: ${own.map(([name, value]) => `${name} ${number(value)} ms`).join(", ")}`}) : "");
  }

  function drawStatus() {
    const title = run.title || "aiperf";
    at("title").textContent = title;
    let text = {waiting: "waiting for a run", running: snapshot ? snapshot.status : "starting", complete: "complete", cancelled: "cancelled", incomplete: "incomplete"}[finish ? finish.status : run.status] || run.status;
    if (!finish && step) text = step.line;
    if (!finish && snapshot && !step) text += `, ${clock(snapshot.elapsed_s)}${snapshot.eta_s ? `, ${clock(snapshot.eta_s)} left` : ""}`;
    if (!finish && run.asked) text += run.asked === "stop" ? ", stopping" : ", cancelling";
    if (at("status").textContent !== text) at("status").textContent = text;
    document.title = `${text} – ${title}`;
    const stop = at("stop");
    stop.hidden = !run.live || finish !== null || run.status === "waiting" || !Feed.hasToken();
    stop.textContent = run.asked ? "Cancel" : "Stop";
    stop.disabled = run.asked === "cancel";
    const identity = run.run || {};
    at("about").textContent = [identity.benchmark_id ? `run ${identity.benchmark_id}` : "", run.version ? `aiperf ${run.version}` : "", identity.cli_command || ""].filter(Boolean).join(" · ");
    if (snapshot && snapshot.unreached_s) banner(`no connection to the server for ${clock(snapshot.unreached_s)}`);
    else if (finish && finish.reason) banner(`the run is ${finish.status}: ${finish.reason}`);
    else if (!connection) at("banner").hidden = true;
  }

  let connection = "";
  function banner(text) { at("banner").textContent = text; at("banner").hidden = text === ""; }

  function addLines(lines) {
    if (!lines.length) return;
    const log = at("log");
    at("log-panel").hidden = false;
    const bottom = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
    log.append(...lines.map((line) => element("div", {class: line.level >= 40 ? "bad" : line.level >= 30 ? "warn" : "", text: line.text})));
    while (log.childElementCount > MOST_LINES) log.firstElementChild.remove();
    if (bottom) log.scrollTop = log.scrollHeight;
  }

  async function drawFiles() {
    let listing;
    try { listing = await (await Feed.get("api/results/list")).json(); } catch { return; }
    at("files").hidden = listing.files.length === 0;
    at("file-list").replaceChildren(...listing.files.map((file) => {
      const path = `api/results/files/${file.name.split("/").map(encodeURIComponent).join("/")}`;
      const link = element("a", {href: path, text: file.name});
      if (Feed.hasToken()) link.addEventListener("click", async (event) => {
        event.preventDefault();
        const saved = await (await Feed.get(path)).blob();
        Charts.save(file.name.split("/").pop(), saved, saved.type);
      });
      return element("li", {}, link, element("span", {class: "soft", text: ` ${number(file.size)} bytes`}));
    }));
  }

  function later() {
    if (drawn) return;
    drawn = true;
    requestAnimationFrame(() => {
      drawn = false;
      const range = Number(at("range").value);
      if (range && history.times.length) { const last = history.times[history.times.length - 1]; Charts.zoom([Math.max(0, last - range), last]); }
      drawStatus(); drawPhases(); drawTiles(); drawTables(); drawVerdict(); drawCharts();
    });
  }

  function reset() {
    snapshot = finish = step = null;
    history = empty();
    for (const made of [charts, seriesCharts]) { for (const entry of made.values()) if (entry) entry.chart.remove(); made.clear(); }
    at("log").replaceChildren();
    at("files").hidden = true;
    known = "";
  }

  function on(kind, document) {
    if (kind === "run") {
      const same = run.run && document.run && run.run.benchmark_id === document.run.benchmark_id;
      if (!same) reset();
      run = document;
      load();
    } else if (kind === "lines") { at("log").replaceChildren(); addLines(document); }
    else if (kind === "log") addLines([document]);
    else if (kind === "step") step = document;
    else if (kind === "snapshot") { snapshot = document; step = null; append(document); }
    else if (kind === "end") { finish = document; drawFiles(); }
    else if (kind === "lost") load();
    later();
  }

  async function stop() {
    const kind = run.asked ? "cancel" : "stop";
    try { run.asked = (await Feed.post(`api/${kind}`)) && kind; } catch (error) { banner(error.message); }
    later();
  }

  function show(seconds) { at("range").value = String(seconds); if (seconds === 0) Charts.zoom(null); later(); }

  at("stop").addEventListener("click", stop);
  at("theme").addEventListener("click", Charts.theme);
  at("keys").addEventListener("click", () => at("help").showModal());
  at("range").addEventListener("change", () => show(Number(at("range").value)));
  at("window").addEventListener("change", later);
  at("add-series").addEventListener("click", () => { const key = at("series").value; if (key && !seriesCharts.has(key)) seriesCharts.set(key, null); later(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || at("help").open) return;
    const does = {"?": () => at("help").showModal(), t: Charts.theme, Escape: () => show(0), 0: () => show(0), 1: () => show(60), 5: () => show(300)}[event.key];
    if (does) { event.preventDefault(); does(); }
  });
  Feed.listen("api/events", on, () => finish !== null, (text) => {
    connection = text;
    if (finish && text) return;
    banner(text);
  });
})();
