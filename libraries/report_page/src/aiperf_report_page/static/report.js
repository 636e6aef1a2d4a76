/* Figures of the report: drawn when they come near the screen, and before the page is printed.  Text is set as text only. */
"use strict";
(function () {
  const {element} = Elements;
  const HEIGHT = 340;
  const panels = [];
  let zoom = null, whole = null;

  class Panel {
    constructor(box) {
      [this.box, this.zoom, this.figure] = [box, null, null];
      const plot = box.querySelector(".plot"), options = () => ({height: HEIGHT, zoom: this.range()});
      this.view = new Figures.View(plot, box.querySelector(".legend"), {options, redraw: () => this.draw(), zoom: (range) => this.zoomTo(range)});
      plot.style.minHeight = `${HEIGHT}px`;  // nothing moves once it is drawn
    }
    get drawn() { return this.view.drawing !== null; }
    load() {
      this.figure = JSON.parse(this.box.querySelector("script").textContent);
      this.figure.title = this.box.getAttribute("aria-label");
      this.figure.description = this.box.querySelector(".words").textContent;
      this.view.set(this.figure);
    }
    draw(width) {
      if (!this.figure) this.load();
      this.view.draw(width);
      this.view.plot.style.minHeight = "";
      performance.mark(this.box.id);  // when it was drawn, for whoever measures the page
    }
    range() { return Figures.isTime(this.figure) ? zoom : this.zoom; }
    zoomTo(range) {
      if (Figures.isTime(this.figure)) { zoom = range; for (const panel of panels) if (panel.drawn && Figures.isTime(panel.figure)) panel.draw(); } else { this.zoom = range; this.draw(); }
      whole.disabled = !zoom && panels.every((panel) => !panel.zoom);
    }
  }

  function redraw(width) { for (const panel of panels) if (panel.drawn) panel.draw(width); }
  function dark() { const set = document.documentElement.dataset.theme; return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; }

  for (const box of document.querySelectorAll(".figure")) panels.push(new Panel(box));
  const head = document.querySelector("header.top");
  whole = element("button", {type: "button", text: "End all zooms", onclick: () => { zoom = null; for (const panel of panels) panel.zoom = null; redraw(); whole.disabled = true; }});
  whole.disabled = true;
  if (panels.length) head.append(whole);
  head.append(element("button", {type: "button", text: "Light/dark", onclick: () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; redraw(); }}));

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { const panel = panels.find((each) => each.box === entry.target); if (!panel.drawn) panel.draw(); near.unobserve(entry.target); }
  }, {rootMargin: "300px"});
  for (const panel of panels) near.observe(panel.box);
  let resizing = 0;
  window.addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => { for (const panel of panels) if (panel.view.resized()) panel.draw(); }, 100); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  let before = null;
  window.addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme || ""; document.documentElement.dataset.theme = "light"; for (const panel of panels) panel.draw(680); });
  window.addEventListener("afterprint", () => { if (before) document.documentElement.dataset.theme = before; else delete document.documentElement.dataset.theme; redraw(); });
})();
