"use strict";
// Sorts and filters the brokers' and the disks' tables by the embedded plan; the page is whole without it.
(() => {
  const plan = JSON.parse(document.getElementById("plan").textContent);
  const column = (table, name) => {
    const place = table.columns.indexOf(name);
    return table.rows.map((row) => row[place]);
  };
  const order = { blocked: 0, unknown: 1, clean: 2 };
  const waves = column(plan.brokers, "wave");
  const kinds = column(plan.disks, "kinds");
  const lists = {
    brokers: {
      node_id: column(plan.brokers, "node_id"),
      readiness: column(plan.brokers, "readiness").map((of, i) => order[of] * 1e6 + (waves[i] ?? 0)),
      bytes: column(plan.brokers, "bytes"),
      steps: column(plan.brokers, "steps"),
    },
    disks: {
      node_id: column(plan.disks, "node_id"),
      log_dir: column(plan.disks, "log_dir").map((path) => path ?? ""),
      bytes: kinds.map((of) => Object.values(of).reduce((sum, counted) => sum + counted[1], 0)),
      replicas: column(plan.disks, "replicas"),
    },
  };

  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  for (const [name, keys] of Object.entries(lists)) {
    const table = document.getElementById(name);
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const place = new Map(rows.map((row, i) => [row, i]));

    for (const head of table.tHead.rows[0].cells) {
      const values = keys[head.dataset.sort];
      if (!values) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const sign = up ? 1 : -1;
        const sorted = [...rows].sort((a, b) => {
          const [i, j] = [place.get(a), place.get(b)];
          return sign * compare(values[i], values[j]) || i - j;
        });
        body.append(...sorted);
      });
    }

    if (rows.length < 10) continue;
    const label = document.createElement("label");
    const input = document.createElement("input");
    const said = document.createElement("output");
    label.className = "filter";
    label.textContent = "Show only rows with ";
    input.type = "search";
    input.autocomplete = "off";
    input.spellcheck = false;
    said.setAttribute("aria-live", "polite");
    label.append(input);
    table.before(label, said);
    let texts = null;
    input.addEventListener("input", () => {
      texts ??= rows.map((row) => row.textContent.toLowerCase());
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row, i) => {
        row.hidden = !texts[i].includes(wanted);
        shown += row.hidden ? 0 : 1;
      });
      said.textContent = wanted ? `${shown} of ${rows.length} shown` : "";
    });
  }
})();
