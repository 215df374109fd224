// Predict first: what comes after the question shows once the reader has picked a guess.

// `check()` answers which guess is right, counted from 0 (−1: none can be judged yet), and a line that says what came.
// The first guess that is judged stays, because what comes after moves what is judged; not where it may be made `again`.
export function predict(root, check, again = false) {
  const guesses = [...root.querySelectorAll("[data-guess]")];
  const answer = root.querySelector("[data-say=answer]");
  guesses.forEach((button, guess) => {
    button.setAttribute("aria-pressed", false);
    button.onclick = async () => {
      guesses.forEach((one) => one.setAttribute("aria-pressed", one === button));
      root.querySelectorAll("[data-after]").forEach((part) => (part.hidden = false));
      const [right, line] = await check();
      const judged = guess === right ? "As you predicted: " : "Not as you predicted: ";
      answer.textContent = right < 0 ? line : judged + line;
      if (right < 0 || again) return;
      for (const one of guesses) {
        one.onclick = null;
        one.setAttribute("aria-disabled", true);
      }
    };
  });
}
