// The fixation lab: one photograph, one severity; the damaged picture itself, a classical fill, the networks.

import { biharmonic } from "./biharmonic.js";
import { CORRUPT, MISSING, SIDE, drawChance, keepKnown, missingOf } from "./corrupt.js";
import { network } from "./networks.js";
import { offerPhotographs } from "./photographs.js";
import { decibels, psnr, squareOf, toGrey, toImageData, toPlanes } from "./pictures.js";

const SAY = {
  inpaint: (side) => `${side}×${side} pixels missing`,
  interpolate: (percent) => `${percent} % of the pixels missing`,
  deblur: (sigma) => `blur of σ = ${sigma} pixels`,
  denoise: (sigma) => `noise of σ = ${sigma} (of 255)`,
};
const INSIDE = { inpaint: "in the hole", interpolate: "deleted pixels" };
const ABOVE = 6; // dB above the networks, for what is ahead of them
const POINTS = 24; // of a curve, about
const [WIDTH, HEIGHT] = [300, 120]; // of the drawing of the curves
const [CUT, STILL] = [50, 150]; // dB, where the curves are cut; ms without a change, after which they are drawn

export async function startFixation(root) {
  const { tasks, schedules, colours } = globalThis.odlLab;
  const $ = (selector) => root.querySelector(selector);
  const [task, severity, keep, status] = [$("[name=task]"), $("[name=severity]"), $("[name=keep]"), $("[role=status]")];
  const [one, two, compare, contest] = [$("[name=one]"), $("[name=two]"), $("[name=compare]"), $("tbody")];
  const chance = { ...drawChance(), top: 16, left: 16 };
  let middle = [SIDE / 2, SIDE / 2]; // of the missing square: row, column
  let colour; // planes of the photograph
  let stale = false;
  let running; // a promise, while pictures are made
  let curve; // severity → PSNR of every picture, as it is and with the known pixels kept
  let waiting; // a timer, before a curve is begun

  const say = (line) => (status.textContent = line);
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
    const began = performance.now();
    const x = photograph();
    const { raw, kept, missing } = await restored(networks, x, strength, chance);
    if (name !== task.value) return;
    const pictures = keep.checked ? kept : raw;
    const scores = scoresOf(pictures, x);
    const holes = missing ? scoresOf(pictures, x, missing) : {};
    Object.assign(root, { shown: { x, ...pictures }, kept, scores, holes }); // also for the tests
    drawPictures();
    drawContest();
    drawCurve();
    root.dataset.milliseconds = (performance.now() - began).toFixed(1);
    root.dataset.drawn = `${name} ${strength}`;
  }

  // The four pictures, and the two of them that the line divides.
  function drawPictures() {
    const { shown, kept } = root;
    if (!shown) return;
    const [named, same] = [titles(), two.value === "kept"];
    const slots = { x: shown.x, y: shown.y, one: shown[one.value], two: same ? kept[one.value] : shown[two.value] };
    const said = { x: "Photograph", y: "Damaged", one: named[one.value] };
    said.two = same ? `${said.one}, known pixels kept` : named[two.value];
    const draw = (canvas, image) => canvas.getContext("2d").putImageData(toImageData(image, SIDE, SIDE), 0, 0);
    for (const [slot, image] of Object.entries(slots)) {
      draw(canvasOf(slot), image);
      const line = canvasOf(slot).parentElement.querySelector("[data-score]");
      if (line) line.textContent = decibels(psnr(image, shown.x));
    }
    compare.value.split(" ").forEach((slot, i) => {
      const side = ["left", "right"][i];
      draw($(`canvas[data-side=${side}]`), slots[slot]);
      $(`[data-say=${side}]`).textContent = said[slot];
    });
  }

  // A row each, in bold the best, which the damaged picture may be.
  function drawContest() {
    const { scores, holes } = root;
    const best = Math.max(...Object.values(scores));
    for (const row of contest.rows) {
      const { key } = row.dataset;
      row.querySelector("[data-score]").textContent = decibels(scores[key]);
      row.querySelector("[data-hole]").textContent = key in holes ? decibels(holes[key], 1) : "";
      row.toggleAttribute("data-best", scores[key] === best);
      const line = row.querySelector("[data-seen]");
      if (line) line.textContent = hasSeen(key) ? "held this" : "never held this";
    }
  }

  // Whether a network's training held the present severity; a fixated one's square was always in the middle.
  function hasSeen(schedule) {
    const [low, high] = tasks[task.value].trained[schedule];
    const placed = task.value === "inpaint" && low === high;
    const centre = Math.floor(SIDE / 2 - amount() / 2);
    return low <= amount() && amount() <= high && (!placed || (chance.top === centre && chance.left === centre));
  }

  // Which of the networks shown have trained on the present severity, where that is not what their levels say.
  function strangers(last) {
    const seen = names.filter(hasSeen);
    if (!seen.length) return ", on which none of these networks has trained";
    return last ? `, on which only “${seen.map((key) => schedules[key].title).join("” and “")}” has trained` : "";
  }

  function describe() {
    const { levels } = tasks[task.value];
    const level = levels.findIndex(([, high]) => amount() <= high) + 1;
    $("[data-say=severity]").textContent = SAY[task.value](amount());
    $("[data-say=level]").textContent = `level ${level} of ${levels.length}${strangers(level === levels.length)}`;
    severity.setAttribute("aria-valuetext", `${SAY[task.value](amount())}, level ${level}`);
  }

  // The summary a screen reader hears, once a movement has ended.
  function summarize() {
    const { scores, dataset } = root;
    if (!scores) return;
    const parts = Object.entries(titles()).map(([key, title]) => `${title} ${decibels(scores[key])}`);
    const kept = keep.checked && MISSING.includes(task.value) ? ", known pixels kept" : "";
    const made = `${names.length} restorations in ${dataset.milliseconds} ms`;
    say(`${SAY[task.value](amount())}${kept}: ${parts.join(", ")}. ${made}.`);
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
    const { levels } = tasks[task.value];
    const [first, last] = [Number(severity.min), Number(severity.max)];
    const across = (s) => (WIDTH * (s - first)) / (last - first);
    const points = [...(curve ?? [])].map(([s, both]) => [s, keep.checked ? both.kept : both.raw]);
    const all = points.flatMap(([, scores]) => names.map((key) => scores[key])).map((p) => Math.min(p, CUT));
    const low = Math.floor(Math.min(...all, ...points.map(([, scores]) => scores.y))) - 1;
    const high = Math.ceil(Math.max(...all)) + ABOVE;
    const down = (p) => Math.max(-9, HEIGHT * (1 - (p - low) / (high - low)));
    const line = (key, style) => {
      const places = points.map(([s, scores]) => `${across(s).toFixed(1)},${down(scores[key]).toFixed(1)}`);
      return `<polyline points="${places.join(" ")}" style="${style}"/>`;
    };
    const band = across(levels.at(-2)[1]);
    $(".odl-curve svg").innerHTML = [
      `<rect x="${band}" width="${WIDTH - band}" height="${HEIGHT}"/>`,
      line("y", "stroke: var(--odl-damaged); stroke-dasharray: 6 4"),
      ...fills().map((key) => line(key, "stroke-dasharray: 1 5; stroke-linecap: round")),
      ...names.map((key) => line(key, `stroke: ${schedules[key].colour}`)),
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
    const lines = { y: ["var(--odl-damaged)", "dashed"], fill: ["currentcolor", "dotted"] };
    contest.replaceChildren(
      ...Object.entries(titles()).map(([key, title]) => {
        const row = document.createElement("tr");
        const [colour, style] = lines[key] ?? [schedules[key].colour, "solid"];
        row.dataset.key = key;
        row.innerHTML =
          `<th scope="row"><i style="border-top: 3px ${style} ${colour}"></i>${title}</th><td data-score></td>` +
          `<td data-hole></td><td ${key in lines ? ">none" : "data-seen>"}</td>`;
        return row;
      }),
    );
    const options = () => Object.entries(titles()).slice(1).map(([key, title]) => new Option(title, key));
    one.replaceChildren(...options());
    two.replaceChildren(...options(), ...(MISSING.includes(task.value) ? [new Option("known pixels kept", "kept")] : []));
    one.value = names[0];
    two.value = { inpaint: "fill", interpolate: "kept" }[task.value] ?? names.at(-1);
    $("[data-say=inside]").textContent = INSIDE[task.value] ?? "";
    const width = ([, high], i) => high - (i ? levels[i - 1][1] : levels[0][0]);
    const piece = (level, i) =>
      `<span style="flex: ${width(level, i)}; --odl-level: ${colours[i]}">${i + 1}${level === levels.at(-1) ? ", tests" : ""}</span>`;
    $(".odl-ruler").innerHTML = levels.map(piece).join("");
  }

  async function chooseTask() {
    const { levels, easy, hard } = tasks[task.value];
    const inpainting = task.value === "inpaint";
    severity.step = task.value === "deblur" ? 0.1 : 1;
    severity.min = levels[0][0];
    severity.max = levels.at(-1)[1];
    severity.value = hard;
    if (inpainting) place(SIDE / 2, SIDE / 2);
    for (const [end, own] of Object.entries({ easy, hard })) {
      $(`[data-do=${end}]`).textContent = `${SAY[task.value](own)} (${schedules[`fixated_${end}`].title.toLowerCase()})`;
    }
    $("[data-do=again]").hidden = !["interpolate", "denoise"].includes(task.value);
    $("[data-part=keep]").hidden = !MISSING.includes(task.value);
    $("[data-say=drag]").hidden = !inpainting;
    const damaged = canvasOf("y");
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

  for (const end of ["easy", "hard"]) {
    $(`[data-do=${end}]`).onclick = () => {
      severity.value = tasks[task.value][end];
      if (task.value === "inpaint") place(SIDE / 2, SIDE / 2);
      forgetCurve();
      changed().then(summarize);
    };
  }
  $("[data-do=again]").onclick = () => {
    Object.assign(chance, drawChance());
    forgetCurve();
    changed().then(summarize);
  };

  one.onchange = two.onchange = compare.onchange = drawPictures;

  const damaged = canvasOf("y");
  damaged.onpointerdown = (event) => {
    if (task.value !== "inpaint") return;
    damaged.setPointerCapture(event.pointerId);
    follow(event);
  };
  damaged.onpointermove = (event) => damaged.hasPointerCapture(event.pointerId) && follow(event);
  damaged.onpointerup = summarize;
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
  damaged.onkeyup = summarize;

  root.chance = chance; // for the tests
  const first = await offerPhotographs($("fieldset"), "small", choosePhotograph, say);
  await load(); // an error here leaves the still picture in place
  colour = toPlanes(squareOf(first));
  await chooseTask();
}
