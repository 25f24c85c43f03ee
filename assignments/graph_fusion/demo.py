"""What fusion saves: kernels and bytes of a layer, the proof that bytes are counted, and drawings.

    python assignments/graph_fusion/demo.py                 the solution, or else your file
    python assignments/graph_fusion/demo.py --submission starter/graph_fusion --png plots

Five parts, each a table or two and what to see in them. Parts 1 to 4 (`demo_layers.py`) are a small
layer, prefill and decode of Llama-3.1-8B, and a table of PyTorch 2's; part 5 (`demo_emitted.py`)
writes the fused kernels in Triton and counts their bytes; the plots are in `demo_plots.py`. A pass
that is not started is left out, and the part says so.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is: threads are slower on small arrays

import demo_emitted as emitted
import demo_layers as layers
import demo_plots as plots
from console.demo import command, module_of

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

main = command(__file__, __doc__, module_of("graph_lab"), PARTS, PLOTS)

if __name__ == "__main__":
    main()
