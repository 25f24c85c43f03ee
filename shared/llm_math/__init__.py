"""llm_math: what a language model costs, from its sizes alone.

    LLAMA3_8B.params()                  # 8,030,261,248
    LLAMA3_8B.matmul_params()           # 7,504,658,432: what a decode step reads, times bytes
    LLAMA3_8B.kv_bytes_per_token(2)     # 131,072 bytes of keys and values for a token
    LLAMA3_8B.flops_per_token(4096)     # operations for a token that attends to 4,096
    DEEPSEEK_V3.params(active=True)     # of 671e9 parameters those that a token meets

What to try: how many tokens of KV weigh as much as the weights? With which context does attention
cost as many operations as all matrices? And what became of both from Llama to DeepSeek?
"""

from llm_math.config import MLA, ModelConfig, MoE
from llm_math.models import (
    DEEPSEEK_V2,
    DEEPSEEK_V3,
    LLAMA3_8B,
    LLAMA3_70B,
    LLAMA3_405B,
    MISTRAL_7B,
    MIXTRAL_8X7B,
    MODELS,
    QWEN2_5_7B,
    QWEN2_5_72B,
    QWEN3_4B,
    QWEN3_8B,
    QWEN3_30B_A3B,
)

__all__ = [
    "DEEPSEEK_V2",
    "DEEPSEEK_V3",
    "LLAMA3_8B",
    "LLAMA3_70B",
    "LLAMA3_405B",
    "MISTRAL_7B",
    "MIXTRAL_8X7B",
    "MLA",
    "MODELS",
    "QWEN2_5_7B",
    "QWEN2_5_72B",
    "QWEN3_4B",
    "QWEN3_8B",
    "QWEN3_30B_A3B",
    "MoE",
    "ModelConfig",
]
