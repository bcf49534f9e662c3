"use strict";
// The panel beside the graph: one operator or one value.

const Details = (() => {
  function value(home, index) {
    const found = FACTS.values[index];
    home.append(element("p", {}, found.name), element("p", { class: "type quiet" }, found.type));
    if (!found.histogram) return;
    const box = element("div", { class: "histogram" });
    home.append(box);
    Charts.histogram(box, found.histogram);
    if (found.histogram.ends) {
      const [lowest, highest] = found.histogram.ends.map(percent);
      home.append(element("p", { class: "quiet" }, `saturated: ${lowest} at the lowest code, ${highest} at the highest`));
    }
  }

  function operator(index) {
    const found = FACTS.operators[index];
    const home = byId("details");
    home.replaceChildren(
      element("h2", {}, titleOf(found)),
      element("p", {}, element("span", { class: `state ${found.state}` }, found.state), ` ${found.title}`),
    );
    if (found.attributes) home.append(element("p", { class: "type quiet" }, found.attributes));
    if (found.state === "float") home.append(reason(found));
    if (found.multiply_accumulates) {
      home.append(element("p", {}, `${short(found.multiply_accumulates)} multiply-accumulates`));
    }
    if (found.error) {
      home.append(element("p", {}, `beside the literal QDQ meaning: ${errorText(found.error)} at most, ${percent(found.error.share)} of the elements differ`));
    }
    if (found.range) home.append(range(found.range));
    section(home, "Results", found.results);
    section(home, "Operands", found.operands.filter((operand) => operand !== null));
  }

  function reason(found) {
    return element("div", { class: "reason" },
      element("b", {}, found.code), element("p", {}, found.detail), element("p", {}, found.remedy));
  }

  function range(found) {
    const at = found.worst_channel;
    const notes = [
      found.int32_overflow.some(Boolean) ? "leaves int32: computed wider" : "",
      found.int16_saturation.some(Boolean) ? "8-bit CPUs without VNNI may saturate at int16" : "",
    ].filter(Boolean);
    return element("div", {}, `accumulator: ${found.low[at]} to ${found.high[at]}, ${found.bits} bits`,
      ...notes.map((note) => element("p", { class: "state boundary" }, note)));
  }

  function section(home, title, values) {
    if (!values.length) return;
    home.append(element("h3", {}, title));
    values.forEach((index) => value(home, index));
  }

  function show(data) {
    if (data.operator !== undefined) return operator(data.operator);
    byId("details").replaceChildren();
    value(byId("details"), data.value);
  }

  return { show };
})();
