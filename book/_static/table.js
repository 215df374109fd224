// A table of class odl-sortable: a search field, a choice for each column named in data-choices, and a button in each
// head that sorts. Without this script it is a plain table. Rows of class odl-section are headings.

for (const table of document.querySelectorAll("table.odl-sortable")) enhance(table);

// What scrolls can be reached by keys; of what is not in a figure the theme takes care.
for (const box of document.querySelectorAll("figure:has(img), figure > .output, .odl-wide-figure")) {
  if (box.scrollWidth > box.clientWidth) {
    box.tabIndex = 0;
    if (box.matches("div")) box.setAttribute("role", "group");
    box.setAttribute("aria-label", `${box.matches(".output") ? "Table" : "Figure"}; scrolls sideways`);
  }
}

// A table under a caption goes by its words.
for (const table of document.querySelectorAll("figure table")) {
  table.setAttribute("aria-label", table.closest("figure").querySelector(".caption-text")?.textContent ?? "");
}

// What folds a chapter's notebooks in the contents gets a name: the theme draws an arrow alone.
for (const arrow of document.querySelectorAll("summary > .toctree-toggle")) {
  const chapter = arrow.closest("li").querySelector("a").textContent.trim();
  arrow.parentElement.setAttribute("aria-label", `Notebooks of ${chapter}`);
}

// The answer to a guess is said as well as shown.
for (const form of document.querySelectorAll("form.odl-guess")) {
  const status = Object.assign(document.createElement("p"), { className: "visually-hidden" });
  status.setAttribute("role", "status");
  form.append(status);
  form.addEventListener("change", () => (status.textContent = form.nextElementSibling.textContent));
}

// On paper nobody can open what is folded; on the screen it stays as it was.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details.sd-dropdown:has(table):not([open])")];
  for (const part of closed) part.open = true;
});
addEventListener("afterprint", () => closed.forEach((part) => (part.open = false)));

function enhance(table) {
  const bodies = [...table.tBodies];
  const rows = [...table.querySelectorAll("tbody tr:not(.odl-section)")];
  const home = new Map(rows.map((row) => [row, row.parentElement]));
  const heads = [...table.tHead.rows[0].cells];
  const names = heads.map((head) => head.textContent);
  const form = document.createElement("form");
  form.className = "odl-table-form";
  form.setAttribute("aria-label", table.closest("section").querySelector("h2, h3")?.firstChild.textContent ?? "Table");
  form.addEventListener("submit", (event) => event.preventDefault());
  const search = field(form, "Search", Object.assign(document.createElement("input"), { type: "search" }));
  const choices = (table.dataset.choices || "").split(",").filter(Boolean).map((name) => {
    const values = [...new Set(rows.map((row) => row.dataset[name]))];
    const options = ["all", ...values].map((value) => new Option(value, value === "all" ? "" : value));
    const select = document.createElement("select");
    select.append(...options);
    return [name, field(form, name[0].toUpperCase() + name.slice(1), select)];
  });
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  form.append(status);
  let sorted = { column: -1, direction: 1 };

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const wanted = choices.every(([name, select]) => !select.value || row.dataset[name] === select.value);
      row.hidden = !wanted || !words.every((word) => text.includes(word));
    }
    for (const body of bodies) {
      const own = rows.filter((row) => home.get(row) === body);
      const heading = body.querySelector(".odl-section");
      if (heading) heading.hidden = sorted.column >= 0 || own.every((row) => row.hidden);
    }
    status.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  }

  function sort(column) {
    const again = sorted.column === column;
    sorted = again && sorted.direction < 0 ? { column: -1, direction: 1 } : { column, direction: again ? -1 : 1 };
    const order = sorted.column < 0 ? rows : [...rows].sort((a, b) => sorted.direction * compare(a, b, column));
    for (const row of order) (sorted.column < 0 ? home.get(row) : bodies[0]).append(row);
    heads.forEach((head, i) => {
      const on = i === sorted.column;
      head.setAttribute("aria-sort", on ? (sorted.direction > 0 ? "ascending" : "descending") : "none");
    });
    filter();
  }

  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = names[i];
    button.addEventListener("click", () => sort(i));
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
  });
  form.addEventListener("input", filter);
  table.before(form);
  filter();
}

function field(form, name, control) {
  const label = document.createElement("label");
  label.append(`${name} `, control);
  form.append(label);
  return control;
}

/** Cells with a number by size, before the others; these by the alphabet. A number is first in its cell or has a sign. */
function compare(a, b, column) {
  const [x, y] = [a, b].map((row) => row.cells[column].textContent.trim().replaceAll("−", "-"));
  const [m, n] = [x, y].map((text) => Number.parseFloat(text.match(/^\d+|[-+]\d+(\.\d+)?/)?.[0] ?? "NaN"));
  if (Number.isNaN(m) || Number.isNaN(n)) return Number.isNaN(m) - Number.isNaN(n) || x.localeCompare(y);
  return m - n || x.localeCompare(y);
}
