
const {profile, plan, version} = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const all = [plan.choice, ...plan.alternatives];
const unprepared = all.find((s) => s.place === "none");
const epochsWord = (count) => `${count} ${count === 1 ? "epoch" : "epochs"}`;
const kept = (s) => s.disk_bytes + (s.place === "memory" ? s.memory_bytes : 0);
const totalAt = (s, epochs) => s.build_s + s.first_epoch_s + (epochs - 1) * s.epoch_s;
const isChoice = (s) => s === plan.choice;

function words(s) {
  if (s.offload) return `Near the storage, by policy ${s.offload.policy}: ${size(s.offload.bytes)} an epoch`;
  if (s.place === "none") return s.cache === "page" ? "Unprepared, source in the page cache" : "Unprepared, source from disk";
  const codec = s.codec === "none" ? "uncompressed" : s.codec;
  if (s.place === "memory") return `Memory cache at ${s.cut_name}, ${codec}`;
  return `Store at ${s.cut_name}, ${codec}, ${s.cache === "page" ? "in the page cache" : "from disk"}`;
}

function brief(s) {
  const codec = s.codec === "none" ? "" : `, ${s.codec}`;
  if (s.place === "none") return "Unprepared";
  return s.place === "memory" ? `Memory cache at ${s.cut_name}${codec}` : `Store at ${s.cut_name}${codec}, ${s.cache === "page" ? "page cache" : "disk"}`;
}

function tipOf(s) {
  const lines = [words(s), `${duration(s.total_s)} in all: build ${duration(s.build_s)}, first epoch ${duration(s.first_epoch_s)}, then ${duration(s.epoch_s)} each`];
  lines.push(`${number(s.samples_per_s)} samples/s, bound by ${s.bound_by}`);
  lines.push(`disk ${size(s.disk_bytes)}, memory ${size(s.memory_bytes)}`);
  if (s.break_even_epochs) lines.push(`pays from ${epochsWord(s.break_even_epochs)} on`);
  if (!s.feasible) lines.push(`not possible: ${s.why_not}`);
  return lines.join("\n");
}

// none: a diamond; store: a circle, hollow from disk; memory: a square; a cross where it is not possible.
function mark(s, x, y, r = 5) {
  const color = `var(--${s.place})`;
  if (!s.feasible)
    return svg("path", {d: `M${x - r + 1} ${y - r + 1}l${2 * r - 2} ${2 * r - 2}m0 ${2 - 2 * r}l${2 - 2 * r} ${2 * r - 2}`, stroke: color, "stroke-width": 1.5, "stroke-opacity": 0.55, fill: "none", class: "point"});
  if (s.place === "none") return svg("path", {d: `M${x} ${y - r - 2}l${r + 2} ${r + 2}l${-r - 2} ${r + 2}l${-r - 2} ${-r - 2}z`, fill: color, class: "point"});
  if (s.place === "memory") return svg("rect", {x: x - r + 0.5, y: y - r + 0.5, width: 2 * r - 1, height: 2 * r - 1, fill: color, class: "point"});
  const hollow = s.cache !== "page";
  return svg("circle", {cx: x, cy: y, r, fill: hollow ? "var(--card)" : color, stroke: color, "stroke-width": hollow ? 2 : 0, class: "point"});
}

// Samples are kept at this cut, or some leave the storage there.
const chosenCut = (cut) => (plan.choice.offload ? plan.choice.offload.shares.some((share) => share.cut === cut.cut) : plan.choice.place !== "none" && cut.cut === plan.choice.cut);
const budgetWords = ({threads, memory_bytes, disk_bytes, storage_threads, link_bytes_per_s}) =>
  plan.offload
    ? `${threads} threads here and ${storage_threads} near the storage, ${link_bytes_per_s === null ? "any link" : `a link of ${rate(link_bytes_per_s)}`}`
    : `${threads} threads${memory_bytes === null ? "" : `, ${size(memory_bytes)} of memory`}${disk_bytes === null ? "" : `, ${size(disk_bytes)} of disk`}`;

function drawChoice() {
  const s = plan.choice;
  document.title = `${words(s)} · Cutwater report`;
  const article = s.place === "none" ? "" : "a ";
  at("headline").textContent = s.offload ? words(s) : `Best for ${epochsWord(plan.epochs)}: ${article}${words(s).replace(/^[A-Z]/, (c) => c.toLowerCase())}`;
  at("about").append(
    `${plan.data ? `${plan.data}: ` : ""}${plan.samples.toLocaleString("en")} samples, `, element("code", {}, plan.pipeline),
    `. Predicted${profile ? ` from a profile of ${profile.profiled} samples` : ""}, for ${budgetWords(plan.budget)}.`);
  const figures = [["in all", duration(s.total_s)]];
  if (s.money !== undefined) figures.push(["money", number(s.money)]);
  if (s.build_s > 0) figures.push(["to build", duration(s.build_s)]);
  figures.push(["first epoch", duration(s.first_epoch_s)], ["each later epoch", duration(s.epoch_s)], ["samples/s", number(s.samples_per_s)], ["bound by", s.bound_by]);
  if (s.disk_bytes > 0) figures.push(["on disk", size(s.disk_bytes)]);
  if (s.memory_bytes > 0) figures.push([s.place === "memory" ? "in memory" : "in the page cache", size(s.memory_bytes)]);
  if (s.break_even_epochs) figures.push(["pays from", epochsWord(s.break_even_epochs)]);
  for (const [name, value] of figures) at("figures").append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  for (const sentence of plan.reason) at("reason").append(element("p", {}, sentence));
  for (const note of plan.notes) at("reason").append(element("p", {class: "note"}, `Note: ${note}`));
}

function drawPipeline() {
  const cuts = profile.cuts, box = 104, gap = 66, height = 138, top = 38;
  const width = cuts.length * box + (cuts.length - 1) * gap + 4;
  const chart = picture(width, height, "The pipeline", `Cuts: ${cuts.map((c) => c.name).join(", ")}. Chosen: ${words(plan.choice)}`);
  chart.style.maxWidth = `${width * 1.25}px`;
  chart.style.minWidth = `${width * 0.72}px`;
  cuts.forEach((cut, k) => {
    const x = 2 + k * (box + gap), chosen = chosenCut(cut);
    if (k > 0) {
      const end = x - 4, start = x - gap + 3, y = top + 29, frontier = cuts[k - 1].stable && !cut.stable;
      chart.append(svg("path", {d: `M${start} ${y}H${end}m-6 -4l6 4l-6 4`, stroke: "var(--muted)", fill: "none", "stroke-width": 1.4}));
      chart.append(label((start + end) / 2 - (frontier ? 6 : 2), y - 9, duration(cut.op_s), {"text-anchor": "middle", class: "small"}));
    }
    const shape = svg("rect", {x, y: top, width: box, height: 58, rx: 7, fill: chosen ? "var(--best-soft)" : cut.stable ? "var(--stable)" : "var(--fresh)", stroke: chosen ? "var(--best)" : "var(--line)", "stroke-width": chosen ? 2.5 : 1, class: "point"});
    tipped(shape, `${cut.name}: ${size(cut.bytes)} a sample\n${cut.stable ? `stable: the same in every epoch\n${duration(cut.finish_s)} from here to the end` : "fresh: drawn anew in every epoch"}`);
    chart.append(shape, label(x + box / 2, top + 25, short(cut.name, 14), {"text-anchor": "middle", class: "strong", "pointer-events": "none"}));
    chart.append(label(x + box / 2, top + 44, size(cut.bytes), {"text-anchor": "middle", class: "small", "pointer-events": "none"}));
    if (chosen) chart.append(label(x + box / 2, top + 76, `${plan.offload ? "sent from" : plan.choice.place === "store" ? "store" : "cache"} here`, {"text-anchor": "middle", style: "fill: var(--best); font-weight: 650"}));
    const next = cuts[k + 1];
    if (cut.stable && (!next || !next.stable)) {
      const line = next ? x + box + gap - 14 : x + box + 1;
      chart.append(svg("line", {x1: line, x2: line, y1: 16, y2: height - 14, stroke: "var(--warn)", "stroke-dasharray": "5 4", "stroke-width": 1.5}));
      chart.append(label(line - 5, 12, "stable", {"text-anchor": "end", class: "small"}), label(line, height - 2, "frontier", {"text-anchor": next ? "middle" : "end", style: "fill: var(--warn)"}));
      if (next) chart.append(label(line + 5, 12, "fresh: drawn anew in every epoch", {class: "small"}));
    }
  });
  at("pipeline").append(chart);
}

function drawCuts() {
  const ops = [["the op before it, alone", "var(--bar)"], ["the rest, from here to the end", "var(--bar-2)"]];
  const kinds = [["as it is", "var(--bar)"], ["in its smallest codec", "var(--bar-2)"]];
  const smallest = (cut) => cut.variants.reduce((a, b) => (b.bytes < a.bytes ? b : a), {codec: "none", bytes: cut.bytes});
  at("bytes").append(bars("Bytes of a sample at each cut", kinds, profile.cuts.map((cut) => {
    const drawn = [{value: cut.bytes, text: size(cut.bytes), fill: "var(--bar)", tip: `${cut.name}: ${size(cut.bytes)}`}];
    const least = smallest(cut);
    if (least.codec !== "none") drawn.push({value: least.bytes, text: `${size(least.bytes)}, ${least.codec}`, fill: "var(--bar-2)", tip: `${cut.name} in ${least.codec}: ${size(least.bytes)}`});
    return {name: cut.name, strong: chosenCut(cut), bars: drawn};
  })));
  at("seconds").append(bars("Time of a sample at each cut, one thread", ops, profile.cuts.map((cut) => {
    const drawn = cut.cut > 0 ? [{value: cut.op_s, text: duration(cut.op_s), fill: "var(--bar)", tip: `the op before ${cut.name}, alone: ${duration(cut.op_s)}`}] : [];
    if (cut.finish_s !== null) drawn.push({value: cut.finish_s, text: duration(cut.finish_s), fill: "var(--bar-2)", tip: `from ${cut.name} to the end, as the engine runs it: ${duration(cut.finish_s)}`});
    return {name: cut.name, strong: chosenCut(cut), bars: drawn};
  })));
  const rows = profile.cuts.flatMap((cut) => (cut.variants.length ? cut.variants : [{codec: "none", bytes: cut.bytes, encode_s: 0, decode_s: 0}]).map((variant) => ({cut, variant})));
  at("cuts").append(table([
    {name: "cut", of: (r) => r.cut.name},
    {name: "stable", of: (r) => (r.cut.stable ? "yes" : "no")},
    {name: "codec", of: (r) => r.variant.codec},
    {name: "bytes", number: true, of: (r) => size(r.variant.bytes)},
    {name: "encode", number: true, of: (r) => (r.variant.encode_s ? duration(r.variant.encode_s) : "–")},
    {name: "decode", number: true, of: (r) => (r.variant.decode_s ? duration(r.variant.decode_s) : "–")},
    {name: "op before", number: true, of: (r) => (r.cut.cut ? duration(r.cut.op_s) : "–")},
    {name: "rest from here", number: true, of: (r) => (r.cut.finish_s === null ? "–" : duration(r.cut.finish_s))},
  ], rows));
}

function drawPlane() {
  const width = 1000, height = 430, left = 74, right = 30, top = 18, bottom = 54, zero = left + 34;
  const spaces = all.map(kept).filter((bytes) => bytes > 0), times = all.map((s) => s.total_s).filter((t) => t > 0);
  const chart = picture(width, height, "Time against space", `${all.length} strategies by the bytes they keep and their total time; the choice is ${words(plan.choice)}`);
  const x = logScale(Math.min(...spaces, 1e12) / 1.3, Math.max(...spaces, 1) * 1.3, zero + 76, width - right);
  const y = timeScale(Math.min(...times, 1e12) / 1.25, Math.max(...times, 1e-6) * 1.25, height - bottom, top);
  for (const tick of y.ticks) chart.append(svg("line", {x1: left, x2: width - right, y1: y.position(tick), y2: y.position(tick), class: "grid"}), label(left - 8, y.position(tick) + 4, duration(tick), {"text-anchor": "end", class: "small"}));
  if (spaces.length) for (const tick of x.ticks) chart.append(svg("line", {x1: x.position(tick), x2: x.position(tick), y1: top, y2: height - bottom, class: "grid"}), label(x.position(tick), height - bottom + 18, size(tick), {"text-anchor": "middle", class: "small"}));
  chart.append(label(zero, height - bottom + 18, "nothing", {"text-anchor": "middle", class: "small"}));
  chart.append(svg("path", {d: `M${left} ${top}V${height - bottom}H${width - right}`, class: "axis", fill: "none"}));
  chart.append(label((left + width - right) / 2, height - 10, "kept on disk or in the loader's memory", {"text-anchor": "middle", class: "small"}));
  chart.append(label(16, (top + height - bottom) / 2, `total of ${epochsWord(plan.epochs)}`, {"text-anchor": "middle", class: "small", transform: `rotate(-90 16 ${(top + height - bottom) / 2})`}));
  const place = (s) => [kept(s) > 0 ? x.position(kept(s)) : zero, y.position(Math.max(s.total_s, 1e-9))];
  const front = [];
  for (const s of all.filter((one) => one.feasible).sort((a, b) => kept(a) - kept(b) || a.total_s - b.total_s))
    if (!front.length || s.total_s < front[front.length - 1].total_s) front.push(s);
  chart.append(svg("polyline", {points: front.map((s) => place(s).join(",")).join(" "), fill: "none", stroke: "var(--best)", "stroke-width": 1.6, "stroke-dasharray": "2 3"}));
  for (const s of [...all].reverse()) {
    const [px, py] = place(s), drawn = mark(s, px, py);
    tipped(drawn, tipOf(s));
    if (isChoice(s)) chart.append(svg("circle", {cx: px, cy: py, r: 11, fill: "none", stroke: "var(--best)", "stroke-width": 2.5}));
    chart.append(drawn);
  }
  for (const s of new Set([plan.choice, unprepared])) {
    const [px, py] = place(s), end = px > width * 0.65;
    const text = isChoice(s) ? `the choice: ${words(s)}` : "unprepared";
    chart.append(label(px + (end ? -16 : 16), py + (py > height - bottom - 24 ? -14 : 20), text, {"text-anchor": end ? "end" : "start", class: "strong", style: `fill: var(--${isChoice(s) ? "best" : "none"}); paint-order: stroke; stroke: var(--card); stroke-width: 4px`}));
  }
  at("plane").append(chart);
  at("plane-note").textContent = "Each mark is a strategy: lower is faster, further left keeps less. On the dotted line, nothing is both smaller and faster. Point at a mark for its figures; the table below has them all.";
  const sample = (s, text) => element("span", {}, svg("svg", {viewBox: "0 0 16 16", "aria-hidden": "true"}, mark({feasible: true, ...s}, 8, 8, 5)), text);
  at("plane-legend").append(sample({place: "none"}, "unprepared"), sample({place: "store", cache: "page"}, "store, in the page cache"), sample({place: "store", cache: "none"}, "store, read from disk"), sample({place: "memory"}, "memory cache"), sample({place: "none", feasible: false}, "not possible within the budgets"));
}
