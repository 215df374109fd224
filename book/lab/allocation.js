// The allocation lab: what a measured run gave each level of its last epoch, or what Equation 3 would give.
// The k of 1/P^k chooses the rule, and of the runs that are measured the one that was trained by it.

import { predict } from "./predict.js";
import { allocate, onDemand } from "./rules.js";

const LEVELS = [1, 2, 3, 4, 5];

export function startAllocation(root) {
  const { runs, colours, margins } = globalThis.odlLab; // of every task and k: the run, and in words its margin
  const $ = (selector) => root.querySelector(selector);
  const level = (n) =>
    `<div><span>Level ${n}</span><span class="odl-bar"><span data-bar></span></span><output aria-live="off"></output></div>`;
  $(".odl-levels").innerHTML = LEVELS.map(level).join("");
  const rows = [...$(".odl-levels").children];
  rows.forEach((row, i) => row.style.setProperty("--odl-level", colours[i]));
  const own = (n) => `<label>Level ${n} <input type="range" min="5" max="45" step="0.1"> <output aria-live="off"></output></label>`;
  $(".odl-own").innerHTML = LEVELS.map(own).join("");
  const sliders = [...root.querySelectorAll(".odl-own input")];
  const [task, epoch, sharpness] = [$("[name=task]"), $("[name=epoch]"), $("[name=k]")];

  const stops = Object.keys(Object.values(margins)[0]).map(Number).sort((a, b) => a - b); // of the slider
  const k = () => stops[sharpness.value];
  const run = () => runs[task.value]?.[k()];
  const minus = (number) => String(number).replace("-", "−");
  const meanOf = (values) => values.reduce((sum, value) => sum + value) / values.length;
  const say = (line) => ($("[data-say=run]").textContent = line);

  function show(shares, digits) {
    rows.forEach((row, i) => {
      row.querySelector("[data-bar]").style.width = `${shares[i]}%`;
      row.querySelector("output").textContent = shares[i].toFixed(digits);
    });
    root.shares = shares; // for the tests
    const heard = `levels 1 to 5 get ${shares.map((share) => share.toFixed(digits)).join(", ")} of 100`;
    sharpness.setAttribute("aria-valuetext", `k = ${minus(k())}; ${heard}`);
    for (const slider of sliders) slider.setAttribute("aria-valuetext", `${Number(slider.value).toFixed(1)} dB; ${heard}`);
  }

  function showPsnr() {
    for (const slider of sliders) slider.nextElementSibling.textContent = `${Number(slider.value).toFixed(1)} dB`;
  }

  // What the rule would give at the PSNRs of the sliders.
  function arithmetic(line) {
    showPsnr();
    $("[data-part=own]").hidden = false;
    const psnr = sliders.map((slider) => Number(slider.value));
    show(allocate(onDemand(psnr, k())), 0);
    say(line);
  }
  for (const slider of sliders) {
    slider.oninput = () => arithmetic(`Your own PSNRs, k = ${minus(k())}: arithmetic, not a measured run.`);
  }

  // What an epoch's batches held was divided by the PSNRs before it; before the first, nothing is measured.
  function showEpoch() {
    const now = Number(epoch.value);
    const { psnr, allocation, dose } = run();
    (psnr[now - 2] ?? []).forEach((value, i) => (sliders[i].value = value));
    showPsnr();
    show(allocation[now - 1], 1);
    epoch.setAttribute("aria-valuetext", `${now} of ${psnr.length}`);
    $("[data-say=epoch]").textContent = `${now} of ${psnr.length}`;
    const moved = 250 * meanOf(dose); // of 100 images: half of what five levels are from their equal shares
    const margin = k() === 0 ? "what the others are compared with" : `mean PSNR ${margins[task.value][k()]}`;
    say(`Measured on ${task.selectedOptions[0].text.toLowerCase()}: ${moved.toFixed(1)} images of 100 moved in the mean of all epochs; ${margin}.`);
    $("[data-part=own]").hidden = now === 1;
  }
  epoch.oninput = showEpoch;

  function choose() {
    const name = `k = ${minus(k())}${{ 0: ", equal shares", 1: ", Equation 3" }[k()] ?? ""}`;
    $("[data-say=k]").textContent = name;
    $("[data-part=epoch]").hidden = !run();
    if (!run()) return arithmetic(`No run with k = ${minus(k())} is measured here: the bars are arithmetic.`);
    epoch.max = run().psnr.length;
    epoch.value = epoch.max;
    showEpoch();
  }

  task.onchange = sharpness.oninput = choose;
  for (const option of [...task.options]) if (!runs[option.value]) option.remove();
  task.parentElement.hidden = !task.options.length;
  for (const slider of sliders) slider.value = 20;
  sharpness.max = stops.length - 1;
  sharpness.value = stops.indexOf(1);
  choose();
  predict(root, () => {
    const share = root.shares.at(-1);
    return [share < 26 ? 0 : share <= 40 ? 1 : 2, `${share.toFixed(1)} of 100. Now move k: which power moves more?`];
  });
}
