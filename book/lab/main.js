// Starts each lab of the page, and puts it where its still picture stood.

import { startAllocation } from "./allocation.js";
import { startFixation } from "./fixation.js";
import { startInpaint } from "./inpaint.js";
import { startSeeds } from "./seeds.js";

const LABS = {
  "lab-allocation": startAllocation,
  "lab-fixation": startFixation,
  "lab-inpaint": startInpaint,
  "lab-seeds": startSeeds,
};

async function start(root, begin) {
  const note = document.createElement("p");
  note.className = "odl-lab-note";
  root.before(note);
  try {
    const { missing } = globalThis.odlLab;
    if (missing && root.hasAttribute("data-networks")) throw new Error(missing);
    if (root.hasAttribute("data-networks")) note.textContent = "Loading the networks …";
    await begin(root);
    note.remove();
    root.hidden = false;
    document.getElementById(root.dataset.still)?.setAttribute("hidden", "");
    root.dataset.ready = "yes";
  } catch (error) {
    const still = document.getElementById(root.dataset.still) ? ", so the picture stands still" : "";
    note.textContent = `Not live here${still}: ${error.message}.`;
    root.dataset.ready = "no";
  }
}

for (const [id, begin] of Object.entries(LABS)) {
  const root = document.getElementById(id);
  if (root) start(root, begin);
}
