"""The same program on simulated ranks and on real ones; see `cases`."""

import inspect
import os
import subprocess
import sys

import pytest
import torch
from comm_sim import NVLINK4, Comm, switch
from spmd import Communicator, TorchComm, run

from tests.spmd import programs
from tests.spmd.cases import CASES, check

#: `BYTEWISE_TEST_DEVICE=cuda` runs real ranks on GPUs, where the same must hold.
BACKEND = "nccl" if os.environ.get("BYTEWISE_TEST_DEVICE") == "cuda" else "gloo"


def needs_gpus(n):
    few = BACKEND == "nccl" and torch.cuda.device_count() < n
    return pytest.mark.skipif(few, reason=f"NCCL needs {n} GPUs")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_simulated_ranks(n, name):
    hashes = check(Comm(switch(n, NVLINK4)), [name])
    assert len(set(hashes[name])) <= 1


@pytest.mark.parametrize("name", CASES)
def test_a_simulated_group_is_a_communicator_like_any_other(name):
    check(Comm(switch(8, NVLINK4)).group([6, 1, 4]), [name])


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=needs_gpus(4))])
def test_real_ranks(n):
    """Four are three and one, too: groups."""
    results = run(programs.all_cases, n, backend=BACKEND)
    assert len(results) == n
    for name in CASES:
        hashes = [digest for result in results for digest in result["whole"][name]]
        assert len(set(hashes)) <= 1, name
    assert all(set(result) == {"whole", "alone", "three", "torch", "log"} for result in results)


def test_a_communicator_goes_with_its_last_reference():
    """Else gloo's threads outlive `destroy_process_group`, and may abort a process that ends."""
    assert run(programs.held_by_itself, 2, backend=BACKEND) == [[False, False]] * 2


@pytest.mark.parametrize("implementation", [Comm, TorchComm])
@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "group"])
def test_parameters_are_those_of_the_interface(implementation, name):
    def parameters(owner):
        signature = inspect.signature(getattr(owner, name))
        return [(p.name, p.kind, p.default) for p in signature.parameters.values()]

    assert parameters(implementation) == parameters(Communicator)


def test_without_initialization_it_says_how_to_begin():
    with pytest.raises(RuntimeError, match=r"start ranks with spmd\.run"):
        TorchComm()


def test_the_interface_alone_needs_no_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import spmd; print(spmd.Communicator.__name__)\n"
        "assert set(spmd.__all__) > {'run', 'TorchComm'}\n"
        "try: spmd.nothing\n"
        "except AttributeError: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Communicator\n"
