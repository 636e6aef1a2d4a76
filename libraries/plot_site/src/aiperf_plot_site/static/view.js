/* A figure that is looked into: the point under the pointer or by keys, what it says, a zoom, names that hide their series.
   Needs elements.js and figure.js.  Text is set as text only. */
"use strict";
(function () {
  const {element} = Elements;
  const LEAST_DRAG = 5, NEAR = 30, LEAST_WIDTH = 260, TIP_WIDTH = 240;

  /* Six digits of a number: points are told apart. */
  function digits(value) { return Math.abs(value) >= 1e15 ? value.toExponential(3) : value.toLocaleString("en-US", {maximumSignificantDigits: 6}); }
  /* Whether figures share their zoom. */
  function isTime(figure) { return /time|started after/i.test(figure.x.label) && /\(s\)/.test(figure.x.label); }

  class View {
    /* plot, legend: elements that it fills.  actions:
       options(): those of Figures.Drawing but width and hidden;
       redraw(): draws again, by draw() of this;
       zoom([low, high] or null): keeps the range of x, and draws again;
       behind(series, row): a function that shows more of a point, or null; left out where no point has more. */
    constructor(plot, legend, actions) {
      [this.plot, this.legend, this.actions] = [plot, legend, actions];
      [this.figure, this.drawing, this.ring, this.current, this.hidden] = [null, null, null, -1, new Set()];
      this.tip = element("div", {class: "tip", "aria-live": "polite", hidden: true});
      this.listen();
    }
    /* Series that were hidden stay so where the figure has them. */
    set(figure) {
      this.figure = figure;
      this.hidden = new Set([...this.hidden].filter((name) => figure.series.some((one) => one.name === name)));
      const enter = this.actions.behind ? "Enter shows what a point is, " : "";
      this.plot.setAttribute("tabindex", "0");
      this.plot.setAttribute("role", "group");
      this.plot.setAttribute("aria-label", `${figure.title}: arrow keys go from point to point, ${enter}plus zooms in at a point, Escape ends the zoom`);
    }
    /* width: in pixels; without one, that of the plot's element. */
    draw(width) {
      this.width = width || Math.max(LEAST_WIDTH, this.plot.clientWidth);
      this.drawing = new Figures.Drawing(this.figure, {...this.actions.options(), width: this.width, hidden: this.hidden});
      this.plot.replaceChildren(this.drawing.svg, this.tip);
      [this.ring, this.current, this.tip.hidden] = [null, -1, true];
      const focused = [...this.legend.querySelectorAll("button")].indexOf(document.activeElement);
      this.legend.replaceChildren(...this.figure.series.map((one, index) => this.name(one, index)));
      if (focused >= 0) this.legend.querySelectorAll("button")[focused]?.focus();
    }
    resized() { return this.drawing !== null && Math.abs(this.plot.clientWidth - this.width) > 1; }

    name(one, index) {
      const press = () => { if (!this.hidden.delete(one.name)) this.hidden.add(one.name); this.actions.redraw(); };
      return element("li", {}, element("button", {type: "button", title: one.name, "aria-label": one.name, "aria-pressed": String(!this.hidden.has(one.name)), onclick: press},
        Figures.sample(one, index, this.drawing.shades[index]), element("span", {text: Figures.middle(one.name)})));
    }
    /* The point nearest to the pointer; all that is below the upper end of a bar is near to it. */
    near(event) {
      const box = this.plot.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = -1, least = NEAR ** 2;
      this.drawing.points.forEach((point, index) => {
        const up = point.one.kind === "bar" ? Math.max(0, point.y - y) : point.y - y, far = (point.x - x) ** 2 + up ** 2;
        if (far < least) [best, least] = [index, far];
      });
      return best;
    }
    behind() {
      if (this.current < 0 || !this.actions.behind) return null;
      const {one, at} = this.drawing.points[this.current];
      return this.actions.behind(one, at);
    }
    open() { const show = this.behind(); if (show) show(); }
    point(index) {
      this.current = index;
      this.tip.hidden = index < 0;
      if (this.ring) { this.ring.remove(); this.ring = null; }
      if (index < 0) return;
      const {one, at, x, y} = this.drawing.points[index], figure = this.figure;
      this.ring = Figures.svg("circle", {cx: x, cy: y, r: 7, fill: "none", stroke: this.drawing.colors.text, "stroke-width": 2});
      this.drawing.ground.append(this.ring);
      const parts = [one.runs ? one.runs[at] : one.name];
      if (one.labels && one.labels[at] && one.labels[at] !== parts[0]) parts.push(one.labels[at]);
      if (one.kind === "heat") parts.push(`${figure.shade || "value"}: ${digits(one.values[at])}`);
      if (one.kind === "lanes") parts.push(`${digits(one.x_low[at])} to ${digits(one.x_high[at])} s`);
      else parts.push(`${figure.x.label}: ${digits(one.x[at])}`, `${(one.axis === "y2" ? figure.y2 : figure.y).label}: ${digits(one.y[at])}`);
      if (this.behind()) parts.push("click or Enter shows more");
      this.tip.textContent = parts.join("\n");
      this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.width - TIP_WIDTH))}px`;
      this.tip.style.top = `${Math.max(0, y > 120 ? y - 100 : y + 14)}px`;
    }
    listen() {
      const plot = this.plot;
      let from = null, shade = null;
      const x = (event) => Math.min(this.drawing.right, Math.max(this.drawing.left, event.clientX - plot.getBoundingClientRect().left));
      const end = (event) => {
        if (from === null) return;
        const [begin, to] = [from, x(event)].sort((a, b) => a - b);
        from = null;
        if (shade) { shade.remove(); shade = null; }
        if (event.type === "pointercancel") return;
        if (to - begin >= LEAST_DRAG) this.actions.zoom([begin, to].map((pixel) => this.drawing.x.value(pixel)));
        else { this.point(this.near(event)); this.open(); }
      };
      plot.addEventListener("pointerdown", (event) => { if (event.button === 0 && this.drawing) { from = x(event); plot.setPointerCapture(event.pointerId); } });
      plot.addEventListener("pointermove", (event) => {
        if (!this.drawing) return;
        if (from === null) { this.point(this.near(event)); return; }
        const to = x(event);
        if (Math.abs(to - from) < LEAST_DRAG) return;
        if (!shade) { shade = Figures.svg("rect", {y: this.drawing.top, height: this.drawing.bottom - this.drawing.top, fill: this.drawing.colors.soft, "fill-opacity": 0.25}); this.drawing.svg.append(shade); }
        shade.setAttribute("x", Math.min(from, to));
        shade.setAttribute("width", Math.abs(to - from));
      });
      for (const name of ["pointerup", "pointercancel"]) plot.addEventListener(name, end);
      plot.addEventListener("pointerleave", () => { if (from === null && document.activeElement !== plot) this.point(-1); });
      if (!this.actions.behind) plot.addEventListener("dblclick", () => this.actions.zoom(null));  // else a click shows more
      plot.addEventListener("blur", () => this.point(-1));
      plot.addEventListener("keydown", (event) => { if (event.target === plot && this.drawing) this.key(event); });
    }
    key(event) {
      const {points, left, right, x} = this.drawing, now = this.current < 0 ? null : points[this.current];
      const jump = (step) => { if (points.length) this.point(now === null ? 0 : (this.current + step + points.length) % points.length); };
      const other = (step) => {
        if (!points.length) return;
        const names = [...new Set(points.map((point) => point.one.name))], name = names[(names.indexOf(now ? now.one.name : names[0]) + step + names.length) % names.length];
        this.point(points.findIndex((point) => point.one.name === name));
      };
      const closer = () => {
        const middle = now ? now.x : (left + right) / 2, half = (right - left) / 4;
        this.actions.zoom([Math.max(left, middle - half), Math.min(right, middle + half)].map((pixel) => x.value(pixel)));
      };
      const keys = {ArrowRight: () => jump(1), ArrowLeft: () => jump(-1), ArrowDown: () => other(1), ArrowUp: () => other(-1), "+": closer, Enter: () => this.open(), Escape: () => this.actions.zoom(null)};
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    }
  }

  Object.assign(Figures, {View, isTime, digits});
})();
