"""Configurations, parameters and their shapes."""

from dataclasses import fields, replace

import numpy as np
import pytest
from transformer_lab import TINY, check_params, init_params


class TestConfig:
    def test_tiny_divides_by_1_2_4_and_8(self):
        for n in (1, 2, 4, 8):
            assert TINY.n_heads % n == TINY.d_ff % n == TINY.vocab % n == 0
        # At n = 8 there are more devices than KV heads: their K and V are replicated.
        assert TINY.n_kv_heads == 4

    def test_no_two_widths_of_tiny_are_equal(self):
        """So that a matrix that is transposed, or cut along the wrong axis, fits nowhere."""
        widths = [
            TINY.d_model,
            TINY.n_heads * TINY.d_head,
            TINY.n_kv_heads * TINY.d_head,
            TINY.d_ff,
            TINY.vocab,
        ]
        assert len(set(widths)) == len(widths)

    def test_a_device_of_tensor_parallelism_is_a_config_with_fewer_heads(self):
        assert replace(TINY, n_heads=2, n_kv_heads=2).d_head == TINY.d_head

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            *(
                ({field.name: 0}, rf"{field.name} is 0; it is 1 or more")
                for field in fields(TINY)
                if field.name not in ("norm_eps", "rope_theta")
            ),
            ({"d_ff": 2.5}, "d_ff is 2.5; it is a whole number"),
            ({"n_heads": 6}, "6 query heads cannot share 4 KV heads equally"),
            ({"n_heads": 2}, "2 query heads cannot share 4 KV heads equally"),
            ({"d_head": 5}, "d_head is 5; .* even"),
            ({"norm_eps": -1e-5}, "norm_eps is -1e-05; it is 0 or more"),
            ({"rope_theta": 0.0}, "rope_theta is 0.0; it is more than 0"),
        ],
    )
    def test_what_makes_no_model_is_refused(self, change, message):
        with pytest.raises(ValueError, match=message):
            replace(TINY, **change)


class TestInit:
    @pytest.mark.parametrize("tied", [False, True])
    def test_matrices_are_stored_in_out(self, tied):
        params = init_params(TINY, seed=0, tied=tied)
        assert params["embed"].shape == (104, 64)
        assert params["final_norm"].shape == (64,)
        assert (params["lm_head"] is None) if tied else params["lm_head"].shape == (64, 104)
        assert len(params["layers"]) == TINY.n_layers
        for layer in params["layers"]:
            assert {name: value.shape for name, value in layer.items()} == {
                "attn_norm": (64,),
                "wq": (64, 80),
                "wk": (64, 40),
                "wv": (64, 40),
                "wo": (80, 64),
                "mlp_norm": (64,),
                "w_gate": (64, 176),
                "w_up": (64, 176),
                "w_down": (176, 64),
            }
            assert all(value.dtype == np.float64 for value in layer.values())

    def test_a_seed_gives_the_same_numbers_and_another_gives_others(self):
        a, b, c = (init_params(TINY, seed) for seed in (0, 0, 1))
        assert np.array_equal(a["layers"][1]["wo"], b["layers"][1]["wo"])
        assert not np.array_equal(a["layers"][1]["wo"], c["layers"][1]["wo"])
        assert not np.array_equal(a["layers"][0]["wo"], a["layers"][1]["wo"])

    def test_tying_changes_nothing_but_the_head(self):
        free, tied = (init_params(TINY, 4, tied=flag) for flag in (False, True))
        assert np.array_equal(free["embed"], tied["embed"])
        assert np.array_equal(free["layers"][1]["w_down"], tied["layers"][1]["w_down"])

    def test_no_norm_is_all_ones(self):
        """A norm whose weights were ones could be forgotten unnoticed."""
        params = init_params(TINY)
        for weight in (params["final_norm"], *(lay["attn_norm"] for lay in params["layers"])):
            assert np.std(weight) > 0.01


class TestCheck:
    def test_what_init_gives_passes(self):
        check_params(init_params(TINY), TINY)
        check_params(init_params(TINY, tied=True), TINY)

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda p: p.pop("embed"), "embed is missing"),
            (lambda p: p.pop("lm_head"), "lm_head is missing; where it is tied, it is None"),
            (lambda p: p.update(bias=np.zeros(3)), "bias is no parameter of this model"),
            (lambda p: p["layers"].pop(), "there are 1 layers; n_layers is 2"),
            (lambda p: p["layers"][1].pop("wk"), r"layers\[1\]\.wk is missing"),
            (
                lambda p: p["layers"][0].update(wq=p["layers"][0]["wq"].T),
                r"layers\[0\]\.wq has shape \(80, 64\); this model needs \(64, 80\)",
            ),
            (
                lambda p: p.update(final_norm=np.ones(64, np.float32)),
                "final_norm is of float32; it needs float64",
            ),
            (lambda p: p.update(embed=[[0.0]]), "embed is a list; give a numpy array"),
            (lambda p: p.update(embed=None), "embed is a NoneType; give a numpy array"),
        ],
    )
    def test_what_does_not_fit_is_named(self, spoil, message):
        params = init_params(TINY)
        spoil(params)
        with pytest.raises(ValueError, match=message):
            check_params(params, TINY)
