"use strict";
// What every picture is made of. Text reaches the page as text only, never as markup.

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// A picture with a name and a sentence for those who do not see it.
function picture(width, height, title, description) {
  return svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${description}`});
}

function label(x, y, text, attributes = {}) {
  return svg("text", {x, y, ...attributes}, text);
}

// Three significant digits, and no more zeros than that.
function number(value) {
  const text = value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function withUnit(value, units) {
  let [unit, worth] = units[0];
  for (const [name, least] of units) if (value >= least * 0.9995) [unit, worth] = [name, least];
  return `${number(value / worth)} ${unit}`;
}

const size = (bytes) => withUnit(bytes, [["bytes", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12], ["PB", 1e15]]);
const rate = (bytes) => (bytes > 0 ? `${size(bytes)}/s` : "not measured");
const percent = (share) => `${number(share * 100)} %`;

function duration(seconds) {
  if (seconds < 1e-3) return `${number(seconds * 1e6)} µs`;
  if (seconds < 1) return `${number(seconds * 1e3)} ms`;
  if (seconds < 120) return `${number(seconds)} s`;
  if (seconds < 7200) return `${number(seconds / 60)} min`;
  if (seconds < 172800) return `${number(seconds / 3600)} h`;
  return `${number(seconds / 86400)} days`;
}

// A logarithmic axis from low to high, given in pixels; ticks at 1, 2, 5 of each power while they are few.
function logScale(low, high, from, to) {
  low = Math.max(low, 1e-12);
  high = Math.max(high, low * 1.01);
  const position = (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
  const ticks = [];
  for (const steps of [[1, 2, 5], [1]]) {
    ticks.length = 0;
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const step of steps) {
        const value = step * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push(value);
      }
    if (ticks.length <= 9) break;
  }
  return {position, ticks};
}

// Ticks of times at round durations.
const ROUND_TIMES = [1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18000, 36000, 86400, 259200, 864000, 2592000, 8640000];

function timeScale(low, high, from, to) {
  const scale = logScale(low, high, from, to);
  const round = ROUND_TIMES.filter((time) => time >= low && time <= high);
  if (round.length >= 2) scale.ticks = round.length > 9 ? round.filter((_, i) => i % 2 === 0) : round;
  return scale;
}

function table(columns, rows, options = {}) {
  const head = element("tr");
  for (const column of columns) head.append(element("th", {scope: "col", class: column.number ? "number" : ""}, column.name));
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr", {class: options.rowClass ? options.rowClass(row) : ""});
    for (const column of columns) line.append(element("td", {class: column.number ? "number" : column.text ? "text" : ""}, column.of(row)));
    body.append(line);
  }
  const made = element("table");
  if (options.caption) made.append(element("caption", {}, options.caption));
  made.append(element("thead", {}, head), body);
  return made;
}

// Rows of bars, several for each name; `kinds` are [name, fill], `groups` {name, strong, bars: [{value, text, fill, tip}]}.
function bars(title, kinds, groups) {
  const row = 17, between = 12, left = 112, right = 118, width = 480, top = 52;
  const most = Math.max(...groups.flatMap((group) => group.bars.map((bar) => bar.value)), 1e-12);
  const height = top + groups.reduce((sum, group) => sum + group.bars.length * row + between, 0);
  const chart = picture(width, height, title, groups.map((group) => `${group.name}: ${group.bars.map((bar) => bar.text).join(", ")}`).join("; "));
  chart.append(label(0, 13, title, {class: "strong"}));
  let x = 0, y = top;
  for (const [name, fill] of kinds) {
    chart.append(svg("rect", {x, y: 24, width: 11, height: 11, rx: 2, fill}), label(x + 17, 33.5, name, {class: "small"}));
    x += 30 + name.length * 6.4;
  }
  for (const group of groups) {
    const middle = y + (group.bars.length * row) / 2 + 2;
    chart.append(label(left - 8, middle, short(group.name, 15), {"text-anchor": "end", class: group.strong ? "strong" : ""}));
    for (const bar of group.bars) {
      const long = Math.max(1.5, ((width - left - right) * bar.value) / most);
      const drawn = svg("rect", {x: left, y, width: long, height: row - 4, rx: 2, fill: bar.fill, class: "point"});
      tipped(drawn, bar.tip);
      chart.append(drawn, label(left + long + 6, y + 10.5, bar.text, {class: "small"}));
      y += row;
    }
    y += between;
  }
  return chart;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Shows a text beside the pointer; the text is also the element's title.
function tipped(node, text) {
  const tip = document.getElementById("tip");
  node.append(svg("title", {}, text));
  node.addEventListener("pointermove", (event) => {
    tip.textContent = text;
    tip.hidden = false;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  });
  node.addEventListener("pointerleave", () => (tip.hidden = true));
}

// Moves labels apart: [{y, …}] sorted by y, at least `apart` pixels between two of them, none below `most`.
function spread(labels, apart, most) {
  labels.sort((a, b) => a.y - b.y);
  for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + apart);
  for (let i = labels.length - 1, limit = most; i >= 0; i--, limit = labels[i + 1].y - apart) labels[i].y = Math.min(labels[i].y, limit);
}
