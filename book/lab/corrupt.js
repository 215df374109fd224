// The four corruptions of odl.corruptions, on one image: channels × height × width floats in [-1, 1].

export const SIDE = 64;
export const FILL = [117, 104, 123].map((value) => value / 127.5 - 1); // fill colour of deleted pixels
const RADIUS = 24; // the longest blur kernel

// The random draws of one picture; a slider then changes the severity alone.
export function drawChance() {
  const uniform = Float32Array.from({ length: SIDE * SIDE }, Math.random);
  const normal = Float32Array.from({ length: SIDE * SIDE }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - Math.random()));
    return radius * Math.cos(2 * Math.PI * Math.random());
  });
  return { uniform, normal };
}

// `chance` holds uniform and normal draws per pixel, and top and left of the missing square.
export const CORRUPT = {
  inpaint(x, side, { top, left }) {
    const inside = (start, place) => place >= start && place < start + side;
    return deleted(x, (i) => inside(top, Math.floor(i / SIDE)) && inside(left, i % SIDE));
  },
  interpolate(x, percent, { uniform }) {
    return deleted(x, (i) => uniform[i] < percent / 100);
  },
  deblur(x, sigma) {
    const weights = gaussian(sigma);
    return blurred(blurred(x, weights, SIDE, 1), weights, 1, SIDE);
  },
  denoise(x, sigma, { normal }) {
    return x.map((value, i) => Math.min(1, Math.max(-1, value + (normal[i] * sigma) / 127.5)));
  },
};

export const MISSING = ["inpaint", "interpolate"]; // tasks whose other pixels are undamaged

// Per pixel 1 where y is damaged, else 0.
export function missingOf(x, y) {
  const missing = new Uint8Array(SIDE * SIDE);
  for (let k = 0; k < x.length; k++) if (x[k] !== y[k]) missing[k % missing.length] = 1;
  return missing;
}

// A restored picture with the known pixels put back.
export function keepKnown(x_hat, y, missing) {
  const kept = y.slice();
  for (let k = 0; k < y.length; k++) if (missing[k % missing.length]) kept[k] = x_hat[k];
  return kept;
}

function deleted(x, gone) {
  const pixels = x.length / FILL.length;
  return x.map((value, k) => (gone(k % pixels) ? FILL[Math.floor(k / pixels)] : value));
}

// Weights of the offsets -RADIUS … RADIUS, cut at 4σ.
function gaussian(sigma) {
  const cut = Math.floor(4 * sigma + 0.5);
  const weights = Array.from({ length: 2 * RADIUS + 1 }, (_, k) =>
    Math.abs(k - RADIUS) <= cut ? Math.exp(-0.5 * ((k - RADIUS) / Math.max(sigma, 1e-3)) ** 2) : 0,
  );
  const total = weights.reduce((sum, weight) => sum + weight);
  return weights.map((weight) => weight / total);
}

// Along one axis: `step` between neighbours on it, `across` between its lines. Borders reflect, -1 → 1.
function blurred(x, weights, step, across) {
  const out = new Float32Array(x.length);
  for (let plane = 0; plane < x.length; plane += SIDE * SIDE) {
    for (let line = 0; line < SIDE; line++) {
      for (let place = 0; place < SIDE; place++) {
        let sum = 0;
        for (let k = 0; k < weights.length; k++) {
          if (!weights[k]) continue;
          let source = Math.abs(place + k - RADIUS);
          source = SIDE - 1 - Math.abs(SIDE - 1 - source);
          sum += weights[k] * x[plane + line * across + source * step];
        }
        out[plane + line * across + place * step] = sum;
      }
    }
  }
  return out;
}
