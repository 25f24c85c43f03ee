"""The page: whole, self-contained, and safe with whatever names and sources a profile has."""

import re
from html.parser import HTMLParser

import mini_triton
import pytest
import torch
from mini_triton.finding import Finding
from mini_triton.launch import LaunchRecord
from mini_triton.location import Location
from mini_triton.page import render

from tests.kernels import matmul
from tests.mini_triton.comparing import line_of, normal
from tests.mini_triton.hardware.test_model import column_kernel, scale_kernel

_VOID = {"meta", "br", "rect", "line", "circle", "polyline"}


class Page(HTMLParser):
    """Elements, ids and text; checks that tags close."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.ids, self.attributes = [], [], [], []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in _VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def words(self):
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def profile():
    x, y = normal(256, 64), torch.empty(64, 256)
    a = normal(128, 128, dtype=torch.float16)
    with mini_triton.profile(hardware="H200", check=()) as p:
        for _ in range(3):
            column_kernel[(64,)](x, y, 64, BLOCK=256)
        matmul.matmul(a, a)
        scale_kernel[(1,)](normal(1000), torch.empty(1000), 1000, BLOCK=1024)
        y.sum()
    return p


def test_every_part_is_there(profile):
    page = Page(profile.html())
    assert page.ids == ["launches", "roofline", "resources", "source", "maps", "host"]
    words = page.words()
    assert "5 launches, modelled on H200; " in words
    assert "column_kernel [64]" in words
    line = line_of(column_kernel, "tl.load(x_ptr + rows").rpartition(":")[2]
    assert f"test_model.py:{line}: load of x_ptr: 16,384 sectors, 2,048 would do" in words
    assert "tl.store(y_ptr + column * BLOCK + rows, tl.load(x_ptr + rows * stride + column))" in (
        page.text
    )
    assert "first writer programs 0 to 63" in words
    assert "L2" in words and "tensor cores" in words
    assert "out of resource" not in words


def test_bytes_and_efficiency_stand_beside_their_line(profile):
    html = profile.html()
    (row,) = re.findall(r"<tr class=\"moves\"[^\n]*BLOCK \+ rows, tl\.load[^\n]*</tr>", html)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert cells[1:4] == [f"{3 * 65_536:,}", f"{3 * 65_536:,}", "22 %"]


def test_nothing_is_fetched_and_nothing_runs(profile):
    html = profile.html()
    page = Page(html)
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert "img" not in page.tags
    assert not [a for a in page.attributes if a[1] in ("src", "href", "xlink:href")]
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html
    assert "prefers-color-scheme: dark" in html


def test_ids_are_unique_and_rows_as_long_as_their_heads(profile):
    html = profile.html()
    page = Page(html)
    assert len(set(page.ids)) == len(page.ids)
    tables = re.findall(r"<table.*?</table>", html, re.DOTALL)
    assert len(tables) == 5
    for table in tables:
        lengths = {
            sum(int(span or 1) for span in re.findall(r'<t[hd](?: colspan="(\d+)"|[^>])*>', row))
            for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        }
        assert len(lengths) == 1, table


def test_figures_are_numbers(profile):
    cells = re.findall(r'<td class="r[^"]*">(.*?)</td>', profile.html())
    assert len(cells) > 50
    for cell in cells:
        assert re.fullmatch(r"|–|not compiled|\d[\d,.]*( ?(%|[kMGTP]?B|[num]?s|[kMGT]))?", cell), (
            cell
        )


def test_both_themes_have_every_colour(profile):
    html = profile.html()
    light, dark = re.findall(r":root \{(.*?)\}", html, re.DOTALL)[:2]
    names = set(re.findall(r"(--\w+):", light))
    assert set(re.findall(r"(--\w+):", dark)) == names
    assert set(re.findall(r"var\((--\w+)\)", html)) <= names | {"--heat"}


def test_hostile_names_are_text():
    evil = '"><script>alert(1)</script><b x="'
    record = LaunchRecord(evil, (2, 1, 1))
    record.add(evil, Location(f"/gone/{evil}.py", 3), "loaded", 5, 4)
    record.findings.append(Finding("race", evil, evil, tensor=evil))
    page = Page(render(mini_triton.Profile([record])))
    assert "script" not in page.tags
    assert evil in page.text
    assert page.ids == ["findings", "launches", "source"]


def test_findings_come_first():
    record = LaunchRecord("k", (1, 1, 1))
    record.findings.append(Finding("race", "x[3] is stored twice", "k", hint="use atomics"))
    page = Page(render(mini_triton.Profile([record, record])))
    assert page.ids[0] == "findings"
    assert "1 finding" in page.words()
    assert "x[3] is stored twice" in page.text
    assert "use atomics" in page.text


def test_an_empty_profile():
    page = Page(render(mini_triton.Profile()))
    assert page.ids == ["launches", "source"]
    assert "No kernel was launched." in page.words()


def test_without_a_gpu_there_are_bytes_alone():
    with mini_triton.profile(host=False) as p:
        scale_kernel[(1,)](normal(64), torch.empty(64), 64, BLOCK=64)
    page = Page(p.html())
    assert page.ids == ["launches", "source"]
    assert "1 launch." in page.words()
    assert "DRAM" not in page.words()


def test_what_does_not_fit_is_said(profile):
    (_, _, _, record, _) = profile.launches
    data = record.to_dict()
    data["hardware"]["resources"] |= {"error": "out of resource: <shared>", "programs": 0}
    page = Page(render(mini_triton.Profile([LaunchRecord.from_dict(data)])))
    words = page.words()
    assert "does not fit" in words
    head, _, rest = words.partition("Launches")
    assert "DRAM" in head
    assert "at least" not in head
    assert "circle" not in page.tags
    assert "since they do not fit: matmul_kernel" in rest
    assert "least time of each side" not in rest
    assert "out of resource: <shared>" in page.text


def test_many_launches_stay_a_page():
    records = []
    for n in range(60):
        record = LaunchRecord(f"kernel_{n}", (n + 1, 1, 1))
        record.add("x", Location("/gone/k.py", 1), "loaded", 1, 4)
        records.append(record)
    page = Page(render(mini_triton.Profile(records)))
    assert "… and 20 other launches" in page.words()
    assert "240" in page.words()  # bytes of the line, over all of them


def test_it_is_written_where_it_is_asked_for(tmp_path, profile):
    path = tmp_path / "profile.html"
    assert profile.html(path) == path.read_text(encoding="utf-8")
    with pytest.raises(OSError, match="gone"):
        profile.html(tmp_path / "gone" / "profile.html")
