"""Kernels in plain Triton that the test suite and the benchmarks run: one file a kernel.

Each file has the kernel, a launcher on torch tensors, and `reference`, the same in torch.
"""
