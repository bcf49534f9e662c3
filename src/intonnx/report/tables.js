"use strict";
// Tables that sort by a click on a heading.

const Tables = (() => {
  const MOST = 500;

  /** columns: {title, of(row), show(row)?, number?}; rows that `open` knows lead to the graph. */
  function table(home, columns, rows, open, empty) {
    home.replaceChildren();
    if (!rows.length) return home.append(element("p", {}, empty));
    let order = [...rows];
    let by = -1;
    let shown = MOST;
    const body = element("tbody");
    const more = element("button", { type: "button", onclick: () => { shown += 10 * MOST; fill(); } }, "more");
    const fill = () => {
      body.replaceChildren(...order.slice(0, shown).map((row) => line(columns, row, open)));
      more.hidden = order.length <= shown;
    };
    const heads = columns.map((column, index) => element("th", { class: column.number ? "number" : null, scope: "col" },
      element("button", { type: "button", onclick: () => {
        by = by === index ? ~index : index;
        order = [...rows].sort((a, b) => (by < 0 ? -1 : 1) * compare(column.of(a), column.of(b)));
        fill();
      } }, column.title)));
    fill();
    home.append(element("div", { class: "scroll" },
      element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body)), more);
  }

  function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  }

  function line(columns, row, open) {
    const cells = columns.map((column) =>
      element("td", { class: column.number ? "number" : null }, String((column.show ?? column.of)(row) ?? "")));
    const target = open(row);
    if (target === undefined) return element("tr", {}, ...cells);
    const go = () => Page.showOperator(target);
    return element("tr", { tabindex: "0", onclick: go, onkeydown: (event) => { if (event.key === "Enter") go(); } }, ...cells);
  }

  function floats() {
    const places = new Map(FACTS.operators.map((operator, index) => [operator.name, index]));
    const remedies = new Map(FACTS.operators.map((operator) => [operator.code, operator.remedy]));
    table(byId("view-floats"), [
      { title: "node", of: (n) => n.name },
      { title: "operator", of: (n) => n.op },
      { title: "reason", of: (n) => n.code },
      { title: "what was found", of: (n) => n.detail },
      { title: "what to change", of: (n) => remedies.get(n.code) ?? "" },
      { title: "products", of: (n) => n.multiply_accumulates, show: (n) => n.multiply_accumulates ? short(n.multiply_accumulates) : "", number: true },
    ], FACTS.nodes.filter((node) => node.state === "float"), (node) => places.get(node.name),
    "Every operator is integer.");
  }

  function ranges() {
    const rows = FACTS.operators.map((operator, index) => ({ operator, index, range: operator.range })).filter((row) => row.range);
    const count = (flags) => flags.filter(Boolean).length;
    table(byId("view-ranges"), [
      { title: "node", of: (r) => titleOf(r.operator) },
      { title: "operator", of: (r) => r.operator.title },
      { title: "channels", of: (r) => r.range.low.length, number: true },
      { title: "lowest", of: (r) => r.range.low[r.range.worst_channel] ?? 0, number: true },
      { title: "highest", of: (r) => r.range.high[r.range.worst_channel] ?? 0, number: true },
      { title: "bits", of: (r) => r.range.bits, number: true },
      { title: "beyond int32", of: (r) => count(r.range.int32_overflow), show: (r) => count(r.range.int32_overflow) || "", number: true },
      { title: "int16 hazard", of: (r) => count(r.range.int16_saturation), show: (r) => count(r.range.int16_saturation) || "", number: true },
    ], rows, (row) => row.index, "No operator adds up integers.");
  }

  function values() {
    const makers = new Map();
    FACTS.operators.forEach((operator, index) => operator.results.forEach((value) => makers.set(value, index)));
    const rows = FACTS.values.map((value, index) => ({ ...value, index }));
    table(byId("view-values"), [
      { title: "value", of: (v) => v.name },
      { title: "role", of: (v) => v.role },
      { title: "type", of: (v) => v.type },
      { title: "scale", of: (v) => v.scales?.[1] ?? 0, show: (v) => v.scales ? short(v.scales[1]) : "", number: true },
      { title: "lowest code", of: (v) => v.histogram?.ends?.[0] ?? 0, show: (v) => v.histogram?.ends ? percent(v.histogram.ends[0]) : "", number: true },
      { title: "highest code", of: (v) => v.histogram?.ends?.[1] ?? 0, show: (v) => v.histogram?.ends ? percent(v.histogram.ends[1]) : "", number: true },
    ], rows, (row) => makers.get(row.index), "There are no values.");
  }

  return { floats, ranges, values };
})();
