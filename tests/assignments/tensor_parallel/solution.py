"""The reference solution as a module: `shard_lab`."""

import importlib.util
from pathlib import Path

_FILE = Path(__file__).resolve().parents[3] / "solutions/tensor_parallel/shard_lab.py"
_spec = importlib.util.spec_from_file_location("shard_lab", _FILE)
shard_lab = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shard_lab)
