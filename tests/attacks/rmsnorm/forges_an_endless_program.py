"""A loop without end in a forged program: it stops after so many operations, not by the clock.

test: 1.2
verdict: failed
says: over budget: more than 400,000 operations
seconds: 60
"""

import mini_triton
import torch

NUMBERS = "\n".join(f"%n{k} = arith.constant {k} : i32" for k in range(1000))
TTIR = f"""
module {{
  tt.func public @forged(%x: !tt.ptr<f32>, %r: !tt.ptr<f32>) {{
    %true = arith.constant true
    %a = tt.load %x : !tt.ptr<f32>
    %b = scf.while (%c = %a) : (f32) -> f32 {{
      scf.condition(%true) %c : f32
    }} do {{
    ^bb0(%d: f32):
      {NUMBERS}
      scf.yield %d : f32
    }}
    tt.return
  }}
}}
"""


def rmsnorm_forward(
    x: torch.Tensor, g: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    r = torch.empty(len(x))
    launch = mini_triton.Launch("forged", TTIR, (1, 1, 1), [x, r], ["x_ptr", "r_ptr"])
    mini_triton.current_device().launch(launch)
    return x, r
