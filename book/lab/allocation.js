// The allocation lab: five PSNRs, and the images per level of the batch; or what a run that was measured gave each level.
// The k of 1/P^k chooses the rule, and of the runs that are measured the one that was trained by it.

import { decibels } from "./pictures.js";
import { allocate, onDemand } from "./rules.js";

const BATCH = 100;
const [LOWEST, HIGHEST] = [1, 60]; // dB
const LEVELS = [1, 2, 3, 4, 5];
const SECONDS = 0.6; // an epoch, while playing
const ROOM = 6; // dB in the drawing above the networks

export function startAllocation(root) {
  const { runs, colours, margins } = globalThis.odlLab; // of every task and k: the run, and in words its margin
  const $ = (selector) => root.querySelector(selector);
  const template = $("template");
  template.insertAdjacentHTML("afterend", LEVELS.map((n) => template.innerHTML.replaceAll("{level}", n)).join(""));
  const rows = [...root.querySelectorAll("[data-level]")];
  rows.forEach((row, i) => row.style.setProperty("--odl-level", colours[i]));
  const [task, epoch, play, status] = [$("[name=task]"), $("[name=epoch]"), $("[data-do=play]"), $("[role=status]")];
  const sharpness = $("[name=k]");
  let timer;

  const start = 20; // dB, where nothing is measured
  const within = (p) => Math.min(HIGHEST, Math.max(LOWEST, p || LOWEST));
  const stops = Object.keys(Object.values(margins)[0]).map(Number).sort((a, b) => a - b); // of the slider
  const k = () => stops[sharpness.value];
  const run = () => runs[task.value]?.[k()];
  const minus = (number) => String(number).replace("-", "−");
  const meanOf = (values) => values.reduce((sum, value) => sum + value) / values.length;
  const psnrs = () => rows.map((row) => Number(row.querySelector("[type=number]").value || start));

  // PSNR per level, null where nothing is measured yet, and what each level gets of 100.
  function show(psnr, shares, unit, digits) {
    rows.forEach((row, i) => {
      row.querySelector("[type=range]").value = psnr ? psnr[i] : start;
      const number = row.querySelector("[type=number]");
      if (number !== document.activeElement) number.value = psnr ? psnr[i].toFixed(1) : "";
      row.querySelector("[data-bar]").style.width = `${shares[i]}%`;
      row.querySelector("output").textContent = shares[i].toFixed(digits);
    });
    $("[data-say=unit]").textContent = unit;
    root.shares = shares;
  }

  const showOwn = (psnr) => show(psnr, allocate(onDemand(psnr, k()), BATCH), `images of a batch of ${BATCH}`, 0);

  function edited(event) {
    pause();
    const psnr = psnrs();
    psnr[rows.indexOf(event.target.closest("[data-level]"))] = within(Number(event.target.value));
    showOwn(psnr);
    status.textContent = `Your own numbers, k = ${minus(k())}: ${root.shares.join(", ")} images of levels 1 to 5.`;
  }
  for (const row of rows) {
    for (const input of row.querySelectorAll("input")) {
      input.oninput = edited;
      input.onchange = () => showOwn(psnrs().map(within));
    }
  }

  const percent = (share, digits) => `${(100 * share).toFixed(digits)} %`;

  // What an epoch's batches held was divided by the PSNRs before it; before the first, nothing is measured.
  function showEpoch() {
    const now = Number(epoch.value);
    const { psnr: after, allocation, dose } = run();
    const [psnr, shares] = [after[now - 2], allocation[now - 1]];
    show(psnr, shares, "% of the epoch’s images, measured", 1);
    epoch.setAttribute("aria-valuetext", `${now} of ${after.length}`);
    $("[data-say=epoch]").textContent = `${now} of ${after.length}`;
    status.textContent =
      `Measured, k = ${minus(k())}: epoch ${now} trained on ${shares.map((share) => share.toFixed(1)).join(", ")} % of levels 1 to 5, ` +
      `on average ${percent(dose[now - 1], 2)} away from equal shares (the dose; ${percent(meanOf(dose), 2)} over the run).`;
    drawRun(run(), now - 1);
  }

  function pause() {
    clearInterval(timer);
    timer = undefined;
    play.textContent = "Play";
  }

  play.onclick = () => {
    if (timer) return pause();
    if (epoch.value === epoch.max) epoch.value = 1;
    play.textContent = "Pause";
    showEpoch();
    timer = setInterval(() => {
      epoch.value = Number(epoch.value) + 1;
      showEpoch();
      if (epoch.value === epoch.max) pause();
    }, 1000 * SECONDS);
  };
  epoch.oninput = () => (pause(), showEpoch());

  // PSNR per level against epochs, with a line after the last one that the present epoch knows.
  function drawRun({ psnr, not_restored }, done) {
    const [width, height] = [300, 140];
    const most = Math.ceil(Math.max(...psnr.flat())) + ROOM;
    const inside = not_restored.filter((p) => p <= most);
    const all = [...psnr.flat(), ...inside];
    const [low, high] = [Math.floor(Math.min(...all)), Math.ceil(Math.max(...all))];
    const x = (e) => (width * e) / psnr.length;
    const y = (p) => (height * (1 - (p - low) / (high - low))).toFixed(1);
    const lines = rows.map((_, i) => {
      const points = psnr.map((values, e) => `${x(e + 1).toFixed(1)},${y(values[i])}`).join(" ");
      return `<polyline points="${points}" style="--odl-level: ${colours[i]}"/>`;
    });
    const damaged = inside.map((p) => `<polyline points="0,${y(p)} ${width},${y(p)}" class="odl-dashed"/>`);
    $("svg").innerHTML = `${damaged.join("")}${lines.join("")}<line x1="${x(done)}" x2="${x(done)}" y1="0" y2="${height}"/>`;
    $("[data-say=high]").textContent = `${high} dB`;
    $("[data-say=low]").textContent = `${low} dB`;
    const above = LEVELS.filter((n) => not_restored[n - 1] > most).join(" and ");
    $("[data-say=above]").textContent = above && `That of level ${above} is above the drawing.`;
    rows.forEach((row, i) => {
      row.querySelector("[data-damaged]").textContent = `not restored ${decibels(not_restored[i], 1)}`;
      row.toggleAttribute("data-worse", not_restored[i] > psnr[done - 1]?.[i]);
    });
  }

  // A run where one is measured, else what the rule would give at the PSNRs that are shown.
  function chooseRun() {
    pause();
    const name = `${minus(k())}${{ 0: ", rigid joint learning", 1: ", Equation 3" }[k()] ?? ""}`;
    $("[data-say=k]").textContent = name;
    sharpness.setAttribute("aria-valuetext", `${name}: ${run() ? "measured" : "to be measured"}`);
    root.querySelectorAll(".odl-stops > *").forEach((place, i) => place.toggleAttribute("data-now", i === Number(sharpness.value)));
    $("[data-part=run]").hidden = !run();
    if (run()) {
      epoch.max = run().psnr.length;
      epoch.value = epoch.max;
      return showEpoch();
    }
    for (const row of rows) row.querySelector("[data-damaged]").textContent = "";
    showOwn(psnrs());
    status.textContent =
      `No run with k = ${minus(k())} is measured yet. The bars are arithmetic: what this rule would give at these PSNRs.`;
  }

  // Under the slider, at each of its stops: the run's dose, and the margin over all its seeds.
  function chooseTask() {
    const place = (stop) => {
      const measured = runs[task.value]?.[stop];
      const lines = [measured ? `dose ${percent(meanOf(measured.dose), 2)}` : ""];
      lines.push(stop === 0 ? "what the others are compared with" : (margins[task.value] ?? {})[stop] ?? "to be measured");
      const element = document.createElement("div");
      element.append(
        Object.assign(document.createElement("b"), { textContent: `k = ${minus(stop)}` }),
        ...lines.map((textContent) => Object.assign(document.createElement("span"), { textContent })),
      );
      return element;
    };
    $(".odl-stops").replaceChildren(...stops.map(place));
    chooseRun();
  }

  task.onchange = chooseTask;
  sharpness.oninput = chooseRun;
  for (const option of [...task.options]) if (!runs[option.value]) option.remove();
  $("[name=task]").parentElement.hidden = !task.options.length;
  sharpness.max = stops.length - 1;
  sharpness.value = stops.indexOf(1);
  chooseTask();
}
