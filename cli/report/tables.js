
// The strategies that a reader compares: the choice, the unprepared pipeline, the best of each place, then of each cut.
function compared() {
  const found = [plan.choice], possible = [unprepared, ...plan.alternatives.filter((s) => s.feasible)];
  for (const kind of [(s) => s.place, (s) => `${s.place} ${s.cut}`])
    for (const s of possible) if (found.length < 5 && !found.some((other) => kind(other) === kind(s))) found.push(s);
  return found;
}

function drawEpochs() {
  const width = 1000, height = 380, left = 74, right = 280, top = 26, bottom = 46;
  const lines = compared(), even = plan.choice.break_even_epochs;
  const most = Math.max(20, plan.epochs * 2, even ? Math.min(even * 2, plan.epochs * 20) : 0);
  const chart = picture(width, height, "Total time over epochs", lines.map((s) => `${words(s)}: ${duration(totalAt(s, plan.epochs))} for ${epochsWord(plan.epochs)}`).join("; "));
  const values = lines.flatMap((s) => [totalAt(s, 1), totalAt(s, most)]).filter((v) => v > 0);
  const x = logScale(1, most, left, width - right);
  const y = timeScale(Math.min(...values, 1e12) / 1.15, Math.max(...values, 1e-6) * 1.1, height - bottom, top);
  for (const tick of y.ticks) chart.append(svg("line", {x1: left, x2: width - right, y1: y.position(tick), y2: y.position(tick), class: "grid"}), label(left - 8, y.position(tick) + 4, duration(tick), {"text-anchor": "end", class: "small"}));
  for (const tick of x.ticks) chart.append(label(x.position(tick), height - bottom + 18, number(tick), {"text-anchor": "middle", class: "small"}));
  chart.append(svg("path", {d: `M${left} ${top}V${height - bottom}H${width - right}`, class: "axis", fill: "none"}));
  chart.append(label((left + width - right) / 2, height - 6, "epochs", {"text-anchor": "middle", class: "small"}));
  const now = x.position(plan.epochs);
  chart.append(svg("line", {x1: now, x2: now, y1: top, y2: height - bottom, stroke: "var(--muted)", "stroke-dasharray": "4 4"}), label(now, top - 8, epochsWord(plan.epochs), {"text-anchor": "middle", class: "small"}));
  const dashes = ["", "", "7 4", "2 3", "9 3 2 3"], ends = [];
  lines.forEach((s, k) => {
    const points = [];
    for (let i = 0; i <= 60; i++) {
      const epochs = most ** (i / 60);
      points.push(`${x.position(epochs)},${y.position(Math.max(totalAt(s, epochs), 1e-9))}`);
    }
    const color = isChoice(s) ? "var(--best)" : `var(--${s.place})`;
    const line = svg("polyline", {points: points.join(" "), fill: "none", stroke: color, "stroke-width": isChoice(s) ? 3.2 : 1.8, "stroke-dasharray": isChoice(s) ? "" : dashes[k]});
    tipped(line, tipOf(s));
    chart.append(line);
    ends.push({y: y.position(Math.max(totalAt(s, most), 1e-9)), text: brief(s), color, strong: isChoice(s)});
  });
  spread(ends, 17, height - bottom + 4);
  for (const end of ends) chart.append(label(width - right + 8, end.y + 4, short(end.text, 38), {class: end.strong ? "strong" : "", style: `fill: ${end.color}`}));
  const cross = 1 + (totalAt(plan.choice, 1) - totalAt(unprepared, 1)) / (unprepared.epoch_s - plan.choice.epoch_s);
  if (!isChoice(unprepared) && cross > 1 && cross < most) {
    const spot = svg("circle", {cx: x.position(cross), cy: y.position(totalAt(plan.choice, cross)), r: 5.5, fill: "var(--card)", stroke: "var(--best)", "stroke-width": 2.5, class: "point"});
    tipped(spot, `break-even with the unprepared pipeline after ${number(cross)} epochs`);
    chart.append(spot);
  }
  at("epochs").append(chart);
  at("epochs-note").textContent = isChoice(unprepared)
    ? "Nothing that is prepared is faster in all for this number of epochs."
    : even ? `The choice is faster than the unprepared pipeline from ${epochsWord(even)} on${cross > 1 ? ", where the lines cross" : ""}.` : "The choice is not faster than the unprepared pipeline; it was chosen by price.";
  const shown = [...new Set([1, 2, 3, 5, 10, 30, 90, plan.epochs])].sort((a, b) => a - b);
  at("epochs-table").append(table([{name: "strategy", of: words}, ...shown.map((epochs) => ({name: epochsWord(epochs), number: true, of: (s) => duration(totalAt(s, epochs))}))], lines, {rowClass: (s) => (isChoice(s) ? "best" : "")}));
}

const strategyColumns = [
  {name: "cut", of: (s) => s.cut_name},
  {name: "codec", of: (s) => s.codec},
  {name: "place", of: (s) => s.place},
  {name: "cache", of: (s) => s.cache},
  {name: "total", number: true, of: (s) => duration(s.total_s)},
  ...(plan.choice.money === undefined ? [] : [{name: "money", number: true, of: (s) => number(s.money)}]),
  {name: "build", number: true, of: (s) => (s.build_s > 0 ? duration(s.build_s) : "–")},
  {name: "first epoch", number: true, of: (s) => duration(s.first_epoch_s)},
  {name: "later epochs", number: true, of: (s) => duration(s.epoch_s)},
  {name: "samples/s", number: true, of: (s) => number(s.samples_per_s)},
  {name: "disk", number: true, of: (s) => (s.disk_bytes > 0 ? size(s.disk_bytes) : "–")},
  {name: "memory", number: true, of: (s) => (s.memory_bytes > 0 ? size(s.memory_bytes) : "–")},
  {name: "bound by", of: (s) => s.bound_by},
  {name: "pays from", number: true, of: (s) => (s.break_even_epochs ? String(s.break_even_epochs) : "–")},
];

function drawTables() {
  const best = all.slice(0, 12), rest = all.slice(12);
  const reason = {name: "", text: true, of: (s) => (s.feasible ? "" : `not possible: ${s.why_not}`)};
  const rowClass = (s) => (isChoice(s) ? "best" : s.feasible ? "" : "impossible");
  const columns = (rows) => (rows.some((s) => !s.feasible) ? [...strategyColumns, reason] : strategyColumns);
  at("ranked").append(table(columns(best), best, {rowClass}));
  at("others").hidden = rest.length === 0;
  at("others").firstElementChild.textContent = `${rest.length} more`;
  at("rest").append(table(columns(rest), rest, {rowClass}));
  at("refused").hidden = plan.refused.length === 0;
  at("refused").firstElementChild.textContent = `${plan.refused.length} codecs refused`;
  at("refused-list").append(table([{name: "cut", of: (r) => r.cut_name}, {name: "codec", of: (r) => r.codec}, {name: "why", text: true, of: (r) => r.why}], plan.refused));
}

function drawWhatIf() {
  at("what-if").append(table([
    {name: "circumstances", of: (w) => w.when},
    {name: "best then", text: true, of: (w) => (w.differs ? w.choice : "the same")},
    {name: "total", number: true, of: (w) => duration(w.total_s)},
  ], plan.what_if, {rowClass: (w) => (w.differs ? "differs" : "")}));
}

function drawResources() {
  const names = {cpu: "threads", storage_cpu: "storage threads", network: "link", memory: "memory budget", disk: "disk budget"};
  for (const [name, {use, price}] of Object.entries(plan.resources)) {
    if (use === 0 && !(price > 0)) continue;
    const space = name === "memory" || name === "disk";
    const fill = element("i", {style: `width: ${Math.min(100, use * 100)}%`});
    const text = `${space ? `${percent(use)} of the budget` : `busy ${percent(use)} of the time`}${price > 0 ? `; 10 % more would save ${plan.choice.money === undefined ? duration(price) : `${+price.toPrecision(3)} in money`}` : ""}`;
    at("resources").append(element("div", {class: `meter ${name === plan.bound_by ? "bound" : ""}`}, element("span", {}, names[name] ?? name), element("div", {class: "track", "aria-hidden": "true"}, fill), element("span", {}, text)));
  }
}

function drawMachine() {
  const {storage} = profile, cold = ([reads, bytes]) => (reads > 0 || bytes > 0 ? `${reads > 0 ? `${number(reads)} reads/s, ` : ""}${rate(bytes)}` : "not measured");
  const rows = [
    ["threads", String(profile.threads)],
    ["cold reads, random", cold(storage.cold_random)],
    ["cold reads, sequential", cold(storage.cold_sequential)],
    ["a warm file", duration(storage.warm_file_s)],
    ["a warm part of a shard", duration(storage.warm_part_s)],
    ["each warm byte", storage.warm_per_byte_s > 0 ? rate(1 / storage.warm_per_byte_s) : "not measured"],
    ["checking a store's bytes, a thread", storage.check_per_byte_s > 0 ? rate(1 / storage.check_per_byte_s) : "not measured"],
    ["writing", rate(storage.write_bytes_per_s)],
    ["a small file until it is on the disk", duration(storage.write_file_s)],
    ["copying in memory, a thread", rate(profile.memory_bytes_per_s)],
    ["engine, a sample", duration(profile.engine_s)],
    ["consumer", plan.budget.consumer_samples_per_s ? `${number(plan.budget.consumer_samples_per_s)} samples/s` : "not given"],
    ["profiled", `${profile.profiled} of ${profile.data_samples.toLocaleString("en")} samples in ${duration(profile.seconds)}, ± ${percent(profile.relative_error)}`],
  ];
  at("machine").append(table([{name: "", of: (r) => r[0]}, {name: "", of: (r) => r[1]}], rows));
  if (profile.bad.length) {
    const list = element("ul", {}, ...profile.bad.map((text) => element("li", {}, text)));
    at("machine").append(element("details", {}, element("summary", {}, `${profile.bad.length} bad samples, left out`), list));
  }
}

drawChoice();
if (plan.offload) {
  drawOffload();
} else {
  drawPlane();
  drawEpochs();
  drawTables();
}
document.querySelectorAll(plan.offload ? ".of-strategies" : ".of-offload").forEach((part) => part.remove());
drawWhatIf();
drawResources();
if (profile) {
  drawPipeline();
  drawCuts();
  drawMachine();
} else {
  document.querySelectorAll(".of-profile").forEach((part) => part.remove());
}
at("footer").textContent = `Made by cutwater ${version}. Predictions: how they are made is in docs/plan.md.`;
at("page").hidden = false;
// On paper there is nothing to unfold.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
