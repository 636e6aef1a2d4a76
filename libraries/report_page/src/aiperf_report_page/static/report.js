/* Figures of the report: drawn when they come near the screen, and before the page is printed.  Text is set as text only. */
"use strict";
(function () {
  const HEIGHT = 340, LEAST_DRAG = 5, NEAR = 30;
  const panels = [];
  let zoom = null, whole = null;

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "text") made.textContent = value;
      else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }
  function number(value) { return Math.abs(value) >= 1e15 ? value.toExponential(3) : value.toLocaleString("en-US", {maximumSignificantDigits: 6}); }
  function isTime(figure) { return /time|started after/i.test(figure.x.label) && /\(s\)/.test(figure.x.label); }

  class Panel {
    constructor(box) {
      [this.box, this.plot, this.legend] = [box, box.querySelector(".plot"), box.querySelector(".legend")];
      [this.hidden, this.zoom, this.current, this.figure] = [new Set(), null, -1, null];
      this.plot.style.minHeight = `${HEIGHT}px`;  // nothing moves once it is drawn
    }
    load() {
      this.figure = JSON.parse(this.box.querySelector("script").textContent);
      this.figure.title = this.box.getAttribute("aria-label");
      this.figure.description = this.box.querySelector(".words").textContent;
      this.tip = element("div", {class: "tip", "aria-live": "polite"});
      this.tip.hidden = true;
      for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", `${this.figure.title}: arrow keys go from point to point, plus zooms in at a point, Escape ends the zoom`]]) this.plot.setAttribute(name, value);
      this.listen();
    }
    range() { return isTime(this.figure) ? zoom : this.zoom; }
    draw(width) {
      if (!this.figure) this.load();
      this.width = width || Math.max(260, this.plot.clientWidth);
      this.drawing = new Figures.Drawing(this.figure, {width: this.width, height: HEIGHT, hidden: this.hidden, zoom: this.range()});
      this.plot.style.minHeight = "";
      this.plot.replaceChildren(this.drawing.svg, this.tip);
      [this.ring, this.current, this.tip.hidden] = [null, -1, true];
      const focused = [...this.legend.querySelectorAll("button")].indexOf(document.activeElement);
      this.legend.replaceChildren(...this.figure.series.map((one, index) => {
        const drawn = this.drawing.series.find((each) => each.name === one.name) || {shade: index};
        const press = () => { if (!this.hidden.delete(one.name)) this.hidden.add(one.name); this.draw(); };
        return element("li", {}, element("button", {type: "button", title: one.name, "aria-label": one.name, "aria-pressed": String(!this.hidden.has(one.name)), onclick: press},
          Figures.sample(one, index, this.drawing.colors.colors[drawn.shade % 8]), element("span", {text: Figures.middle(one.name)})));
      }));
      if (focused >= 0) this.legend.querySelectorAll("button")[focused].focus();
      performance.mark(this.box.id);  // when it was drawn, for whoever measures the page
    }
    near(event) {
      const box = this.plot.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = -1, least = NEAR ** 2;
      this.drawing.points.forEach((point, index) => { const far = (point.x - x) ** 2 + (point.y - y) ** 2; if (far < least) [best, least] = [index, far]; });
      return best;
    }
    point(index) {
      this.current = index;
      this.tip.hidden = index < 0;
      if (this.ring) { this.ring.remove(); this.ring = null; }
      if (index < 0) return;
      const {one, at: row, x, y} = this.drawing.points[index], figure = this.figure;
      this.ring = Figures.svg("circle", {cx: x, cy: y, r: 7, fill: "none", stroke: this.drawing.colors.text, "stroke-width": 2});
      this.drawing.ground.append(this.ring);
      const parts = [one.runs ? one.runs[row] : one.name];
      if (one.labels && one.labels[row] && one.labels[row] !== parts[0]) parts.push(one.labels[row]);
      if (one.kind === "heat") parts.push(`${figure.shade || "value"}: ${number(one.values[row])}`);
      if (one.kind === "lanes") parts.push(`${number(one.x_low[row])} to ${number(one.x_high[row])} s`);
      else parts.push(`${figure.x.label}: ${number(one.x[row])}`, `${(one.axis === "y2" ? figure.y2 : figure.y).label}: ${number(one.y[row])}`);
      this.tip.textContent = parts.join("\n");
      this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.width - 240))}px`;
      this.tip.style.top = `${Math.max(0, y > 120 ? y - 100 : y + 14)}px`;
    }
    zoomTo(range) {
      if (isTime(this.figure)) { zoom = range; for (const panel of panels) if (panel.drawing && isTime(panel.figure)) panel.draw(); } else { this.zoom = range; this.draw(); }
      whole.disabled = !zoom && panels.every((panel) => !panel.zoom);
    }
    listen() {
      let from = null, shade = null;
      const x = (event) => Math.min(this.drawing.right, Math.max(this.drawing.left, event.clientX - this.plot.getBoundingClientRect().left));
      const end = (event) => {
        if (from === null) return;
        const [to, begin] = [x(event), from];
        from = null;
        if (shade) { shade.remove(); shade = null; }
        if (event.type === "pointerup" && Math.abs(to - begin) >= LEAST_DRAG) this.zoomTo([begin, to].sort((a, b) => a - b).map((pixel) => this.drawing.x.value(pixel)));
      };
      this.plot.addEventListener("pointerdown", (event) => { if (event.button === 0) { from = x(event); this.plot.setPointerCapture(event.pointerId); } });
      this.plot.addEventListener("pointermove", (event) => {
        if (from === null) { this.point(this.near(event)); return; }
        const to = x(event);
        if (Math.abs(to - from) < LEAST_DRAG) return;
        if (!shade) { shade = Figures.svg("rect", {y: this.drawing.top, height: this.drawing.bottom - this.drawing.top, fill: this.drawing.colors.soft, "fill-opacity": 0.25}); this.drawing.svg.append(shade); }
        shade.setAttribute("x", Math.min(from, to));
        shade.setAttribute("width", Math.abs(to - from));
      });
      for (const name of ["pointerup", "pointercancel"]) this.plot.addEventListener(name, end);
      this.plot.addEventListener("dblclick", () => this.zoomTo(null));
      this.plot.addEventListener("pointerleave", () => { if (from === null && document.activeElement !== this.plot) this.point(-1); });
      this.plot.addEventListener("blur", () => this.point(-1));
      this.plot.addEventListener("keydown", (event) => this.key(event));
    }
    key(event) {
      const points = this.drawing.points, now = this.current < 0 ? null : points[this.current];
      const jump = (step) => { if (points.length) this.point(now === null ? 0 : (this.current + step + points.length) % points.length); };
      const other = (step) => {
        if (!points.length) return;
        const names = [...new Set(points.map((point) => point.one.name))], name = names[(names.indexOf(now ? now.one.name : names[0]) + step + names.length) % names.length];
        this.point(points.findIndex((point) => point.one.name === name));
      };
      const closer = () => {
        const {left, right, x} = this.drawing, middle = now ? now.x : (left + right) / 2, half = (right - left) / 4;
        this.zoomTo([Math.max(left, middle - half), Math.min(right, middle + half)].map((pixel) => x.value(pixel)));
      };
      const keys = {ArrowRight: () => jump(1), ArrowLeft: () => jump(-1), ArrowDown: () => other(1), ArrowUp: () => other(-1), "+": closer, Escape: () => this.zoomTo(null)};
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    }
  }

  function redraw(width) { for (const panel of panels) if (panel.drawing) panel.draw(width); }
  function dark() { const set = document.documentElement.dataset.theme; return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; }

  for (const box of document.querySelectorAll(".figure")) panels.push(new Panel(box));
  const head = document.querySelector("header.top");
  whole = element("button", {type: "button", text: "End all zooms", onclick: () => { zoom = null; for (const panel of panels) panel.zoom = null; redraw(); whole.disabled = true; }});
  whole.disabled = true;
  if (panels.length) head.append(whole);
  head.append(element("button", {type: "button", text: "Light/dark", onclick: () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; redraw(); }}));

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { const panel = panels.find((each) => each.box === entry.target); if (!panel.drawing) panel.draw(); near.unobserve(entry.target); }
  }, {rootMargin: "300px"});
  for (const panel of panels) near.observe(panel.box);
  let resizing = 0;
  window.addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => { for (const panel of panels) if (panel.drawing && Math.abs(panel.plot.clientWidth - panel.width) > 1) panel.draw(); }, 100); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  let before = null;
  window.addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme || ""; document.documentElement.dataset.theme = "light"; for (const panel of panels) panel.draw(680); });
  window.addEventListener("afterprint", () => { if (before) document.documentElement.dataset.theme = before; else delete document.documentElement.dataset.theme; redraw(); });
})();
