// The choice of a photograph: those of the book, and the reader's own.

import { Refused, openFile, openPicture } from "./pictures.js";

// `use(picture)` gets an <img>; `say(line)` tells the reader what went wrong.
export function offerPhotographs(fieldset, size, use, say) {
  const { photographs } = globalThis.odlLab;
  const file = fieldset.querySelector("input[type=file]");
  const group = `photograph-${size}`;

  function addChoice(title, address, open) {
    const choice = document.createElement("label");
    const [radio, image] = [document.createElement("input"), document.createElement("img")];
    Object.assign(radio, { type: "radio", name: group, onchange: () => open().then(use) });
    Object.assign(image, { src: address, alt: title, title });
    choice.append(radio, image);
    file.parentElement.before(choice);
    return radio;
  }

  const radios = photographs.map(({ title, small, ...sizes }) =>
    addChoice(title, small, () => openPicture({ small, ...sizes }[size])),
  );
  radios[0].checked = true;

  file.onchange = async () => {
    const [chosen] = file.files;
    file.value = ""; // the same file may be chosen again
    if (!chosen) return;
    try {
      const picture = await openFile(chosen);
      fieldset.querySelectorAll("[data-own]").forEach((old) => old.remove());
      const radio = addChoice(chosen.name, thumbnail(picture), async () => picture);
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

function thumbnail(picture) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 96, height: 96 });
  const side = Math.min(picture.naturalWidth, picture.naturalHeight);
  const [left, top] = [(picture.naturalWidth - side) / 2, (picture.naturalHeight - side) / 2];
  canvas.getContext("2d").drawImage(picture, left, top, side, side, 0, 0, 96, 96);
  return canvas.toDataURL();
}
