"""Parameters by formula, against what is published; bytes of KV and operations of a token."""

from dataclasses import fields, replace

import llm_math
import numpy as np
import pytest
import torch
from llm_math import (
    DEEPSEEK_V2,
    DEEPSEEK_V3,
    LLAMA3_8B,
    LLAMA3_70B,
    LLAMA3_405B,
    MISTRAL_7B,
    MIXTRAL_8X7B,
    MLA,
    MODELS,
    QWEN2_5_7B,
    QWEN2_5_72B,
    QWEN3_4B,
    QWEN3_8B,
    QWEN3_30B_A3B,
    ModelConfig,
    MoE,
)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformer_lab import TINY, init_params

from tests.transformer_lab.torch_model import torch_model


def named(models):
    return [pytest.param(*row, id=row[0].name) for row in models]


def of_tiny(tied=False):
    """The sizes of transformer_lab's TINY."""
    return ModelConfig(
        name="tiny",
        n_layers=TINY.n_layers,
        d_model=TINY.d_model,
        n_heads=TINY.n_heads,
        n_kv_heads=TINY.n_kv_heads,
        d_head=TINY.d_head,
        d_ff=TINY.d_ff,
        vocab=TINY.vocab,
        tied=tied,
    )


class TestPublished:
    #: Counted in the weights: KerasHub's presets (github.com/keras-team/keras-hub,
    #: keras_hub/src/models/*/*_presets.py), and for Llama 70B and 405B the size of the
    #: safetensors on Hugging Face ("70.6B", "406B").
    @pytest.mark.parametrize(
        ("model", "total"),
        named(
            [
                (LLAMA3_8B, 8_030_261_248),
                (LLAMA3_70B, 70_553_706_496),
                (LLAMA3_405B, 405_853_388_800),
                (MISTRAL_7B, 7_241_732_096),
                (MIXTRAL_8X7B, 46_702_792_704),
                (QWEN2_5_7B, 7_615_616_512),
                (QWEN2_5_72B, 72_706_203_648),
                (QWEN3_4B, 4_022_468_096),
                (QWEN3_8B, 8_190_735_360),
                (QWEN3_30B_A3B, 30_532_122_624),
            ]
        ),
    )
    def test_all_parameters(self, model, total):
        assert model.params() == total

    @pytest.mark.parametrize(
        ("model", "total", "active"),
        named(
            [
                (MIXTRAL_8X7B, 46.7, 12.9),  # mistral.ai/news/mixtral-of-experts
                (QWEN3_30B_A3B, 30.5, 3.35),  # its card: "30.5B in total and 3.3B activated"
                (DEEPSEEK_V2, 235.7, 21.4),  # arXiv 2405.04434: 236B, 21B
                (DEEPSEEK_V3, 671.0, 37.6),  # arXiv 2412.19437: 671B, 37B
            ]
        ),
    )
    def test_mixtures_of_experts_in_billions(self, model, total, active):
        assert model.params() / 1e9 == pytest.approx(total, abs=0.05)
        assert model.params(active=True) / 1e9 == pytest.approx(active, abs=0.05)

    def test_what_deepseek_counts_as_active(self):
        """README_WEIGHTS.md: 36.6B, with the 0.9B of the head, without the embedding's."""
        embedding = DEEPSEEK_V3.embedding_params()
        assert embedding / 1e9 == pytest.approx(0.9, abs=0.05)
        active = DEEPSEEK_V3.params(active=True) - embedding
        assert active / 1e9 == pytest.approx(36.6, abs=0.05)

    @pytest.mark.parametrize(
        ("model", "billions"),
        named([(QWEN2_5_7B, 6.53), (QWEN3_4B, 3.6), (QWEN3_8B, 6.95), (QWEN3_30B_A3B, 29.9)]),
    )
    def test_qwens_cards_without_embedding_and_head(self, model, billions):
        heads = 1 if model.tied else 2
        bare = model.params() - heads * model.embedding_params()
        assert bare / 1e9 == pytest.approx(billions, abs=0.04)

    def test_405b_with_the_kv_heads_of_its_first_release(self):
        """It had each of the eight heads twice, and counted 410B."""
        assert replace(LLAMA3_405B, n_kv_heads=16).params() / 1e9 == pytest.approx(410, abs=0.1)

    #: arXiv 2505.09343, "Insights into DeepSeek-V3", table 1; bf16.
    @pytest.mark.parametrize(
        ("model", "kilobytes"),
        named([(DEEPSEEK_V3, 70.272), (QWEN2_5_72B, 327.680), (LLAMA3_405B, 516.096)]),
    )
    def test_bytes_of_kv_for_a_token(self, model, kilobytes):
        assert model.kv_bytes_per_token(2) == kilobytes * 1000

    def test_deepseek_v2s_cache_is_that_of_2_25_groups(self):
        """Section 2.1.4 of its paper."""
        groups = replace(
            DEEPSEEK_V2, mla=None, moe=None, n_kv_heads=1, d_head=128
        ).kv_bytes_per_token(2)
        assert DEEPSEEK_V2.kv_bytes_per_token(2) == 2.25 * groups


class TestLlama8B:
    def test_matmul_parameters(self):
        assert LLAMA3_8B.layer_matmul_params() == 218_103_808
        assert LLAMA3_8B.matmul_params() == 7_504_658_432
        assert LLAMA3_8B.matmul_params() == 32 * 218_103_808 + 4096 * 128_256

    def test_kv(self):
        assert LLAMA3_8B.kv_bytes_per_token(2) == 131_072
        assert LLAMA3_8B.kv_bytes_per_token(1.0) == 65_536

    def test_operations_of_a_layer_are_those_that_torch_counts(self):
        """Prefill of 2,048 tokens, attention over all of them: 962.07 GFLOP (FlopCounterMode)."""
        T = 2048
        layer = replace(LLAMA3_8B, n_layers=1)
        head = 2 * layer.d_model * layer.vocab
        assert T * (layer.flops_per_token(T) - head) == pytest.approx(962.07e9, rel=5e-6)

    def test_operations_of_a_model_are_those_that_torch_counts(self):
        """Attention as two products of matrices computes masked positions, too: T for each."""
        T = 7
        model, sizes = torch_model(init_params(TINY), TINY), of_tiny()
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            model(torch.zeros((1, T), dtype=torch.int64))
        assert counter.get_total_flops() == T * sizes.flops_per_token(T)

    def test_operations_grow_with_the_context(self):
        assert LLAMA3_8B.flops_per_token(0) == 2 * LLAMA3_8B.matmul_params()
        # q·k and weight·v: 2 operations each for each of 128 elements of 32 heads in 32 layers.
        assert LLAMA3_8B.flops_per_token(1) - LLAMA3_8B.flops_per_token(0) == 4 * 128 * 32 * 32


class TestFormulas:
    @pytest.mark.parametrize("tied", [False, True])
    def test_they_count_the_parameters_that_transformer_lab_makes(self, tied):
        model = of_tiny(tied)
        params = init_params(TINY, tied=tied)
        arrays = [value for value in params.values() if isinstance(value, np.ndarray)]
        in_layers = [value for layer in params["layers"] for value in layer.values()]
        assert model.params() == sum(value.size for value in [*arrays, *in_layers])
        matrices = [value for value in in_layers if value.ndim == 2]
        head = params["embed"] if tied else params["lm_head"]  # a tied head is multiplied, too
        assert model.matmul_params() == sum(value.size for value in [*matrices, head])

    def test_of_experts_those_that_a_token_meets_are_active(self):
        d, f = MIXTRAL_8X7B.d_model, 14_336
        attention = 2 * d * d + 2 * d * 1024
        assert MIXTRAL_8X7B.layer_matmul_params() == attention + 8 * d + 8 * 3 * d * f
        assert MIXTRAL_8X7B.layer_matmul_params(active=True) == attention + 8 * d + 2 * 3 * d * f
        assert MIXTRAL_8X7B.flops_per_token(0) == 2 * MIXTRAL_8X7B.matmul_params(active=True)
        assert LLAMA3_8B.params(active=True) == LLAMA3_8B.params()

    def test_deepseeks_first_layers_are_dense(self):
        dense, mixed = DEEPSEEK_V3.layer_matmul_params(2), DEEPSEEK_V3.layer_matmul_params(3)
        d = DEEPSEEK_V3.d_model
        assert mixed - dense == d * 256 + 3 * d * 2048 * 257 - 3 * d * 18_432
        assert DEEPSEEK_V3.layer_matmul_params(2, active=True) == dense

    def test_latent_attention_by_its_matrices(self):
        H, d = 128, 7168
        matrices = [
            (d, 1536),  # queries down
            (1536, H * (128 + 64)),  # and up
            (d, 512 + 64),  # keys and values down, and the key's rotated part
            (512, H * 128),  # keys up
            (512, H * 128),  # values up
            (H * 128, d),
        ]
        attention = sum(rows * columns for rows, columns in matrices)
        assert DEEPSEEK_V3.layer_matmul_params(0) == attention + 3 * d * 18_432

    def test_deepseeks_vectors(self):
        """Two norms a layer and those of both latents, the last norm, biases of the routers."""
        vectors = DEEPSEEK_V3.params() - DEEPSEEK_V3.matmul_params() - 7168 * 129_280
        assert vectors == 61 * (2 * 7168 + 1536 + 512) + 7168 + 58 * 256

    def test_latent_attention_reads_what_it_stores(self):
        """Scores over 512 + 64 elements, sums over 512, for each of 128 heads."""
        per_position = DEEPSEEK_V3.flops_per_token(1) - DEEPSEEK_V3.flops_per_token(0)
        assert per_position == 61 * 128 * 2 * (512 + 64 + 512)


class TestModels:
    def test_each_is_listed_and_has_its_source(self):
        presets = [value for value in vars(llm_math).values() if isinstance(value, ModelConfig)]
        assert dict(MODELS) == {model.name: model for model in presets}
        assert len(MODELS) == 12
        for model in MODELS.values():
            assert model.source.startswith("https://huggingface.co/")

    def test_they_are_keys(self):
        assert {LLAMA3_8B: 1}[replace(LLAMA3_8B)] == 1

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            *(
                (
                    lambda name=field.name: {name: 0},
                    f"{field.name} is 0; it is a whole number, 1 or more",
                )
                for field in fields(ModelConfig)
                if field.type == "int"
            ),
            (lambda: {"n_layers": 1.5}, "n_layers is 1.5; it is a whole number"),
            (lambda: {"n_kv_heads": 5}, "32 query heads cannot share 5 KV heads equally"),
            (lambda: {"mla": MLA(1536, 512, 128, 64, 128)}, "n_kv_heads is 8; .* one latent"),
            (lambda: {"moe": MoE(8, 9, 14_336)}, "top_k is 9; .* 8 experts"),
            (
                lambda: {"moe": MoE(8, 2, 14_336, n_dense_layers=33)},
                "n_dense_layers is 33; .* 32 layers",
            ),
            (lambda: {"moe": MoE(8, 2, 14_336, n_shared=-1)}, "n_shared is -1"),
            (lambda: {"moe": MoE(0, 2, 14_336)}, "n_experts is 0"),
            (lambda: {"n_kv_heads": 1, "mla": MLA(0, 512, 128, 64, 128)}, "q_rank is 0"),
        ],
    )
    def test_what_makes_no_model_is_refused(self, change, message):
        with pytest.raises(ValueError, match=message):
            replace(LLAMA3_8B, **change())

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: LLAMA3_8B.layer_matmul_params(32), "there is no layer 32; there are 32"),
            (lambda: LLAMA3_8B.kv_bytes_per_token(0), "bytes_per_element is 0"),
            (lambda: LLAMA3_8B.flops_per_token(-1), "ctx is -1"),
        ],
    )
    def test_arguments_out_of_range_are_refused(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()
