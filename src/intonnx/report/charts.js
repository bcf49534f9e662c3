"use strict";
// Charts, drawn by uPlot: along the network, and the histogram of a value.

const Charts = (() => {
  const drawn = [];

  const whole = (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick : null));
  const powers = (_, ticks) => ticks.map((tick) => (Number.isInteger(Math.log10(tick)) ? tick : null));

  /** An axis; `filter` gives null for ticks that are not shown. */
  function axis(size, label, filter = (_, ticks) => ticks) {
    const line = { stroke: color("line"), width: 1, filter };
    return {
      label: label || undefined, labelSize: 18, size, stroke: color("quiet"), grid: line, ticks: line, filter,
      values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))),
    };
  }

  const bars = () => uPlot.paths.bars({ size: [0.8, 60] });

  /** A chart over the operators; a click shows the one under the pointer in the graph. */
  function along(home, title, chosen, series, options = {}) {
    const rows = FACTS.operators.map((operator, index) => index).filter((index) => chosen(FACTS.operators[index]));
    if (!rows.length) return;
    if (series.every((one) => rows.every((row) => !one.of(FACTS.operators[row])))) {
      return home.append(element("h2", {}, title), element("p", { class: "quiet" }, "none"));
    }
    const box = element("div", { class: "chart" }, element("h2", {}, title));
    const name = element("p", { class: "quiet type" }, "\u00a0");
    box.append(name);
    home.append(box);
    const plot = new uPlot({
      width: box.clientWidth || 600, height: 190, legend: { live: true, show: series.length > 1 },
      scales: { x: { time: false }, y: { distr: options.log ? 3 : 1, range: options.log ? undefined : (_, low, high) => [0, Math.max(high, options.least ?? 1e-9) * 1.05] } },
      axes: [axis(30, "operator", whole), axis(56, options.unit, options.log ? powers : undefined)],
      series: [{ label: "operator" }, ...series.map((one) => ({
        label: one.label, stroke: color(one.color), fill: one.bars ? color(one.color) : undefined,
        paths: one.bars ? bars() : () => null, points: { show: !one.bars, size: 6, fill: color(one.color) },
        value: (_, value) => value === null ? "" : short(value),
      }))],
      hooks: { setCursor: [(self) => {
        const row = rows[self.cursor.idx ?? -1];
        name.textContent = row === undefined ? "\u00a0" : describe(row, series, options);
      }] },
    }, [rows, ...series.map((one) => rows.map((row) => one.of(FACTS.operators[row])))], box);
    plot.over.addEventListener("click", () => {
      const row = rows[plot.cursor.idx ?? -1];
      if (row !== undefined) Page.showOperator(row);
    });
    drawn.push({ plot, box });
  }

  function describe(row, series, options) {
    const operator = FACTS.operators[row];
    const found = series.map((one) => `${one.label} ${short(one.of(operator))}${options.unit ? ` ${options.unit}` : ""}`);
    return `${operator.title}  ${titleOf(operator)}:  ${found.join(", ")}`;
  }

  const result = (operator) => FACTS.values[operator.results[0]];

  function layers() {
    const home = byId("charts");
    drawn.splice(0).forEach(({ plot }) => plot.destroy());
    home.replaceChildren();
    along(home, "Scale of the result", (o) => result(o)?.scales, [
      { label: "largest", color: "boundary", of: (o) => result(o).scales[1] },
      { label: "smallest", color: "accent", of: (o) => result(o).scales[0] },
    ], { log: true });
    along(home, "Elements that differ from the literal QDQ meaning, each operator fed the same operands", (o) => o.error, [
      { label: "differ", color: "float", bars: true, of: (o) => 100 * o.error.share },
    ], { unit: "%", least: 0.1 });
    along(home, "Saturated codes of the result", (o) => result(o)?.histogram?.ends, [
      { label: "lowest code", color: "accent", bars: true, of: (o) => 100 * result(o).histogram.ends[0] },
      { label: "highest code", color: "boundary", bars: true, of: (o) => 100 * result(o).histogram.ends[1] },
    ], { unit: "%", least: 1 });
    along(home, "Multiply-accumulates", (o) => o.multiply_accumulates, [
      { label: "products", color: "integer", bars: true, of: (o) => o.multiply_accumulates },
    ]);
    if (!home.children.length) home.append(element("p", {}, "There is nothing to show."));
  }

  function histogram(home, found) {
    const places = found.counts.map((_, index) => found.low + (index + 0.5) * found.width);
    const last = found.counts.length - 1;
    const edge = (index) => (index === 0 && found.ends?.[0] > 0) || (index === last && found.ends?.[1] > 0);
    const part = (at) => found.counts.map((count, index) => (edge(index) === at ? count : null));
    new uPlot({
      width: Math.max(home.clientWidth, 220), height: 130, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, high || 1] } }, axes: [axis(26), axis(44)],
      series: [{}, { fill: color("accent"), stroke: color("accent"), paths: bars(), points: { show: false } },
        { fill: color("float"), stroke: color("float"), paths: bars(), points: { show: false } }],
    }, [places, part(false), part(true)], home);
  }

  function resize() {
    drawn.forEach(({ plot, box }) => plot.setSize({ width: box.clientWidth, height: 190 }));
  }

  return { layers, histogram, resize };
})();
