/* What stands behind a point: the configuration of a run, or a request. */
"use strict";
(function () {
  const {element, number} = Charts;
  const at = (id) => document.getElementById(id);

  function flat(value, path, rows) {
    if (value !== null && typeof value === "object" && Object.keys(value).length) {
      for (const [key, each] of Object.entries(value)) flat(each, path ? `${path}.${key}` : key, rows);
    } else rows.push([path, value === null || value === undefined ? "–" : typeof value === "object" ? "none" : String(value)]);
    return rows;
  }
  function table(caption, rows) {
    return element("table", {}, element("caption", {text: caption}), element("thead", {}, element("tr", {}, element("th", {scope: "col", class: "text", text: "name"}), element("th", {scope: "col", class: "text", text: "value"}))),
      element("tbody", {}, ...rows.map(([name, value]) => element("tr", {}, element("td", {class: "text", text: name}), element("td", {class: "text", text: value})))));
  }
  function show(title, ...parts) {
    at("details-title").textContent = title;
    at("details-body").replaceChildren(...parts.filter(Boolean));
    if (at("details").open) at("details-body").focus();
    else Dialogs.open(at("details"));
  }

  async function run(id) {
    const about = await Site.get(`/api/runs/${encodeURIComponent(id)}`);
    const card = about.card, rows = [["models", card.models.join(", ") || "unknown"], ["load", card.load_label || "unknown"], ["requests", number(card.requests)],
      ["failed", number(card.failed)], ["verdict", card.verdict || "none"], ...card.reasons.map((reason) => ["reason", reason])];
    if (about.repeats > 1) rows.push(["repeats", String(about.repeats)]);
    const stats = ["avg", "p50", "p90", "p99", "min", "max"];
    const metrics = element("table", {}, element("caption", {text: "metrics"}), element("thead", {}, element("tr", {}, ...["metric", "unit", ...stats].map((text) => element("th", {scope: "col", text})))),
      element("tbody", {}, ...Object.entries(about.metrics).map(([tag, entry]) => element("tr", {}, element("td", {class: "text", text: tag}), element("td", {text: String(entry.unit)}), ...stats.map((stat) => element("td", {text: typeof entry[stat] === "number" ? number(entry[stat]) : "–"}))))));
    show(about.label, table("run", rows), table("configuration", flat(about.configuration, "", [])), element("div", {class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Metrics"}, metrics));
  }

  function timeline(about) {
    const meta = about.metadata, ms = (tag) => about.metrics[tag] && typeof about.metrics[tag].value === "number" ? about.metrics[tag].value : null;
    const [begin, end, issued] = [meta.request_start_ns, meta.request_end_ns, meta.credit_issued_ns];
    if (!begin || !end) return null;
    const first = ms("time_to_first_token"), from = Math.min(begin, issued || begin), whole = Math.max(1, end - from), stages = [];
    if (issued && issued < begin) stages.push(["wait", issued, begin]);
    stages.push(first === null ? ["request", begin, end] : ["to the first token", begin, begin + first * 1e6]);
    if (first !== null) stages.push(["generation", begin + first * 1e6, end]);
    const bar = Figures.svg("svg", {viewBox: "0 0 600 26", width: "100%", height: 26, role: "img", "aria-label": stages.map(([name, a, b]) => `${name} ${number((b - a) / 1e6)} ms`).join(", ")});
    stages.forEach(([, a, b], index) => { const one = Figures.svg("rect", {x: ((a - from) / whole) * 600, y: 3, width: Math.max(1, ((b - a) / whole) * 600), height: 20, class: `stage${index}`}); one.style.fill = `var(--c${index})`; bar.append(one); });
    return element("div", {}, bar, element("p", {class: "soft", text: stages.map(([name, a, b]) => `${name}: ${number((b - a) / 1e6)} ms`).join("; ")}));
  }

  function parts(about) {
    const metrics = Object.entries(about.metrics).map(([tag, each]) => [tag, each && typeof each === "object" ? `${Array.isArray(each.value) ? `${each.value.length} values` : typeof each.value === "number" ? number(each.value) : each.value} ${each.unit || ""}`.trim() : String(each)]);
    const error = table("error", flat(about.error || {error: "none"}, "", [])), measured = table("metrics and tokens", metrics);
    return [timeline(about), ...(about.error ? [error, measured] : [measured, error]),
      table("request", flat(about.metadata, "", [])), table("arrival", flat(about.arrival || {arrival: "the run has no ledger of arrivals"}, "", []))];
  }

  async function request(id, row) {
    const about = await Site.get(`/api/runs/${encodeURIComponent(id)}/requests/${row}`);
    show(`${about.run}: request ${number(row)}`, ...parts(about));
  }

  /* The failed requests of a bar: of a kind ("" is any) that ended from and to so many seconds. */
  async function failures(id, kind, from, to) {
    const found = await Site.get(`/api/runs/${encodeURIComponent(id)}/failures`, {kind, from: String(from), to: String(to)});
    const again = (action) => () => action().catch((error) => show(found.run, element("p", {class: "bad", text: error.message})));
    const rows = found.requests.map((each) => element("tr", {},
      element("td", {}, element("button", {type: "button", class: "plain", text: `after ${each.ended_s.toFixed(3)} s`, onclick: again(() => failure(id, each.number, again(() => failures(id, kind, from, to))))})),
      element("td", {class: "text", text: each.kind}), element("td", {class: "text", text: each.message || ""})));
    const of = found.total > found.requests.length ? `the first ${number(found.requests.length)} of ${number(found.total)}` : `${number(found.total)}`;
    show(`${found.run}: failed requests`, element("table", {}, element("caption", {text: `${of} that ended ${number(from)} to ${number(to)} s after the first start; each shows its error`}),
      element("thead", {}, element("tr", {}, ...["ended", "kind", "message"].map((text) => element("th", {scope: "col", class: "text", text})))), element("tbody", {}, ...rows)));
  }

  async function failure(id, row, back) {
    const about = await Site.get(`/api/runs/${encodeURIComponent(id)}/failures/${row}`);
    show(`${about.run}: failed request ${number(row)}`, element("button", {type: "button", text: "Back to the list", onclick: back}), ...parts(about));
  }
  window.Details = {run, request, failures};
})();
