// The shipped networks, run by ONNX Runtime Web. Everything arrives by <script>, so that file:// works too.

const lab = globalThis.odlLab; // data.js: tasks, photographs, runs, and `files` that further scripts fill
const kept = new Map();

// The promise of `make()`, made once; a failed one is forgotten, so that it can be tried again.
function once(key, make) {
  if (!kept.has(key)) {
    kept.set(key, make());
    kept.get(key).catch(() => kept.delete(key));
  }
  return kept.get(key);
}

function addScript(name, holds) {
  if (holds in lab.files) return; // the lab as one file has it already
  return new Promise((done, failed) => {
    const element = document.createElement("script");
    element.src = lab.home + name;
    element.onload = done;
    element.onerror = () => failed(new Error(`${name} is not there`));
    document.head.append(element);
  });
}

// A file out of base64 and gzip.
async function unpacked(name) {
  const packed = Uint8Array.from(atob(lab.files[name]), (letter) => letter.charCodeAt(0));
  delete lab.files[name];
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function startRuntime() {
  await addScript("runtime.js", "ort-wasm-simd-threaded.wasm");
  const code = new Blob([await unpacked("ort.wasm.bundle.min.mjs")], { type: "text/javascript" });
  const ort = await import(URL.createObjectURL(code));
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = await unpacked("ort-wasm-simd-threaded.wasm");
  return ort;
}

// A function y -> x_hat on n images of side×side, one after the other in a Float32Array.
export function network(task, schedule, side = 64) {
  return once(`${task}/${schedule}`, async () => {
    const ort = await once("runtime", startRuntime);
    await addScript(`${task}-${schedule}.js`, `${task}-${schedule}`);
    const session = await ort.InferenceSession.create(await unpacked(`${task}-${schedule}`), {
      executionProviders: ["wasm"],
    });
    const { channels } = lab.tasks[task];
    return async (y) => {
      const shape = [y.length / (channels * side ** 2), channels, side, side];
      return (await session.run({ y: new ort.Tensor("float32", y, shape) })).x_hat.data;
    };
  });
}
