"""Figures of chips: against the links of comm_sim, against arithmetic, and what is refused."""

import math
from dataclasses import FrozenInstanceError, replace

import comm_sim
import hw_specs
import pytest
from hw_specs import A100, A100_40GB, B200, CHIPS, H100, H200, MI300X, TPU_V5E, TPU_V5P, Chip


class TestFigures:
    def test_the_roofline_of_an_h100(self):
        assert H100.peak_flops("bf16") == 989e12
        assert H100.peak_flops("fp32") == 67e12
        assert H100.mem_bw == 3.35e12
        assert H100.ridge("bf16") == pytest.approx(295, abs=0.5)

    @pytest.mark.parametrize(
        ("chip", "sparse"),
        [
            (A100, {"bf16": 624, "fp16": 624, "tf32": 312, "int8": 1248}),
            (H100, {"bf16": 1979, "fp16": 1979, "tf32": 989, "fp8": 3958, "int8": 3958}),
            (H200, {"bf16": 1979, "fp16": 1979, "tf32": 989, "fp8": 3958, "int8": 3958}),
            (
                B200,
                {"bf16": 4500, "fp16": 4500, "tf32": 2200, "fp8": 9000, "int8": 9000, "fp4": 18000},
            ),
        ],
        ids=lambda value: getattr(value, "name", ""),
    )
    def test_they_are_half_of_what_nvidia_prints_with_sparsity(self, chip, sparse):
        for precision, tflops in sparse.items():
            assert chip.peak_flops(precision) == pytest.approx(tflops / 2 * 1e12, rel=2e-3)

    @pytest.mark.parametrize(
        ("chip", "units", "hertz", "operations"),
        [
            # Multiply-adds of a unit in a clock, times 2, as the makers' white papers have them.
            (A100, 108, 1.41e9, {"tf32": 1024, "bf16": 2048, "int8": 4096, "fp64": 128}),
            (H100, 132, 1.83e9, {"tf32": 2048, "bf16": 4096, "fp8": 8192, "int8": 8192}),
            (H100, 132, 1.98e9, {"fp32": 256, "fp64": 256}),
            (MI300X, 304, 2.1e9, {"fp64": 256, "fp32": 256, "tf32": 1024, "bf16": 2048}),
            (MI300X, 304, 2.1e9, {"fp16": 2048, "fp8": 4096, "int8": 4096}),
            # Four, and eight, arrays of 128 × 128.
            (TPU_V5E, 4, 1.5e9, {"bf16": 2 * 128**2, "int8": 4 * 128**2}),
            (TPU_V5P, 8, 1.75e9, {"bf16": 2 * 128**2}),
        ],
        ids=lambda value: getattr(value, "name", None),
    )
    def test_they_are_units_times_clock_times_operations(self, chip, units, hertz, operations):
        for precision, per_clock in operations.items():
            assert chip.peak_flops(precision) == pytest.approx(units * hertz * per_clock, rel=5e-3)

    @pytest.mark.parametrize(
        ("chip", "bits", "hertz"), [(A100, 5120, 1593e6), (A100_40GB, 5120, 1215e6)]
    )
    def test_bandwidth_is_bus_times_clock_twice(self, chip, bits, hertz):
        assert chip.mem_bw == pytest.approx(bits / 8 * 2 * hertz, rel=1e-3)

    @pytest.mark.parametrize(
        ("chip", "link"),
        [
            (A100, comm_sim.NVLINK3),
            (A100_40GB, comm_sim.NVLINK3),
            (H100, comm_sim.NVLINK4),
            (H200, comm_sim.NVLINK4),
            (B200, comm_sim.NVLINK5),
            (TPU_V5E, comm_sim.ICI_V5E),
            (TPU_V5P, comm_sim.ICI_V5P),
        ],
        ids=lambda value: getattr(value, "name", ""),
    )
    def test_a_port_is_as_fast_as_comm_sims_link(self, chip, link):
        assert chip.port_bw == link.bw

    def test_links_of_an_mi300x_lead_to_the_seven_others(self):
        assert MI300X.ports == 7
        assert 2 * MI300X.port_bw == 128e9

    def test_an_h200_is_an_h100_with_another_memory(self):
        assert replace(H200, mem_bytes=H100.mem_bytes, mem_bw=H100.mem_bw) == replace(
            H100, name=H200.name, source=H200.source
        )

    def test_each_chip_is_listed_and_has_its_source(self):
        presets = {
            value.name: value for value in vars(hw_specs).values() if isinstance(value, Chip)
        }
        assert dict(CHIPS) == presets
        assert len(CHIPS) == 8
        for chip in CHIPS.values():
            assert chip.source.startswith("https://")
            assert 1e9 < chip.mem_bytes < 1e12
            assert chip.peak_flops("bf16") > 0


class TestChip:
    def test_a_precision_that_it_does_not_have_is_named(self):
        with pytest.raises(ValueError, match=r"A100.* no fp8; .*bf16"):
            A100.peak_flops("fp8")
        with pytest.raises(ValueError, match="no int3"):
            H100.ridge("int3")

    def test_another_one_is_made_of_it(self):
        faster = replace(H100, name="H100 with twice the memory's speed", mem_bw=2 * H100.mem_bw)
        assert faster.ridge("bf16") == H100.ridge("bf16") / 2

    def test_it_does_not_change(self):
        with pytest.raises(FrozenInstanceError):
            H100.mem_bw = 1.0
        with pytest.raises(TypeError):
            H100.flops["bf16"] = 1.0

    def test_it_is_a_key(self):
        assert {H100: "H100"}[replace(H100)] == "H100"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"mem_bw": 0}, "mem_bw is 0; it is more than 0"),
            ({"mem_bytes": -1.0}, "mem_bytes is -1.0; it is more than 0"),
            ({"link_bw": math.nan}, "link_bw is nan; it is more than 0"),
            ({"flops": {"bf16": 0}}, r"flops\['bf16'\] is 0; it is more than 0"),
            ({"ports": 0}, "ports is 0; it is a whole number, 1 or more"),
            ({"ports": 1.5}, "ports is 1.5; it is a whole number"),
        ],
    )
    def test_what_is_no_chip_is_refused(self, change, message):
        with pytest.raises(ValueError, match=message):
            replace(H100, **change)
