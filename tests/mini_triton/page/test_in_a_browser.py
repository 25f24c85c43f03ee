"""The page as a real browser lays it out, in both themes, narrow and wide.

The browser is the machine's own Chromium; where there is none, the structure alone is tested
(`test_page.py`). A copy of the page measures itself, which the page's own policy would not allow.
"""

import html
import json
import re
import shutil
import subprocess

import mini_triton
import pytest
import torch

from tests.kernels import matmul
from tests.mini_triton.comparing import normal
from tests.mini_triton.hardware.test_model import column_kernel

_BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(_BROWSER is None, reason="there is no Chromium on this machine")

_WIDTHS = (360, 1280)
_POLICY = "style-src 'unsafe-inline'"
_MEASURE = """<script>
const box = e => e.getBoundingClientRect();
const name = e => e.textContent.trim().slice(0, 40);
// What sticks out of the page, but for what scrolls by itself.
const wide = [...document.querySelectorAll("body *")].filter(e =>
  !e.closest(".wide") && box(e).right > document.documentElement.clientWidth + 1);
// Labels in pictures that leave them, and numbers in cells that are too small for them.
const texts = [...document.querySelectorAll("svg text")];
const outside = texts.filter(t => {
  const [a, b] = [box(t), box(t.closest("svg"))];
  return a.left < b.left - 1 || a.right > b.right + 1
    || a.top < b.top - 1 || a.bottom > b.bottom + 1;
});
const tight = [...document.querySelectorAll(".map text")].filter(t =>
  box(t).width > box(t.previousElementSibling).width + 1);
const style = getComputedStyle(document.body);
parent.document.getElementById("found").append(JSON.stringify({
  width: innerWidth, wide: wide.map(name), outside: outside.map(name), tight: tight.map(name),
  small: texts.filter(t => box(t).height < 8).map(name),
  paper: style.backgroundColor, ink: style.color, rows: document.querySelectorAll("tr").length,
}) + "\\n");
</script>"""


@pytest.fixture(scope="module")
def page():
    x, y = normal(64, 64), torch.empty(64, 64)
    a = normal(128, 128, dtype=torch.float16)
    with mini_triton.profile(hardware="H200", check=()) as p:
        column_kernel[(64,)](x, y, 64, BLOCK=64)
        column_kernel[(64,)](normal(64), torch.empty(64), 64, BLOCK=1)  # a cell a program
        matmul.matmul(a, a)
        y.sum()
    return p.html()


@pytest.fixture(scope="module", params=["light", "dark"])
def seen(request, page, tmp_path_factory):
    """What the page measured, at each width."""
    folder = tmp_path_factory.mktemp("browser")
    copy = page.replace(_POLICY, f"{_POLICY}; script-src 'unsafe-inline'") + _MEASURE
    frames = [
        f'<iframe width={w} height=900 srcdoc="{html.escape(copy)}"></iframe>' for w in _WIDTHS
    ]
    (folder / "all.html").write_text(f'<pre id="found"></pre>{"".join(frames)}', encoding="utf-8")
    done = subprocess.run(
        [
            *(_BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={int(request.param == 'light')}",
            *("--virtual-time-budget=5000", "--dump-dom", f"file://{folder / 'all.html'}"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (found,) = re.findall(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    measured = [json.loads(html.unescape(line)) for line in found.splitlines()]
    assert sorted(each["width"] for each in measured) == [*_WIDTHS]
    return request.param, measured


def test_nothing_sticks_out(seen):
    _, measured = seen
    assert [each["wide"] for each in measured] == [[] for _ in _WIDTHS]


def test_labels_are_inside_their_pictures_and_can_be_read(seen):
    _, measured = seen
    for each in measured:
        assert (each["outside"], each["tight"], each["small"]) == ([], [], [])


def test_the_theme_is_the_readers(seen):
    theme, measured = seen
    for each in measured:
        paper, ink = (
            sum(map(int, re.findall(r"\d+", each[which])[:3])) for which in ("paper", "ink")
        )
        assert (paper > ink) == (theme == "light")
        assert abs(paper - ink) > 400
        assert each["rows"] > 10
