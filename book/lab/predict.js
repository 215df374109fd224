// Predict first: what comes after the question shows once the reader has picked a guess.

// `check()` answers which guess is right, counted from 0 (−1: none can be judged yet), and a line that says what came.
export function predict(root, check) {
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
    };
  });
}
