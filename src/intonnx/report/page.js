"use strict";
// The views, the keyboard, light and dark.

const Page = (() => {
  const VIEWS = ["graph", "layers", "floats", "ranges", "values"];
  const FILL = { layers: Charts.layers, floats: Tables.floats, ranges: Tables.ranges, values: Tables.values };
  const filled = new Set();

  function open(view) {
    for (const name of VIEWS) {
      byId(`view-${name}`).hidden = name !== view;
      byId(`tab-${name}`).setAttribute("aria-selected", String(name === view));
    }
    if (FILL[view] && !filled.has(view)) {
      filled.add(view);
      FILL[view]();
    }
    if (view === "graph") Graph.resize();
  }

  function showOperator(index) {
    open("graph");
    Graph.show(index);
  }

  function setTheme(dark) {
    document.documentElement.classList.toggle("dark", dark);
    Graph.recolor();
    if (filled.has("layers")) Charts.layers();
  }

  const toggleTheme = () => setTheme(!document.documentElement.classList.contains("dark"));
  const KEYS = {
    "/": () => { open("graph"); byId("search").focus(); },
    "+": () => Graph.zoom(1.4), "=": () => Graph.zoom(1.4), "-": () => Graph.zoom(1 / 1.4),
    f: Graph.fit, t: toggleTheme, Escape: Graph.clear,
  };

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.target.id === "canvas" && event.key.startsWith("Arrow")) {
      event.preventDefault();
      return Graph.walk(event.key);
    }
    if (event.target.role === "tab" && event.key.startsWith("Arrow")) return nextTab(event);
    const act = KEYS[event.key] ?? (/^[1-5]$/.test(event.key) ? () => open(VIEWS[event.key - 1]) : null);
    if (act) {
      event.preventDefault();
      act();
    }
  }

  function nextTab(event) {
    const at = VIEWS.indexOf(event.target.id.slice("tab-".length));
    const by = event.key === "ArrowRight" ? 1 : VIEWS.length - 1;
    const view = VIEWS[(at + by) % VIEWS.length];
    open(view);
    byId(`tab-${view}`).focus();
  }

  function start() {
    VIEWS.forEach((view) => byId(`tab-${view}`).addEventListener("click", () => open(view)));
    document.addEventListener("keydown", onKey);
    byId("theme").addEventListener("click", toggleTheme);
    byId("search").addEventListener("input", (event) => Graph.search(event.target.value));
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") Graph.step(event.shiftKey ? -1 : 1);
    });
    byId("next").addEventListener("click", () => Graph.step(1));
    byId("previous").addEventListener("click", () => Graph.step(-1));
    byId("closer").addEventListener("click", () => Graph.zoom(1.4));
    byId("farther").addEventListener("click", () => Graph.zoom(1 / 1.4));
    byId("fit").addEventListener("click", Graph.fit);
    window.addEventListener("resize", () => {
      Charts.resize();
      Graph.resize();
    });
    Graph.listen(Details.show);
    setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches);
    Graph.draw().catch((error) => {
      byId("layout").textContent = `the graph cannot be drawn: ${error.message}`;
      throw error;
    });
  }

  return { start, showOperator };
})();

Page.start();
