"""What a submission may try, each with its verdict. The right control is in `test_supervisor`.

Every attack starts from the working solution, so what fails does so for the attack alone; a wrong
answer (`WRONG`) beside an attack on the grader shows that the attack did not turn it into a pass.
"""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import mini_triton
import psutil
import pytest
from mini_triton import settings

from grader.report import gradescope
from grader.verdict import Verdict

WRONG = """
def double(x):
    {}
    return x * 3
"""


def wrong(*statements):
    """A `double` that attacks, then answers wrongly."""
    return WRONG.format("\n    ".join(statements))


# ------------------------------------------------------------------ time, memory, processes
def test_a_hang_is_stopped_and_the_next_test_runs(grade):
    report = grade("def product(x, g):\n    while True: pass", only="2", time_limit=2)
    hung, after = report.tests[1], report.tests[2]
    assert hung.verdict is Verdict.TIMED_OUT
    assert hung.message == "no result after 2 s, in product"
    assert after.verdict is Verdict.PASSED


def test_a_sleep_with_signals_blocked_is_stopped(first):
    result = first(
        wrong(
            "import signal, time",
            "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
            "time.sleep(1000)",
        ),
        time_limit=1,
    )
    assert result.verdict is Verdict.TIMED_OUT


def test_an_endless_kernel_is_stopped(first):
    result = first(
        """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            total = 0.0
            for i in range(n * 1000000):
                for j in range(n * 1000000):
                    total += tl.load(x_ptr)
            tl.store(y_ptr, total)
        """,
        time_limit=3,
    )
    assert result.verdict is Verdict.TIMED_OUT
    assert "in kernel double_kernel, grid (2, 1, 1)" in result.message


@pytest.mark.parametrize("when", ["the worker returns", "the worker hangs"])
def test_a_grandchild_in_its_own_session_does_not_survive(first, tmp_path, when):
    marker = f"bytewise-survivor-{os.getpid()}-{when[-5:]}"
    result = first(
        wrong(
            "import ctypes, os, time",
            "if os.fork() == 0:",
            "    os.setsid()",
            "    if os.fork() == 0:",
            f"        ctypes.CDLL(None).prctl(15, b'{marker[:15]}', 0, 0, 0)",
            "        os.close(1); os.close(2)",
            "        time.sleep(1000)",
            "    os._exit(0)",
            "time.sleep(0.3)",
            "time.sleep(1000)" if when == "the worker hangs" else "pass",
        ),
        time_limit=3,
    )
    expected = Verdict.TIMED_OUT if when == "the worker hangs" else Verdict.FAILED
    assert result.verdict is expected
    assert marker[:15] not in {process.name() for process in psutil.process_iter()}


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("os._exit(0)", "exit code 0"),
        ("os._exit(3)", "exit code 3"),
        ("sys.exit(0)", "tried to end the process: sys.exit(0)"),
        ("raise SystemExit", "tried to end the process"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "signal SIGSEGV"),
        ("ctypes.string_at(0)", "signal SIGSEGV"),
        ("os.abort()", "signal SIGABRT"),
    ],
)
def test_ending_the_process_is_a_crash(first, way, words):
    result = first(wrong("import ctypes, os, signal, sys", way))
    assert (result.verdict, result.points) == (Verdict.CRASHED, 0)
    assert words in result.message


def test_ending_the_process_on_import_is_a_crash(first):
    assert first("import os; os._exit(0)").verdict is Verdict.CRASHED
    assert first("import sys; sys.exit(0)").verdict is Verdict.CRASHED


def test_leaving_through_atexit_or_a_thread_changes_nothing(first):
    result = first(
        wrong(
            "import atexit, os, threading, time",
            "atexit.register(os._exit, 0)",
            "threading.Thread(target=lambda: (time.sleep(5), os._exit(0)), daemon=True).start()",
        )
    )
    assert result.verdict is Verdict.FAILED


def test_a_memory_bomb_is_stopped(first):
    result = first(
        wrong(
            "import time",
            "hoard = []",
            "while True:",
            "    hoard.append(torch.ones(4 << 20)); time.sleep(0.005)",
        ),
        memory_limit_mb=500,
    )
    assert result.verdict is Verdict.OUT_OF_MEMORY
    assert "500 MB are allowed" in result.message
    assert result.peak_memory > 400e6


def test_a_kernel_takes_little_of_the_judges_memory(first, monkeypatch):
    """The judge's child inherits what is changed here: it says what it runs the launch with."""

    def telling(device, message):
        now = settings.current()
        raise mini_triton.KernelError(f"{now.memory:,} bytes, {now.threads} threads")

    monkeypatch.setattr(mini_triton.LocalDevice, "launch", telling)
    assert "134,217,728 bytes, 1 threads" in first().message


def test_a_tile_that_the_judge_has_no_room_for_is_refused(first):
    source = """
    @triton.jit
    def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0)
        {}
        tl.store(y_ptr + at, 2 * x, mask=at < n)

    def double(x):
        y = torch.empty_like(x)
        double_kernel[(1,)](x, y, x.numel(), BLOCK=1 << 20)
        return y
    """
    many = [f"x{i} = tl.exp(x + {i})" for i in range(40)]
    used = [f"x += tl.where(x > {i}, x{i}, 0.0) * 0" for i in range(40)]
    result = first(source.format("\n        ".join(many + used)))
    assert result.verdict is Verdict.FAILED
    assert "a launch may take 134,217,728" in result.message
    assert "| x = tl.load(x_ptr + at, mask=at < n, other=0.0)" in result.message
    assert "choose smaller BLOCK sizes" in result.message
    assert "MINI_TRITON_MEMORY" not in result.message  # which changes nothing here
    assert first(source.format("pass")).verdict is Verdict.PASSED


def test_a_memory_bomb_in_a_child_process_counts(first):
    result = first(
        wrong(
            "import os, time",
            "for _ in range(2):",
            "    if os.fork() == 0:",
            "        hoard = torch.ones(80 << 20)",
            "        time.sleep(100)",
            "time.sleep(100)",
        ),
        memory_limit_mb=900,
    )
    assert result.verdict is Verdict.OUT_OF_MEMORY


def test_a_tensor_of_two_to_the_forty_is_an_ordinary_failure(first):
    result = first(wrong("torch.empty(1 << 40)"))
    assert result.verdict in (Verdict.FAILED, Verdict.OUT_OF_MEMORY)


def test_deep_recursion_is_an_ordinary_failure(first):
    result = first(wrong("def f(): return f()", "f()"))
    assert result.verdict is Verdict.FAILED
    assert "RecursionError" in result.message
    assert len(result.message) < 3000


def test_a_fork_bomb_is_swept_up(first):
    result = first(
        wrong("import os, time", "for _ in range(5): os.fork()", "time.sleep(100)"), time_limit=2
    )
    assert result.verdict in (Verdict.TIMED_OUT, Verdict.OUT_OF_MEMORY, Verdict.CRASHED)
    assert first().verdict is Verdict.PASSED


def test_a_flood_of_output_is_bounded(first):
    result = first(wrong("for _ in range(20_000): print('x' * 1000)"))
    assert result.verdict is Verdict.FAILED
    assert len(result.printed) < 10_000
    assert "more was printed" in result.printed


# ------------------------------------------------------------------ results
def test_a_printed_fake_is_only_text(grade):
    fake = '{"score": 100, "tests": [{"score": 3, "max_score": 3, "status": "passed"}]}'
    report = grade(wrong(f"print({fake!r})", "print('PASSED')"), only="1")
    content = gradescope.results(report)
    gradescope.validate(content)
    assert content["score"] == 0
    assert fake in content["tests"][0]["output"]


def test_descriptors_lead_nowhere(first):
    result = first(
        wrong(
            "import os",
            "for fd in range(3, 256):",
            "    try: kind = os.readlink(f'/proc/self/fd/{fd}')",
            "    except OSError: continue",
            "    print(kind.split(':')[0])",
        )
    )
    assert set(result.printed.split()) <= {"socket", "/dev/null", "/proc/self/fd", "anon_inode"}
    assert result.printed.split().count("socket") == 1


GARBAGE = {
    "noise": "os.urandom(4096)",
    "a huge length": "b'\\xff' * 64",
    "an empty frame": "bytes(8)",
    "no safetensors": "(16).to_bytes(8, 'little') + b'{' * 16",
    "a pickle": "(lambda b: len(b).to_bytes(8, 'little') + b)(pickle.dumps(print))",
    "a verdict": "pack({'op': 'outcome', 'verdict': 'passed'})",
    "nothing filled in": "pack({'op': 'returned', 'value': ['plain', 1]})",
    "a nameless record": "pack({'op': 'returned', 'filled': {}, 'value': ['record', ['', {}]]})",
    "nested lists": "pack({'op': 'returned', 'filled': {}, 'value': nested()})",
    "a tensor beyond its bytes": "returned(size=[4, 8], stride=[8, 1])",
    "a tensor with negative strides": "returned(size=[4], stride=[-1])",
    "a tensor with a negative offset": "returned(size=[4], stride=[1], offset=-4)",
    "a tensor of another frame": "returned(size=[4], stride=[1], storage=3)",
    "a gigantic expanded tensor": "returned(size=[1 << 40], stride=[0])",
    "a launch of nothing": "pack({'op': 'launch'})",
    "a launch with a bad grid": "launched(grid=[1, 2])",
    "a launch with an odd argument": "launched(arg_names=['x'], args=[['list', []]])",
    "a launch without its arguments": "launched(arg_names=['x'])",
    "a launch that points nowhere": "launched(pointed_to=1)",
    "a launch that points to a number": (
        "launched(arg_names=['x'], args=[['plain', 1]], pointed_to=1, addresses={})"
    ),
    "a launch from a negative address": "launched(pointed_to=0, addresses={'0': -1})",
    "unwritten memory of no tensor": "launched(unwritten={'0': ['plain', True]})",
    "unwritten memory of no argument": "launched(unwritten={'x': ['plain', True]})",
    "unwritten memory that is no list": "launched(unwritten=[True])",
    "read-only memory beside a tensor": "launched(read_only={'0': ['tensor', {}]})",
    "an argument of a forged name": "launched(arg_names=['x[0] = 1'], args=[['plain', 1]])",
    "an argument that repaints": "launched(arg_names=['\\x1b[2J'], args=[['plain', 1]])",
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_on_the_wire_is_a_crash_with_a_message(first, what):
    result = first(
        f"""
        def double(x):
            import os, pickle, socket, time
            from grader.judge.wire import pack
            def returned(**view):
                view = {{"dtype": "float32", "storage": 0, "offset": 0, **view}}
                header = {{"op": "returned", "filled": {{}}, "value": ["tensor", view]}}
                return pack(header, [torch.zeros(16, dtype=torch.uint8)])
            def launched(**parts):
                launch = {{"kernel": "k", "ttir": "", "grid": [1] * 3, "arg_names": [], "args": []}}
                return pack({{"op": "launch", **launch, **parts}})
            def nested():
                value = ["plain", 1]
                for _ in range(50): value = ["list", [value]]
                return value
            fd = next(fd for fd in range(3, 99) if is_socket(fd))
            data = {GARBAGE[what]}
            while data: data = data[os.write(fd, data):]
            time.sleep(100)

        def is_socket(fd):
            import os
            try: return os.readlink(f"/proc/self/fd/{{fd}}").startswith("socket")
            except OSError: return False
        """,
        time_limit=5,
    )
    assert (result.verdict, result.points) == (Verdict.CRASHED, 0)
    assert "sent what is no answer" in result.message
    assert ("filled in" in result.message) == (what == "nothing filled in")


def test_a_forged_program_is_refused(first):
    result = first(
        """
        def double(x):
            import mini_triton
            launch = mini_triton.Launch("k", "this is no ttir", (1, 1, 1), [x], ["x_ptr"])
            mini_triton.current_device().launch(launch)
            return x * 2
        """
    )
    assert not result.passed
    assert result.points == 0


# ------------------------------------------------------------------ the harness
@pytest.mark.parametrize(
    "patch",
    [
        "torch.allclose = torch.equal = lambda *a, **k: True",
        "torch.Tensor.__eq__ = torch.Tensor.__le__ = lambda *a: torch.ones((), dtype=torch.bool)",
        "import grader.testing.compare as c; c.compare = lambda *a, **k: None",
        "import time; time.monotonic = lambda: 0.0",
        "import unittest; unittest.TestCase.fail = lambda *a: None",
        "import builtins; builtins.isinstance = lambda *a: True",
        "import builtins; builtins.type = lambda *a: torch.Tensor",
    ],
)
def test_patching_changes_no_verdict(first, patch):
    result = first(wrong(patch))
    assert not result.passed
    assert result.points == 0


def test_forged_counters_are_not_looked_at(first):
    greedy = """
        @triton.jit
        def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at, mask=at < n) + 0 * tl.load(x_ptr + (n - 1) - at, mask=at < n)
            tl.store(y_ptr + at, 2 * x, mask=at < n)

        import mini_triton
        mini_triton.LaunchRecord.loaded_bytes = property(lambda self: 0)
        mini_triton.LaunchRecord.from_dict = classmethod(lambda cls, d: cls("k", (1, 1, 1)))
        mini_triton.Traffic.add = lambda *a: None
    """
    result = first(greedy)
    assert result.verdict is Verdict.FAILED
    assert "double loads 256 B" in result.message


def test_a_device_of_the_students_own_launches_nothing(first):
    result = first(
        """
        import mini_triton

        class Fake:
            def launch(self, launch):
                launch.args[1].copy_(launch.args[0] * 2)
                return mini_triton.LaunchRecord(launch.kernel, launch.grid)

        mini_triton.set_device(Fake())
        """
    )
    assert "launched no Triton kernel" in result.message


@pytest.mark.parametrize(
    "name", ["torch", "triton", "numpy", "conftest", "sitecustomize", "grader"]
)
def test_files_that_are_not_declared_are_not_seen(grade, tmp_path, name):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / f"{name}.py").write_text("raise SystemExit('imported')")
    (folder / "__pycache__").mkdir()
    assert grade(only="1").points == 5


# ------------------------------------------------------------------ answers
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("torch.zeros_like(x)", "every element is 0"),
        ("x * float('nan')", "NaN"),
        ("torch.empty_like(x)", "new memory (torch.empty) is filled with NaN"),
        ("torch.ones_like(x)", "y is wrong"),
        ("(x * 2).half().float()", "y is wrong"),
        ("(x * 2).double()", "dtype float64"),
        ("(x * 2)[None]", "shape (1, 4, 8)"),
        ("(x * 2).to('meta')", "a torch.Tensor was expected"),
        ("(x * 2).to_sparse()", "a torch.Tensor was expected"),
        ("torch.nn.Parameter(x * 2)", "a Parameter"),
        ("[2 * v for v in x.flatten().tolist()]", "a list"),
    ],
)
def test_answers_that_are_none(first, answer, words):
    result = first(f"def double(x): return {answer}")
    assert result.verdict is Verdict.FAILED
    assert words in result.message


@pytest.mark.parametrize(
    ("cheat", "words"),
    [
        ("double_kernel[(1,)](torch.zeros(1), y, 1, BLOCK=16)", "y was stored by no kernel"),
        (
            "double_kernel[(2,)](x * 1.0001, y.clone(), 32, BLOCK=16)",
            "x_ptr of double_kernel holds numbers that are neither",
        ),
    ],
)
def test_a_decoy_kernel_does_not_hide_work_on_the_host(first, cheat, words):
    result = first(f"def double(x):\n    y = x * 2\n    {cheat}\n    return x * 2")
    assert result.verdict is Verdict.FAILED
    assert words in result.message


def test_a_tensor_subclass_that_lies(first):
    result = first(
        """
        class Liar(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return True
            def __eq__(self, other): return True

        def double(x):
            return x.as_subclass(Liar)
        """
    )
    assert result.verdict is Verdict.FAILED
    assert "y is a Liar; a torch.Tensor was expected" in result.message


# ------------------------------------------------------------------ secrets
def test_hidden_tests_are_not_in_memory_nor_on_disk(toy_house, tmp_path):
    """From a process of its own, as on the command line: the test's own process knows it all."""
    spy = tmp_path / "toy.py"
    spy.write_text(
        textwrap.dedent(
            f"""
            import gc, os, re, sys

            def double(x):
                frame = sys._getframe()
                while frame:
                    if "test_toy" in frame.f_code.co_filename:
                        print("frame", frame)
                    frame = frame.f_back
                print("modules", any("hidden" in name for name in sys.modules))
                dicts = [o for o in gc.get_objects() if type(o) is dict]
                print("objects", any("TestHidden" in one for one in dicts))
                for path in ({str(toy_house.root / "tests/hidden/toy/test_toy_hidden.py")!r},
                             {str(toy_house.root / "solutions/toy/toy.py")!r}):
                    try:
                        open(path).read(); print("read", path)
                    except OSError as error:
                        print("barred", error.errno)
                try:
                    print("read", os.listdir("/proc"))
                except OSError: pass
                near = range(os.getpid() - 300, os.getpid() + 50)
                for pid in (os.getppid(), *range(1, 50), *near):
                    if pid == os.getpid(): continue
                    for name in ("environ", "mem", "maps", "cmdline", "comm"):
                        try:
                            if open(f"/proc/{{pid}}/{{name}}", "rb").read(1):
                                print("read", pid, name)
                        except OSError: pass
                print("environ", sorted(os.environ))
                print("initially", open("/proc/self/environ", "rb").read().strip(b"\\0"))
                return None
            """
        )
    )
    program = textwrap.dedent(
        f"""
        import sys
        sys.argv = ["grader"]
        from pathlib import Path
        from grader.judge.supervisor import Judge
        with Judge() as judge:
            from grader import manifest
            from grader.house import House
            house = House(Path({str(toy_house.root)!r}))
            report = judge.grade_path(
                manifest.load("toy", house), Path({str(spy)!r}), only="1", house=house
            )
        print(report.tests[0].printed)
        print(report.tests[0].message, file=sys.stderr)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "API_TOKEN": "sesame-0815"},
    )
    lines = done.stdout.splitlines()
    assert "initially b''" in lines, done.stdout + done.stderr
    assert "modules False" in lines, done.stdout + done.stderr
    assert "objects False" in lines
    assert [line for line in lines if line.startswith(("frame", "read"))] == []
    assert lines.count("barred 13") == 2
    assert "sesame" not in done.stdout
    assert "API_TOKEN" not in done.stdout


def test_hidden_data_does_not_leak_through_errors(grade):
    report = grade("def double(x):\n    raise ValueError(f'leak {x.sum()} {x.shape}')", only="1")
    hidden = gradescope.results(report)["tests"][1]
    assert hidden["visibility"] == "hidden"
    assert "leak" not in str(hidden)
    assert "inputs and what it measured are not shown" in hidden["output"]


def test_nothing_is_kept_from_one_test_to_the_next(grade):
    source = """
        import os
        from pathlib import Path

        def strides(x, e, scale):
            for place in (Path.home(), Path("/tmp"), Path("/dev/shm"), Path("/var/tmp"), Path("/")):
                try: (place / "bytewise-state").write_text("was here")
                except OSError: pass
            print("kept" if (Path.home() / "bytewise-state").exists() else "no home")

        def product(x, g):
            for place in (Path.home(), Path("/tmp"), Path("/dev/shm"), Path("/var/tmp"), Path("/")):
                print((place / "bytewise-state").exists())
    """
    report = grade(source, only="2")
    assert report.tests[0].printed == "kept\n"
    assert report.tests[1].printed.split() == ["False"] * 5


BARRED = {
    "a TCP connection": "import socket; socket.socket().connect(('127.0.0.1', 9))",
    "a UDP socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "a signal to the zygote": "import os, signal; os.kill(os.getppid(), signal.SIGTERM)",
    "becoming root": "import os; os.setgroups([0]); os.setuid(0)",
    "rewriting its own file": "open(__file__, 'a')",
    "changing a mode": "import os; os.chmod(__file__, 0o777)",
    "a file outside its home": "import pathlib; pathlib.Path('/tmp/bytewise-x').write_text('x')",
    "a huge file": "f = open('big', 'wb'); f.seek(1 << 30); f.write(b'x'); f.flush()",
}


@pytest.mark.parametrize("what", BARRED)
def test_what_is_barred(first, what):
    result = first(wrong(BARRED[what]))
    assert result.verdict in (Verdict.FAILED, Verdict.CRASHED)
    barred = ("PermissionError", "OSError", "SIGXFSZ")
    assert any(word in result.message for word in barred), result.message
    if "PermissionError" in result.message:
        assert "write files only into the folder in which it is started" in result.message
    assert not Path("/tmp/bytewise-x").exists()


def test_without_its_zygote_the_judge_goes_on(judge, grade):
    """As if student code had managed to kill it (where no kernel bars that)."""
    os.kill(judge._zygote.pid, signal.SIGKILL)
    killed, *others = grade(only="2").tests
    assert killed.verdict is Verdict.CRASHED
    assert "ended the process that the grader starts it from" in killed.message
    assert all(test.passed for test in others)
