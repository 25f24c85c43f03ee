"""Models by their published sizes: each from its config.json.

That a formula's total is the number of parameters that were counted in the weights is a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from llm_math.config import MLA, ModelConfig, MoE

#: Llama 3 and 3.1 (arXiv 2407.21783, table 3) have the same sizes.
LLAMA3_8B = ModelConfig(
    name="Llama-3.1-8B",
    n_layers=32,
    d_model=4096,
    n_heads=32,
    n_kv_heads=8,
    d_head=128,
    d_ff=14_336,
    vocab=128_256,
    source="https://huggingface.co/meta-llama/Llama-3.1-8B/blob/main/config.json",
)
LLAMA3_70B = ModelConfig(
    name="Llama-3.1-70B",
    n_layers=80,
    d_model=8192,
    n_heads=64,
    n_kv_heads=8,
    d_head=128,
    d_ff=28_672,
    vocab=128_256,
    source="https://huggingface.co/meta-llama/Llama-3.1-70B/blob/main/config.json",
)
#: 8 KV heads, as the paper has it. The weights that were first released held each of them twice.
LLAMA3_405B = ModelConfig(
    name="Llama-3.1-405B",
    n_layers=126,
    d_model=16_384,
    n_heads=128,
    n_kv_heads=8,
    d_head=128,
    d_ff=53_248,
    vocab=128_256,
    source="https://huggingface.co/meta-llama/Llama-3.1-405B/blob/main/config.json",
)
#: Its window of 4,096 positions bounds ctx; the arithmetic knows nothing of it.
MISTRAL_7B = ModelConfig(
    name="Mistral-7B",
    n_layers=32,
    d_model=4096,
    n_heads=32,
    n_kv_heads=8,
    d_head=128,
    d_ff=14_336,
    vocab=32_000,
    source="https://huggingface.co/mistralai/Mistral-7B-v0.1/blob/main/config.json",
)
MIXTRAL_8X7B = ModelConfig(
    name="Mixtral-8x7B",
    n_layers=32,
    d_model=4096,
    n_heads=32,
    n_kv_heads=8,
    d_head=128,
    d_ff=14_336,
    vocab=32_000,
    moe=MoE(n_experts=8, top_k=2, d_expert=14_336),
    source="https://huggingface.co/mistralai/Mixtral-8x7B-v0.1/blob/main/config.json",
)
QWEN2_5_7B = ModelConfig(
    name="Qwen2.5-7B",
    n_layers=28,
    d_model=3584,
    n_heads=28,
    n_kv_heads=4,
    d_head=128,
    d_ff=18_944,
    vocab=152_064,
    qkv_bias=True,
    source="https://huggingface.co/Qwen/Qwen2.5-7B/blob/main/config.json",
)
QWEN2_5_72B = ModelConfig(
    name="Qwen2.5-72B",
    n_layers=80,
    d_model=8192,
    n_heads=64,
    n_kv_heads=8,
    d_head=128,
    d_ff=29_568,
    vocab=152_064,
    qkv_bias=True,
    source="https://huggingface.co/Qwen/Qwen2.5-72B/blob/main/config.json",
)
#: Tied, and H·d_head = 4,096 is not d_model.
QWEN3_4B = ModelConfig(
    name="Qwen3-4B",
    n_layers=36,
    d_model=2560,
    n_heads=32,
    n_kv_heads=8,
    d_head=128,
    d_ff=9728,
    vocab=151_936,
    tied=True,
    qk_norm=True,
    source="https://huggingface.co/Qwen/Qwen3-4B/blob/main/config.json",
)
QWEN3_8B = ModelConfig(
    name="Qwen3-8B",
    n_layers=36,
    d_model=4096,
    n_heads=32,
    n_kv_heads=8,
    d_head=128,
    d_ff=12_288,
    vocab=151_936,
    qk_norm=True,
    source="https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json",
)
#: No layer is dense; d_ff stands in the config.json, and is not used.
QWEN3_30B_A3B = ModelConfig(
    name="Qwen3-30B-A3B",
    n_layers=48,
    d_model=2048,
    n_heads=32,
    n_kv_heads=4,
    d_head=128,
    d_ff=6144,
    vocab=151_936,
    qk_norm=True,
    moe=MoE(n_experts=128, top_k=8, d_expert=768),
    source="https://huggingface.co/Qwen/Qwen3-30B-A3B/blob/main/config.json",
)
_LATENT = MLA(q_rank=1536, kv_rank=512, d_nope=128, d_rope=64, d_v=128)
DEEPSEEK_V2 = ModelConfig(
    name="DeepSeek-V2",
    n_layers=60,
    d_model=5120,
    n_heads=128,
    n_kv_heads=1,
    d_head=128,
    d_ff=12_288,
    vocab=102_400,
    moe=MoE(n_experts=160, top_k=6, d_expert=1536, n_shared=2, n_dense_layers=1),
    mla=_LATENT,
    source="https://huggingface.co/deepseek-ai/DeepSeek-V2/blob/main/config.json",
)
#: Without the module that predicts a second token: 11.5e9 parameters more.
DEEPSEEK_V3 = ModelConfig(
    name="DeepSeek-V3",
    n_layers=61,
    d_model=7168,
    n_heads=128,
    n_kv_heads=1,
    d_head=128,
    d_ff=18_432,
    vocab=129_280,
    moe=MoE(n_experts=256, top_k=8, d_expert=2048, n_shared=1, n_dense_layers=3, router_bias=True),
    mla=_LATENT,
    source="https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/config.json",
)

#: All of them, by name.
MODELS: Mapping[str, ModelConfig] = MappingProxyType(
    {
        model.name: model
        for model in (
            LLAMA3_8B,
            LLAMA3_70B,
            LLAMA3_405B,
            MISTRAL_7B,
            MIXTRAL_8X7B,
            QWEN2_5_7B,
            QWEN2_5_72B,
            QWEN3_4B,
            QWEN3_8B,
            QWEN3_30B_A3B,
            DEEPSEEK_V2,
            DEEPSEEK_V3,
        )
    }
)
