// Flip the seed: what the paper's test says of two networks, and of the two that another seed has made.

const NAMES = ["On-demand", "Rigid joint"];

export function startSeeds(root) {
  const { seeds } = globalThis.odlLab; // task, seed, ahead (dB by which on-demand is), p, verdict (over all seeds)
  if (!seeds.length) throw new Error("no two networks of one seed are measured");
  const $ = (selector) => root.querySelector(selector);
  const [button, body, status] = [$("button"), $("tbody"), $("[role=status]")];
  const known = [...new Set(seeds.map(({ seed }) => seed))].sort((a, b) => a - b);
  const tasks = [...new Set(seeds.map(({ task }) => task))];
  const of = (task, seed) => seeds.find((row) => row.task === task && row.seed === seed);
  let now = 0; // which of the known seeds

  function show(before) {
    const turned = [];
    const rows = tasks.map((task) => {
      const [row, tr] = [of(task, known[now]), document.createElement("tr")];
      const cells = row
        ? [NAMES[Number(row.ahead < 0)], `${Math.abs(row.ahead).toFixed(3)} dB`, row.p.toExponential(0).replace("-", "−")]
        : ["to be measured", "–", "–"];
      const other = before === undefined ? undefined : of(task, before);
      if (row && other && row.ahead < 0 !== other.ahead < 0) {
        turned.push(task);
        tr.dataset.turned = "";
      }
      const all = seeds.filter((row) => row.task === task);
      for (const [i, text] of [task, ...cells, all[0].verdict].entries()) {
        tr.append(Object.assign(document.createElement(i ? "td" : "th"), { textContent: text }));
      }
      tr.cells[0].scope = "row";
      return tr;
    });
    body.replaceChildren(...rows);
    $("[data-say=seed]").textContent = `seed ${known[now]}`;
    return turned;
  }

  button.onclick = () => {
    if (known.length < 2) return;
    const before = known[now];
    now = (now + 1) % known.length;
    const turned = show(before);
    const where = turned.length ? `: ${turned.join(", ")}` : "";
    status.textContent =
      `Seed ${known[now]} in place of seed ${before}. The order turned round on ${turned.length} of ${tasks.length} ` +
      `tasks${where}. Only the seed is different: other first weights, crops and damage in training; the same schedules and the same test.`;
  };

  show();
  button.setAttribute("aria-disabled", known.length < 2);
  status.textContent =
    known.length < 2
      ? `Only seed ${known[0]} is measured, so there is no other to flip to yet. ` +
        "When runs of a second seed are among the results files, this button shows them."
      : `${known.length} seeds are measured: ${known.join(", ")}. Flip, and see which order stands.`;
}
