"""Index maps against numpy's own views."""

from __future__ import annotations

import numpy as np
import pytest
from graph_ir import Builder, IndexMap, IndexMaps, trace
from hypothesis import given, settings

from tests.graph_ir.programs import Sample, samples


def index_of(*views: tuple[str, tuple[int, ...]], shape: tuple[int, ...] = (4, 6)) -> IndexMap:
    build = Builder()
    number = build.input("x", shape, "f32")
    for op, argument in views:
        key = "axes" if op == "permute" else "shape"
        number = build.add(op, [number], **{key: argument})
    return IndexMaps(build.finish([number])).value(build.finish([number]).outputs[0])


def test_equal_maps_are_written_equally() -> None:
    split = index_of(("reshape", (4, 2, 3)), ("reshape", (8, 3)), ("reshape", (24,)))
    assert split.is_identity and split == index_of()
    there = ("permute", (1, 0))
    assert index_of(there, there) == index_of()
    assert index_of(there).layers == (((6, 1), (4, 6)),)
    assert index_of(("reshape", (4, 1, 6)), ("permute", (1, 0, 2))).is_identity
    heads = index_of(
        ("reshape", (4, 3, 2)), ("permute", (1, 0, 2)), ("permute", (1, 0, 2)), ("reshape", (24,))
    )
    assert heads.is_identity


def test_a_square_and_its_transpose_are_as_large_and_not_the_same() -> None:
    square = index_of(("permute", (1, 0)), shape=(4, 4))
    assert square.size == 16 and not square.is_identity and not square.repeats


def test_a_reshape_that_cuts_through_digits_has_two_layers() -> None:
    cut = index_of(("permute", (1, 0)), ("reshape", (8, 3)), ("permute", (1, 0)))
    assert len(cut.layers) == 2
    expected = np.arange(24).reshape(4, 6).T.reshape(8, 3).T.ravel()
    assert [cut.address(e) for e in range(24)] == expected.tolist()


def test_one_number_a_row() -> None:
    index = index_of(("reshape", (24, 1)), ("expand", (24, 5)))
    assert index.repeats
    rows = index.of_rows(5)
    assert rows is not None and rows.is_identity and rows.size == 24
    assert index.of_rows(3) is None and index.of_rows(7) is None
    assert index_of().of_rows(6) is None
    assert index_of(("expand", (5, 4, 6))).of_rows(6) is None  # a column operand


def test_sizes_must_have_values() -> None:
    graph = trace(lambda p, x: x * 2, {"x": ("S", 4)})
    with pytest.raises(ValueError, match=r"sizes S have no values yet; pass bind="):
        IndexMaps(graph)
    assert IndexMaps(graph.bind({"S": 3})).operand(graph.outputs[0], 0).size == 12


@settings(max_examples=120, deadline=None)
@given(sample=samples(steps=25, impure=False))
def test_an_index_map_says_where_an_element_lies(sample: Sample) -> None:
    g = sample.graph
    maps = IndexMaps(g)
    for node in g:
        memory = np.arange(np.prod(g[g.root(node.id)].shape, dtype=int))
        shown = memory.reshape(g[g.root(node.id)].shape)
        chain, at = [], node
        while at.kind == "view":
            chain.append(at)
            at = g[at.inputs[0]]
        for view in reversed(chain):
            shown = view.spec.evaluate([shown], view.attrs, None)
        index = maps.value(node.id)
        assert [index.address(e) for e in range(index.size)] == shown.ravel().tolist()
        assert index.repeats == (len(set(shown.ravel().tolist())) < shown.size)
        for width in (1, 2, 3, 4):
            rows = index.of_rows(width)
            if rows is not None:
                assert np.array_equal(
                    np.repeat([rows.address(r) for r in range(rows.size)], width), shown.ravel()
                )
