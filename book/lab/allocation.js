// The allocation lab: five PSNRs, and the images per level of the next batch.

import { allocate, onDemand } from "./rules.js";

const BATCH = 100;
const [LOWEST, HIGHEST] = [1, 60]; // dB
const LEVELS = [1, 2, 3, 4, 5];
const SECONDS = 0.6; // an epoch, while playing

export function startAllocation(root) {
  const { runs, tasks } = globalThis.odlLab;
  const $ = (selector) => root.querySelector(selector);
  const template = $("template");
  template.insertAdjacentHTML("afterend", LEVELS.map((n) => template.innerHTML.replaceAll("{level}", n)).join(""));
  const rows = [...root.querySelectorAll("[data-level]")];
  const [task, epoch, play, status] = [$("[name=task]"), $("[name=epoch]"), $("[data-do=play]"), $("[role=status]")];
  let timer;

  const psnrs = () => rows.map((row) => Number(row.querySelector("[type=number]").value));

  function show(psnr) {
    const counts = allocate(onDemand(psnr), BATCH);
    rows.forEach((row, i) => {
      row.querySelector("[type=range]").value = psnr[i];
      const number = row.querySelector("[type=number]");
      if (number !== document.activeElement) number.value = psnr[i].toFixed(1);
      row.querySelector("[data-bar]").style.width = `${counts[i]}%`;
      row.querySelector("output").textContent = counts[i];
    });
    root.counts = counts;
  }

  function edited(event) {
    pause();
    const value = Math.min(HIGHEST, Math.max(LOWEST, Number(event.target.value) || LOWEST));
    const psnr = psnrs();
    psnr[rows.indexOf(event.target.closest("[data-level]"))] = value;
    show(psnr);
    status.textContent = `Your own numbers: ${root.counts.join(", ")} images of levels 1 to 5.`;
  }
  for (const row of rows) {
    for (const input of row.querySelectorAll("input")) {
      input.oninput = edited;
      input.onchange = () => show(psnrs().map((p) => Math.min(HIGHEST, Math.max(LOWEST, p || LOWEST))));
    }
  }

  // Before epoch 1 nothing is measured, and the levels share equally.
  function showEpoch() {
    const done = Number(epoch.value);
    const run = runs[task.value];
    show(done ? run[done - 1] : Array(rows.length).fill(20));
    epoch.setAttribute("aria-valuetext", `after epoch ${done} of ${run.length}`);
    $("[data-say=epoch]").textContent = `after epoch ${done} of ${run.length}`;
    const made = done ? `Measured after epoch ${done}` : "Before training nothing is measured";
    status.textContent = `${made}: the next batch holds ${root.counts.join(", ")} images of levels 1 to 5.`;
    drawRun(run, done);
  }

  function pause() {
    clearInterval(timer);
    timer = undefined;
    play.textContent = "Play";
  }

  play.onclick = () => {
    if (timer) return pause();
    if (epoch.value === epoch.max) epoch.value = 0;
    play.textContent = "Pause";
    showEpoch();
    timer = setInterval(() => {
      epoch.value = Number(epoch.value) + 1;
      showEpoch();
      if (epoch.value === epoch.max) pause();
    }, 1000 * SECONDS);
  };
  epoch.oninput = () => (pause(), showEpoch());

  // PSNR per level against epochs, with a line at the present one.
  function drawRun(run, done) {
    const [width, height] = [300, 90];
    const all = run.flat();
    const [low, high] = [Math.floor(Math.min(...all)), Math.ceil(Math.max(...all))];
    const x = (e) => (width * e) / run.length;
    const y = (p) => height * (1 - (p - low) / (high - low));
    const lines = rows.map((_, i) => {
      const points = run.map((psnr, e) => `${x(e + 1).toFixed(1)},${y(psnr[i]).toFixed(1)}`).join(" ");
      return `<polyline points="${points}" class="odl-level-${i + 1}"/>`;
    });
    $("svg").innerHTML = `${lines.join("")}<line x1="${x(done)}" x2="${x(done)}" y1="0" y2="${height}"/>`;
    $("[data-say=high]").textContent = `${high} dB`;
    $("[data-say=low]").textContent = `${low} dB`;
  }

  task.onchange = () => {
    pause();
    epoch.max = runs[task.value].length;
    epoch.value = epoch.max;
    showEpoch();
  };
  for (const option of [...task.options]) if (!runs[option.value]) option.remove();
  if (task.options.length) task.onchange();
  else {
    $("[data-part=run]").hidden = true;
    show(Array(rows.length).fill(20));
  }
}
