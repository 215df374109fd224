// A classical fill, which learns nothing: the biharmonic equation, as skimage.restoration.inpaint_biharmonic has it.

// `planes` are channels × height × width, `missing` is 1 where a pixel is to be filled. Answers new planes.
export function biharmonic(planes, missing, width, height) {
  const pixels = width * height;
  const order = inLines(missing, width, height);
  const place = new Int32Array(pixels).fill(-1); // of a missing pixel in the order
  order.forEach((pixel, i) => (place[pixel] = i));
  const rows = order.map((pixel) => bilaplacian(pixel, width, height));
  const factors = factor(rows, place);
  const filled = planes.slice();
  for (let start = 0; start < planes.length; start += pixels) {
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < pixels; i++) {
      if (missing[i]) continue;
      low = Math.min(low, planes[start + i]);
      high = Math.max(high, planes[start + i]);
    }
    const known = Float64Array.from(rows, (row) => {
      let sum = 0;
      for (const [pixel, weight] of row) if (place[pixel] < 0) sum -= weight * planes[start + pixel];
      return sum;
    });
    solve(factors, known).forEach((value, i) => (filled[start + order[i]] = Math.min(high, Math.max(low, value))));
  }
  return filled;
}

// The missing pixels line by line, in the direction in which lines miss fewer.
function inLines(missing, width, height) {
  const [ofRow, ofColumn, order] = [new Float64Array(height), new Float64Array(width), []];
  missing.forEach((gone, i) => {
    if (!gone) return;
    order.push(i);
    ofRow[Math.floor(i / width)] += 1;
    ofColumn[i % width] += 1;
  });
  const squares = (counts) => counts.reduce((sum, n) => sum + n * n, 0);
  const turned = (i) => (i % width) * height + Math.floor(i / width);
  return squares(ofRow) <= squares(ofColumn) ? order : order.sort((i, j) => turned(i) - turned(j));
}

// A pixel and those beside it inside the picture.
function neighbours(pixel, width, height) {
  const [row, column] = [Math.floor(pixel / width), pixel % width];
  const near = [pixel];
  if (row > 0) near.push(pixel - width);
  if (row < height - 1) near.push(pixel + width);
  if (column > 0) near.push(pixel - 1);
  if (column < width - 1) near.push(pixel + 1);
  return near;
}

// The Laplacian of the Laplacian at a pixel, borders reflecting: pixel → weight.
function bilaplacian(pixel, width, height) {
  const found = new Map();
  const around = neighbours(pixel, width, height);
  for (const middle of around) {
    const near = neighbours(middle, width, height);
    const outer = middle === pixel ? 1 - around.length : 1;
    for (const far of near) {
      const inner = far === middle ? 1 - near.length : 1;
      found.set(far, (found.get(far) ?? 0) + outer * inner);
    }
  }
  return found;
}

// Cholesky's factor, all its rows in one array: row i starts in column `first[i]`, at `at[i] + first[i]`.
function factor(rows, place) {
  const [first, at] = [Int32Array.from(rows, (_, i) => i), new Int32Array(rows.length)];
  let size = 0;
  rows.forEach((row, i) => {
    for (const pixel of row.keys()) if (place[pixel] >= 0) first[i] = Math.min(first[i], place[pixel]);
    at[i] = size - first[i];
    size += i - first[i] + 1;
  });
  const values = new Float64Array(size);
  rows.forEach((row, i) => {
    for (const [pixel, weight] of row) {
      if (place[pixel] >= 0 && place[pixel] <= i) values[at[i] + place[pixel]] = weight;
    }
    for (let j = first[i]; j <= i; j++) {
      const sum = values[at[i] + j] - product(values, at[i], at[j], Math.max(first[i], first[j]), j);
      values[at[i] + j] = j < i ? sum / values[at[j] + j] : Math.sqrt(sum);
    }
  });
  return { first, at, values };
}

// Of two rows, in the columns that both have.
function product(values, one, other, from, to) {
  let sum = 0;
  for (let k = from; k < to; k++) sum += values[one + k] * values[other + k];
  return sum;
}

function solve({ first, at, values }, x) {
  for (let i = 0; i < x.length; i++) {
    for (let k = first[i]; k < i; k++) x[i] -= values[at[i] + k] * x[k];
    x[i] /= values[at[i] + i];
  }
  for (let i = x.length - 1; i >= 0; i--) {
    x[i] /= values[at[i] + i];
    for (let k = first[i]; k < i; k++) x[k] -= values[at[i] + k] * x[i];
  }
  return x;
}
