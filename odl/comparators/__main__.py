"""`python -m companion`: train a system that the paper compares with, or take over its authors' weights."""

import sys

from odl.__main__ import Parser, main


def parser() -> Parser:
    top = Parser("python -m companion", description="The denoisers of Table 3 that learn.")
    commands = top.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train one, resuming where it stopped")
    train.add_argument("name", help="mlp, csf, tnrd, dncnn or dncnn_25")
    train.add_argument("--profile", default="reference", help="reference, or smoke for a few steps (default reference)")
    train.add_argument("--device", default="auto", help="auto, cpu or cuda (default auto)")
    train.set_defaults(run=run_train)
    weights = commands.add_parser("weights", help="convert a file of the authors' own weights for σ = 25 into runs/")
    weights.add_argument("name", help="csf_authors, tnrd_authors or dncnn_authors")
    weights.add_argument("--weights", required=True, metavar="FILE.mat", help="the file as its authors distribute it")
    weights.set_defaults(run=run_weights)
    return top


def run_train(options) -> None:
    from odl.sweep import BAR
    from tqdm import tqdm

    from odl.comparators import trained
    from odl.experiment import check_device

    device = check_device(options.device)
    run = trained.run_of(options.name, options.profile)
    with tqdm(total=100, desc=run.run_id, bar_format=BAR) as bar:
        _, history = trained.train(run, device, progress=lambda share: bar.update(100 * share - bar.n))
    print(f"validation at σ = {trained.VALIDATION_SIGMA}: {history[-1]['psnr'][0]:.2f} dB")


def run_weights(options) -> None:
    from odl.comparators import authors

    authors.keep(options.name, options.weights)
    print(authors.path_of(options.name))


if __name__ == "__main__":
    sys.exit(main(commands=parser()))
