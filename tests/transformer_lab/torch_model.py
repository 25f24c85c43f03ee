"""The same model a second time, of torch's modules: what the numpy one is compared with.

Nothing is shared with it but the names of parameters. Rotations are products of complex numbers,
attention is torch's own, with each key head repeated for its query heads.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        d, q, kv = cfg.d_model, cfg.n_heads * cfg.d_head, cfg.n_kv_heads * cfg.d_head
        self.attn_norm = nn.RMSNorm(d, eps=cfg.norm_eps)
        self.mlp_norm = nn.RMSNorm(d, eps=cfg.norm_eps)
        self.wq, self.wk, self.wv, self.wo = (
            nn.Linear(*sizes, bias=False) for sizes in ((d, q), (d, kv), (d, kv), (q, d))
        )
        self.w_gate, self.w_up, self.w_down = (
            nn.Linear(*sizes, bias=False) for sizes in ((d, cfg.d_ff), (d, cfg.d_ff), (cfg.d_ff, d))
        )

    def rotated(self, x):
        """Element i of a head's first half and of its second are one complex number."""
        _, T, _, dh = x.shape
        frequencies = self.cfg.rope_theta ** (-torch.arange(0, dh, 2, dtype=torch.float64) / dh)
        angles = torch.arange(T, dtype=torch.float64)[:, None] * frequencies
        turn = torch.polar(torch.ones_like(angles), angles)[:, None, :]
        turned = torch.complex(*x.chunk(2, dim=-1)) * turn
        return torch.cat([turned.real, turned.imag], dim=-1)

    def forward(self, x):
        B, T, _ = x.shape
        h = self.attn_norm(x)
        q = self.rotated(self.wq(h).view(B, T, -1, self.cfg.d_head))
        k = self.rotated(self.wk(h).view(B, T, -1, self.cfg.d_head))
        v = self.wv(h).view(B, T, -1, self.cfg.d_head)
        repeats = self.cfg.n_heads // self.cfg.n_kv_heads
        k, v = k.repeat_interleave(repeats, dim=2), v.repeat_interleave(repeats, dim=2)
        a = F.scaled_dot_product_attention(
            *(heads.transpose(1, 2) for heads in (q, k, v)), is_causal=True
        )
        x = x + self.wo(a.transpose(1, 2).flatten(2))
        h = self.mlp_norm(x)
        return x + self.w_down(F.silu(self.w_gate(h)) * self.w_up(h))


class TorchModel(nn.Module):
    def __init__(self, cfg, tied=False):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.d_model)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.n_layers))
        self.final_norm = nn.RMSNorm(cfg.d_model, eps=cfg.norm_eps)
        self.lm_head = nn.Linear(cfg.d_model, cfg.vocab, bias=False)
        if tied:
            self.lm_head.weight = self.embed.weight
        self.double()

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.final_norm(x))


def torch_model(params, cfg):
    """A `TorchModel` with the parameters of the numpy model; every one of its own is replaced."""
    tied = params["lm_head"] is None
    state = {
        "embed.weight": params["embed"],
        "final_norm.weight": params["final_norm"],
        "lm_head.weight": params["embed"] if tied else params["lm_head"].T,
    }
    for index, layer in enumerate(params["layers"]):
        for name, value in layer.items():
            state[f"layers.{index}.{name}.weight"] = value.T  # nn.Linear stores (out, in)
    model = TorchModel(cfg, tied)
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    return model


def torch_logits(params, cfg, tokens):
    with torch.no_grad():
        return torch_model(params, cfg)(torch.tensor(tokens)).numpy()
