/* Own pictures: a form, and the file that aiperf plot --config reads (JSON between braces is YAML). */
"use strict";
(function () {
  const {element} = Charts;
  const SEVERAL = [["scatter_line", "points joined by load"], ["pareto", "points and their frontier"], ["latency_throughput_uncertainty", "means of repeats, with intervals"]];
  const SINGLE = [["scatter", "a point for each request"], ["scatter_with_percentiles", "points, and rolling p50, p95, p99"], ["percentile_bands", "p50, p95 and p99 over time"],
    ["histogram", "mean of each window"], ["timeslice", "statistic of each slice"]];
  const REQUEST_X = [["request_number", "number of the request"], ["time", "time"]];

  function options(pairs, chosen) { return pairs.map(([value, text]) => element("option", {value, text, selected: value === chosen})); }

  function name(title, taken) {
    const plain = title.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 60) || "own";
    let found = plain;
    for (let n = 2; taken.includes(found); n += 1) found = `${plain}_${n}`;
    return found;
  }

  /* Ask for a picture; done(picture) gets {name, several, preset}. */
  function ask(choices, several, taken, done) {
    const form = document.getElementById("edit-form"), dialog = document.getElementById("edit");
    const metrics = choices.metrics.map((each) => [each.tag, each.unit ? `${each.tag} (${each.unit})` : each.tag]);
    const pick = (label, id, ...children) => [element("label", {for: id, text: label}), element("select", {id}, ...children)];
    const stats = (tag) => { const found = choices.metrics.find((each) => each.tag === tag); return (found && found.stats.length ? found.stats : ["avg"]).map((stat) => [stat, stat]); };
    const first = (...tags) => tags.find((tag) => metrics.some(([each]) => each === tag)) || (metrics[0] || [""])[0];
    const at = (id) => form.querySelector(`#${id}`);
    form.replaceChildren(
      ...pick("Kind", "own-type", ...options(several ? SEVERAL : SINGLE)),
      ...pick("x", "own-x", ...options(several ? metrics : REQUEST_X, several ? first("request_throughput") : "request_number")),
      ...pick("Statistic of x", "own-x-stat"),
      ...pick("y", "own-y", ...options(metrics, first(several ? "request_latency" : "time_to_first_token", "request_latency"))),
      ...pick("Statistic of y", "own-y-stat"),
      ...pick("Joined by", "own-groups", ...options([["", "the study's groups"], ["model", "model"]])),
      element("label", {for: "own-title", text: "Title"}), element("input", {id: "own-title", maxlength: "120", autocomplete: "off"}),
      element("div", {class: "row"}, element("button", {type: "submit", value: "draw", class: "primary", text: "Draw"}), element("button", {type: "submit", value: "", text: "Cancel"})));
    const fill = () => {
      const slices = at("own-type").value === "timeslice";
      if (!several) at("own-x").replaceChildren(...options(slices ? [["slice", "slice"]] : REQUEST_X, at("own-x").value));
      for (const [axis, has] of [["x", several], ["y", several || slices]]) {
        const select = at(`own-${axis}-stat`), kept = select.value, found = stats(at(`own-${axis}`).value);
        select.replaceChildren(...options(found, found.some(([stat]) => stat === kept) ? kept : found.some(([stat]) => stat === "avg") ? "avg" : found[0][0]));
        select.disabled = !has;
      }
      at("own-groups").disabled = !several;
    };
    for (const id of ["own-type", "own-x", "own-y"]) at(id).addEventListener("change", fill);
    fill();
    dialog.onclose = () => {
      if (dialog.returnValue !== "draw") return;
      const value = (axis) => { const select = at(`own-${axis}-stat`); return select.disabled ? {metric: at(`own-${axis}`).value} : {metric: at(`own-${axis}`).value, stat: select.value}; };
      const preset = {type: at("own-type").value, x: value("x"), y: value("y")};
      if (several && at("own-groups").value) preset.groups = ["model"];
      const title = at("own-title").value.trim();
      if (title) preset.title = title;
      done({name: name(title || `${preset.y.metric}_${preset.type}`, taken), several, preset});
    };
    dialog.returnValue = "";
    Dialogs.open(dialog);
  }

  /* The file: pictures of its own, and the names of all that are shown, in their order. */
  function file(pictures, shown, several) {
    const [plots, defaults] = several ? ["multi_run_plots", "multi_run_defaults"] : ["single_run_plots", "single_run_defaults"];
    const lines = ["visualization:", `  ${defaults}: ${JSON.stringify(shown)}`];
    const mine = pictures.filter((each) => each.several === several && shown.includes(each.name));
    if (mine.length) lines.push(`  ${plots}:`, ...mine.map((each) => `    ${JSON.stringify(each.name)}: ${JSON.stringify(each.preset)}`));
    return lines.join("\n") + "\n";
  }

  window.Own = {ask, file};
})();
