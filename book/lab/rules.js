// How a batch is divided: odl.schedules.on_demand and odl.schedules.allocate.

// B_i ∝ 1/P_i^k, of which Equation 3 has k = 1; a PSNR below 1 dB means diverged, and counts as 1 dB.
export function onDemand(psnr, k = 1) {
  return psnr.map((p) => Math.max(Number.isNaN(p) ? 1 : p, 1) ** -k);
}

// Largest remainder: integers in proportion to the weights that sum to `batch`.
export function allocate(weights, batch = 100) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const shares = weights.map((weight) => (weight / total) * batch);
  const counts = shares.map(Math.floor);
  const order = weights.map((_, i) => i).sort((i, j) => shares[j] - counts[j] - (shares[i] - counts[i]));
  const left = batch - counts.reduce((sum, count) => sum + count, 0);
  for (const i of order.slice(0, left)) counts[i] += 1;
  return counts;
}
