/* The list of finished runs.  All text of runs is set as text. */
"use strict";
(function () {
  const {element, number} = Charts;
  const at = (id) => document.getElementById(id);
  const COLUMNS = [
    ["run", "text", (run) => run.label], ["model", "text", (run) => (run.models || []).join(", ")],
    ["endpoint", "text", (run) => run.endpoint_type || ""],
    ["started", "text", (run) => (run.start_time ? new Date(run.start_time).toLocaleString() : "")],
    ["status", "text", (run) => run.problem || run.status], ["verdict", "text", (run) => run.verdict || ""],
    ["requests", "", (run) => run.requests], ["failed", "", (run) => run.failed], ["requests/s", "", (run) => run.request_throughput],
    ["TTFT p99 ms", "", (run) => run.time_to_first_token_p99], ["ITL p99 ms", "", (run) => run.inter_token_latency_p99],
    ["latency p99 ms", "", (run) => run.request_latency_p99],
  ];
  let runs = [], sorted = null, up = true;

  function shown() {
    const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = runs.filter((run) => { const text = COLUMNS.slice(0, 6).map(([, , value]) => String(value(run))).join(" ").toLowerCase(); return words.every((word) => text.includes(word)); });
    if (sorted !== null) {
      const value = COLUMNS[sorted][2];
      found.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === y) return 0;
        if (x === null || x === undefined) return 1;
        if (y === null || y === undefined) return -1;
        return (x < y ? -1 : 1) * (up ? 1 : -1);
      });
    }
    return found;
  }

  function draw() {
    const found = shown();
    at("count").textContent = `${found.length} of ${runs.length}`;
    const head = COLUMNS.map(([name, kind], index) => element("th", {scope: "col", class: kind, "aria-sort": sorted === index ? (up ? "ascending" : "descending") : "none"},
      element("button", {type: "button", class: "plain", text: name + (sorted === index ? (up ? " ▲" : " ▼") : ""), onclick: () => { up = sorted === index ? !up : true; sorted = index; draw(); }})));
    const rows = found.map((run) => element("tr", {}, ...COLUMNS.map(([, kind, value], index) => {
      const text = kind === "text" ? String(value(run) ?? "") : number(value(run));
      return index === 0 ? element("td", {class: kind}, element("a", {href: `/runs/${encodeURIComponent(run.id)}/`, text})) : element("td", {class: kind, text});
    })));
    at("runs").replaceChildren(element("table", {}, element("caption", {text: "finished runs; a column's name sorts by it"}), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
  }

  at("find").addEventListener("input", draw);
  at("theme").addEventListener("click", Charts.theme);
  at("csv").addEventListener("click", () => Charts.save("runs.csv", Charts.csv([COLUMNS.map(([name]) => name), ...shown().map((run) => COLUMNS.map(([, , value]) => value(run)))])));
  (async () => {
    try { runs = (await (await Feed.get("/api/runs")).json()).runs; draw(); }
    catch (error) { at("banner").textContent = error.message; at("banner").hidden = false; at("count").textContent = ""; }
  })();
})();
