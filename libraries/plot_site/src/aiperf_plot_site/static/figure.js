/* A figure as SVG: all kinds of series of aiperf.sdk.figures, over two or three axes.  Text is set as text only. */
"use strict";
(function () {
  const NS = "http://www.w3.org/2000/svg";
  const DASHES = ["", "7 3", "2 3", "8 3 2 3", "12 4", "4 2 1 2", "1 2", "10 2 2 2 2 2"];
  const MOST_LABELS = 40, MOST_MARKED = 4, FEW_LABELS = 12, FONT = 12, CHARACTER = 6.9, LINE = 14, STEP = 6, MOST_JOINED = 1000, MOST_TICKS = 200, NEARLY = 1e-9;
  const SOLID = ["heat", "lanes", "span", "bar"], JOINED = ["line", "path", "band", "steps"], FILLS = [0.7, 0.3, 0.5];

  function svg(name, attributes, ...children) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes || {})) if (value !== null && value !== undefined && value !== "") made.setAttribute(key, value);
    for (const child of children) if (child !== null) made.append(child);
    return made;
  }
  function text(x, y, words, more) { const made = svg("text", {x, y, "font-size": FONT, "font-family": "system-ui, sans-serif", ...more}); made.textContent = words; return made; }
  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function palette() { return {line: css("--line"), soft: css("--soft"), text: css("--text"), panel: css("--panel"), bad: css("--bad"), colors: Array.from({length: 8}, (_, at) => css(`--c${at}`))}; }
  function short(words, most) { return words.length > most ? `${words.slice(0, Math.max(1, most - 1))}…` : words; }

  /* A name of a legend: its begin and its end, as names are told apart by either. */
  function middle(words, most = 48) { const half = Math.floor(most / 2) - 1; return words.length > most ? `${words.slice(0, half)}…${words.slice(-half)}` : words; }

  class Scale {
    constructor(low, high, from, to, log) {
      this.log = log;
      const turn = (v) => (log ? Math.log10(v) : v);
      [this.low, this.high, this.a, this.b] = [low, high, turn(low), turn(high)];
      [this.from, this.to] = [from, to];
    }
    /* On an axis in decades, what is at 0 or below lies at its begin. */
    at(value) { return this.log && value <= 0 ? this.from : this.from + (((this.log ? Math.log10(value) : value) - this.a) / (this.b - this.a)) * (this.to - this.from); }
    value(pixel) { const v = this.a + ((pixel - this.from) / (this.to - this.from)) * (this.b - this.a); return this.log ? 10 ** v : v; }
    ticks(count) {
      if (this.log) {
        const made = [], few = this.b - this.a <= 2, step = Math.max(1, Math.ceil((this.b - this.a) / count));
        for (let power = Math.floor(this.a); power <= Math.ceil(this.b); power += step) for (const part of few ? [1, 2, 5] : [1]) made.push(part * 10 ** power);
        const inside = made.filter((v) => v >= this.low * 0.999999 && v <= this.high * 1.000001);
        return inside.length > 1 ? inside : [this.low, this.high];
      }
      const rough = (this.high - this.low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
      const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10].map((part) => part * power);
      const every = (step) => {
        const first = Math.ceil(this.low / step - 1e-9), many = Math.floor(this.high / step + 1e-9) - first + 1;
        return Array.from({length: Math.min(MOST_TICKS, Math.max(0, many))}, (_, n) => (first + n) * step);
      };
      for (let which = steps.findIndex((each) => each >= rough * 0.999); ; which -= 1) {
        const made = every(steps[which]);
        if (made.length > 1 || which === 0) return made;  // one number alone tells no scale
      }
    }
  }

  function tick(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e9 || size < 1e-4) return value.toExponential(1);
    if (size >= 1e6) return `${(value / 1e6).toLocaleString("en-US", {maximumSignificantDigits: 6})} M`;  // beside the axis' label
    return value.toLocaleString("en-US", {maximumSignificantDigits: 6});
  }

  /* Lowest and highest of what is drawn on an axis; xs: [low, high] that the points must be in. */
  function extent(series, names, log, keep) {
    let [low, high] = [Infinity, -Infinity];
    for (const one of series) for (const name of names) {
      const values = one[name];
      if (!values) continue;
      for (let at = 0; at < values.length; at += 1) {
        const value = values[at];
        if ((log && value <= 0) || (keep && !keep(one, at))) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    return [low, high];
  }

  /* zero: whether it starts at 0 if its values are not far from it, else only if they are near.  part: of the range that is free. */
  function domain([low, high], log, zero, part = 0.04) {
    if (low > high) return log ? [1, 10] : [0, 1];
    if (log) return high <= low * (1 + NEARLY) ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
    if (low > 0 && low < (zero ? high * 0.75 : (high - low) * 0.15)) low = 0;
    if (low === 0 && high === 0) return [0, 1];
    if (high - low <= NEARLY * Math.max(Math.abs(low), Math.abs(high))) { const by = Math.abs(low) * 0.1; return [low - by, high + by]; }  // no ticks stand between them
    const pad = (high - low) * part;
    return [low === 0 ? 0 : low - pad, high + pad];
  }

  /* 1, 2 or 5 times a power of ten, and at least so many. */
  function round(least) {
    const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
    return [1, 2, 5, 10].map((part) => part * power).find((each) => each >= least);
  }

  function marker(index, x, y, r) {
    switch (index % 4) {
      case 1: return `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`;
      case 2: return `M${x} ${y - r - 1}L${x + r + 1} ${y + r}H${x - r - 1}z`;
      case 3: return `M${x} ${y - r - 1}L${x + r + 1} ${y}L${x} ${y + r + 1}L${x - r - 1} ${y}z`;
      default: return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
    }
  }

  class Drawing {
    /* options: width, height, hidden (Set of names), logs {x, y}, zoom [low, high] or null, full: title, legend and notes in the picture.
       shades: the colour of each series of the figure, those of a group share one. */
    constructor(figure, options) {
      this.figure = figure;
      this.options = options;
      this.colors = palette();
      this.points = [];
      [this.boxes, this.uprights, this.levels] = [[], [], []];  // of bars; of lines of marks and references
      this.taken = [];
      this.dropped = 0;
      const hidden = options.hidden || new Set();
      const groups = figure.series.map((one) => one.group || one.name), distinct = [...new Set(groups)];
      this.shades = groups.map((group) => this.colors.colors[distinct.indexOf(group) % 8]);
      this.series = figure.series.map((one, index) => ({...one, index, color: this.shades[index]})).filter((one) => !hidden.has(one.name));
      this.lanes = figure.lanes && figure.lanes.length ? figure.lanes : null;
      this.logs = {x: options.logs?.x ?? figure.x.log, y: this.lanes ? false : options.logs?.y ?? figure.y.log};
      this.layout();
      this.svg = svg("svg", {xmlns: NS, width: this.width, height: this.height, viewBox: `0 0 ${this.width} ${this.height}`, role: "img", "aria-label": figure.description});
      if (options.full) this.svg.append(svg("rect", {width: this.width, height: this.height, fill: this.colors.panel}));
      this.axes();
      this.inner = svg("svg", {x: this.left, y: this.top, width: this.right - this.left, height: this.bottom - this.top, overflow: "hidden"});
      this.ground = svg("g", {transform: `translate(${-this.left} ${-this.top})`});
      this.inner.append(this.ground);
      this.svg.append(this.inner);
      for (const one of this.series) this.draw(one);
      this.references();
      this.labels();
      if (options.full) this.words();
    }

    layout() {
      const {width, full} = this.options;
      this.width = width;
      this.left = this.lanes && this.lanes.length <= 30 ? 96 : 70;
      this.right = width - (this.figure.y2 ? 70 : 16);
      this.top = full ? 40 : 14;
      const body = this.lanes ? Math.min(620, Math.max(220, this.lanes.length * 8)) : this.options.height;
      this.bottom = this.top + body - 60;
      this.legend = full ? this.lines() : [];
      this.height = this.bottom + 50 + this.legend.length * 17;
      const zoom = this.options.zoom, room = this.series.some((one) => one.labels && one.labels.some(Boolean)) ? 0.1 : 0.04;
      const xs = zoom || domain(extent(this.series, ["x", "x_low", "x_high"], this.logs.x), this.logs.x, false, room);
      if (!zoom && this.figure.lines) for (const line of this.figure.lines) if (line.axis === "x") { xs[0] = Math.min(xs[0], line.value); xs[1] = Math.max(xs[1], line.value); }
      const low = this.logs.x && xs[0] <= 0 ? xs[1] / 1000 : xs[0];
      this.x = new Scale(low, xs[1], this.left, this.right, this.logs.x);
      const inside = zoom ? (one, at) => (one.x_high ? one.x_high[at] : one.x[at]) >= zoom[0] && (one.x_low ? one.x_low[at] : one.x[at]) <= zoom[1] : null;
      const scale = (axis, log) => {
        const mine = this.series.filter((one) => (one.axis || "y") === axis && one.kind !== "span");
        if (this.lanes) return new Scale(-0.6, this.lanes.length - 0.4, this.top, this.bottom, false);
        let found = extent(mine, ["y", "y_low", "y_high"], log, inside);
        for (const line of this.figure.lines || []) if (line.axis === axis && (!log || line.value > 0)) found = [Math.min(found[0], line.value), Math.max(found[1], line.value)];
        if (!log && (axis === "y2" || mine.some((one) => one.kind === "bar"))) found[0] = Math.min(0, found[0]);
        const [a, b] = domain(found, log, true, room);
        return new Scale(a, b, this.bottom, this.top, log);
      };
      this.y = scale("y", this.logs.y);
      this.y2 = this.figure.y2 ? scale("y2", this.logs.y && this.figure.y2.log) : null;
    }

    lines() {
      const most = Math.floor((this.width - 40) / CHARACTER), made = [];
      for (const words of [...this.figure.series.map((one) => one.name), ...(this.figure.notes || []), ...(this.options.caption || [])]) made.push(words);
      return made.slice(0, 60).map((words) => short(words, most));
    }

    axes() {
      const {line, soft, text: ink} = this.colors, put = (...nodes) => this.svg.append(...nodes);
      const xs = this.x.ticks(Math.max(2, Math.floor((this.right - this.left) / 72)));
      for (const value of xs) {
        const at = this.x.at(value);
        put(svg("path", {d: `M${at} ${this.top}V${this.bottom}`, stroke: line}), text(at, this.bottom + 16, tick(value), {"text-anchor": "middle", fill: soft}));
      }
      if (this.lanes) {
        const step = round(13 / ((this.bottom - this.top) / this.lanes.length));  // names have no room beside lower lanes
        this.lanes.forEach((lane, at) => at % step === 0 && put(text(this.left - 6, this.y.at(at) + 4, short("  ".repeat(lane.depth) + lane.name, this.left > 80 ? 12 : 6), {"text-anchor": "end", fill: soft})));
      } else for (const value of this.y.ticks(Math.max(2, Math.floor((this.bottom - this.top) / 44)))) {
        const at = this.y.at(value);
        put(svg("path", {d: `M${this.left} ${at}H${this.right}`, stroke: line}), text(this.left - 6, at + 4, tick(value), {"text-anchor": "end", fill: soft}));
      }
      if (this.y2) for (const value of this.y2.ticks(Math.max(2, Math.floor((this.bottom - this.top) / 44)))) put(text(this.right + 6, this.y2.at(value) + 4, tick(value), {fill: soft}));
      const middle = (this.top + this.bottom) / 2, tall = Math.floor((this.bottom - this.top + 40) / CHARACTER);
      const from = !this.lanes && !this.logs.y && this.y.low > 0 ? " – not from 0" : "", begin = !this.logs.x && !this.options.zoom && this.x.low > 0 ? " – not from 0" : "";
      put(text((this.left + this.right) / 2, this.bottom + 36, short(this.figure.x.label, Math.floor((this.right - this.left + 24) / CHARACTER) - begin.length) + begin, {"text-anchor": "middle", fill: ink}));
      put(text(14, middle, short(this.figure.y.label, tall - from.length) + from, {"text-anchor": "middle", fill: ink, transform: `rotate(-90 14 ${middle})`}));
      if (this.figure.y2) put(text(this.width - 8, middle, short(this.figure.y2.label, tall), {"text-anchor": "middle", fill: ink, transform: `rotate(-90 ${this.width - 8} ${middle})`}));
    }

    draw(one) {
      const y = one.axis === "y2" ? this.y2 : this.y, log = y.log;
      const good = [];
      for (let at = 0; at < one.x.length; at += 1) {
        if ((this.logs.x && one.x[at] <= 0) || (log && one.y[at] <= 0)) { this.dropped += 1; continue; }
        good.push(at);
      }
      const px = (at) => +this.x.at(one.x[at]).toFixed(1), py = (at) => +y.at(one.y[at]).toFixed(1);
      const stroke = one.color, dash = DASHES[one.index % DASHES.length], put = (node) => this.ground.append(node);
      const path = (d, more) => put(svg("path", {d, fill: "none", stroke, "stroke-width": 1.6, "stroke-linejoin": "round", ...more}));
      const base = Math.min(this.bottom, Math.max(this.top, y.at(0)));
      const join = (list, steps) => list.map((at, n) => (n === 0 ? `M${px(at)} ${py(at)}` : steps ? `H${px(at)}V${py(at)}` : `L${px(at)} ${py(at)}`)).join("");
      const markers = (r) => put(svg("path", {d: good.map((at) => marker(one.index, px(at), py(at), r)).join(""), fill: stroke, "fill-opacity": 0.8, stroke: "none"}));
      if (one.kind !== "span") for (const at of good) this.points.push({one, at, x: px(at), y: py(at)});
      switch (one.kind) {
        case "points": markers(good.length > 600 ? 1.6 : good.length > 100 ? 2.4 : 4); break;
        case "steps": path(join(good, true), {"stroke-dasharray": dash}); break;
        case "line": case "path": path(join(good), {"stroke-dasharray": dash}); if ((one.points === "run" && !this.beside(one)) || good.length === 1) markers(4); break;
        case "band": {
          const [up, down] = ["y_high", "y_low"].map((name) => good.map((at) => `${px(at)} ${+y.at(one[name][at]).toFixed(1)}`));
          put(svg("path", {d: `M${[...up, ...down.reverse()].join("L")}z`, fill: stroke, "fill-opacity": 0.18}));
          path(join(good), {"stroke-dasharray": dash});
          break;
        }
        case "bar": {
          const wide = Math.max(2, ((this.right - this.left) / Math.max(1, good.length)) * 0.6);
          const d = good.map((at) => {
            const [from, to] = one.x_low ? [this.x.at(one.x_low[at]), this.x.at(one.x_high[at])] : [px(at) - wide / 2, px(at) + wide / 2];
            const low = one.y_low ? y.at(one.y_low[at]) : base;
            this.boxes.push([from, py(at), to, low]);
            return `M${from.toFixed(1)} ${low.toFixed(1)}V${py(at)}H${Math.max(from + 1, to).toFixed(1)}V${low.toFixed(1)}z`;
          }).join("");
          put(svg("path", {d, fill: stroke, "fill-opacity": FILLS[one.index % 3], stroke, "stroke-dasharray": dash}));
          break;
        }
        case "error":
          for (const at of good) {
            if (one.x_low) path(`M${this.x.at(one.x_low[at])} ${py(at)}H${this.x.at(one.x_high[at])}`);
            if (one.y_low) path(`M${px(at)} ${y.at(one.y_low[at])}V${y.at(one.y_high[at])}`);
          }
          markers(3);
          break;
        case "span":
          for (const at of good) {
            const [from, to] = [this.x.at(one.x_low[at]), this.x.at(one.x_high[at])];
            put(svg("rect", {x: from, y: this.top, width: Math.max(1, to - from), height: this.bottom - this.top, fill: stroke, "fill-opacity": 0.14}));
          }
          break;
        case "heat": {
          const most = Math.sqrt(Math.max(...one.values, 1e-300));
          for (const at of good) {
            if (!one.values[at]) continue;
            const [from, to, low, high] = [this.x.at(one.x_low[at]), this.x.at(one.x_high[at]), y.at(one.y_low[at]), y.at(one.y_high[at])];
            put(svg("rect", {x: from.toFixed(1), y: high.toFixed(1), width: (to - from).toFixed(1), height: Math.max(0.5, low - high).toFixed(1), fill: stroke, "fill-opacity": (0.2 + 0.8 * Math.sqrt(one.values[at]) / most).toFixed(3)}));
          }
          break;
        }
        case "lanes": {
          const high = Math.max(1, Math.min(14, ((this.bottom - this.top) / this.lanes.length) * 0.8));
          const d = good.map((at) => { const [from, to] = [this.x.at(one.x_low[at]), this.x.at(one.x_high[at])]; return `M${from.toFixed(1)} ${(py(at) - high / 2).toFixed(1)}h${Math.max(0.5, to - from).toFixed(1)}v${high.toFixed(1)}H${from.toFixed(1)}z`; }).join("");
          put(svg("path", {d, fill: stroke, "fill-opacity": one.index % 2 ? 0.45 : 0.9}));
          break;
        }
        default: markers(3);
      }
    }

    /* Whether another series of the group shows the points that this one joins. */
    beside(one) { return Boolean(one.group) && this.series.some((each) => each.kind === "points" && each.group === one.group); }

    /* Pixels that texts keep clear of: points, and places on the lines between them. */
    cover() {
      const made = [];
      const along = (from, to) => {
        const count = Math.floor(Math.hypot(to[0] - from[0], to[1] - from[1]) / STEP);
        for (let n = 1; n < count; n += 1) made.push([from[0] + ((to[0] - from[0]) * n) / count, from[1] + ((to[1] - from[1]) * n) / count]);
      };
      let before = null;
      for (const point of this.points) {
        const {one, x, y} = point;
        if (SOLID.includes(one.kind)) continue;
        if (before && before.one === one && JOINED.includes(one.kind) && one.x.length <= MOST_JOINED) {
          const corner = one.kind === "steps" ? [x, before.y] : [before.x, before.y];
          along([before.x, before.y], corner);
          along(corner, [x, y]);
        }
        made.push([x, y]);
        before = point;
      }
      return made;
    }
    hides(x, y, long) {
      this.covered ||= this.cover();
      let count = 0;
      for (const [a, b] of this.covered) if (a > x - 2 && a < x + long + 2 && b > y - 12 && b < y + 3) count += 1;
      for (const at of this.uprights) if (at > x - 2 && at < x + long + 2) count += 3;
      for (const at of this.levels) if (at > y - 12 && at < y + 3) count += 3;
      for (const [from, top, to, low] of this.boxes) if (from < x + long && to > x && top < y + 3 && low > y - 12) count += 1;
      return count;
    }
    /* The first of the places that hides least, on no other text and in the axes; [x, y, hidden], or null. */
    free(places, long) {
      let best = null;
      for (const [x, y] of places) {
        if (x < this.left || x + long > this.right || y < this.top + 11 || y > this.bottom - 3) continue;
        if (this.taken.some(([a, b, c]) => Math.abs(b - y) < LINE && x < a + c && a < x + long)) continue;
        const hidden = this.hides(x, y, long);
        if (!best || hidden < best[2]) best = [x, y, hidden];
        if (!hidden) break;
      }
      return best;
    }
    write([x, y], long, words, color) {
      this.taken.push([x, y, long]);
      this.ground.append(text(x, y, words, {fill: color, stroke: this.colors.panel, "stroke-width": 3, "paint-order": "stroke"}));
    }

    references() {
      const lines = (this.figure.lines || []).map((line) => ({...line, color: this.colors.bad, dash: "6 3", ink: this.colors.text}));
      if (this.figure.series.length <= MOST_MARKED) for (const mark of this.figure.marks || []) {
        const one = this.series.find((each) => each.name === mark.series);
        if (one) lines.push({...mark, color: one.color, dash: "3 3", ink: one.color});
      }
      const scale = (line) => (line.axis === "x" ? this.x : line.axis === "y2" ? this.y2 : this.y);
      const shown = lines.filter((line) => scale(line) && line.value >= scale(line).low && line.value <= scale(line).high);
      for (const line of shown) {
        line.at = scale(line).at(line.value);
        (line.axis === "x" ? this.uprights : this.levels).push(line.at);
        this.ground.append(svg("path", {d: line.axis === "x" ? `M${line.at} ${this.top}V${this.bottom}` : `M${this.left} ${line.at}H${this.right}`, stroke: line.color, "stroke-width": 1, "stroke-dasharray": line.dash}));
      }
      for (const {axis, at, label, shown: value, ink} of shown) {
        const words = `${label} ${value}`, long = words.length * CHARACTER, places = [];
        if (axis === "x") for (let y = this.bottom - 6; y > this.top; y -= LINE) places.push([at + 4, y], [at - 4 - long, y]);
        else for (let x = this.right - long - 4; x > this.left; x -= long + 8) places.push([x, at - 4], [x, at + LINE]);
        const place = this.free(places, long);
        if (place) this.write(place, long, words, ink);
      }
    }

    labels() {
      const drawn = this.points.filter(({one, at}) => one.labels && one.labels[at]).slice(0, MOST_LABELS * 4), seen = new Set();
      for (const {one, at, x, y} of drawn) {
        const words = short(one.labels[at], 30), key = `${x} ${y} ${words}`, long = words.length * CHARACTER;
        if (seen.has(key) || seen.size >= MOST_LABELS) continue;
        const sides = [[8, -6], [-8 - long, -6], [8, 16], [-8 - long, 16], [-long / 2, -10], [-long / 2, 20], [16, -14], [-16 - long, -14], [16, 24], [-16 - long, 24]];
        const place = this.free(sides.map(([right, down]) => [x + right, y + down]), long);
        if (!place || (place[2] && drawn.length > FEW_LABELS)) continue;
        seen.add(key);
        this.write(place, long, words, this.colors.text);
      }
    }

    words() {
      this.svg.append(text(this.left, 24, short(this.figure.title, Math.floor((this.width - 80) / 8)), {fill: this.colors.text, "font-size": 15}));
      this.legend.forEach((words, at) => {
        const y = this.bottom + 58 + at * 17, one = this.figure.series[at];
        if (one) this.svg.append(sample(one, at, this.shades[at], this.left - 50, y - 10));
        this.svg.append(text(one ? this.left - 24 : this.left - 50, y, words, {fill: one ? this.colors.text : this.colors.soft}));
      });
    }
  }

  /* The sign of a series in a legend. */
  function sample(one, index, color, x, y) {
    const group = svg("svg", {x, y, width: 22, height: 12, "aria-hidden": "true"});
    if (["points", "error"].includes(one.kind)) group.append(svg("path", {d: marker(index, 11, 6, 4), fill: color}));
    else if (["bar", "heat", "lanes", "span", "band"].includes(one.kind)) group.append(svg("rect", {x: 2, y: 1, width: 18, height: 10, fill: color, "fill-opacity": one.kind === "band" || one.kind === "span" ? 0.3 : one.kind === "lanes" ? (index % 2 ? 0.45 : 0.9) : FILLS[index % 3], stroke: color}));
    else group.append(svg("path", {d: "M1 6H21", stroke: color, "stroke-width": 2, "stroke-dasharray": DASHES[index % DASHES.length]}));
    return group;
  }

  window.Figures = {Drawing, sample, svg, middle};
})();
