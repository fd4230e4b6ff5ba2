"""Reference attention in torch: readable first, checked against everybody else's.

:class:`~configurator.attention.gqa.GroupedQueryAttention` is MHA, GQA and MQA;
:class:`~configurator.attention.mla.LatentAttention` is MLA, expanded and absorbed side by side.
"""
