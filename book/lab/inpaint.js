// Inpaint your photo: draw over it, press a button.

import { biharmonic } from "./biharmonic.js";
import { FILL } from "./corrupt.js";
import { LONGER_SIDE, fillHoles, fillWhole } from "./fill.js";
import { network } from "./networks.js";
import { offerPhotographs } from "./photographs.js";
import { decibels, fitted, psnr, toImageData, toPlanes } from "./pictures.js";
import { predict } from "./predict.js";

const INK = [230, 0, 120];
const networks = () => [network("inpaint", "on_demand"), network("inpaint", "photographs", LONGER_SIDE)];

export async function startInpaint(root) {
  const $ = (selector) => root.querySelector(selector);
  const [canvas, brush, bar] = [$("[data-show=y]"), $("[name=brush]"), $("progress")];
  const all = $("fieldset[data-part=all]"); // disabled while a fill runs, when nothing can be drawn either
  const say = (line) => ($("[data-say=done]").textContent = line);
  let photo; // ImageData
  let missing; // 1 where drawn
  let cursor; // [x, y] of the keyboard's brush
  let last; // [x, y] while drawing

  function show() {
    const image = new ImageData(photo.data.slice(), photo.width, photo.height);
    missing.forEach((gone, i) => gone && image.data.set(INK, 4 * i));
    const pen = canvas.getContext("2d");
    pen.putImageData(image, 0, 0);
    if (document.activeElement !== canvas || !canvas.matches(":focus-visible")) return;
    for (const [colour, width] of [
      ["black", 3],
      ["white", 1],
    ]) {
      pen.beginPath();
      pen.arc(cursor[0] + 0.5, cursor[1] + 0.5, Number(brush.value) / 2, 0, 7);
      Object.assign(pen, { strokeStyle: colour, lineWidth: width });
      pen.stroke();
    }
  }

  function clear() {
    missing = new Uint8Array(photo.width * photo.height);
    $("[data-say=answer]").textContent = "";
    forgetScores();
    for (const key of ["whole", "x_hat", "fill"]) showResult(key, photo);
    show();
  }

  function showResult(key, image) {
    $(`[data-show=${key}]`).getContext("2d").putImageData(image, 0, 0);
  }

  // With a stroke to begin with, so that there is something to fill.
  function usePhotograph(picture) {
    photo = fitted(picture);
    for (const one of root.querySelectorAll("canvas")) Object.assign(one, { width: photo.width, height: photo.height });
    cursor = [photo.width >> 1, photo.height >> 1];
    clear();
    paint([0.15 * photo.width, 0.25 * photo.height], [0.85 * photo.width, 0.75 * photo.height]);
    say(`${photo.width}×${photo.height} pixels. Draw over what should go.`);
  }

  // Against the photograph as it was: what is drawn over is known here.
  function showScores(pictures, x, hole) {
    const scores = Object.fromEntries(Object.entries(pictures).map(([key, image]) => [key, psnr(image, x, hole)]));
    const best = decibels(Math.max(...Object.values(scores)));
    for (const [key, image] of Object.entries(pictures)) {
      const cell = $(`[data-show=${key}]`).parentElement;
      const line = cell.querySelector("[data-score]");
      if (line) line.textContent = `${decibels(scores[key])} where you drew`;
      cell.toggleAttribute("data-best", decibels(scores[key]) === best); // several may be, as far as is shown
    }
    root.scores = scores; // for the guess and the tests
  }

  function forgetScores() {
    delete root.scores;
    root.querySelectorAll("[data-score]").forEach((line) => (line.textContent = ""));
    root.querySelectorAll("[data-best]").forEach((cell) => cell.removeAttribute("data-best"));
  }

  // A disc at every pixel between two points. What was filled before has another hole.
  function paint([x0, y0], [x1, y1]) {
    forgetScores();
    const steps = Math.max(1, Math.ceil(Math.hypot(x1 - x0, y1 - y0)));
    const radius = Number(brush.value) / 2;
    for (let step = 0; step <= steps; step++) {
      const [x, y] = [x0 + ((x1 - x0) * step) / steps, y0 + ((y1 - y0) * step) / steps];
      for (let r = Math.max(0, Math.ceil(y - radius)); r <= Math.min(photo.height - 1, y + radius); r++) {
        for (let c = Math.max(0, Math.ceil(x - radius)); c <= Math.min(photo.width - 1, x + radius); c++) {
          if ((r - y) ** 2 + (c - x) ** 2 <= radius ** 2) missing[r * photo.width + c] = 1;
        }
      }
    }
    show();
  }

  const pointOf = ({ offsetX, offsetY }) => {
    const scale = photo.width / canvas.clientWidth;
    return [offsetX * scale - 0.5, offsetY * scale - 0.5];
  };
  canvas.onpointerdown = (event) => {
    if (all.disabled) return;
    canvas.setPointerCapture(event.pointerId);
    last = pointOf(event);
    paint(last, last);
  };
  canvas.onpointermove = (event) => {
    if (all.disabled || !canvas.hasPointerCapture(event.pointerId)) return;
    const next = pointOf(event);
    paint(last, next);
    last = next;
  };
  canvas.onkeydown = (event) => {
    const [dx, dy] = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key] ?? [];
    if (all.disabled || (event.key !== " " && dx === undefined)) return;
    event.preventDefault();
    const from = cursor;
    if (dx !== undefined) {
      const [x, y] = [cursor[0] + 4 * dx, cursor[1] + 4 * dy];
      cursor = [Math.max(0, Math.min(photo.width - 1, x)), Math.max(0, Math.min(photo.height - 1, y))];
    }
    if (event.key === " " || event.shiftKey) paint(from, cursor);
    else show();
  };
  canvas.onfocus = canvas.onblur = show;
  brush.oninput = show;
  $("[data-do=clear]").onclick = () => {
    clear();
    say("Nothing is drawn.");
  };

  async function fill() {
    const gone = missing.reduce((sum, one) => sum + one, 0);
    if (!gone) return say("Nothing is drawn yet. Draw over what should go, then guess or press Fill again.");
    if (gone === missing.length) return say("Everything is drawn over. Leave something to go by.");
    const [began, hole, source, focused] = [performance.now(), missing.slice(), photo, document.activeElement];
    all.disabled = true;
    bar.hidden = false;
    say("Filling …");
    try {
      const [restore, newer] = await Promise.all(networks());
      const breathe = (share) => ((bar.value = share), new Promise((done) => setTimeout(done)));
      const { width, height } = source;
      const x = toPlanes(source);
      const filled = await fillHoles(restore, x, hole, width, height, breathe);
      const damaged = x.map((value, k) => (hole[k % hole.length] ? FILL[Math.floor(k / hole.length)] : value));
      const whole = await fillWhole(newer, x, hole, width, height);
      if (photo !== source) return; // another one was opened before this began, and has come since
      const pictures = { whole, x_hat: filled.planes, fill: biharmonic(damaged, hole, width, height) };
      for (const [key, planes] of Object.entries(pictures)) {
        showResult(key, toImageData(planes, width, height));
      }
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      showScores({ y: damaged, ...pictures }, x, hole);
      const fills = { "the newer network": "whole", "the paper’s": "x_hat", "the equation": "fill" };
      const said = Object.entries(fills).map(([name, key]) => `${name} ${decibels(root.scores[key])}`).join(", ");
      say(`Filled ${gone.toLocaleString("en")} pixels in ${seconds} s; the paper’s network saw ${filled.windows} windows. In the damage: ${said}.`);
      Object.assign(root, { photo, hole, ...pictures }); // for the tests
    } catch (error) {
      console.error(error);
      say("The network could not be loaded.");
    } finally {
      all.disabled = false;
      bar.hidden = true;
      const lost = document.activeElement === document.body; // as a button that is disabled loses it
      if (lost && root.contains(focused)) focused.focus({ preventScroll: true });
    }
  }

  $("[data-do=fill]").onclick = fill;
  predict(root, async () => {
    await fill();
    if (!root.scores) return [-1, "Nothing is filled yet."];
    const fills = ["whole", "x_hat", "fill"].map((key) => Number(root.scores[key].toFixed(2))); // as they are shown
    const [newer, papers, classical] = fills.map((score) => decibels(score));
    return [
      fills.indexOf(Math.max(...fills)),
      `the newer network’s fill has ${newer}, that of the paper’s ${papers}, that of the equation ${classical}. Draw a large blot: who is nearest now?`,
    ];
  }, true);
  const first = await offerPhotographs($("fieldset[data-part=photographs]"), "large", usePhotograph, say);
  await Promise.all(networks()); // an error here leaves the still picture in place
  usePhotograph(first);
}
