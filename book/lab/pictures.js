// Pictures: read from a file, as planes of floats in [-1, 1], and drawn.

const MOST_PIXELS = 30e6;

export class Refused extends Error {} // its message is one line for the reader

// A picture file as an <img>. It is read here and goes nowhere.
export async function openFile(file) {
  const address = URL.createObjectURL(file);
  try {
    const picture = await openPicture(address).catch(() => {
      throw new Refused(`“${file.name}” is not a picture that this browser can read. Try a PNG or JPEG file.`);
    });
    const [width, height] = [picture.naturalWidth, picture.naturalHeight];
    if (width * height > MOST_PIXELS) {
      const mega = Math.round((width * height) / 1e6);
      throw new Refused(`“${file.name}” has ${mega} megapixels, too many for this page. Try a smaller copy.`);
    }
    if (Math.min(width, height) < 64) {
      throw new Refused(`“${file.name}” has ${width}×${height} pixels. The networks need at least 64×64.`);
    }
    await picture.decode().catch(() => {
      throw new Refused(`“${file.name}” is damaged: this browser cannot draw it.`);
    });
    return picture;
  } finally {
    URL.revokeObjectURL(address);
  }
}

export function openPicture(address) {
  return new Promise((done, failed) => {
    const picture = new Image();
    picture.onload = () => done(picture);
    picture.onerror = failed;
    picture.src = address;
  });
}

// The middle square, scaled to 64×64.
export function squareOf(picture) {
  const side = Math.min(picture.naturalWidth, picture.naturalHeight);
  return scaled(picture, side, side, 64, 64);
}

// The whole picture, its longer side at most `most`; what is longer than 4:1 loses its ends.
export function fitted(picture, most = 256) {
  const width = Math.min(picture.naturalWidth, 4 * picture.naturalHeight);
  const height = Math.min(picture.naturalHeight, 4 * picture.naturalWidth);
  const scale = Math.min(1, most / Math.max(width, height));
  return scaled(picture, width, height, Math.round(width * scale), Math.round(height * scale));
}

function scaled(picture, width, height, toWidth, toHeight) {
  const canvas = new OffscreenCanvas(toWidth, toHeight);
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white"; // behind what is transparent
  pen.fillRect(0, 0, toWidth, toHeight);
  pen.imageSmoothingQuality = "high";
  const [left, top] = [(picture.naturalWidth - width) / 2, (picture.naturalHeight - height) / 2];
  pen.drawImage(picture, left, top, width, height, 0, 0, toWidth, toHeight);
  return pen.getImageData(0, 0, toWidth, toHeight);
}

export function toPlanes({ data, width, height }) {
  const pixels = width * height;
  return Float32Array.from(
    { length: 3 * pixels },
    (_, k) => data[4 * (k % pixels) + Math.floor(k / pixels)] / 127.5 - 1,
  );
}

// Luminance, as odl.crops.grey.
export function toGrey(planes) {
  const n = planes.length / 3;
  return Float32Array.from(
    { length: n },
    (_, i) => 0.299 * planes[i] + 0.587 * planes[n + i] + 0.114 * planes[2 * n + i],
  );
}

// One or three planes as ImageData.
export function toImageData(planes, width, height) {
  const pixels = width * height;
  const image = new ImageData(width, height);
  for (let i = 0; i < pixels; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = (planes[(c * pixels + i) % planes.length] + 1) * 127.5;
    image.data[4 * i + 3] = 255;
  }
  return image;
}

// In dB, peak 1 on the [0, 1] scale, at most 100; over the pixels where `counts` is 1, NaN where there are none.
export function psnr(x_hat, x, counts) {
  const pixels = counts?.length;
  let [sum, n] = [0, 0];
  for (let i = 0; i < x.length; i++) {
    if (counts && !counts[i % pixels]) continue;
    sum += (Math.min(1, Math.max(-1, x_hat[i])) - x[i]) ** 2;
    n += 1;
  }
  return n ? -10 * Math.log10(Math.max(sum / n / 4, 1e-10)) : NaN;
}

export function decibels(value, digits = 2) {
  if (Number.isNaN(value)) return "–";
  return value >= 99.95 ? "identical" : `${value.toFixed(digits)} dB`;
}
