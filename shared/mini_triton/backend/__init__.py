"""What Triton loads through the entry point: `compiler` and `driver`, by these names."""
