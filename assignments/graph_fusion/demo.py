"""What fusion saves: kernels and bytes of a layer, the proof that bytes are counted, and drawings.

    python assignments/graph_fusion/demo.py                 the solution, or else your file
    python assignments/graph_fusion/demo.py --submission starter/graph_fusion --png plots

Five parts, each a table or two and what to see in them. Parts 1 to 4 (`demo_layers.py`) are a small
layer, prefill and decode of Llama-3.1-8B, and a table of PyTorch 2's; part 5 (`demo_emitted.py`)
writes the fused kernels in Triton and counts their bytes; the plots are in `demo_plots.py`. A pass
that is not started is left out, and the part says so.
"""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is: threads are slower on small arrays

import click
import demo_emitted as emitted
import demo_layers as layers
import demo_plots as plots

HOUSE = Path(__file__).resolve().parents[2]
PARTS = (
    layers.small,
    layers.prefill_2048,
    layers.decode_4096,
    layers.pytorch_2,
    emitted.emitted,
)
PLOTS = {
    "graph.png": plots.plot_graph,
    "roofline.png": plots.plot_roofline,
    "bytes.png": plots.plot_bytes,
}


def load(path: Path) -> ModuleType:
    """Imports the student's file as `graph_lab`."""
    spec = importlib.util.spec_from_file_location("graph_lab", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise click.ClickException(f"there is no {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["graph_lab"] = module
    spec.loader.exec_module(module)
    return module


def default_submission() -> Path:
    """The reference solution where there is one, else the file that a student fills."""
    solution = HOUSE / "solutions" / "graph_fusion"
    return solution if solution.is_dir() else HOUSE / "starter" / "graph_fusion"


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option(
    "--submission",
    type=click.Path(path_type=Path),
    default=None,
    help="Your graph_lab.py, or its folder.  [default: the solution, or else the starter]",
)
@click.option(
    "--png",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder to save three plots in.",
)
def main(submission: Path | None, png: Path | None) -> None:
    """Prints the parts and, if asked, saves plots; of tasks not started it says so and goes on."""
    file = submission or default_submission()
    file = file / "graph_lab.py" if file.is_dir() else file
    lab = load(file)
    click.echo(f"Running {file}")
    for part in PARTS:
        run(part, lab)
    if png is not None:
        click.echo()
        png.mkdir(parents=True, exist_ok=True)
        for name, plot in PLOTS.items():
            if run(plot, lab, png / name):
                click.echo(f"Saved {png / name}")


def run(part: Callable[..., None], *arguments: object) -> bool:
    """Runs a part; whether it came to its end, or said what is not started."""
    try:
        part(*arguments)
    except NotImplementedError as stub:
        click.echo(f"not started: {stub}")
        return False
    return True


if __name__ == "__main__":
    main()
