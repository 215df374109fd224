// The fixation lab: one photograph, one severity, three networks.

import { CORRUPT, SIDE, drawChance } from "./corrupt.js";
import { network } from "./networks.js";
import { offerPhotographs } from "./photographs.js";
import { decibels, psnr, squareOf, toGrey, toImageData, toPlanes } from "./pictures.js";

const SCHEDULES = ["on_demand", "fixated_easy", "fixated_hard"];
const SAY = {
  inpaint: (side) => `${side}×${side} pixels missing`,
  interpolate: (percent) => `${percent} % of the pixels missing`,
  deblur: (sigma) => `blur of σ = ${sigma} pixels`,
  denoise: (sigma) => `noise of σ = ${sigma} (of 255)`,
};

export async function startFixation(root) {
  const { tasks } = globalThis.odlLab;
  const $ = (selector) => root.querySelector(selector);
  const [task, severity, status] = [$("[name=task]"), $("[name=severity]"), $("[role=status]")];
  const canvases = Object.fromEntries([...root.querySelectorAll("canvas")].map((c) => [c.dataset.show, c]));
  const chance = { ...drawChance(), top: 16, left: 16 };
  let middle = [SIDE / 2, SIDE / 2]; // of the missing square: row, column
  let colour; // planes of the photograph
  let stale = false;
  let running; // a promise, while pictures are made

  const say = (line) => (status.textContent = line);
  const amount = () => Number(severity.value);
  const load = () => Promise.all(SCHEDULES.map((schedule) => network(task.value, schedule)));

  // Draws the present state; while one drawing runs, any number of changes lead to one more.
  function update() {
    stale = true;
    return (running ??= drawWhileStale().finally(() => (running = undefined)));
  }

  async function drawWhileStale() {
    try {
      while (stale) {
        stale = false;
        await redraw();
      }
    } catch (error) {
      console.error(error);
      say("The networks of this task could not be loaded.");
    }
  }

  async function redraw() {
    const began = performance.now();
    const [name, strength] = [task.value, amount()];
    const networks = await load();
    const x = tasks[name].channels === 1 ? toGrey(colour) : colour;
    const y = CORRUPT[name](x, strength, chance);
    const shown = { x, y };
    for (const [i, restore] of networks.entries()) shown[SCHEDULES[i]] = await restore(y);
    if (name !== task.value) return;
    const scores = Object.fromEntries(Object.entries(shown).map(([key, image]) => [key, psnr(image, x)]));
    const best = Math.max(...SCHEDULES.map((key) => scores[key]));
    for (const [key, image] of Object.entries(shown)) {
      canvases[key].getContext("2d").putImageData(toImageData(image, SIDE, SIDE), 0, 0);
      const line = canvases[key].parentElement.querySelector("[data-score]");
      if (line) line.textContent = decibels(scores[key]);
      canvases[key].parentElement.toggleAttribute("data-best", SCHEDULES.includes(key) && scores[key] === best);
    }
    Object.assign(root, { shown, scores }); // for the tests, and for the console
    root.dataset.milliseconds = (performance.now() - began).toFixed(1);
    root.dataset.drawn = `${name} ${strength}`;
  }

  function describe() {
    const level = tasks[task.value].levels.findIndex(([, high]) => amount() <= high) + 1;
    const untrained = level === tasks[task.value].levels.length ? ", which no network has seen in training" : "";
    $("[data-say=severity]").textContent = SAY[task.value](amount());
    $("[data-say=level]").textContent = `level ${level} of ${tasks[task.value].levels.length}${untrained}`;
    severity.setAttribute("aria-valuetext", `${SAY[task.value](amount())}, level ${level}`);
  }

  // The summary a screen reader hears, once a movement has ended.
  function summarize() {
    const { scores } = root;
    if (!scores) return;
    const parts = SCHEDULES.map((key) => `${$(`[data-title=${key}]`).textContent} ${decibels(scores[key])}`);
    say(`${SAY[task.value](amount())}: ${parts.join(", ")}. Three restorations took ${root.dataset.milliseconds} ms.`);
  }

  async function changed() {
    describe();
    await update();
  }

  // The missing square, as near to the place as fits.
  function place(row, column) {
    const half = amount() / 2;
    middle = [row, column].map((centre) => Math.max(half, Math.min(SIDE - half, centre)));
    [chance.top, chance.left] = middle.map((centre) => Math.floor(centre - half));
  }

  async function chooseTask() {
    const { levels, easy, hard } = tasks[task.value];
    const inpainting = task.value === "inpaint";
    severity.step = task.value === "deblur" ? 0.1 : 1;
    severity.min = levels[0][0];
    severity.max = levels.at(-1)[1];
    severity.value = hard;
    if (inpainting) place(SIDE / 2, SIDE / 2);
    $("[data-do=easy]").textContent = `Easy model’s own: ${SAY[task.value](easy)}`;
    $("[data-do=hard]").textContent = `Hard model’s own: ${SAY[task.value](hard)}`;
    $("[data-do=again]").hidden = !["interpolate", "denoise"].includes(task.value);
    $("[data-say=drag]").hidden = !inpainting;
    canvases.y.tabIndex = inpainting ? 0 : -1;
    canvases.y.setAttribute("role", inpainting ? "application" : "img");
    canvases.y.toggleAttribute("data-drag", inpainting);
    await changed();
    summarize();
  }

  function choosePhotograph(picture) {
    colour = toPlanes(squareOf(picture));
    return changed().then(summarize);
  }

  task.onchange = chooseTask;
  severity.oninput = () => {
    if (task.value === "inpaint") place(...middle);
    changed();
  };
  severity.onchange = () => update().then(summarize);

  for (const end of ["easy", "hard"]) {
    $(`[data-do=${end}]`).onclick = () => {
      severity.value = tasks[task.value][end];
      if (task.value === "inpaint") place(SIDE / 2, SIDE / 2);
      changed().then(summarize);
    };
  }
  $("[data-do=again]").onclick = () => {
    Object.assign(chance, drawChance());
    changed().then(summarize);
  };

  canvases.y.onpointerdown = (event) => {
    if (task.value !== "inpaint") return;
    canvases.y.setPointerCapture(event.pointerId);
    follow(event);
  };
  canvases.y.onpointermove = (event) => canvases.y.hasPointerCapture(event.pointerId) && follow(event);
  canvases.y.onpointerup = summarize;
  function follow({ offsetX, offsetY }) {
    const scale = SIDE / canvases.y.clientWidth;
    place(offsetY * scale, offsetX * scale);
    update();
  }
  canvases.y.onkeydown = (event) => {
    const [down, right] =
      { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
    if (task.value !== "inpaint" || down === undefined) return;
    event.preventDefault();
    const step = event.shiftKey ? 8 : 1;
    place(middle[0] + step * down, middle[1] + step * right);
    update();
  };
  canvases.y.onkeyup = summarize;

  root.chance = chance; // for the tests
  const first = await offerPhotographs($("fieldset"), "small", choosePhotograph, say);
  await load(); // an error here leaves the still picture in place
  colour = toPlanes(squareOf(first));
  await chooseTask();
}
