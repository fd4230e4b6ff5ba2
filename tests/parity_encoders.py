"""Encoders that our counts are proven against: no cache, and weights to the last one."""

from __future__ import annotations

from typing import Any

from parity_model import Model

__all__ = ["ENCODERS"]

_BERT: dict[str, Any] = {
    "vocab_size": 500, "hidden_size": 96, "num_hidden_layers": 4, "num_attention_heads": 6,
    "intermediate_size": 176, "max_position_embeddings": 64,
}  # fmt: skip

ENCODERS = [
    Model(model_type="bert", cls="BertForMaskedLM", config=_BERT, feed=""),
    Model(model_type="bert", cls="BertModel", feed="",
          config={**_BERT, "architectures": ["BertModel"]}),
    Model(model_type="roberta", cls="RobertaForMaskedLM", config=_BERT, feed=""),
    Model(model_type="xlm-roberta", cls="XLMRobertaForMaskedLM", config=_BERT, feed=""),
    Model(model_type="electra", cls="ElectraForMaskedLM", feed="",
          config={**_BERT, "embedding_size": 32}),
    Model(model_type="distilbert", cls="DistilBertForMaskedLM", feed="",
          config={"vocab_size": 500, "dim": 96, "n_layers": 4, "n_heads": 6, "hidden_dim": 176,
                  "max_position_embeddings": 64}),
    Model(model_type="modernbert", cls="ModernBertForMaskedLM", config=_BERT, feed="",
          only_class={"pad_token_id": 0}),
    Model(model_type="eurobert", cls="EuroBertForMaskedLM", feed="",
          config={**_BERT, "num_key_value_heads": 2}, only_class={"pad_token_id": 0}),
    Model(model_type="albert", cls="AlbertForMaskedLM", feed="",
          config={**_BERT, "embedding_size": 32, "num_hidden_groups": 2, "inner_group_num": 2}),
    Model(model_type="deberta", cls="DebertaForMaskedLM", feed="",
          config={**_BERT, "relative_attention": True, "pos_att_type": "c2p|p2c"}),
    Model(model_type="deberta-v2", cls="DebertaV2ForMaskedLM", feed="",
          config={**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
                  "position_buckets": 12, "norm_rel_ebd": "layer_norm", "conv_kernel_size": 3,
                  "position_biased_input": False}),
    Model(model_type="megatron-bert", cls="MegatronBertForMaskedLM", config=_BERT, feed=""),
    Model(model_type="mpnet", cls="MPNetForMaskedLM", config=_BERT, feed=""),
    Model(model_type="nomic_bert", cls="NomicBertForMaskedLM", config=_BERT, feed=""),
    Model(model_type="roformer", cls="RoFormerForMaskedLM", feed="",
          config={**_BERT, "embedding_size": 32}),
    Model(model_type="bert-generation", cls="BertGenerationDecoder", config=_BERT, feed=""),
]  # fmt: skip
