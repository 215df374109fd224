// The fixation lab: one photograph, one severity; the damaged picture itself, a classical fill, the networks.

import { biharmonic } from "./biharmonic.js";
import { CORRUPT, MISSING, SIDE, drawChance, keepKnown, missingOf } from "./corrupt.js";
import { network } from "./networks.js";
import { offerPhotographs } from "./photographs.js";
import { decibels, psnr, squareOf, toGrey, toImageData, toPlanes } from "./pictures.js";
import { predict } from "./predict.js";

const SAY = {
  inpaint: (side) => `${side}×${side} pixels missing`,
  interpolate: (percent) => `${percent} % of the pixels missing`,
  deblur: (sigma) => `blur of σ = ${sigma} pixels`,
  denoise: (sigma) => `noise of σ = ${sigma} (of 255)`,
};
const START = { inpaint: 20, interpolate: 40, deblur: 2, denoise: 40 }; // milder than what “fixated on hard” was made for
const ABOVE = 6; // dB above the networks, for what is ahead of them
const POINTS = 24; // of a curve, about
const [WIDTH, HEIGHT] = [300, 120]; // of the drawing of the curves
const [CUT, STILL] = [50, 150]; // dB, where the curves are cut; ms without a change, after which they are drawn

// The dashes of a curve, so that no colour alone tells two of them apart.
const DASHES = { y: "6 4", fill: "1 5", fixated_easy: "10 3 2 3", fixated_hard: "14 4" };
const dashed = (key, colour) => `stroke: ${colour}; stroke-dasharray: ${DASHES[key] ?? "none"}`;

export async function startFixation(root) {
  const { tasks, schedules, colours } = globalThis.odlLab;
  const $ = (selector) => root.querySelector(selector);
  const [task, severity, keep, legend] = [$("[name=task]"), $("[name=severity]"), $("[name=keep]"), $(".odl-legend")];
  const slots = { one: $("[name=one]"), two: $("[name=two]") };
  const chance = { ...drawChance(), top: 16, left: 16 };
  let middle = [SIDE / 2, SIDE / 2]; // of the missing square: row, column
  let colour; // planes of the photograph
  let stale = false;
  let running; // a promise, while pictures are made
  let curve; // severity → PSNR of every picture, as it is and with the known pixels kept
  let waiting; // a timer, before a curve is begun

  const say = (line) => ($("[data-say=done]").textContent = line);
  const amount = () => Number(severity.value);
  const names = Object.keys(schedules);
  const fills = () => (task.value === "inpaint" ? ["fill"] : []); // classical ones, quick enough for every step
  const titles = () => ({
    y: "Damaged picture",
    ...Object.fromEntries(fills().map((key) => [key, "Biharmonic fill"])),
    ...Object.fromEntries(names.map((key) => [key, schedules[key].title])),
  });
  const load = () => Promise.all(names.map((schedule) => network(task.value, schedule)));
  const canvasOf = (key) => $(`canvas[data-show=${key}]`);
  const photograph = () => (tasks[task.value].channels === 1 ? toGrey(colour) : colour);

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
      root.scores = root.shown = undefined; // those of the task before
      for (const line of root.querySelectorAll("[data-score]")) line.textContent = "";
      say("The networks of this task could not be loaded.");
    }
  }

  // What the fill and each network make of x: as it is, with the known pixels kept, and where pixels are missing.
  async function restored(networks, x, strength, draws) {
    const y = CORRUPT[task.value](x, strength, draws);
    const missing = MISSING.includes(task.value) ? missingOf(x, y) : undefined;
    const raw = { y, ...Object.fromEntries(fills().map((key) => [key, biharmonic(y, missing, SIDE, SIDE)])) };
    const kept = { ...raw };
    for (const [i, restore] of networks.entries()) {
      raw[names[i]] = await restore(y);
      kept[names[i]] = missing ? keepKnown(raw[names[i]], y, missing) : raw[names[i]];
    }
    return { raw, kept, missing };
  }

  const scoresOf = (pictures, x, missing) =>
    Object.fromEntries(Object.entries(pictures).map(([key, image]) => [key, psnr(image, x, missing)]));

  async function redraw() {
    const [name, strength] = [task.value, amount()];
    const networks = await load();
    if (name !== task.value) return;
    const x = photograph();
    const { raw, kept, missing } = await restored(networks, x, strength, chance);
    if (name !== task.value) return;
    const pictures = keep.checked ? kept : raw;
    const holes = missing ? scoresOf(pictures, x, missing) : {};
    Object.assign(root, { shown: { x, ...pictures }, scores: scoresOf(pictures, x), holes }); // also for the tests
    drawPictures();
    drawLegend();
    drawCurve();
    root.dataset.drawn = `${name} ${strength}`;
  }

  function drawPictures() {
    if (!root.shown) return;
    for (const slot of ["x", "y", "one", "two"]) {
      const image = root.shown[slots[slot]?.value ?? slot];
      if (!image) continue; // a fill that the task shown last has not
      canvasOf(slot).getContext("2d").putImageData(toImageData(image, SIDE, SIDE), 0, 0);
      const line = canvasOf(slot).parentElement.querySelector("[data-score]");
      if (line) line.textContent = decibels(psnr(image, root.shown.x), 1);
    }
  }

  // A line of each curve with its PSNR at the slider, in bold the best, which the damaged picture may be.
  function drawLegend() {
    const best = decibels(Math.max(...Object.values(root.scores)), 1);
    for (const item of legend.children) {
      const { key } = item.dataset;
      const hole = key in root.holes ? `, ${decibels(root.holes[key], 1)} where pixels are missing` : "";
      const score = decibels(root.scores[key], 1);
      item.lastChild.textContent = `${score}${hole}`;
      item.toggleAttribute("data-best", score === best); // several may be, as far as is shown
    }
  }

  function describe() {
    const { levels } = tasks[task.value];
    const level = levels.findIndex(([, high]) => amount() <= high) + 1;
    const untrained = level === levels.length ? ", unseen by networks of all levels" : "";
    $("[data-say=severity]").textContent = SAY[task.value](amount());
    $("[data-say=level]").textContent = `level ${level} of ${levels.length}${untrained}`;
    severity.setAttribute("aria-valuetext", `${SAY[task.value](amount())}, level ${level}`);
  }

  // The summary a screen reader hears, once a movement has ended.
  function summarize() {
    if (!root.scores || $("[data-after]").hidden) return;
    const parts = Object.entries(titles()).map(([key, title]) => `${title} ${decibels(root.scores[key], 1)}`);
    const kept = keep.checked && MISSING.includes(task.value) ? ", known pixels kept" : "";
    say(`${SAY[task.value](amount())}${kept}: ${parts.join(", ")}.`);
  }

  async function changed() {
    describe();
    await update();
  }

  // The curves of this photograph and this draw, a severity at a time so that the page breathes.

  function forgetCurve() {
    curve = undefined;
    delete root.dataset.curve;
    clearTimeout(waiting);
    waiting = setTimeout(() => fillCurve().catch(console.error), STILL);
  }

  function severities() {
    const [low, high, step] = [severity.min, severity.max, severity.step].map(Number);
    const apart = Math.max(step, Math.ceil((high - low) / POINTS / step) * step);
    const { easy, hard } = tasks[task.value];
    const inner = Array.from({ length: Math.floor((high - low) / apart) + 1 }, (_, i) => low + i * apart);
    return [...new Set([...inner, easy, hard, high].map((s) => Number(s.toFixed(1))))].sort((a, b) => a - b);
  }

  async function fillCurve() {
    const made = (curve = new Map());
    const [name, x, networks] = [task.value, photograph(), await load()];
    for (const strength of severities()) {
      await running;
      await new Promise((done) => setTimeout(done));
      if (curve !== made || name !== task.value) return;
      const { raw, kept } = await restored(networks, x, strength, { ...chance, ...corner(strength) });
      made.set(strength, { raw: scoresOf(raw, x), kept: scoresOf(kept, x) });
      drawCurve();
    }
    root.dataset.curve = `${name} ${made.size}`;
    root.curve = Object.fromEntries(made); // for the tests
  }

  function drawCurve() {
    const { levels, easy, hard } = tasks[task.value];
    const [first, last] = [Number(severity.min), Number(severity.max)];
    const across = (s) => (WIDTH * (s - first)) / (last - first);
    const points = [...(curve ?? [])].map(([s, both]) => [s, keep.checked ? both.kept : both.raw]);
    const all = points.flatMap(([, scores]) => names.map((key) => scores[key])).map((p) => Math.min(p, CUT));
    const low = Math.floor(Math.min(...all, ...points.map(([, scores]) => scores.y))) - 1;
    const high = Math.ceil(Math.max(...all)) + ABOVE;
    const down = (p) => Math.max(-9, HEIGHT * (1 - (p - low) / (high - low)));
    const line = (key, style, shown = points) => {
      const places = shown.map(([s, scores]) => `${across(s).toFixed(1)},${down(scores[key]).toFixed(1)}`);
      return `<polyline points="${places.join(" ")}" style="${style}"/>`;
    };
    const dot = (key) => {
      const own = { fixated_easy: easy, fixated_hard: hard }[key];
      const there = points.find(([s]) => s === own);
      const style = `stroke: ${schedules[key].colour}; stroke-width: 10; stroke-linecap: round`;
      return there ? line(key, style, [there, there]) : "";
    };
    const band = across(levels.at(-2)[1]);
    $(".odl-curve svg").innerHTML = [
      `<rect x="${band}" width="${WIDTH - band}" height="${HEIGHT}"/>`,
      line("y", dashed("y", "var(--odl-damaged)")),
      ...fills().map((key) => line(key, `${dashed("fill", "currentcolor")}; stroke-linecap: round`)),
      ...names.map((key) => line(key, dashed(key, schedules[key].colour)) + dot(key)),
    ].join("");
    $("[data-say=high]").textContent = points.length ? `${high} dB` : "";
    $("[data-say=low]").textContent = points.length ? `${low} dB` : "";
  }

  // The upper left corner of the missing square, as near to its middle as fits.
  function corner(side) {
    const [top, left] = middle.map((centre) =>
      Math.floor(Math.max(side / 2, Math.min(SIDE - side / 2, centre)) - side / 2),
    );
    return { top, left };
  }

  function place(row, column) {
    const half = amount() / 2;
    middle = [row, column].map((centre) => Math.max(half, Math.min(SIDE - half, centre)));
    Object.assign(chance, corner(amount()));
  }

  function movedTo(row, column) {
    place(row, column);
    forgetCurve();
    changed();
  }

  function showContestants() {
    const { levels } = tasks[task.value];
    const grounds = { y: "var(--odl-damaged)", fill: "currentcolor" };
    legend.replaceChildren(
      ...Object.entries(titles()).map(([key, title]) => {
        const item = document.createElement("li");
        item.dataset.key = key;
        const style = dashed(key, grounds[key] ?? schedules[key].colour);
        item.innerHTML = `<svg aria-hidden="true"><line x2="34" y1="3" y2="3" style="${style}"/></svg><span>${title}</span> <span data-score></span>`;
        return item;
      }),
    );
    const options = () => Object.entries(titles()).slice(1).map(([key, title]) => new Option(title, key));
    for (const slot of Object.values(slots)) slot.replaceChildren(...options());
    slots.one.value = "fixated_hard";
    slots.two.value = names[0];
    const width = ([, high], i) => high - (i ? levels[i - 1][1] : levels[0][0]);
    const piece = (level, i) =>
      `<span style="flex: ${width(level, i)}; --odl-level: ${colours[i]}">${i + 1}${level === levels.at(-1) ? ", unseen" : ""}</span>`;
    $(".odl-ruler").innerHTML = levels.map(piece).join("");
  }

  async function chooseTask() {
    const { levels } = tasks[task.value];
    const inpainting = task.value === "inpaint";
    severity.step = task.value === "deblur" ? 0.1 : 1;
    severity.min = levels[0][0];
    severity.max = levels.at(-1)[1];
    severity.value = START[task.value];
    if (inpainting) place(SIDE / 2, SIDE / 2);
    $("[data-part=keep]").hidden = !MISSING.includes(task.value);
    $("[data-say=drag]").hidden = !inpainting;
    damaged.tabIndex = inpainting ? 0 : -1;
    damaged.setAttribute("role", inpainting ? "application" : "img");
    damaged.setAttribute("aria-label", `The damaged picture, not restored${inpainting ? "; arrow keys move the missing square" : ""}`);
    damaged.toggleAttribute("data-drag", inpainting);
    showContestants();
    $(".odl-curve svg").setAttribute("aria-label", "PSNR of this photograph against severity, damaged and restored");
    forgetCurve();
    await changed();
    summarize();
  }

  function choosePhotograph(picture) {
    colour = toPlanes(squareOf(picture));
    forgetCurve();
    return changed().then(summarize);
  }

  task.onchange = chooseTask;
  severity.oninput = () => {
    if (task.value === "inpaint") Object.assign(chance, corner(amount()));
    changed();
  };
  severity.onchange = () => update().then(summarize);
  keep.onchange = () => update().then(summarize);
  slots.one.onchange = slots.two.onchange = drawPictures;

  const damaged = canvasOf("y");
  damaged.onpointerdown = (event) => {
    if (task.value !== "inpaint") return;
    damaged.setPointerCapture(event.pointerId);
    follow(event);
  };
  damaged.onpointermove = (event) => damaged.hasPointerCapture(event.pointerId) && follow(event);
  function follow({ offsetX, offsetY }) {
    const scale = SIDE / damaged.clientWidth;
    movedTo(offsetY * scale, offsetX * scale);
  }
  damaged.onkeydown = (event) => {
    const [down, right] =
      { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
    if (task.value !== "inpaint" || down === undefined) return;
    event.preventDefault();
    const step = event.shiftKey ? 8 : 1;
    movedTo(middle[0] + step * down, middle[1] + step * right);
  };
  damaged.onpointerup = damaged.onkeyup = async () => {
    await running;
    summarize();
  };

  root.chance = chance; // for the tests
  $("[data-say=own]").textContent = SAY.deblur(tasks.deblur.hard);
  $("[data-say=start]").textContent = SAY.deblur(START.deblur);
  predict(root, () => {
    const { y, fixated_hard, on_demand } = root.scores;
    const gain = fixated_hard - y;
    return [
      gain > 1 ? 0 : gain > -1 ? 1 : 2,
      `it takes the photograph from ${decibels(y, 1)} to ${decibels(fixated_hard, 1)}. ` +
        `The on-demand network, which has trained on all levels, makes ${decibels(on_demand, 1)} of it. ` +
        "Move the line to the dots: where is each network at home?",
    ];
  });
  const first = await offerPhotographs($(".odl-photographs"), "small", choosePhotograph, say);
  await load(); // an error here leaves the still picture in place
  colour = toPlanes(squareOf(first));
  await chooseTask();
}
