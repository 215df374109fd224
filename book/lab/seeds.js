// Flip the seed: what the paper's test says of two networks, and of the two that another seed has made.

import { predict } from "./predict.js";

export function startSeeds(root) {
  const { seeds } = globalThis.odlLab; // task, seed, ahead (dB by which on-demand is), p, verdict (over all seeds)
  if (!seeds.length) throw new Error("no two networks of one seed are measured");
  const $ = (selector) => root.querySelector(selector);
  const known = [...new Set(seeds.map(({ seed }) => seed))].sort((a, b) => a - b);
  const tasks = [...new Set(seeds.map(({ task }) => task))];
  const most = 1.15 * Math.max(...seeds.map(({ ahead }) => Math.abs(ahead)));
  const of = (task, seed) => seeds.find((row) => row.task === task && row.seed === seed);
  const signed = (ahead) => `${ahead < 0 ? "−" : "+"}${Math.abs(ahead).toFixed(2)} dB`;
  const minus = (p) => p.toExponential(0).replace("-", "−");
  const crossed = (one, other) => tasks.filter((task) => of(task, one)?.ahead * of(task, other)?.ahead < 0);
  let now = 0; // which of the known seeds

  const rows = tasks.map((task) => {
    const row = document.createElement("div");
    row.innerHTML = `<span>${task}</span><span class="odl-lead"><i></i></span><span data-p></span>`;
    return row;
  });
  const head = document.createElement("div");
  head.innerHTML = '<span></span><span class="odl-ends"><span>← equal shares</span><span>on-demand →</span></span><span></span>';
  $(".odl-dots").replaceChildren(head, ...rows);

  function show() {
    rows.forEach((row, i) => {
      const found = of(tasks[i], known[now]);
      const [dot, line] = [row.querySelector("i"), row.querySelector("[data-p]")];
      dot.hidden = !found;
      line.textContent = found ? `${signed(found.ahead)}, p = ${minus(found.p)}` : "to be measured";
      if (!found) return;
      dot.style.left = `${50 + (50 * found.ahead) / most}%`;
      dot.style.setProperty("--odl-dot", found.ahead < 0 ? "var(--odl-behind)" : "var(--odl-ahead)");
    });
    $("[data-say=done]").textContent = `Seed ${known[now]} of ${known.join(", ")}.`;
  }

  function flip() {
    const before = known[now];
    now = (now + 1) % known.length;
    show();
    const turned = crossed(before, known[now]);
    const where = turned.length ? `: ${turned.join(", ")}` : "";
    $("[data-say=done]").textContent =
      `Seed ${known[now]} in place of seed ${before}. ${turned.length} of ${tasks.length} dots crossed the line${where}. ` +
      "Other first weights, crops and damage in training; the same schedules, the same test.";
  }

  $("[data-do=flip]").onclick = flip;
  show();
  if (known.length < 2) {
    $(".odl-guess").hidden = true;
    $("[data-say=done]").textContent = `Only seed ${known[0]} is measured, so there is no other to flip to yet.`;
    return;
  }
  predict(root, () => {
    const cross = tasks.filter((task) => known.some((seed) => crossed(known[0], seed).includes(task)));
    const largest = Math.max(...seeds.filter(({ task }) => cross.includes(task)).map(({ p }) => p));
    const verdicts = tasks.map((task) => `${task} ${seeds.find((row) => row.task === task).verdict}`);
    flip();
    return [
      cross.length ? (largest < 0.05 ? 1 : 2) : 0,
      `over ${known.length} seeds ${cross.length} of ${tasks.length} dots cross the line` +
        (cross.length ? `, and there no p is above ${minus(largest)}. ` : ". ") +
        `The test asks about two networks. About the two schedules, over all seeds: ${verdicts.join(", ")}.`,
    ];
  });
}
