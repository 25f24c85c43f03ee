"""The simulator: a Triton backend that runs kernels on CPU tensors and counts the bytes they move."""
