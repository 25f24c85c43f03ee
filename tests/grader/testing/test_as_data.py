"""What a class of a shared package writes as plain data arrives as that."""

import textwrap

import numpy as np
from graph_ir import Graph, Kernel, trace

from grader.testing.local import LocalStudent

SOURCE = """
    from graph_ir import Kernel, rewrite


    class Mine:
        def as_data(self):
            return {"mine": 1}


    def copied(g):
        return rewrite(g, lambda build, node, inputs: build.copy(node, inputs)), 3


    def kernels(g):
        return [Kernel(g, "pointwise", (g.nodes[-1],), (0,), (len(g) - 1,))], Mine()
"""


def test_graphs_and_kernels(tmp_path):
    (tmp_path / "work.py").write_text(textwrap.dedent(SOURCE))
    student = LocalStudent(tmp_path, ["work.py"])
    g = trace(lambda p, x: x * p["w"], {"x": (3,)}, {"w": np.ones(3)})
    data, count = student.call("copied", g).value
    assert (type(data), count) == (dict, 3)
    assert str(Graph.from_data(data)) == str(g)
    (kernel,), mine = student.call("kernels", g).value
    assert Kernel.from_data(g, kernel).label == "mul"
    assert type(mine).__name__ == "Mine"  # no class of a shared package's: left as it is
