/* The page: runs that are chosen, their pictures, objectives.  The state is in the URL. */
"use strict";
(function () {
  const {element, number, csv, save} = Charts;
  const at = (id) => document.getElementById(id);
  const FIRST_RUNS = 20, TABLE_ROWS = 200, HEIGHT = 340, FULL = {width: 1200, height: 560};
  let state = null, choices = {plots: [], metrics: []}, list = null, drawing = 0, judging = 0;
  let panels = [];

  // ---- state
  function fresh() { return {runs: null, plots: null, own: [], window: 0, logs: {}, zoom: null, limits: [], share: 95, find: "", model: "", load: "", page: 0}; }
  function read() {
    const query = new URLSearchParams(location.search), found = fresh();
    const words = (name) => (query.has(name) ? query.get(name).split(",").filter(Boolean) : null);
    found.runs = words("runs");
    found.plots = words("plots");
    try { found.own = JSON.parse(query.get("own") || "[]").filter((each) => each && typeof each.name === "string" && each.preset); } catch { /* no pictures of its own */ }
    for (const each of words("logs") || []) { const [name, axis, on] = each.split(":"); (found.logs[name] ||= {})[axis] = on === "1"; }
    const zoom = (words("zoom") || []).map(Number);
    if (zoom.length === 2 && zoom.every(Number.isFinite) && zoom[0] < zoom[1]) found.zoom = zoom;
    found.limits = (words("limits") || []).map((each) => { const cut = each.lastIndexOf(":"); return {tag: each.slice(0, cut), limit: Number(each.slice(cut + 1))}; }).filter((each) => each.tag && Number.isFinite(each.limit));
    for (const [name, least, most] of [["window", 0, 10000], ["share", 1, 100], ["page", 0, 1e6]]) { const value = Number(query.get(name)); if (query.has(name) && Number.isInteger(value) && value >= least && value <= most) found[name] = value; }
    for (const name of ["find", "model", "load"]) found[name] = query.get(name) || "";
    return found;
  }
  function keep(replace) {
    const query = new URLSearchParams(), plain = fresh();
    if (state.runs) query.set("runs", state.runs.join(","));
    if (state.plots) query.set("plots", state.plots.join(","));
    if (state.own.length) query.set("own", JSON.stringify(state.own));
    const logs = Object.entries(state.logs).flatMap(([name, axes]) => Object.entries(axes).map(([axis, on]) => `${name}:${axis}:${on ? 1 : 0}`));
    if (logs.length) query.set("logs", logs.join(","));
    if (state.zoom) query.set("zoom", state.zoom.map((value) => +value.toPrecision(8)).join(","));
    if (state.limits.length) query.set("limits", state.limits.map((each) => `${each.tag}:${each.limit}`).join(","));
    for (const name of ["window", "share", "find", "model", "load", "page"]) if (state[name] !== plain[name]) query.set(name, state[name]);
    const url = `${location.pathname}?${query}`;
    if (replace) history.replaceState(null, "", url);
    else if (url !== location.pathname + location.search) history.pushState(null, "", url);
  }
  function fault(error) { at("banner").textContent = error.message || String(error); at("banner").hidden = false; }
  function calm() { at("banner").hidden = true; }

  // ---- runs
  async function loadList() {
    const {find, model, load, page} = state;
    try {
      const found = await Site.get("/api/runs", {find, model, load, page});
      if (find !== state.find || model !== state.model || load !== state.load || page !== state.page) return;
      list = found;
      if (state.runs === null) { state.runs = list.names.slice(0, FIRST_RUNS); keep(true); }
      showList();
      if (list.read < list.total) setTimeout(loadList, 1000);
    } catch (error) { fault(error); }
  }
  function showList() {
    const head = ["chosen", "run", "model", "load", "requests", "failed", "verdict"];
    const rows = list.runs.map((run) => {
      const box = element("input", {type: "checkbox", "aria-label": `choose ${run.label}`, onchange: () => choose(box.checked ? [...state.runs, run.id] : state.runs.filter((each) => each !== run.id))});
      box.checked = state.runs.includes(run.id);
      const link = element("button", {type: "button", class: "plain", text: run.label, onclick: () => Details.run(run.id).catch(fault)});
      if (run.problem) return element("tr", {}, element("td", {}, box), element("td", {class: "text", text: run.label}), element("td", {class: "text bad", colspan: "5", text: run.problem}));
      return element("tr", {}, element("td", {}, box), element("td", {class: "text"}, link), element("td", {class: "text", text: run.models.join(", ")}), element("td", {class: "text", text: run.load_label}),
        element("td", {text: number(run.requests)}), element("td", {text: number(run.failed)}), element("td", {class: "text", text: run.verdict || "–"}));
    });
    const focused = document.activeElement && document.activeElement.getAttribute("aria-label");
    at("runs").replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...head.map((text, index) => element("th", {scope: "col", class: [1, 2, 3, 6].includes(index) ? "text" : "", text})))), element("tbody", {}, ...rows)));
    if (focused && focused.startsWith("choose ")) for (const box of at("runs").querySelectorAll("input")) if (box.getAttribute("aria-label") === focused) box.focus();
    at("chosen").textContent = `${state.runs.length} chosen, ${number(list.found)} of ${number(list.total)} found${list.read < list.total ? `, ${number(list.read)} read so far` : ""}`;
    at("page").textContent = `page ${list.page + 1} of ${list.pages}`;
    at("back").disabled = list.page === 0;
    at("next").disabled = list.page + 1 >= list.pages;
    at("models").replaceChildren(...list.models.map((value) => element("option", {value})));
    at("load").replaceChildren(element("option", {value: "", text: "any"}), ...list.loads.map((value) => element("option", {value, text: value, selected: value === state.load})));
  }
  function choose(names) { state.runs = [...new Set(names)]; keep(); showList(); drawAll(); }

  // ---- pictures
  const several = () => state.runs.length > 1;
  function wanted() {
    const mine = state.own.filter((each) => each.several === several()).map((each) => each.name);
    const names = state.plots === null ? choices.plots.map((plot) => plot.name) : state.plots;
    return [...mine, ...names.filter((name) => !mine.includes(name) && (choices.plots.some((plot) => plot.name === name)))];
  }
  const isTime = (figure) => /time|started after/i.test(figure.x.label) && /\(s\)/.test(figure.x.label);

  async function drawAll() {
    const turn = ++drawing;
    calm();
    at("status").textContent = "drawing";
    at("reasons").replaceChildren();
    at("lacking").hidden = true;
    if (!state.runs.length) { at("figures").replaceChildren(); panels = []; at("status").textContent = "no run is chosen"; choices = {plots: [], metrics: []}; showMore(); judge(); return; }
    try {
      choices = await Site.get("/api/choices", {runs: state.runs.join(",")});
    } catch (error) { fault(error); at("status").textContent = ""; return; }
    if (turn !== drawing) return;
    showMore();
    showLimits();
    judge();
    const names = wanted(), kept = [];
    for (const panel of panels) if (names.includes(panel.name)) kept.push(panel); else panel.remove();
    panels = [];
    const reasons = new Set();
    for (const name of names) {
      const own = state.own.find((each) => each.name === name && each.several === several());
      const fields = {runs: state.runs.join(","), window: state.window, ...(own ? {file: Own.file([own], [name], several())} : {only: name})};
      const before = kept.find((panel) => panel.name === name);
      try {
        const found = await Site.get("/api/figures", fields);
        if (turn !== drawing) { for (const panel of kept) if (!panels.includes(panel)) panels.push(panel); return; }
        for (const sentence of found.failures) reasons.add(sentence);
        at("caption").textContent = found.caption.join(" · ");
        if (found.figures.length) {
          const panel = before || new Panel(name, Boolean(own));
          panel.set(found.figures[0], found);
          panels.push(panel);
          at("figures").append(panel.element);
        } else if (before) before.remove();
      } catch (error) { reasons.add(`${name}: ${error.message}`); if (before) before.remove(); }
      at("status").textContent = `${panels.length} pictures, ${names.length - panels.length} to look at`;
    }
    at("status").textContent = `${panels.length} picture${panels.length === 1 ? "" : "s"} of ${state.runs.length} run${several() ? "s" : ""}`;
    at("lacking").hidden = reasons.size === 0;
    at("reasons").replaceChildren(...[...reasons].map((text) => element("li", {text})));
  }
  function showMore() {
    const shown = wanted();
    at("more").replaceChildren(element("option", {value: "", text: "all that fit"}), ...choices.plots.map((plot) => element("option", {value: plot.name, text: `${plot.title}${state.plots !== null && shown.includes(plot.name) ? " (shown)" : ""}`})));
  }
  function show(names) { state.plots = names; keep(); drawAll(); }
  function setZoom(range) {
    state.zoom = range && range[1] > range[0] ? range : null;
    at("from").value = state.zoom ? +state.zoom[0].toPrecision(6) : "";
    at("to").value = state.zoom ? +state.zoom[1].toPrecision(6) : "";
    for (const panel of panels) panel.draw();
  }

  class Panel {
    constructor(name, own) {
      this.name = name;
      this.hidden = new Set();
      this.zoom = null;
      this.current = -1;
      const button = (text, onclick, more) => element("button", {type: "button", text, onclick, ...more});
      this.title = element("h2", {});
      this.logX = button("log x", () => this.log("x"));
      this.logY = button("log y", () => this.log("y"));
      this.tableButton = button("Table", () => this.toggle(), {"aria-expanded": "false"});
      this.buttons = [this.logX, this.logY, this.tableButton, button("CSV", () => save(`${name}.csv`, csv(this.rows()))), button("SVG", () => save(`${name}.svg`, this.full(), "image/svg+xml")),
        button("PNG", async () => Save.blob(`${name}.png`, await Save.png(this.full()))), button("Larger", (event) => { const wide = this.element.classList.toggle("wide"); event.target.setAttribute("aria-pressed", String(wide)); this.draw(); }, {"aria-pressed": "false"}),
        button("Hide", () => this.drop())];
      this.plot = element("div", {class: "plot", tabindex: "0", role: "group"});
      this.tip = element("div", {class: "tip", "aria-live": "polite", hidden: true});
      this.legend = element("ul", {class: "legend"});
      this.table = element("div", {class: "scroll", hidden: true, tabindex: "0", role: "region"});
      this.notes = element("p", {class: "notes"});
      this.element = element("section", {class: "panel figure"}, element("div", {class: "head"}, this.title, ...this.buttons), this.plot, this.table, this.legend, this.notes);
      this.own = own;
      this.listen();
      this.watch = new ResizeObserver(() => { if (this.figure && Math.abs(this.plot.clientWidth - this.width) > 1) this.draw(); });
      this.watch.observe(this.plot);
    }
    remove() { this.watch.disconnect(); this.element.remove(); }
    drop() {
      const own = state.own.find((each) => each.name === this.name);
      if (own) { state.own = state.own.filter((each) => each !== own); keep(); drawAll(); }
      else show(panels.map((panel) => panel.name).filter((name) => name !== this.name && !state.own.some((each) => each.name === name)));
    }
    set(figure, found) {
      this.figure = figure;
      this.found = found;
      this.current = -1;
      this.title.textContent = figure.title;
      this.element.setAttribute("aria-label", figure.title);
      this.plot.setAttribute("aria-label", `${figure.title}: arrow keys go from point to point, Enter shows what a point is, Escape ends the zoom`);
      this.table.setAttribute("aria-label", `${figure.title}, table`);
      for (const each of this.buttons) each.setAttribute("aria-label", `${each.textContent}: ${figure.title}`);
      this.hidden = new Set([...this.hidden].filter((name) => figure.series.some((one) => one.name === name)));
      this.draw();
    }
    logs() { return {x: state.logs[this.name]?.x ?? this.figure.x.log, y: state.logs[this.name]?.y ?? this.figure.y.log}; }
    log(axis) { (state.logs[this.name] ||= {})[axis] = !this.logs()[axis]; keep(); this.draw(); }
    range() { return isTime(this.figure) ? state.zoom : this.zoom; }
    draw() {
      this.width = Math.max(260, this.plot.clientWidth || this.element.clientWidth - 30);
      this.drawing = new Figures.Drawing(this.figure, {width: this.width, height: this.element.classList.contains("wide") ? 480 : HEIGHT, hidden: this.hidden, logs: this.logs(), zoom: this.range()});
      this.plot.replaceChildren(this.drawing.svg, this.tip);
      this.tip.hidden = true;
      const logs = this.logs();
      this.logX.setAttribute("aria-pressed", String(logs.x));
      this.logY.setAttribute("aria-pressed", String(logs.y));
      this.logY.disabled = this.figure.lanes && this.figure.lanes.length > 0;
      const dropped = this.drawing.dropped ? [`${number(this.drawing.dropped)} points at 0 or below have no place on an axis in decades`] : [];
      this.notes.textContent = [...(this.figure.notes || []), ...(this.figure.shade ? [`darker: more ${this.figure.shade}`] : []), ...dropped].join(" · ");
      this.legend.replaceChildren(...this.figure.series.map((one, index) => {
        const drawn = this.drawing.series.find((each) => each.name === one.name) || {shade: index};
        return element("li", {}, element("button", {type: "button", title: one.name, "aria-label": one.name, "aria-pressed": String(!this.hidden.has(one.name)), onclick: () => { if (!this.hidden.delete(one.name)) this.hidden.add(one.name); this.draw(); }},
          Figures.sample(one, index, this.drawing.colors.colors[drawn.shade % 8]), element("span", {text: Figures.middle(one.name)})));
      }));
      if (!this.table.hidden) this.fill();
    }
    full() {
      const made = new Figures.Drawing(this.figure, {...FULL, hidden: this.hidden, logs: this.logs(), zoom: this.range(), full: true, caption: this.found.caption});
      const title = Figures.svg("title", {});
      title.textContent = this.figure.title;
      made.svg.prepend(title);
      return new XMLSerializer().serializeToString(made.svg);
    }
    rows() {
      const names = ["x", "y", "x_low", "x_high", "y_low", "y_high", "values"].filter((name) => this.figure.series.some((one) => one[name])), range = this.range();
      const head = ["series", this.figure.x.label, this.figure.y.label, ...names.slice(2), "label", "run"], rows = [head];
      for (const one of this.figure.series) for (let row = 0; row < one.x.length; row += 1) {
        if (range && (one.x[row] < range[0] || one.x[row] > range[1])) continue;
        rows.push([one.name, ...names.map((name) => (one[name] ? one[name][row] : null)), one.labels ? one.labels[row] : null, one.runs ? one.runs[row] : null]);
      }
      return rows;
    }
    fill() {
      const [head, ...rows] = this.rows(), step = Math.max(1, Math.ceil(rows.length / TABLE_ROWS));
      this.table.replaceChildren(element("table", {}, element("caption", {text: step === 1 ? `${number(rows.length)} rows` : `every ${step}th of ${number(rows.length)} rows; CSV has all`}),
        element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {scope: "col", text})))),
        element("tbody", {}, ...rows.filter((_, index) => index % step === 0).map((row) => element("tr", {}, ...row.map((value) => element("td", {class: typeof value === "string" ? "text" : "", text: typeof value === "number" ? number(value) : value ?? ""})))))));
    }
    toggle() { this.table.hidden = !this.table.hidden; this.tableButton.setAttribute("aria-expanded", String(!this.table.hidden)); if (!this.table.hidden) this.fill(); }

    // pointer and keys
    near(event) {
      const box = this.plot.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = -1, least = 30 ** 2;
      this.drawing.points.forEach((point, index) => { const up = point.one.kind === "bar" ? Math.max(0, point.y - y) : point.y - y, far = (point.x - x) ** 2 + up ** 2; if (far < least) [best, least] = [index, far]; });
      return best;
    }
    point(index) {
      this.current = index;
      this.tip.hidden = index < 0;
      if (this.ring) { this.ring.remove(); this.ring = null; }
      if (index < 0) return;
      const {one, at: row, x, y} = this.drawing.points[index];
      this.ring = Figures.svg("circle", {cx: x, cy: y, r: 7, fill: "none", stroke: this.drawing.colors.text, "stroke-width": 2});
      this.drawing.ground.append(this.ring);
      const parts = [one.runs ? one.runs[row] : one.name];
      if (one.labels && one.labels[row] && one.labels[row] !== parts[0]) parts.push(one.labels[row]);
      const y2 = one.axis === "y2" ? this.figure.y2 : this.figure.y;
      if (one.kind === "heat") parts.push(`${this.figure.shade || "value"}: ${number(one.values[row])}`);
      if (one.kind === "lanes") parts.push(`${number(one.x_low[row])} to ${number(one.x_high[row])} s`);
      else parts.push(`${this.figure.x.label}: ${number(one.x[row])}`, `${y2.label}: ${number(one.y[row])}`);
      if (this.target()) parts.push("click or Enter shows more");
      this.tip.textContent = parts.join("\n");
      this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.width - 240))}px`;
      this.tip.style.top = `${Math.max(0, y > 120 ? y - 100 : y + 14)}px`;
    }
    target() {
      if (this.current < 0) return null;
      const {one, at: row} = this.drawing.points[this.current], ids = this.found.ids;
      if (one.runs && ids[one.runs[row]]) return () => Details.run(ids[one.runs[row]]);
      const run = state.runs.length === 1 ? state.runs[0] : ids[one.name];
      if (run && this.name === "failures_over_time" && one.x_low) return () => Details.failures(run, one.name === "other" ? "" : one.name, one.x_low[row], one.x_high[row]);
      if (run && one.rows && one.rows.length) return () => Details.request(run, one.rows[row]);
      if (run && ids[one.name]) return () => Details.run(run);
      return null;
    }
    open() { const target = this.target(); if (target) target().catch(fault); }
    zoomTo(range) { if (isTime(this.figure)) { setZoom(range); keep(); } else { this.zoom = range; this.draw(); } }
    listen() {
      let from = null, shade = null;
      const x = (event) => Math.min(this.drawing.right, Math.max(this.drawing.left, event.clientX - this.plot.getBoundingClientRect().left));
      this.plot.addEventListener("pointerdown", (event) => { if (event.button === 0 && this.drawing) { from = x(event); this.plot.setPointerCapture(event.pointerId); } });
      this.plot.addEventListener("pointermove", (event) => {
        if (!this.drawing) return;
        if (from === null) { this.point(this.near(event)); return; }
        const to = x(event);
        if (Math.abs(to - from) < 5) return;
        if (!shade) { shade = Figures.svg("rect", {y: this.drawing.top, height: this.drawing.bottom - this.drawing.top, fill: this.drawing.colors.soft, "fill-opacity": 0.25}); this.drawing.svg.append(shade); }
        shade.setAttribute("x", Math.min(from, to));
        shade.setAttribute("width", Math.abs(to - from));
      });
      const end = (event) => {
        if (from === null) return;
        const to = x(event), begin = from;
        from = null;
        if (shade) { shade.remove(); shade = null; }
        if (event.type === "pointercancel") return;
        if (Math.abs(to - begin) >= 5) this.zoomTo([begin, to].sort((a, b) => a - b).map((pixel) => this.drawing.x.value(pixel)));
        else { this.point(this.near(event)); this.open(); }
      };
      this.plot.addEventListener("pointerup", end);
      this.plot.addEventListener("pointercancel", end);
      this.plot.addEventListener("pointerleave", () => { if (from === null && document.activeElement !== this.plot) this.point(-1); });
      this.plot.addEventListener("blur", () => this.point(-1));
      this.plot.addEventListener("keydown", (event) => {
        const points = this.drawing.points, now = this.current < 0 ? null : points[this.current];
        const jump = (step) => { if (points.length) this.point(now === null ? 0 : (this.current + step + points.length) % points.length); };
        const other = (step) => {
          if (!points.length) return;
          const names = [...new Set(points.map((point) => point.one.name))], name = names[(names.indexOf(now ? now.one.name : names[0]) + step + names.length) % names.length];
          this.point(points.findIndex((point) => point.one.name === name));
        };
        const keys = {ArrowRight: () => jump(1), ArrowLeft: () => jump(-1), ArrowDown: () => other(1), ArrowUp: () => other(-1), Enter: () => this.open(), Escape: () => this.zoomTo(null)};
        if (event.target === this.plot && keys[event.key]) { event.preventDefault(); keys[event.key](); }
      });
    }
  }

  // ---- files
  const Save = {
    blob(name, blob) { const url = URL.createObjectURL(blob), link = element("a", {href: url, download: name}); link.click(); setTimeout(() => URL.revokeObjectURL(url), 5000); },
    async png(text) {
      const image = new Image();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
      await image.decode();
      const canvas = element("canvas", {width: image.naturalWidth * 2, height: image.naturalHeight * 2});
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    },
    config() { return Own.file(state.own, panels.map((panel) => panel.name), several()); },
    async zip() {
      const bytes = (text) => new TextEncoder().encode(text), files = [{name: "plots.yaml", bytes: bytes(Save.config())}];
      for (const panel of panels) {
        const picture = panel.full();
        files.push({name: `${panel.name}.svg`, bytes: bytes(picture)}, {name: `${panel.name}.png`, bytes: new Uint8Array(await (await Save.png(picture)).arrayBuffer())}, {name: `${panel.name}.csv`, bytes: bytes(csv(panel.rows()))});
      }
      files.push({name: "state.json", bytes: bytes(`${JSON.stringify({address: location.pathname + location.search}, null, 2)}\n`)});
      files.push({name: "summary.txt", bytes: bytes([...(panels[0] ? panels[0].found.caption : []), "", ...panels.map((panel) => `${panel.name}: ${panel.figure.description}`)].join("\n") + "\n")});
      Save.blob("pictures.zip", Zip.zip(files));
    },
    /* From the server: all numbers of all pictures that fit. */
    async numbers() {
      const rest = new URLSearchParams(location.search);
      rest.delete("runs");
      const fields = {runs: state.runs.join(","), window: String(state.window), file: Own.file(state.own, wanted(), several()), state: String(rest)};
      const answer = await Answers.get(`/api/zip?${new URLSearchParams(fields)}`);
      Save.blob("pictures.zip", await answer.blob());
    },
  };

  // ---- objectives
  function most(tag) { return limitOf(tag).most; }
  function limitOf(tag) {
    const values = choices.ranges?.[tag];
    return values || {least: 0, most: 1000};
  }
  function showLimits() {
    at("limits").replaceChildren(...state.limits.map((each, index) => {
      const id = `limit-${index}`, tags = choices.metrics.filter((metric) => metric.stats.includes("p99")).map((metric) => metric.tag);
      if (!tags.includes(each.tag)) tags.unshift(each.tag);
      const unit = (choices.metrics.find((metric) => metric.tag === each.tag) || {unit: ""}).unit, top = Math.max(most(each.tag), each.limit);
      const set = (value) => { if (!Number.isFinite(value)) return; each.limit = value; slider.value = value; field.value = value; keep(true); clearTimeout(set.timer); set.timer = setTimeout(judge, 120); };
      const slider = element("input", {type: "range", min: 0, max: top, step: top / 500, value: each.limit, "aria-label": `limit of ${each.tag}`, oninput: () => set(Number(slider.value)), onchange: () => keep()});
      const field = element("input", {type: "number", id, step: "any", value: each.limit, "aria-label": `limit of ${each.tag}, ${unit}`, onchange: () => { set(Number(field.value)); }});
      slider.value = each.limit;
      const metric = element("select", {"aria-label": `metric of objective ${index + 1}`, onchange: () => { each.tag = metric.value; each.limit = +(most(each.tag) / 2).toPrecision(3); keep(); showLimits(); judge(); }}, ...tags.map((value) => element("option", {value, text: value, selected: value === each.tag})));
      return element("div", {class: "limit"}, metric, element("span", {text: /throughput|goodput/.test(each.tag) ? "≥" : "≤"}), slider, field, element("span", {class: "soft", text: unit}),
        element("button", {type: "button", text: "Drop", "aria-label": `drop the objective of ${each.tag}`, onclick: () => { state.limits.splice(index, 1); keep(); showLimits(); judge(); }}));
    }));
  }
  async function judge() {
    const turn = ++judging;
    if (!state.limits.length || !state.runs.length) { at("met").replaceChildren(); at("highest").textContent = "none yet"; return; }
    try {
      const found = await Site.get("/api/objectives", {runs: state.runs.join(","), limits: state.limits.map((each) => `${each.tag}:${each.limit}`).join(","), share: state.share});
      if (turn !== judging) return;
      const rows = found.runs.map((run) => element("tr", {}, element("td", {class: "text", text: run.label}), element("td", {class: "text", text: run.load_label}), element("td", {text: number(run.good)}), element("td", {text: number(run.count)}), element("td", {text: `${run.share.toFixed(1)} %`}), element("td", {class: `text ${run.meets ? "good" : "bad"}`, text: run.meets ? "yes" : "no"})));
      at("met").replaceChildren(element("table", {}, element("caption", {text: ["share of all requests, failed ones included, by load", ...found.failures].join("; ")}),
        element("thead", {}, element("tr", {}, ...["run", "load", "meet all", "requests", "share", `≥ ${found.share} %`].map((text, index) => element("th", {scope: "col", class: [0, 1, 5].includes(index) ? "text" : "", text})))), element("tbody", {}, ...rows)));
      const shares = found.runs.length === 1 ? `${found.runs[0].share.toFixed(1)} % of the requests meet them` : found.highest ? `highest load that meets them: ${found.highest.load_label} (${found.highest.share.toFixed(1)} %)` : "no load meets them";
      at("highest").textContent = shares;
    } catch (error) { fault(error); }
  }

  // ---- controls
  function controls() {
    for (const name of ["find", "model", "load"]) at(name).value = state[name];
    at("window").value = state.window;
    at("share").value = state.share;
    setZoom(state.zoom);
  }
  let typing = 0;
  for (const name of ["find", "model"]) at(name).addEventListener("input", () => { state[name] = at(name).value; state.page = 0; keep(true); clearTimeout(typing); typing = setTimeout(loadList, 150); });
  at("load").addEventListener("change", () => { state.load = at("load").value; state.page = 0; keep(); loadList(); });
  at("back").addEventListener("click", () => { state.page -= 1; keep(); loadList(); });
  at("next").addEventListener("click", () => { state.page += 1; keep(); loadList(); });
  at("all").addEventListener("click", () => choose([...state.runs, ...list.names]));
  at("none").addEventListener("click", () => choose([]));
  at("show").addEventListener("click", () => { const name = at("more").value; show(name === "" ? null : [...new Set([...(state.plots || []), name])]); });
  at("window").addEventListener("change", () => { const value = Math.round(Number(at("window").value)); if (value >= 0 && value <= 10000) { state.window = value; keep(); drawAll(); } });
  at("share").addEventListener("change", () => { const value = Math.round(Number(at("share").value)); if (value >= 1 && value <= 100) { state.share = value; keep(); judge(); } });
  for (const id of ["from", "to"]) at(id).addEventListener("change", () => { const [low, high] = [at("from"), at("to")].map((field) => (field.value === "" ? NaN : Number(field.value))); if (low < high) { setZoom([low, high]); keep(); } });
  at("whole").addEventListener("click", () => { setZoom(null); keep(); });
  at("add").addEventListener("click", () => {
    const tags = choices.metrics.filter((metric) => metric.stats.includes("p99")).map((metric) => metric.tag), taken = state.limits.map((each) => each.tag);
    const tag = ["time_to_first_token", "inter_token_latency", "request_latency", ...tags].find((each) => tags.includes(each) && !taken.includes(each));
    if (!tag) return;
    state.limits.push({tag, limit: +(most(tag) / 2).toPrecision(3)});
    keep();
    showLimits();
    judge();
  });
  at("own").addEventListener("click", () => { if (!state.runs.length) { fault(new Error("no run is chosen: choose one or several first")); return; } Own.ask(choices, several(), [...state.own.map((each) => each.name), ...choices.plots.map((plot) => plot.name)], (picture) => { state.own.push(picture); keep(); drawAll(); }); });
  at("config").addEventListener("click", () => save("plots.yaml", Save.config(), "application/yaml"));
  at("zip").addEventListener("click", () => Save.zip().catch(fault));
  at("all-numbers").addEventListener("click", () => { if (wanted().length) Save.numbers().catch(fault); else fault(new Error("no picture is shown: choose runs first")); });
  at("theme").addEventListener("click", () => { Charts.theme(); for (const panel of panels) panel.draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const panel of panels) panel.draw(); });
  window.addEventListener("popstate", () => { const before = state; state = read(); if (state.runs === null) state.runs = before.runs; controls(); loadList(); drawAll(); });

  state = read();
  controls();
  (async () => { await loadList(); if (list) { if (state.limits.length) at("objectives").open = true; await drawAll(); } })();
})();
