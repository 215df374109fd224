// The choice of a photograph: those of the book, and the reader's own.

import { Refused, openFile, openPicture } from "./pictures.js";

// `use(picture)` gets an <img>; `say(line)` tells the reader what went wrong.
export function offerPhotographs(fieldset, size, use, say) {
  const { photographs } = globalThis.odlLab;
  const file = fieldset.querySelector("input[type=file]");
  const group = `photograph-${size}`;

  function addChoice(title, image, open) {
    const [choice, radio] = [document.createElement("label"), document.createElement("input")];
    Object.assign(radio, { type: "radio", name: group, onchange: () => open().then(use) });
    Object.assign(image, { alt: title, title });
    choice.append(radio, image);
    file.parentElement.before(choice);
    return radio;
  }

  const radios = photographs.map((one) =>
    addChoice(one.title, Object.assign(new Image(), { src: one.small }), () => openPicture(one[size])),
  );
  radios[0].checked = true;

  file.onchange = async () => {
    const [chosen] = file.files;
    file.value = ""; // the same file may be chosen again
    if (!chosen) return;
    try {
      const picture = await openFile(chosen);
      fieldset.querySelectorAll("[data-own]").forEach((old) => old.remove());
      const radio = addChoice(chosen.name, picture, async () => picture);
      radio.parentElement.dataset.own = "";
      radio.checked = true;
      use(picture);
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error);
      say(error instanceof Refused ? error.message : `“${chosen.name}” cannot be used here. Try another picture.`);
    }
  };
  return openPicture(photographs[0][size]);
}
