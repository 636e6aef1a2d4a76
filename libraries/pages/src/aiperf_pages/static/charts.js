/* Charts that share their zoom and cursor, each with a table and CSV.  Needs uPlot and elements.js.  Text from elsewhere is set as text only. */
"use strict";
(function () {
  const {element} = Elements;
  const SYNC = "aiperf";
  const TABLE_ROWS = 200;
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
  const charts = new Set();
  let zoom = null;

  function number(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size > 0 && size < 1e-3) return value.toLocaleString("en-US", {maximumSignificantDigits: 2});
    const digits = Number.isInteger(value) ? 0 : size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4;
    return value.toLocaleString("en-US", {maximumFractionDigits: digits, minimumFractionDigits: 0});
  }

  function clock(seconds) {
    if (seconds === null || seconds === undefined) return "–";
    const whole = Math.max(0, Math.floor(seconds));
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (n) => String(n).padStart(2, "0");
    return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  }

  function color(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  /* content: a text, or a blob that has its type. */
  function save(name, content, type) {
    const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type: type || "text/csv"}));
    const link = element("a", {href: url, download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 5000);
  }

  /* A cell of CSV; a text that a spreadsheet would take for a formula gets a quote before it. */
  function cell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }

  function csv(rows) { return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n"; }

  /* A chart in a panel.  options: title, unit, name (of files), series: [{label, color}], limits: [{label, value}]. */
  class Chart {
    constructor(parent, options) {
      this.options = options;
      this.data = [[], ...options.series.map(() => [])];
      this.plotElement = element("div", {class: "plot", role: "img", "aria-label": `${options.title}, chart; the button Table shows its numbers`});
      this.tableElement = element("div", {class: "scroll", hidden: true, tabindex: "0", role: "region", "aria-label": `${options.title}, table`});
      this.tableButton = element("button", {type: "button", "aria-expanded": "false", text: "Table", onclick: () => this.toggle()});
      const save = element("button", {type: "button", text: "CSV", onclick: () => this.saveCsv()});
      const reset = element("button", {type: "button", text: "Whole run", title: "end the zoom (Escape)", onclick: () => Charts.zoom(null)});
      this.panel = element("section", {class: "panel chart", "aria-label": options.title},
        element("div", {class: "head"}, element("h2", {text: options.title + (options.unit ? ` (${options.unit})` : "")}), this.tableButton, save, reset),
        this.plotElement, this.tableElement);
      for (const [button, what] of [[this.tableButton, "Table"], [save, "CSV"], [reset, "Whole run"]]) button.setAttribute("aria-label", `${what}: ${options.title}`);
      parent.append(this.panel);
      charts.add(this);
      this.draw();
      this.watch = new ResizeObserver(() => this.resize());
      this.watch.observe(this.plotElement);
    }

    remove() { charts.delete(this); this.watch.disconnect(); this.plot.destroy(); this.panel.remove(); }

    size() { return {width: Math.max(200, this.plotElement.clientWidth), height: 220}; }

    draw() {
      if (this.plot) this.plot.destroy();
      const grid = {stroke: color("--line"), width: 1};
      const axis = {stroke: color("--soft"), grid, ticks: grid, font: "12px system-ui, sans-serif"};
      const limits = (this.options.limits || []).map((limit) => ({label: limit.label, value: limit.value}));
      this.plot = new uPlot({
        ...this.size(),
        cursor: {sync: {key: SYNC}, drag: {x: true, y: false}},
        legend: {live: true},
        scales: {x: {time: false}, y: {range: (u, low, high) => this.range(low, high)}},
        axes: [
          {...axis, values: (u, ticks) => ticks.map(clock), space: 60, incrs: STEPS},
          {...axis, size: 62, values: (u, ticks) => ticks.map(number)},
        ],
        series: [
          {label: "time", value: (u, value) => clock(value)},
          ...this.options.series.map((series, index) => ({
            label: series.label, stroke: color(`--c${index % 8}`), width: 1.5, spanGaps: false, dash: index >= 8 ? [6, 3] : undefined,
            points: {show: false}, value: (u, value) => number(value),
          })),
          ...limits.map((limit) => ({label: limit.label, stroke: color("--bad"), width: 1, dash: [4, 4], points: {show: false}, value: (u, v) => number(v)})),
        ],
        hooks: {setSelect: [(u) => { if (u.select.width > 4) Charts.zoom([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]); }]},
      }, this.drawn(), this.plotElement);
      this.follow();
    }

    drawn() {
      const x = this.data[0];
      return [...this.data, ...(this.options.limits || []).map((limit) => x.map(() => limit.value))];
    }

    range(low, high) {
      if (low === null || low === undefined || !Number.isFinite(low)) return [0, 1];
      const top = high <= 0 ? 1 : high * 1.08;
      return [Math.min(0, low), top];
    }

    set(data) {
      this.data = data;
      this.plot.setData(this.drawn(), zoom === null);
      this.follow();
      if (!this.tableElement.hidden) this.fill();
    }

    follow() {
      const x = this.data[0];
      const [low, high] = zoom || [x.length ? x[0] : 0, x.length ? Math.max(x[x.length - 1], x[0] + 1) : 1];
      this.plot.setScale("x", {min: low, max: high});
    }

    resize() { if (this.plotElement.clientWidth) this.plot.setSize(this.size()); }

    rows() {
      const [low, high] = zoom || [-Infinity, Infinity];
      const head = ["seconds", ...this.options.series.map((series) => series.label)];
      const rows = this.data[0].map((x, row) => [x, ...this.data.slice(1).map((column) => column[row])]).filter((row) => row[0] >= low && row[0] <= high);
      return [head, ...rows];
    }

    toggle() {
      this.tableElement.hidden = !this.tableElement.hidden;
      this.plotElement.hidden = !this.tableElement.hidden;
      this.tableButton.setAttribute("aria-expanded", String(!this.tableElement.hidden));
      if (this.tableElement.hidden) this.resize(); else this.fill();
    }

    fill() {
      const [head, ...rows] = this.rows();
      const step = Math.max(1, Math.ceil(rows.length / TABLE_ROWS));
      const shown = rows.filter((row, index) => (rows.length - 1 - index) % step === 0).reverse();
      const table = element("table", {},
        element("caption", {text: step === 1 ? "latest first" : `one row in ${step} of ${number(rows.length)}, latest first; CSV has all`}),
        element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {scope: "col", text})))),
        element("tbody", {}, ...shown.map((row) => element("tr", {}, ...row.map((value, column) => element("td", {text: column ? number(value) : clock(value)}))))));
      this.tableElement.replaceChildren(table);
    }

    saveCsv() { save(`${this.options.name}.csv`, csv(this.rows())); }
  }

  const Charts = {
    Chart, element, number, clock, csv, save,
    zoom(range) {
      zoom = range && range[1] > range[0] ? range : null;
      for (const chart of charts) {
        chart.follow();
        chart.plot.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
        if (!chart.tableElement.hidden) chart.fill();
      }
    },
    zoomed() { return zoom; },
    redraw() { for (const chart of charts) chart.draw(); },
    /* Between light, dark and the system's: the choice stays in this browser. */
    theme() {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("aiperf-theme", root.dataset.theme); } catch { /* storage is off */ }
      Charts.redraw();
    },
  };
  try { const kept = localStorage.getItem("aiperf-theme"); if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept; } catch { /* storage is off */ }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Charts.redraw());
  window.Charts = Charts;
})();
