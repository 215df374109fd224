// What the theme's pages lack for keys, screen readers and paper.

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
