"""Source locations: call chains, Triton's own library, odd file names."""

import time

import pytest
from mini_triton.ir.locations import Locations, strip_aliases
from mini_triton.location import UNKNOWN, Location

LIBRARY = "/opt/python/site-packages/triton/language/standard.py"


def resolved(body, *aliases):
    place = Locations("\n".join(aliases)).resolve(body)
    return (place.file, place.line)


def test_a_file_and_a_line():
    assert resolved('"/a/k.py":12:5') == ("/a/k.py", 12)
    assert resolved("#loc1", '#loc1 = loc("/a/k.py":12:5 to :9)') == ("/a/k.py", 12)
    assert resolved("#loc2", '#loc1 = loc("/a/k.py":7:5)', '#loc2 = loc("x"(#loc1))') == (
        "/a/k.py",
        7,
    )


def test_a_helper_has_its_own_line():
    aliases = (
        '#loc1 = loc("/a/k.py":20:1)',
        '#loc2 = loc("/a/helper.py":3:1)',
        "#loc3 = loc(callsite(#loc2 at #loc1))",
    )
    assert resolved("#loc3", *aliases) == ("/a/helper.py", 3)
    place = Locations("\n".join(aliases)).resolve("#loc3")
    assert place.caller == Location("/a/k.py", 20)
    assert str(place) == "/a/helper.py:3 (called at /a/k.py:20)"


def test_of_a_chain_the_caller_is_the_kernel():
    chain = 'callsite("/a/h.py":3:1 at callsite("/b/g.py":4:1 at "/c/k.py":5:1))'
    assert Locations("").resolve(chain).in_kernel == Location("/c/k.py", 5)
    library = chain.replace("/a/h.py", LIBRARY).replace("/b/g.py", LIBRARY)
    assert Locations("").resolve(library) == Location("/c/k.py", 5)


def test_a_fused_place_has_one_chain():
    one = 'callsite("/a/h.py":3:1 at "/c/k.py":5:1)'
    other = 'callsite("/a/h.py":3:1 at "/c/k.py":6:1)'
    assert Locations("").resolve(f"fused[{one}, {other}]").in_kernel.line == 5
    assert Locations("").resolve(f"fused[unknown, {other}]").in_kernel.line == 6
    nested = f'callsite(fused["/a/x.py":1:1, "/a/x.py":2:1] at {one})'
    assert Locations("").resolve(nested) == Location("/a/x.py", 1, Location("/c/k.py", 5))


def test_a_library_function_belongs_to_its_caller():
    aliases = (
        f'#loc = loc("{LIBRARY}":290:36)',
        f'#loc1 = loc("{LIBRARY}":263:15)',
        '#loc2 = loc("/a/k.py":9:4)',
        "#loc3 = loc(callsite(#loc at #loc1))",
        "#loc4 = loc(callsite(#loc3 at #loc2))",
    )
    assert resolved("#loc4", *aliases) == ("/a/k.py", 9)
    assert resolved("#loc3", *aliases) == (LIBRARY, 290)  # nobody else called


@pytest.mark.parametrize(
    "body",
    [
        'callsite("/a/h.py":3:1 at callsite("/b/g.py":4:1 at "/c/k.py":5:1))',
        'callsite(callsite("/a/h.py":3:1 at "/b/g.py":4:1) at "/c/k.py":5:1)',
    ],
)
def test_call_chains_nest_both_ways(body):
    assert resolved(body) == ("/a/h.py", 3)
    assert resolved(body.replace("/a/h.py", LIBRARY)) == ("/b/g.py", 4)
    libraries = body.replace("/a/h.py", LIBRARY).replace("/b/g.py", LIBRARY)
    assert resolved(libraries) == ("/c/k.py", 5)


def test_fused_places_give_the_first():
    assert resolved('fused["/a/k.py":3:1, "/a/k.py":4:1]') == ("/a/k.py", 3)


@pytest.mark.parametrize(
    ("printed", "file"),
    [
        (r"/h\C3\A9/k.py", "/hé/k.py"),
        (r"C:\\work\\k.py", r"C:\work\k.py"),
        (r"/a \22b\22/k.py", '/a "b"/k.py'),
        ("/look at me/k.py", "/look at me/k.py"),
    ],
)
def test_file_names_as_mlir_escapes_them(printed, file):
    assert resolved(f'"{printed}":12:5') == (file, 12)
    assert resolved(f'callsite("{printed}":12:5 at "/b at c.py":1:1)') == (file, 12)


def test_places_that_are_unknown_or_cyclic():
    assert Locations("").resolve("unknown") == UNKNOWN
    assert Locations("").resolve("#loc7") == UNKNOWN
    cycle = Locations("#loc1 = loc(callsite(#loc1 at #loc1))")
    assert Locations("#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)").resolve("#loc1") == UNKNOWN
    assert cycle.resolve("#loc1") == UNKNOWN


def test_aliases_leave_their_lines_behind():
    assert strip_aliases('#loc = loc("a":1:1)\nmodule {\n}\n#loc1 = loc(#loc)') == "\nmodule {\n}\n"


@pytest.mark.parametrize(
    "body",
    [
        f"fused[{', '.join(['unknown'] * 100_000)}]",
        "callsite(" * 20_000 + "unknown" + ' at "/a/k.py":1:1)' * 20_000,
        "fused[" * 50_000 + "unknown" + "]" * 50_000,
        '"a"(' * 50_000 + "unknown" + ")" * 50_000,
        "fused[",
        f'"/a/k.py":{"9" * 5000}:1',
    ],
    ids=["wide", "deep calls", "deep lists", "deep names", "open", "a long line number"],
)
def test_forged_places_take_linear_time(body):
    start = time.process_time()
    assert Locations("").resolve(body).line in (0, 1)
    assert time.process_time() - start < 10  # one that is quadratic takes minutes
