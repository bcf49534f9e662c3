"use strict";
// The graph: drawn by Cytoscape.js, laid out by ELK in a worker.

const Graph = (() => {
  const BOX = { width: 168, height: 44 };
  const listeners = [];
  let view = null;
  let hits = [];
  let hit = -1;

  function elements() {
    const made = [];
    const makers = new Map();
    FACTS.values.forEach((value, index) => {
      if (value.role === "input") {
        made.push({ data: { id: `v${index}`, label: value.name, kind: "end", value: index } });
        makers.set(index, `v${index}`);
      }
    });
    FACTS.operators.forEach((operator, index) => {
      const label = `${operator.title}\n${clipped(titleOf(operator))}`;
      made.push({ data: { id: `o${index}`, label, kind: operator.state, operator: index } });
      operator.results.forEach((result) => makers.set(result, `o${index}`));
    });
    const edges = new Set();
    const connect = (value, target) => {
      const source = makers.get(value);
      const id = `${source}-${target}-${value}`;
      if (source === undefined || edges.has(id)) return;
      edges.add(id);
      made.push({ data: { id, source, target, value } });
    };
    FACTS.operators.forEach((operator, index) => {
      operator.operands.filter((value) => value !== null).forEach((value) => connect(value, `o${index}`));
    });
    FACTS.values.forEach((value, index) => {
      if (value.role === "output") {
        made.push({ data: { id: `end${index}`, label: value.name, kind: "end", value: index } });
        connect(index, `end${index}`);
      }
    });
    return made;
  }

  function clipped(text) {
    return text.length > 26 ? `${text.slice(0, 11)}…${text.slice(-14)}` : text;
  }

  function style() {
    const fill = (kind) => ({
      selector: `node[kind="${kind}"]`,
      style: { "background-color": color(`${kind}-fill`), "border-color": color(kind) },
    });
    return [
      {
        selector: "node",
        style: {
          shape: "round-rectangle", width: BOX.width, height: BOX.height, label: "data(label)",
          "text-valign": "center", "text-wrap": "wrap", "font-size": 11, color: color("ink"),
          "background-color": color("paper"), "border-width": 1.5, "border-color": color("line"),
          "min-zoomed-font-size": 5,
        },
      },
      fill("integer"), fill("float"), fill("boundary"),
      { selector: 'node[kind="end"]', style: { shape: "ellipse", height: 32 } },
      {
        selector: "edge",
        style: {
          width: 1.5, "line-color": color("edge"), "target-arrow-color": color("edge"),
          "target-arrow-shape": "triangle", "curve-style": "bezier", "arrow-scale": 0.8,
        },
      },
      { selector: ".hit", style: { "border-width": 4, "border-color": color("accent") } },
      { selector: ":selected", style: { "border-width": 5, "border-color": color("accent") } },
      { selector: "edge:selected", style: { width: 4, "line-color": color("accent") } },
    ];
  }

  /** Positions by ELK's layered algorithm; the worker keeps the page alive meanwhile. */
  async function positions(parts) {
    const source = new Blob([byId("elk-worker").textContent], { type: "text/javascript" });
    const url = URL.createObjectURL(source);
    const elk = new ELK({ workerFactory: () => new Worker(url) });
    const nodes = parts.filter((part) => part.data.source === undefined);
    const edges = parts.filter((part) => part.data.source !== undefined);
    const laid = await elk.layout({
      id: "root",
      layoutOptions: {
        "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.edgeRouting": "POLYLINE",
        "elk.layered.spacing.nodeNodeBetweenLayers": "36", "elk.spacing.nodeNode": "28",
        "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
        "elk.layered.thoroughness": nodes.length > 800 ? "1" : "7",
      },
      children: nodes.map((part) => ({ id: part.data.id, ...BOX })),
      edges: edges.map(({ data }) => ({ id: data.id, sources: [data.source], targets: [data.target] })),
    });
    elk.terminateWorker();
    URL.revokeObjectURL(url);
    return new Map(laid.children.map((child) => [child.id, { x: child.x + BOX.width / 2, y: child.y + BOX.height / 2 }]));
  }

  /** Rows by the longest way from an input: what is seen until ELK is done. */
  function rows(parts) {
    const rank = new Map();
    const widths = [];
    const readers = parts.filter(({ data }) => data.source !== undefined);
    const sources = new Map();
    readers.forEach(({ data }) => sources.set(data.target, [...(sources.get(data.target) ?? []), data.source]));
    // Makers stand before their readers, as in the graph.
    return new Map(parts.filter(({ data }) => data.source === undefined).map(({ data }) => {
      const row = 1 + Math.max(-1, ...(sources.get(data.id) ?? []).map((source) => rank.get(source) ?? -1));
      rank.set(data.id, row);
      widths[row] = (widths[row] ?? -1) + 1;
      return [data.id, { x: widths[row] * (BOX.width + 28), y: row * (BOX.height + 36) }];
    }));
  }

  async function draw() {
    const parts = elements();
    const first = rows(parts);
    view = cytoscape({
      container: byId("canvas"), elements: parts, style: style(),
      layout: { name: "preset", positions: (node) => first.get(node.id()) },
      minZoom: 0.01, maxZoom: 3, boxSelectionEnabled: false,
      textureOnViewport: parts.length > 1500, hideEdgesOnViewport: parts.length > 4000, autoungrabify: true,
    });
    view.on("select", "node, edge", (event) => listeners.forEach((listen) => listen(event.target.data())));
    start();
    byId("canvas").dataset.ready = "true";
    const places = await positions(parts);
    view.layout({ name: "preset", fit: false, positions: (node) => places.get(node.id()) }).run();
    if (view.nodes(":selected").empty()) start();
    else resize();
    byId("layout").textContent = "";
    byId("canvas").dataset.laid = "true";
  }

  /** A view that shows the first operators at a size that can be read. */
  function start() {
    view.fit(undefined, 20);
    if (view.zoom() < 0.5) {
      view.zoom(0.8);
      const first = view.nodes().min((node) => node.position("y")).ele;
      view.pan({ x: view.width() / 2 - 0.8 * first.position("x"), y: 60 - 0.8 * first.position("y") });
    }
  }

  function choose(id) {
    const found = view?.getElementById(id);
    if (!found?.nonempty()) return;
    view.elements(":selected").unselect();
    found.select();
    view.animate({ center: { eles: found }, zoom: Math.max(view.zoom(), 0.7) }, { duration: 150 });
  }

  function search(text) {
    const wanted = text.trim().toLowerCase();
    view.elements(".hit").removeClass("hit");
    hits = !wanted ? [] : view.nodes().filter((node) => matches(node.data(), wanted)).toArray();
    hits.forEach((node) => node.addClass("hit"));
    hit = -1;
    byId("hits").textContent = wanted ? `${hits.length} found` : "";
    if (hits.length) step(1);
  }

  function matches(data, wanted) {
    const has = (name) => name.toLowerCase().includes(wanted);
    if (data.operator === undefined) return has(data.label);
    const { title, name, code, results } = FACTS.operators[data.operator];
    return has(title) || has(name) || has(code) || results.some((value) => has(FACTS.values[value].name));
  }

  function step(by) {
    if (!hits.length) return;
    hit = (hit + by + hits.length) % hits.length;
    byId("hits").textContent = `${hit + 1} of ${hits.length}`;
    choose(hits[hit].id());
  }

  /** Go along an edge, or to the neighbor at the side. */
  function walk(key) {
    const at = view.nodes(":selected");
    if (at.empty()) return choose(view.nodes()[0]?.id());
    const way = { ArrowDown: at.outgoers("node"), ArrowUp: at.incomers("node") }[key];
    const side = key === "ArrowRight" ? 1 : -1;
    const row = at.incomers("node").outgoers("node").union(at.outgoers("node").incomers("node"));
    const beside = row.filter((node) => side * (node.position("x") - at.position("x")) > 0);
    const target = way ?? beside.sort((a, b) => side * (a.position("x") - b.position("x")));
    if (target.nonempty()) choose(target[0].id());
  }

  /** Keep what is chosen in sight when the canvas changes its size. */
  function resize() {
    if (!view) return;
    view.resize();
    const chosen = view.elements(":selected");
    view.center(chosen.nonempty() ? chosen : view.elements());
  }

  function zoom(factor) {
    view.zoom({ level: view.zoom() * factor, renderedPosition: { x: view.width() / 2, y: view.height() / 2 } });
  }

  return {
    draw, search, step, walk, zoom,
    show: (operator) => choose(`o${operator}`),
    fit: () => view.fit(undefined, 20),
    clear: () => view.elements(":selected").unselect(),
    recolor: () => view?.style(style()),
    resize,
    listen: (listener) => listeners.push(listener),
  };
})();
