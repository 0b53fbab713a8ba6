// A server near the storage: what each policy sends, and how that changes with its threads.

const OPTION_FILLS = ["var(--best)", "var(--store)", "var(--memory)", "var(--bar)", "var(--warn)", "var(--none)", "var(--bar-2)"];
const POLICY_LINES = {sophon: ["var(--best)", ""], paper: ["var(--store)", "7 4"], "resize-off": ["var(--memory)", "2 3"], "all-off": ["var(--warn)", "9 3 2 3"], "no-off": ["var(--none)", "4 4"]};
const offloads = plan.offload ? all.map((s) => s.offload) : [];

const rawBytes = () => offloads.find((o) => o.policy === "no-off").bytes;
const sharesWords = (o) => o.shares.map((share) => `${percent(share.samples_share)} ${share.option}`).join(", ");

// A row for each policy, divided by what is sent of its samples.
function drawOffloadBytes() {
  const width = 1000, left = 100, right = 190, row = 34;
  const weight = (option) => offloads.reduce((sum, o) => sum + (o.shares.find((share) => share.option === option)?.bytes ?? 0), 0);
  const options = [...new Set(offloads.flatMap((o) => o.shares.map((share) => share.option)))].sort((a, b) => weight(b) - weight(a));
  const fills = new Map(options.map((option, k) => [option, OPTION_FILLS[Math.min(k, OPTION_FILLS.length - 1)]]));
  const most = Math.max(...offloads.map((o) => o.bytes), 1e-12), scale = (width - left - right) / most;
  const names = [];  // with their places; those without a color of their own share the last one
  let across = left, down = 8;
  for (const option of options.slice(0, OPTION_FILLS.length)) {
    const long = 34 + option.length * 6.6;
    if (across + long > width) [across, down] = [left, down + 20];
    names.push({option, x: across, y: down});
    across += long;
  }
  const top = down + 34;
  const chart = picture(width, top + offloads.length * row, "Bytes of an epoch by policy", offloads.map((o) => `${o.policy}: ${size(o.bytes)}, ${sharesWords(o)}`).join("; "));
  for (const {option, x, y} of names) chart.append(svg("rect", {x, y, width: 11, height: 11, rx: 2, fill: fills.get(option)}), label(x + 17, y + 9.5, option, {class: "small"}));
  offloads.forEach((o, k) => {
    const y = top + k * row;
    chart.append(label(left - 10, y + 15, o.policy, {"text-anchor": "end", class: k === 0 ? "strong" : ""}));
    let x = left;
    for (const share of o.shares) {
      const drawn = svg("rect", {x, y, width: Math.max(share.bytes * scale, 0.5), height: row - 12, fill: fills.get(share.option), class: "point"});
      tipped(drawn, `${o.policy}: ${percent(share.samples_share)} of the samples as ${share.option}, ${size(share.bytes)}`);
      chart.append(drawn);
      x += share.bytes * scale;
    }
    chart.append(label(x + 8, y + 15, `${size(o.bytes)}, ${duration(o.epoch_s)}`, {class: "small"}));
  });
  at("offload-bytes").append(chart);
}

function drawOffloadThreads() {
  const rows = plan.offload.by_threads, names = plan.offload.policies;
  const width = 1000, height = 330, left = 84, right = 130, top = 16, bottom = 44;
  const mostThreads = Math.max(...rows.map((r) => r.storage_threads), 1), mostBytes = Math.max(...rows.flatMap((r) => r.bytes), 1e-12);
  const x = (threads) => left + ((width - left - right) * threads) / mostThreads;
  const y = (bytes) => height - bottom - ((height - top - bottom) * bytes) / mostBytes;
  const chart = picture(width, height, "Traffic against storage threads", names.map((name, p) => `${name}: ${rows.map((r) => size(r.bytes[p])).join(", ")}`).join("; "));
  for (let k = 0; k <= 4; k++) chart.append(svg("line", {x1: left, x2: width - right, y1: y((mostBytes * k) / 4), y2: y((mostBytes * k) / 4), class: "grid"}), label(left - 8, y((mostBytes * k) / 4) + 4, size((mostBytes * k) / 4), {"text-anchor": "end", class: "small"}));
  for (const r of rows) chart.append(label(x(r.storage_threads), height - bottom + 18, number(r.storage_threads), {"text-anchor": "middle", class: "small"}));
  chart.append(label((left + width - right) / 2, height - 6, "threads of the server near the storage", {"text-anchor": "middle", class: "small"}));
  const ends = [];
  names.forEach((name, p) => {
    const [color, dash] = POLICY_LINES[name] ?? ["var(--none)", ""];
    chart.append(svg("polyline", {points: rows.map((r) => `${x(r.storage_threads)},${y(r.bytes[p])}`).join(" "), fill: "none", stroke: color, "stroke-width": name === plan.policy ? 3 : 1.8, "stroke-dasharray": dash}));
    for (const r of rows) {
      const spot = svg("circle", {cx: x(r.storage_threads), cy: y(r.bytes[p]), r: 3.5, fill: color, class: "point"});
      tipped(spot, `${name}, ${number(r.storage_threads)} threads: ${size(r.bytes[p])}, an epoch of ${duration(r.epoch_s[p])}`);
      chart.append(spot);
    }
    ends.push({y: y(rows[rows.length - 1].bytes[p]), text: name, color});
  });
  spread(ends, 15, height - bottom);
  for (const end of ends) chart.append(label(width - right + 10, end.y + 4, end.text, {class: end.text === plan.policy ? "strong" : "", style: `fill: ${end.color}`}));
  at("offload-threads").append(chart);
}

function drawOffload() {
  drawOffloadBytes();
  drawOffloadThreads();
  at("offload-table").append(table([
    {name: "policy", of: (o) => o.policy},
    {name: "epoch", number: true, of: (o) => duration(o.epoch_s)},
    {name: "bytes", number: true, of: (o) => size(o.bytes)},
    {name: "of raw", number: true, of: (o) => percent(o.bytes / Math.max(rawBytes(), 1e-12))},
    {name: "T_G", number: true, of: (o) => duration(o.t_g)},
    {name: "T_CC", number: true, of: (o) => duration(o.t_cc)},
    {name: "T_CS", number: true, of: (o) => duration(o.t_cs)},
    {name: "T_Net", number: true, of: (o) => duration(o.t_net)},
    {name: "samples", text: true, of: sharesWords},
  ], offloads, {rowClass: (o) => (o === plan.choice.offload ? "best" : "")}));
}
