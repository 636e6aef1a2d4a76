/* The page: runs that are chosen, their pictures, objectives.  The state is in the URL. */
"use strict";
(function () {
  const {element, number, csv, save} = Charts;
  const at = (id) => document.getElementById(id);
  const FIRST_RUNS = 20, TABLE_ROWS = 200, HEIGHT = 340, WIDE_HEIGHT = 480, FULL = {width: 1200, height: 560};
  let state = null, choices = {plots: [], metrics: []}, list = null, drawing = 0, judging = 0, polling = 0;
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
      clearTimeout(polling);
      if (list.read < list.total) polling = setTimeout(loadList, 1000);
    } catch (error) { fault(error); }
  }
  function showList() {
    const head = ["chosen", "run", "verdict", "model", "load", "requests", "failed"];  // what a narrow window cuts off matters least
    const rows = list.runs.map((run) => {
      const box = element("input", {type: "checkbox", "aria-label": `choose ${run.label}`, onchange: () => choose(box.checked ? [...state.runs, run.id] : state.runs.filter((each) => each !== run.id))});
      box.checked = state.runs.includes(run.id);
      const link = element("button", {type: "button", class: "plain", text: run.label, onclick: () => Details.run(run.id).catch(fault)});
      if (run.problem) return element("tr", {}, element("td", {}, box), element("td", {class: "text", text: run.label}), element("td", {class: "text bad", colspan: "5", text: run.problem}));
      return element("tr", {}, element("td", {}, box), element("td", {class: "text"}, link), element("td", {class: "text word", text: run.verdict || "–"}), element("td", {class: "text", text: run.models.join(", ")}),
        element("td", {class: "text word", text: run.load_label}), element("td", {text: number(run.requests)}), element("td", {text: number(run.failed)}));
    });
    const focused = document.activeElement && document.activeElement.getAttribute("aria-label");
    at("runs").replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...head.map((text, index) => element("th", {scope: "col", class: [1, 2, 3, 4].includes(index) ? "text" : "", text})))), element("tbody", {}, ...rows)));
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

  async function drawAll() {
    const turn = ++drawing;
    calm();
    at("status").textContent = "drawing";
    at("reasons").replaceChildren();
    at("lacking").hidden = true;
    if (!state.runs.length) {
      retain(() => false);
      choices = {plots: [], metrics: []};
      [at("status").textContent, at("caption").textContent] = ["no run is chosen", ""];
      showMore();
      judge();
      return;
    }
    try {
      choices = await Site.get("/api/choices", {runs: state.runs.join(",")});
    } catch (error) { if (turn === drawing) { fault(error); at("status").textContent = ""; } return; }
    if (turn !== drawing) return;
    showMore();
    showLimits();
    judge();
    const names = wanted(), reasons = new Set();
    retain((panel) => names.includes(panel.name));
    for (const [done, name] of names.entries()) {
      at("status").textContent = `${panels.length} pictures, ${names.length - done} to look at`;
      const own = state.own.find((each) => each.name === name && each.several === several());
      const fields = {runs: state.runs.join(","), window: state.window, ...(own ? {file: Own.file([own], [name], several())} : {only: name})};
      let found = {figures: []};
      try {
        found = await Site.get("/api/figures", fields);
        for (const sentence of found.failures) reasons.add(sentence);
      } catch (error) { reasons.add(`${name}: ${error.message}`); }
      if (turn !== drawing) return;
      if (found.caption) at("caption").textContent = found.caption.join(" · ");
      if (!found.figures.length) { retain((panel) => panel.name !== name); continue; }
      let panel = panels.find((each) => each.name === name);
      if (!panel) { panel = new Panel(name); panels.push(panel); }
      at("figures").append(panel.element);
      panel.set(found.figures[0], found);
    }
    panels.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
    at("status").textContent = `${panels.length} picture${panels.length === 1 ? "" : "s"} of ${state.runs.length} run${several() ? "s" : ""}`;
    at("lacking").hidden = reasons.size === 0;
    at("reasons").replaceChildren(...[...reasons].map((text) => element("li", {text})));
  }
  /* Keep the panels that fit; the others are gone. */
  function retain(fits) {
    for (const panel of panels) if (!fits(panel)) panel.remove();
    panels = panels.filter(fits);
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
    constructor(name) {
      this.name = name;
      this.zoom = null;
      const button = (text, onclick, more) => element("button", {type: "button", text, onclick, ...more});
      this.title = element("h2", {});
      this.logX = button("log x", () => this.log("x"));
      this.logY = button("log y", () => this.log("y"));
      this.tableButton = button("Table", () => this.toggle(), {"aria-expanded": "false"});
      this.buttons = [this.logX, this.logY, this.tableButton, button("CSV", () => save(`${name}.csv`, csv(this.rows()))), button("SVG", () => save(`${name}.svg`, this.full(), "image/svg+xml")),
        button("PNG", async () => { try { save(`${name}.png`, await Save.png(this.full())); } catch (error) { fault(error); } }), button("Larger", (event) => { const wide = this.element.classList.toggle("wide"); event.target.setAttribute("aria-pressed", String(wide)); this.draw(); }, {"aria-pressed": "false"}),
        button("Hide", () => this.drop())];
      this.plot = element("div", {class: "plot"});
      const legend = element("ul", {class: "legend"});
      this.view = new Figures.View(this.plot, legend, {
        options: () => ({height: this.element.classList.contains("wide") ? WIDE_HEIGHT : HEIGHT, logs: this.logs(), zoom: this.range()}),
        redraw: () => this.draw(), zoom: (range) => this.zoomTo(range), behind: (one, row) => this.behind(one, row),
      });
      this.table = element("div", {class: "scroll", hidden: true, tabindex: "0", role: "region"});
      this.notes = element("p", {class: "notes"});
      this.element = element("section", {class: "panel figure"}, element("div", {class: "head"}, this.title, ...this.buttons), this.plot, this.table, legend, this.notes);
      this.watch = new ResizeObserver(() => { if (this.view.resized()) this.draw(); });
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
      this.title.textContent = figure.title;
      this.element.setAttribute("aria-label", figure.title);
      this.table.setAttribute("aria-label", `${figure.title}, table`);
      for (const each of this.buttons) each.setAttribute("aria-label", `${each.textContent}: ${figure.title}`);
      this.view.set(figure);
      this.draw();
    }
    logs() { return {x: state.logs[this.name]?.x ?? this.figure.x.log, y: state.logs[this.name]?.y ?? this.figure.y.log}; }
    log(axis) { (state.logs[this.name] ||= {})[axis] = !this.logs()[axis]; keep(); this.draw(); }
    range() { return Figures.isTime(this.figure) ? state.zoom : this.zoom; }
    draw() {
      this.view.draw();
      const logs = this.logs();
      this.logX.setAttribute("aria-pressed", String(logs.x));
      this.logY.setAttribute("aria-pressed", String(logs.y));
      this.logY.disabled = this.figure.lanes && this.figure.lanes.length > 0;
      const count = this.view.drawing.dropped, dropped = count ? [`${number(count)} points at 0 or below have no place on an axis in decades`] : [];
      this.notes.textContent = [...(this.figure.notes || []), ...(this.figure.shade ? [`darker: more ${this.figure.shade}`] : []), ...dropped].join(" · ");
      if (!this.table.hidden) this.fill();
    }
    full() {
      const made = new Figures.Drawing(this.figure, {...FULL, hidden: this.view.hidden, logs: this.logs(), zoom: this.range(), full: true, caption: this.found.caption});
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
      this.table.replaceChildren(element("table", {}, element("caption", {text: step === 1 ? `${number(rows.length)} rows` : `one row in ${step} of ${number(rows.length)}; CSV has all`}),
        element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {scope: "col", text})))),
        element("tbody", {}, ...rows.filter((_, index) => index % step === 0).map((row) => element("tr", {}, ...row.map((value) => element("td", {class: typeof value === "string" ? "text" : "", text: typeof value === "number" ? number(value) : value ?? ""})))))));
    }
    toggle() { this.table.hidden = !this.table.hidden; this.tableButton.setAttribute("aria-expanded", String(!this.table.hidden)); if (!this.table.hidden) this.fill(); }

    zoomTo(range) { if (Figures.isTime(this.figure)) { setZoom(range); keep(); } else { this.zoom = range; this.draw(); } }
    /* What shows more of a point: its run, its failed requests, its request. */
    behind(one, row) {
      const ids = this.found.ids, show = (action) => () => action().catch(fault);
      if (one.runs && ids[one.runs[row]]) return show(() => Details.run(ids[one.runs[row]]));
      const run = state.runs.length === 1 ? state.runs[0] : ids[one.name];
      if (run && this.name === "failures_over_time" && one.x_low) return show(() => Details.failures(run, one.name === "other" ? "" : one.name, one.x_low[row], one.x_high[row]));
      if (run && one.rows && one.rows.length) return show(() => Details.request(run, one.rows[row]));
      if (run && ids[one.name]) return show(() => Details.run(run));
      return null;
    }
  }

  // ---- files
  const Save = {
    async png(text) {
      const image = new Image();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
      await image.decode();
      const canvas = element("canvas", {width: image.naturalWidth * 2, height: image.naturalHeight * 2});
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("this browser can't make so large a PNG; SVG has the same picture"))), "image/png"));
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
      save("pictures.zip", Zip.zip(files));
    },
    /* From the server: all numbers of all pictures that fit. */
    async numbers() {
      const rest = new URLSearchParams(location.search);
      rest.delete("runs");
      const fields = {runs: state.runs.join(","), window: String(state.window), file: Own.file(state.own, wanted(), several()), state: String(rest)};
      const answer = await Answers.get(`/api/zip?${new URLSearchParams(fields)}`);
      save("pictures.zip", await answer.blob());
    },
  };

  // ---- objectives
  /* The highest value of a metric in the chosen runs. */
  function most(tag) { return choices.ranges?.[tag]?.most ?? 1000; }
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
