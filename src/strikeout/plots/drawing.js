// Drawings: readouts of cells, and cells that can be tapped, boxed or chosen with the keys. Chosen cells become the
// condition in SQL that selects their quotes; the event "so-choose" of the map carries it.
(() => {
  "use strict";

  const many = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  const or = (parts) => (parts.length === 1 ? parts[0] : `(${parts.join(" or ")})`);

  // One condition per set of columns: rows with the same columns are joined.
  function condition(chosen, columns, rows) {
    const byRow = new Map();
    for (const cell of chosen) {
      const [c, r] = cell.split(",").map(Number);
      byRow.set(r, [...(byRow.get(r) || []), c]);
    }
    const byColumns = new Map();
    for (const [r, list] of [...byRow].sort((a, b) => a[0] - b[0])) {
      const key = list.sort((a, b) => a - b).join();
      byColumns.set(key, [...(byColumns.get(key) || []), r]);
    }
    const parts = [...byColumns].map(([key, list]) => {
      const across = equal(key.split(",").map((c) => columns[c]));
      return list.length === rows.length ? across : `${across} and ${or(list.map((r) => rows[r]))}`;
    });
    return parts.length === 1 ? parts[0] : parts.map((part) => `(${part})`).join(" or ");
  }

  // name = 'a' or name = 'b' is shorter as name in ('a', 'b').
  function equal(conditions) {
    const split = conditions.map((each) => each.match(/^(\S+|"[^"]*") = ('.*')$/));
    if (conditions.length === 1 || split.some((each) => each === null)) return or(conditions);
    return `${split[0][1]} in (${split.map((each) => each[2]).join(", ")})`;
  }

  function setUp(map) {
    const figure = map.closest(".so-figure") || map.parentElement;
    const readout = figure.querySelector(".so-readout");
    const names = { x: JSON.parse(map.dataset.x), y: JSON.parse(map.dataset.y) };
    const where = { x: JSON.parse(map.dataset.whereX), y: JSON.parse(map.dataset.whereY) };
    const cells = new Map();
    for (const cell of map.querySelectorAll(".so-cells rect")) cells.set(`${cell.dataset.c},${cell.dataset.r}`, cell);
    const canChoose = where.x.length > 0 && where.y.length > 0;
    const what = map.getAttribute("aria-label");
    const chosen = new Set();
    let at = null, begun = null, box = null;

    function show(cell) {
      if (at) at.classList.remove("so-at");
      at = cell;
      if (!cell) return;
      cell.classList.add("so-at");
      const { c, r, v, n } = cell.dataset;
      if (readout) readout.textContent = `${names.x[c]}, ${names.y[r]}: ${what} ${v}, ${n} quote${n === "1" ? "" : "s"}`;
    }

    function announce() {
      const text = chosen.size ? condition(chosen, where.x, where.y) : "";
      let quotes = 0;
      for (const key of chosen) quotes += Number(cells.get(key).dataset.n);
      const words = `${many(chosen.size, "cell")}, ${many(quotes, "quote")}: ${text}`;
      if (readout && text) readout.textContent = words;
      map.dispatchEvent(new CustomEvent("so-choose", { bubbles: true, detail: { where: text, words } }));
    }

    function toggle(key, on) {
      if (!cells.has(key)) return;
      if (on) chosen.add(key); else chosen.delete(key);
      cells.get(key).classList.toggle("so-on", on);
    }

    function point(event) {
      const place = map.createSVGPoint();
      place.x = event.clientX;
      place.y = event.clientY;
      return place.matrixTransform(map.getScreenCTM().inverse());
    }

    map.addEventListener("pointermove", (event) => {
      if (event.target.dataset && event.target.dataset.v && !begun) show(event.target);
      if (!begun) return;
      const now = point(event);
      if (!box && Math.hypot(now.x - begun.x, now.y - begun.y) > 4) {
        box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
        box.setAttribute("class", "so-box");
        map.append(box);
      }
      if (!box) return;
      const sides = { x: Math.min(now.x, begun.x), y: Math.min(now.y, begun.y),
        width: Math.abs(now.x - begun.x), height: Math.abs(now.y - begun.y) };
      for (const [name, value] of Object.entries(sides)) box.setAttribute(name, value);
    });
    if (!canChoose) return;

    map.setAttribute("tabindex", "0");
    map.setAttribute("role", "application");
    map.setAttribute("aria-roledescription", "map of cells: arrow keys move, Enter chooses, Escape clears");
    map.addEventListener("pointerdown", (event) => {
      begun = point(event);
      map.setPointerCapture(event.pointerId);
    });
    map.addEventListener("pointercancel", () => { begun = null; if (box) box.remove(); box = null; });
    map.addEventListener("pointerup", (event) => {
      if (!begun) return;
      if (box) {
        const area = box.getBBox();
        if (!event.shiftKey) for (const key of [...chosen]) toggle(key, false);
        for (const [key, cell] of cells) {
          const x = cell.x.baseVal.value + cell.width.baseVal.value / 2;
          const y = cell.y.baseVal.value + cell.height.baseVal.value / 2;
          if (x > area.x && x < area.x + area.width && y > area.y && y < area.y + area.height) toggle(key, true);
        }
        box.remove();
      } else {
        const now = point(event);
        const hit = [...cells].find(([, cell]) => {
          const { x, y, width, height } = cell;
          const [left, top] = [x.baseVal.value, y.baseVal.value];
          return now.x >= left && now.x <= left + width.baseVal.value && now.y >= top && now.y <= top + height.baseVal.value;
        });
        if (hit) { show(hit[1]); toggle(hit[0], !chosen.has(hit[0])); }
      }
      begun = box = null;
      announce();
    });
    map.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (step) {
        event.preventDefault();
        if (!at) return show(cells.values().next().value);
        let [c, r] = [Number(at.dataset.c) + step[0], Number(at.dataset.r) + step[1]];
        while (c >= 0 && r >= 0 && c < names.x.length && r < names.y.length) {
          if (cells.has(`${c},${r}`)) return show(cells.get(`${c},${r}`));
          [c, r] = [c + step[0], r + step[1]];
        }
      } else if ((event.key === "Enter" || event.key === " ") && at) {
        event.preventDefault();
        const key = `${at.dataset.c},${at.dataset.r}`;
        toggle(key, !chosen.has(key));
        announce();
      } else if (event.key === "Escape") {
        for (const key of [...chosen]) toggle(key, false);
        announce();
      }
    });
  }

  function begin(root) {
    for (const map of root.querySelectorAll(".so-map:not([data-ready])")) {
      map.dataset.ready = "yes";
      setUp(map);
    }
  }
  window.strikeoutDrawings = { begin, condition };
  begin(document);
})();
