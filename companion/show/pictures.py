"""Photographs and trained networks behind the pictures of a page."""

import numpy as np
import torch
from PIL import Image
from skimage import img_as_float32

from companion.comparators.context_encoder import untrained
from companion.data.packs import load
from companion.data.reader import MAX_PIXELS, faint, flat, named, opened
from companion.data.sets import DataError
from companion.training import results
from odl.crops import Pack, crop, seed_of
from odl.evaluation import in_its_channels, psnr, squared_error

Image.MAX_IMAGE_PIXELS = MAX_PIXELS  # in a notebook's process, as in the command line's


@torch.inference_mode()
def restored_by(networks: dict, x, y, keep: bool = False) -> dict:
    """Return what each network makes of y, and y itself as `not_restored`: name → (images, PSNR per image).

    With `keep` also, as `kept`, what the on-demand network makes of the missing pixels, with the known ones put back.
    """
    y = y.contiguous(memory_format=torch.channels_last)
    images = {"not_restored": y} | {name: network(y) for name, network in networks.items()}
    if keep and "on_demand" in images:
        images["kept"] = torch.where((y == x).all(1, keepdim=True), x, images["on_demand"])
    return {name: (image, psnr(squared_error(image, x))) for name, image in images.items()}


def photographs(name: str, split: str = "test", train_images: int = 0) -> Pack:
    """Return images to show: the set's, or the demo photographs where it is not here, with a line that says so."""
    try:
        return load(name, split, train_images)
    except DataError as error:
        print(f"The demo photographs stand in: {error}")
        return load("demo", split)


def telling(experiment, pack: Pack, n: int) -> torch.Tensor:
    """Return n crops, grey where the task is: (n, channels, 64, 64), of the photographs in turn.

    Each is the one of eight places with most contrast, the mean difference of neighbouring pixels; a wall or a blurred
    background would show nothing.
    """
    places, generator = 8, torch.Generator().manual_seed(seed_of("telling"))
    x = crop(pack.to("cpu"), torch.arange(n).repeat_interleave(places) % len(pack), generator, flip=False)
    contrast = sum(x.diff(dim=d).abs().mean((1, 2, 3)) for d in (-1, -2)).view(n, places)
    return in_its_channels(experiment, x[contrast.argmax(1) + places * torch.arange(n)])


def networks(runs: list) -> dict[str, torch.nn.Module]:
    """Return schedule → network of the measured runs, also of encoders; a line names those without weights."""
    found, absent = {}, []
    for run in runs:
        try:
            if results.load_result(run):
                found[run.schedule] = results.with_weights(untrained(run), run)
        except FileNotFoundError:
            absent.append(run.run_id)
    if absent:
        print(f"No weights here for {', '.join(absent)}: numbers are shown, pictures left out.")
    return found


def read_photograph(path, longest: int) -> np.ndarray:
    """Return an image file as (height, width, 3) float in [0, 1], its longer side reduced to at most `longest` pixels.

    A line tells of one that uses little of its range.
    """
    stored = opened(path)
    with named(path):
        image = flat(stored).convert("RGB")
    if said := faint(np.asarray(image)):
        print(f"{path}: {said}")
    image.thumbnail((longest, longest), Image.Resampling.BOX, reducing_gap=None)
    return img_as_float32(np.asarray(image))
