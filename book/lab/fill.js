// Holes of any shape in a photograph: by the paper's network as odl.windows.inpaint_image, and in one pass by another.

import { FILL } from "./corrupt.js";

const CROP = 64;
const MAX_HOLE = 0.35; // share of a window that may be missing
const GROUP = 16; // windows at a time

function windowStarts(side, stride) {
  const last = side - CROP;
  const starts = Array.from({ length: Math.floor(last / stride) + 1 }, (_, i) => i * stride);
  return last % stride ? [...starts, last] : starts;
}

// `planes` are 3 × height × width in [-1, 1], `missing` is 1 where a pixel is to be filled. Answers new planes.
// `progress(share)` may return a promise, which lets the page breathe.
export async function fillHoles(restore, planes, missing, width, height, progress, stride = 8) {
  const [y, unknown, pixels] = [planes.slice(), missing.slice(), width * height];
  const starts = windowStarts(height, stride).flatMap((top) => windowStarts(width, stride).map((left) => [top, left]));
  const inWindow = ([top, left], visit) => {
    for (let r = 0; r < CROP; r++) for (let c = 0; c < CROP; c++) visit((top + r) * width + left + c, r * CROP + c);
  };
  const count = () => unknown.reduce((sum, one) => sum + one, 0);
  const atStart = count();
  let windows = 0;
  for (let left = atStart; left > 0; left = count()) {
    const shares = starts.map((start) => {
      let sum = 0;
      inWindow(start, (i) => (sum += unknown[i]));
      return sum / CROP ** 2;
    });
    const limit = Math.max(MAX_HOLE, Math.min(...shares.filter((share) => share > 0)));
    const chosen = starts.filter((_, i) => shares[i] > 0 && shares[i] <= limit);
    const [total, votes] = [new Float32Array(3 * pixels), new Float32Array(pixels)];
    for (let first = 0; first < chosen.length; first += GROUP) {
      const group = chosen.slice(first, first + GROUP);
      const shown = new Float32Array(group.length * 3 * CROP ** 2);
      group.forEach((start, g) => {
        for (let k = 0; k < 3; k++) {
          inWindow(start, (i, j) => (shown[(3 * g + k) * CROP ** 2 + j] = unknown[i] ? FILL[k] : y[k * pixels + i]));
        }
      });
      const x_hat = await restore(shown);
      group.forEach((start, g) => {
        for (let k = 0; k < 3; k++)
          inWindow(start, (i, j) => (total[k * pixels + i] += x_hat[(3 * g + k) * CROP ** 2 + j]));
        inWindow(start, (i) => (votes[i] += 1));
      });
      windows += group.length;
      await progress(1 - (left / atStart) * (1 - (first / chosen.length) * 0.5));
    }
    for (let i = 0; i < pixels; i++) {
      if (!unknown[i] || !votes[i]) continue;
      for (let k = 0; k < 3; k++) y[k * pixels + i] = total[k * pixels + i] / votes[i];
      unknown[i] = 0;
    }
  }
  return { planes: y, windows };
}

export const LONGER_SIDE = 256; // of a photograph that `fillWhole` takes
const GONE = 2; // the value that tells a pixel is missing: companion.restore.fill

// The same by a network that is told which pixels are missing, of a photograph mirrored to a full square: the mean of
// four passes, each turned by another quarter.
export async function fillWhole(restore, planes, missing, width, height) {
  const mirrored = (i, side) => (i % (2 * side) < side ? i % side : side - 1 - (i % side));
  const [y, pixels] = [new Float32Array(3 * LONGER_SIDE ** 2), width * height];
  y.forEach((_, j) => {
    const row = mirrored(Math.floor(j / LONGER_SIDE) % LONGER_SIDE, height);
    const i = row * width + mirrored(j % LONGER_SIDE, width);
    y[j] = missing[i] ? GONE : planes[Math.floor(j / LONGER_SIDE ** 2) * pixels + i];
  });
  const last = LONGER_SIDE - 1;
  const turns = [(r, c) => [r, c], (r, c) => [c, last - r], (r, c) => [last - r, last - c], (r, c) => [last - c, r]];
  const x_hat = new Float32Array(y.length);
  for (const turn of turns) {
    const places = y.map((_, j) => {
      const [row, column] = turn(Math.floor(j / LONGER_SIDE) % LONGER_SIDE, j % LONGER_SIDE);
      return (Math.floor(j / LONGER_SIDE ** 2) * LONGER_SIDE + row) * LONGER_SIDE + column;
    });
    (await restore(places.map((place) => y[place]))).forEach((value, j) => (x_hat[places[j]] += value / turns.length));
  }
  return planes.map((_, k) => {
    const i = k % pixels;
    const at = Math.floor(k / pixels) * LONGER_SIDE ** 2 + Math.floor(i / width) * LONGER_SIDE + (i % width);
    return Math.max(-1, Math.min(1, x_hat[at]));
  });
}
