"""The chips, with the data sheets that their figures stand in.

NVIDIA's sheets print tensor peaks *with sparsity*; those here are half of them. A peak is units
times clock times operations a clock (a tested identity where the clock is published), so a chip
that is not allowed the power for its clock stays below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from hw_specs.chip import Chip

#: SXM4, 80 GB. fp32 is of the CUDA cores, fp64 of the tensor cores.
A100 = Chip(
    name="A100 80GB",
    flops={
        "fp64": 19.5e12,
        "fp32": 19.5e12,
        "tf32": 156e12,
        "bf16": 312e12,
        "fp16": 312e12,
        "int8": 624e12,
    },
    mem_bytes=80e9,
    mem_bw=2039e9,
    link_bw=300e9,  # NVLink 3: 600 GB/s in both directions
    ports=1,
    source=(
        "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
        "nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"
    ),
)
#: SXM4, 40 GB: the one of the first FlashAttention paper.
A100_40GB = replace(
    A100,
    name="A100 40GB",
    mem_bytes=40e9,
    mem_bw=1555e9,
    source=(
        "https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/"
        "nvidia-ampere-architecture-whitepaper.pdf"
    ),
)
#: SXM5. The white paper has 66.9, 494.7, 989.4 and 1978.9; the sheet rounds. fp64: tensor cores.
H100 = Chip(
    name="H100",
    flops={
        "fp64": 67e12,
        "fp32": 67e12,
        "tf32": 494.7e12,
        "bf16": 989e12,
        "fp16": 989e12,
        "fp8": 1979e12,
        "int8": 1979e12,
    },
    mem_bytes=80e9,
    mem_bw=3.35e12,
    link_bw=450e9,  # NVLink 4: 900 GB/s in both directions
    ports=1,
    source="https://www.nvidia.com/en-us/data-center/h100/",
)
#: SXM5: the arithmetic of an H100.
H200 = replace(
    H100,
    name="H200",
    mem_bytes=141e9,
    mem_bw=4.8e12,
    source="https://www.nvidia.com/en-us/data-center/h200/",
)
#: As eight of them sit in a DGX B200 (1,440 GB and 64 TB/s together; the data sheet of Blackwell
#: gives a GPU of an HGX B200 7.7 TB/s, and 2.2e15 in tf32 with sparsity). fp32: CUDA cores.
B200 = Chip(
    name="B200",
    flops={
        "fp64": 37e12,
        "fp32": 75e12,
        "tf32": 1.1e15,
        "bf16": 2.25e15,
        "fp16": 2.25e15,
        "fp8": 4.5e15,
        "int8": 4.5e15,
        "fp4": 9e15,
    },
    mem_bytes=180e9,
    mem_bw=8e12,
    link_bw=900e9,  # NVLink 5: 1.8 TB/s in both directions
    ports=1,
    source=(
        "https://www.nvidia.com/en-us/data-center/hgx/ (arithmetic, of eight), "
        "https://www.nvidia.com/en-us/data-center/dgx-b200/ (memory, of eight)"
    ),
)
#: fp64 and fp32 of the matrix cores; eight of them are wired each to each.
MI300X = Chip(
    name="MI300X",
    flops={
        "fp64": 163.4e12,
        "fp32": 163.4e12,
        "tf32": 653.7e12,
        "bf16": 1307.4e12,
        "fp16": 1307.4e12,
        "fp8": 2614.9e12,
        "int8": 2614.9e12,
    },
    mem_bytes=192e9,
    mem_bw=5.3e12,
    link_bw=448e9,  # seven links of 128 GB/s in both directions
    ports=7,
    source="https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html",
)
#: A torus of 16 × 16. The page says 1,600 Gbps, or 400 GB/s in both directions, for four links.
TPU_V5E = Chip(
    name="TPU v5e",
    flops={"bf16": 197e12, "int8": 393e12},
    mem_bytes=16e9,
    mem_bw=819e9,
    link_bw=200e9,
    ports=4,
    source="https://cloud.google.com/tpu/docs/v5e",
)
#: A 3-D torus. The page says 4,800 Gbps, or 1,200 GB/s in both directions, for six links. It has
#: fp8 as fast as bf16, and now calls the 95 GB of memory GiB.
TPU_V5P = Chip(
    name="TPU v5p",
    flops={"bf16": 459e12, "fp8": 459e12},
    mem_bytes=95e9,
    mem_bw=2765e9,
    link_bw=600e9,
    ports=6,
    source="https://cloud.google.com/tpu/docs/v5p",
)

#: All of them, by name.
CHIPS: Mapping[str, Chip] = MappingProxyType(
    {chip.name: chip for chip in (A100, A100_40GB, H100, H200, B200, MI300X, TPU_V5E, TPU_V5P)}
)
