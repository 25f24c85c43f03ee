"""How many parameters a model has, what a token costs, and what of it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral


@dataclass(frozen=True)
class MoE:
    """Mixture of experts instead of the MLP: a router sends each token to some of many.

    Attributes:
        n_experts: experts that the router chooses from.
        top_k: experts that it chooses for each token.
        d_expert: width of an expert.
        n_shared: experts of the same width, besides, that every token meets.
        n_dense_layers: so many layers, the first, have an ordinary MLP of width d_ff instead.
        router_bias: the router has a bias for each expert (DeepSeek-V3, to balance the load).
    """

    n_experts: int
    top_k: int
    d_expert: int
    n_shared: int = 0
    n_dense_layers: int = 0
    router_bias: bool = False

    def __post_init__(self) -> None:
        _check_counts(self, "n_experts", "top_k", "d_expert")
        for name in ("n_shared", "n_dense_layers"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it is 0 or more")
        if self.top_k > self.n_experts:
            raise ValueError(f"top_k is {self.top_k}; there are {self.n_experts} experts")


@dataclass(frozen=True)
class MLA:
    """Multi-head latent attention: what is cached is one narrow vector for all heads.

    Source: DeepSeek-V2 (arXiv 2405.04434), section 2.1.

    Attributes:
        q_rank: width of the queries' latent.
        kv_rank: width of the latent that keys and values are made of; it is cached.
        d_nope: elements of a head's query and key that are not rotated.
        d_rope: rotated ones; the key's, shared by all heads, are cached as well.
        d_v: elements of a head's value.
    """

    q_rank: int
    kv_rank: int
    d_nope: int
    d_rope: int
    d_v: int

    def __post_init__(self) -> None:
        _check_counts(self, "q_rank", "kv_rank", "d_nope", "d_rope", "d_v")


@dataclass(frozen=True)
class ModelConfig:
    """A decoder-only transformer with RMSNorm and gated MLPs, by its sizes.

    Attributes:
        name: for titles.
        n_layers: layers L.
        d_model: width d.
        n_heads: query heads H.
        n_kv_heads: heads G of what is cached: with `mla` one, for it is shared by all heads.
        d_head: width of a head; with `mla` that of its values.
        d_ff: width of the MLP (three matrices d × d_ff).
        vocab: rows of the embedding, padding included.
        tied: the embedding is the head, too.
        qkv_bias: queries, keys and values have biases (Qwen2.5).
        qk_norm: the heads of queries and keys are normed (Qwen3): two vectors of d_head a layer.
        moe: experts instead of the MLP.
        mla: latent attention instead of grouped-query attention.
        source: where the sizes stand.

    Raises:
        ValueError: no model has these sizes.
    """

    name: str
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    vocab: int
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    moe: MoE | None = None
    mla: MLA | None = None
    source: str = ""

    def __post_init__(self) -> None:
        _check_counts(
            self, "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "vocab"
        )
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"{self.n_heads} query heads cannot share {self.n_kv_heads} KV heads equally; "
                "n_heads is a multiple of n_kv_heads"
            )
        if self.mla is not None and self.n_kv_heads != 1:
            raise ValueError(
                f"n_kv_heads is {self.n_kv_heads}; with latent attention it is 1: one latent is "
                "cached for all heads"
            )
        if self.moe is not None and self.moe.n_dense_layers > self.n_layers:
            raise ValueError(
                f"n_dense_layers is {self.moe.n_dense_layers}; there are {self.n_layers} layers"
            )

    def params(self, *, active: bool = False) -> int:
        """All parameters.

        Args:
            active: of the experts count only those that one token meets. The embedding counts
                whole, as Mistral and Qwen do; DeepSeek leaves it out (`embedding_params`).
        """
        norms = (2 * self.n_layers + 1) * self.d_model
        in_attention = self.n_layers * self._attention_vectors()
        router = 0
        if self.moe is not None and self.moe.router_bias:
            router = (self.n_layers - self.moe.n_dense_layers) * self.moe.n_experts
        # A tied head is the embedding: it is among the matmul parameters, and counts once.
        embedding = 0 if self.tied else self.embedding_params()
        return self.matmul_params(active=active) + embedding + norms + in_attention + router

    def matmul_params(self, *, active: bool = False) -> int:
        """Parameters that tokens are multiplied with: all matrices of the layers, and the head.

        They are what a step reads of the weights, and twice as many operations are done for each
        token. Not the embedding, of which a row is looked up; a tied one counts as the head.

        Args:
            active: of the experts count only those that one token meets. Without it all count:
                what a step reads if its batch is so large that every expert is met.
        """
        layers = sum(
            self.layer_matmul_params(layer, active=active) for layer in range(self.n_layers)
        )
        return layers + self.embedding_params()

    def layer_matmul_params(self, layer: int = 0, *, active: bool = False) -> int:
        """The matmul parameters of one layer.

        Args:
            layer: its number, from 0; layers differ where `moe` has dense ones.
            active: as `matmul_params`.

        Raises:
            ValueError: no such layer.
        """
        if not 0 <= layer < self.n_layers:
            raise ValueError(f"there is no layer {layer}; there are {self.n_layers}, from 0")
        return self._attention_matrices() + self._mlp_matrices(layer, active)

    def embedding_params(self) -> int:
        """vocab · d: the embedding, or the head."""
        return self.vocab * self.d_model

    def kv_bytes_per_token(self, bytes_per_element: float = 2) -> float:
        """Bytes that the cache keeps for each token of each sequence, in all layers.

        2·L·G·d_head elements; with latent attention L·(kv_rank + d_rope). DeepSeek-V3: 70,272 B.

        Args:
            bytes_per_element: 2 for bf16.

        Raises:
            ValueError: it is not positive.
        """
        if not bytes_per_element > 0:
            raise ValueError(f"bytes_per_element is {bytes_per_element}; it is more than 0")
        if self.mla is not None:
            return self.n_layers * (self.mla.kv_rank + self.mla.d_rope) * bytes_per_element
        return 2 * self.n_layers * self.n_kv_heads * self.d_head * bytes_per_element

    def flops_per_token(self, ctx: float) -> float:
        """Operations of the forward for one token; a multiply-add is two.

        2 for each (active) matmul parameter, and in each layer 4·H·d_head for each position that
        the token attends to: q·k, and weight times v. As torch's FlopCounterMode counts: products
        of matrices alone, without norms, rotations, softmax. With latent attention, which attends
        to the latent itself in decoding (the matrices up are absorbed into those before and after,
        which costs the same), 2·H·(2·kv_rank + d_rope).

        Args:
            ctx: positions that the token attends to, its own included. For a causal prefill of T
                tokens (T + 1)/2 on average; T if masked positions are computed as well.

        Raises:
            ValueError: `ctx` is negative.
        """
        if not ctx >= 0:
            raise ValueError(f"ctx is {ctx}; it is 0 or more")
        if self.mla is not None:
            per_head = 2 * (2 * self.mla.kv_rank + self.mla.d_rope)
        else:
            per_head = 4 * self.d_head
        attention = self.n_layers * self.n_heads * per_head * ctx
        return 2 * self.matmul_params(active=True) + attention

    def _attention_matrices(self) -> int:
        d, H = self.d_model, self.n_heads
        if self.mla is None:
            return d * self.d_head * (2 * H + 2 * self.n_kv_heads)  # wq, wo; wk, wv
        m = self.mla
        queries = d * m.q_rank + m.q_rank * H * (m.d_nope + m.d_rope)
        keys_and_values = d * (m.kv_rank + m.d_rope) + m.kv_rank * H * (m.d_nope + m.d_v)
        return queries + keys_and_values + H * m.d_v * d

    def _attention_vectors(self) -> int:
        """Parameters of a layer's attention that are no matrices."""
        biases = self.d_head * (self.n_heads + 2 * self.n_kv_heads) if self.qkv_bias else 0
        norms = 2 * self.d_head if self.qk_norm else 0
        latents = self.mla.q_rank + self.mla.kv_rank if self.mla is not None else 0
        return biases + norms + latents

    def _mlp_matrices(self, layer: int, active: bool) -> int:
        d = self.d_model
        if self.moe is None or layer < self.moe.n_dense_layers:
            return 3 * d * self.d_ff
        m = self.moe
        experts = m.n_shared + (m.top_k if active else m.n_experts)
        return d * m.n_experts + 3 * d * m.d_expert * experts  # the router, and the experts


def _check_counts(sizes: object, *names: str) -> None:
    for name in names:
        value = getattr(sizes, name)
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} is {value}; it is a whole number, 1 or more")
