"""Execute the book's notebooks with papermill, then build its pages: python book/build.py PROFILE.

_toc.yml decides what is executed: the entry notebooks/fixation is notebooks/fixation.ipynb, and
notebooks/table1-inpaint, for which no file lies there, is notebooks/table1.ipynb with task=inpaint. Sphinx
reads _build/source, where the repository's folders are linked beside the executed notebooks, so that a
relative link in a notebook or a page means the same here and in the repository.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path

import lab_page
import nbformat
import papermill
import print_page
import sources
import yaml
from sphinx_external_toc.parsing import parse_toc_yaml
from traitlets.config import Config

from companion.cli import Parser
from companion.data import sets
from companion.disk import files
from companion.measure import denoising
from companion.notebook import check_seeds
from companion.runs import catalogue
from odl.experiment import check_dataset, is_folder
from odl.parameters import OneLine

for name in {"ODL_ROOT", "ODL_DATA"} & os.environ.keys():  # the notebooks run elsewhere
    os.environ[name] = os.path.abspath(os.path.expanduser(os.environ[name]))
ROOT = Path(__file__).resolve().parents[1]
BUILD = files.root() / "_build"
LINKED = ["_config.yml", "_toc.yml", "README.md", "book", "odl", "companion", "data/models"]

DATASETS = {"smoke": "demo", "demo": "demo", "reference": "bsds500", "gpu": "bsds500", "paper": "celeba"}
TRAINED_HERE = ["smoke", "demo"]  # the other profiles show what was measured elsewhere, and train nothing but `SMALL`
SMALL = dict.fromkeys(("algorithm1", "add_your_own"), {"profile": "demo", "dataset": "demo"})  # train in seconds
OWN = SMALL | {"fixation": {"task": "deblur"}, "qualitative": {"task": "deblur"}}  # there networks restore, or ruin
FIRST = "gallery"  # takes longest, so that nothing waits for it at the end
LAST = "scorecard"  # judges what the other notebooks have measured
KERNEL = {"kernel_name": "python3", "cwd": ROOT, "progress_bar": False}
KERNEL["config"] = Config(KernelManager={"transport_encryption": "auto"})  # a kernel on plain TCP warns on stderr
KERNEL["shutdown_kernel"] = "immediate"  # by then it has answered; asked politely, some report the interrupt
BUTTON = "{.sd-btn .sd-btn-outline-primary}"
AGAIN = "What is the same on every task is explained once, on {{doc}}`{0.title} </notebooks/{0.name}>`."
WIDGET = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class Page:
    """One executed notebook of the book."""

    name: str  # table1-inpaint
    title: str | None  # the heading _toc.yml gives, where several pages share one template
    template: Path
    parameters: dict

    @property
    def executed(self):
        return BUILD / "notebooks" / f"{self.name}.ipynb"

    def results(self) -> list[Path]:
        """Return the results files that the page shows."""
        own = self.parameters
        name = "-".join(filter(None, (self.template.stem, own.get("task"))))
        seeds = own.get("seeds", [own["seed"]] if "seed" in own else sources.seeds())
        return catalogue.files_of(name, own["profile"], own["dataset"], seeds)


def toc():
    """Return the pages (`book/method`) in reading order, each with the `title` that _toc.yml gives it, or None."""
    return parse_toc_yaml(ROOT / "_toc.yml")


def plan(profile, dataset=None, seeds=None):
    """Return the pages to execute, each with those of our parameters that its notebook declares."""
    trained = profile in TRAINED_HERE
    given = {"profile": profile, "dataset": sets.absolute(dataset or DATASETS[profile]), "train": trained}
    given |= {} if trained else {"seeds": sources.seeds()}
    given |= {"seeds": seeds, "seed": seeds[0]} if seeds else {}
    given |= {"photographs": "demo"} if trained else {"photographs": "db11", "systems": denoising.OPPONENTS}
    pages = []
    for file, entry in toc().items():
        folder, _, name = file.partition("/")
        if folder == "notebooks":
            template, own = ROOT / "notebooks" / f"{name}.ipynb", {} if trained else OWN.get(name, {}).copy()
            if not template.exists():
                stem, _, own["task"] = name.rpartition("-")
                template = template.with_name(f"{stem}.ipynb")
            if not template.exists():
                sys.exit(f"book: _toc.yml names a notebook that is not there: {name}")
            declared = papermill.inspect_notebook(template)
            parameters = {key: value for key, value in (given | own).items() if key in declared}
            pages.append(Page(name, entry.title, template, parameters))
    return pages


def execute(page):
    """Run one notebook from the repository's root; return it, its seconds, and its error in one line or None."""
    began, error = time.perf_counter(), None
    try:
        papermill.execute_notebook(page.template, page.executed, page.parameters, **KERNEL)
    except Exception as e:  # a kernel that was killed or never started gets its one line, too
        name, message = getattr(e, "ename", type(e).__name__), getattr(e, "evalue", str(e))
        error = f"{name}: {' '.join(message.split()) or '(no message)'}"
    return page, time.perf_counter() - began, error


def execute_all(pages):
    """Run the notebooks two at a time, `FIRST` first, `LAST` alone at the end; a line for each as it finishes."""
    os.environ |= {"OMP_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    (BUILD / "notebooks").mkdir(parents=True, exist_ok=True)
    done, failed = 0, []
    pages = sorted(pages, key=lambda page: page.name != FIRST)
    for batch in ([p for p in pages if p.name != LAST], [p for p in pages if p.name == LAST]):
        with ThreadPool(2) as pool:
            for page, seconds, error in pool.imap_unordered(execute, batch, chunksize=1):
                done += 1
                print(f"{done:3d}/{len(pages)} {page.name:20s} {seconds:6.1f} s", flush=True)
                if error:
                    failed.append(page.name)
                    print(f"book: notebook {page.name} failed: {error}", file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"book: {len(failed)} of {len(pages)} notebooks failed: {', '.join(failed)}")


def buttons(notebook: str) -> str:
    """Return links that open a notebook in Colab, Kaggle and Binder; empty where _config.yml has no GitHub address."""
    known = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    url, branch = (known["url"] or "").rstrip("/"), known["branch"]
    name = url.removesuffix(".git").removeprefix("https://github.com/")
    if name == url.removesuffix(".git"):  # none, or none that the services know
        return ""
    path = f"{name}/blob/{branch}/notebooks/{notebook}.ipynb"
    places = {"Colab": f"https://colab.research.google.com/github/{path}"}
    places["Kaggle"] = f"https://kaggle.com/kernels/welcome?src=https://github.com/{path}"
    places["Binder"] = f"https://mybinder.org/v2/gh/{name}/{branch}?urlpath=lab/tree/notebooks/{notebook}.ipynb"
    return "\n\n" + " ".join(f"[Open in {place}]({link}){BUTTON}" for place, link in places.items())


def is_progress(output):
    """Return whether an output is empty, or progress: a widget, or a bar or a line of text on stderr."""
    if output.output_type == "stream":
        return not output.text.strip() or output.name == "stderr" and re.search(r"%\||\d % after ", output.text)
    return WIDGET in (data := output.get("data", {})) or data.get("text/markdown") == ""


def tidy(page, source, first):
    """Write the executed notebook as a page: titled, every cell edited, with one line of sources.

    Cells tagged `once` are left out where another page, `first`, has shown them.
    """
    notebook = nbformat.read(page.executed, as_version=4)
    notebook.metadata.pop("widgets", None)
    title = notebook.cells[0]
    title.source += buttons(page.template.stem)
    if page.title:
        title.source = re.sub(r"(?m)^# .*$", lambda _: f"# {page.title}", title.source, count=1)
    if first:
        title.source += f"\n\n{AGAIN.format(first)}"
        notebook.cells = [cell for cell in notebook.cells if "once" not in tags_of(cell)]
    for cell in notebook.cells:
        cell.source = sources.MARK.sub("", cell.source)  # the marks of solutions are for `make class`
        cell.source = cell.source.replace("](table1.ipynb)", "](table1-inpaint.ipynb)")  # the first of its four pages
        show_parameters(cell, page)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not is_progress(output)]
        if figure := cell.metadata.get("mystnb", {}).get("figure"):  # a name of the page's own: four share a template
            kind = "tab" if figure.get("classes") == "odl-tabular" else "fig"
            figure.name = f"{kind}-{page.name}-{figure.name}"
    fold(notebook)
    given = " ".join(f"-p {name} {sources.word(value)}" for name, value in page.parameters.items() if name != "train")
    origin = sources.line(page.results(), f"papermill notebooks/{page.template.stem}.ipynb out.ipynb {given}")
    if measured := [i for i, cell in enumerate(notebook.cells) if "measured" in tags_of(cell)] if origin else []:
        notebook.cells.insert(measured[-1] + 1, nbformat.v4.new_markdown_cell(origin))
    nbformat.write(notebook, source / "notebooks" / f"{page.name}.ipynb")


def fold(notebook):
    """Make one folded cell of what stands above the first section: parameters, imports, the runs.

    Below it only the code that carries an idea is shown; the notebook has the rest, folded.
    """
    above = itertools.takewhile(lambda cell: not cell.source.startswith("## "), notebook.cells)
    first, *more = [cell for cell in above if cell.cell_type == "code" and "remove-cell" not in tags_of(cell)]
    first.source = "\n\n".join(cell.source for cell in (first, *more))
    first.outputs = sum((cell.outputs for cell in more), first.outputs)
    first.metadata["tags"] = [*tags_of(first), "hide-cell"]
    notebook.cells = [cell for cell in notebook.cells if not any(cell is other for other in more)]
    for cell in notebook.cells:
        cell.metadata["tags"] = ["remove-input" if tag == "hide-input" else tag for tag in tags_of(cell)]


def tags_of(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def show_parameters(cell, page):
    """Show in the cell of parameters the values that the notebook was run with, in place of a cell that sets them."""
    if "injected-parameters" in tags_of(cell):
        cell.metadata["tags"].append("remove-cell")
    for name, value in page.parameters.items() if "parameters" in tags_of(cell) else ():
        shown = f"{name} = {value!r}".replace("'", '"')
        cell.source = re.sub(rf"(?m)^{name} = .*?(?=  #|$)", lambda _, shown=shown: shown, cell.source)


def lay_out(pages, source):
    """Fill the folder `source`: links to the repository and to the results, and the executed notebooks."""
    shutil.rmtree(source, ignore_errors=True)
    (source / "notebooks").mkdir(parents=True)
    (source / "data").mkdir()
    links = {name: ROOT / name for name in LINKED} | {"data/results": files.results()}
    for name, place in links.items():
        if place.exists():
            (source / name).symlink_to(place.absolute())
    for page in pages:
        first = next(other for other in pages if other.template == page.template)
        tidy(page, source, first if first != page else None)
    subprocess.run([sys.executable, ROOT / "book" / "figures.py", source / "generated"], check=True)
    missing = lab_page.write(source / "generated" / "static" / "lab")
    if missing:
        print(f"book: the lab page shows still pictures: {missing}", flush=True)


def check_current(profile):
    """End when a result is of another protocol, of an unknown commit, or of code with uncommitted changes."""
    found = sorted(path for name in {profile, "gpu"} for path in (files.results() / name).rglob("*.json"))
    faults = {path: fault for path in found if (fault := sources.fault_of(path))}
    for path, fault in faults.items():
        print(f"{path.relative_to(files.results()).as_posix()} is {fault}", file=sys.stderr)
    if faults:
        sys.exit(f"book: {len(faults)} of {len(found)} results, named above, are not to be published")


def build():
    """Run Jupyter Book over _build/source with every warning an error, saying nothing but the warnings."""
    shutil.rmtree(BUILD / "html", ignore_errors=True)
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    strict = ["--all", "--quiet", "-W", "--keep-going", "-n"]
    command = [jupyter_book, "build", BUILD / "source", "--path-output", BUILD.parent, *strict]
    if subprocess.run(command, stdout=subprocess.DEVNULL, cwd=ROOT).returncode:
        sys.exit("book: not built: each warning above counts as an error")
    print_page.write(BUILD / "html", list(toc()))


def main():
    parser = Parser(description=__doc__.splitlines()[0])
    # fmt: off
    parser.add_argument("profile", nargs="?", default="reference", choices=DATASETS)
    parser.add_argument("--pages", action="store_true", help="rebuild the pages around the last executed notebooks")
    parser.add_argument("--page", help="execute the notebook of one page, and build nothing")
    parser.add_argument("--strict", action="store_true", help="fail on results of another protocol or uncommitted code")
    parser.add_argument("--dataset", help="what the notebooks show (default: the profile's)")
    parser.add_argument("--seeds", type=int, nargs="+", help="for notebooks that take some (default: what is measured, "
                        "where nothing is trained; else their own)")
    # fmt: on
    options = parser.parse_args()
    dataset = options.dataset or DATASETS[options.profile]
    try:
        check_seeds(options.seeds or [0], "0 1 2")
        check_dataset(dataset)
        if is_folder(dataset):
            sets.find(dataset)  # refuses what is none
    except OneLine as error:
        parser.error(error)

    began = time.perf_counter()
    pages = plan(options.profile, dataset, options.seeds)
    if options.page:
        named = [page for page in pages if page.name == options.page]
        return execute_all(named) if named else sys.exit(f"book: no page {options.page!r} in _toc.yml")
    if not options.pages:
        shutil.rmtree(BUILD / "notebooks", ignore_errors=True)
        print(f"executing {len(pages)} notebooks at profile {options.profile}, two at a time", flush=True)
        execute_all(pages)
    if options.strict:
        check_current(options.profile)
    print("building the pages", flush=True)
    try:
        lay_out(pages, BUILD / "source")
    except FileNotFoundError as error:
        sys.exit(f"book: {error.filename} is not here, which --pages takes from an earlier build")
    build()
    print(f"the book is ready after {time.perf_counter() - began:.0f} s: {BUILD / 'html' / 'index.html'}")


def run(main) -> None:
    """Run a program of the book; Ctrl-C ends it with a line."""
    try:
        main()
    except KeyboardInterrupt:
        print("\nbook: interrupted; the same command begins the pages anew, what was trained is kept", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    run(main)
