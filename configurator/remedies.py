"""What would make a case fit that does not: each remedy tried, with its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from configurator.core import cost
from configurator.core.case import Case
from configurator.core.dtypes import CacheType, cache_type, dtype
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import ModelShape, Scope
from configurator.core.units import format_bytes

__all__ = ["remedies"]


def remedies(case: Case, around: Callable[[Attention], Case]) -> tuple[str, ...]:
    """What would make a case that does not fit fit, each tried and with its numbers.

    ``around`` gives the case of another attention at the same parameter budget.
    """
    if case.device is None:
        return ()
    found: list[str] = []
    work = case.workload

    def fits(changed: Case) -> bool:
        return bool(cost.memory(changed).fits)

    longest = cost.max_context(case)
    if longest > 0:
        found.append(f"a context of {longest:,} tokens fits with this batch and geometry")
    batch = int(cost.max_batch(case))
    if 0 < batch < work.batch:
        found.append(f"a batch of {batch} fits at {work.context:,} tokens")
    a = case.attention
    tries: list[tuple[str, Case]] = []
    for name in ("fp8", "q4_0"):
        if _smaller(name, work.kv):
            quantised = replace(work, kv=cache_type(name))
            tries.append((f"--kv-dtype {name}", replace(case, workload=quantised)))
    if isinstance(a, GroupedQuery):
        fewer = [n for n in (4, 2, 1) if n < a.n_kv_heads and a.n_heads % n == 0]
        tries += [
            (f"{n} KV head{'s' if n > 1 else ''}", around(replace(a, n_kv_heads=n))) for n in fewer
        ]
        latent = Latent(d_model=a.d_model, n_heads=a.n_heads, kv_lora_rank=512)
        if case.shape.arch == "decoder" and cost.params_total(case.shape) >= 1e9:
            tries.append(("MLA (rank 512)", around(latent)))
    tries = [(text, changed) for text, changed in tries if _possible(changed)]
    windowed = _windowed(case, 4096, 6)
    if case.shape.arch == "decoder" and cost.cache_bytes(windowed) < cost.cache_bytes(case):
        tries.append(("--window 4096 --full-every 6", windowed))
        if _smaller("fp8", work.kv):
            both = replace(windowed, workload=replace(work, kv=cache_type("fp8")))
            tries.append(("--window 4096 --full-every 6 --kv-dtype fp8", both))
    stored = dtype(work.weight_dtype).bytes_per_element
    if stored > 1:
        eight = replace(work, weight_dtype="int8")
        tries.insert(0, ("--weight-dtype int8", replace(case, workload=eight)))
    if stored > dtype("q4_0").bytes_per_element:
        four = replace(work, weight_dtype="q4_0")
        if _smaller("fp8", work.kv):
            light = replace(case, workload=replace(four, kv=cache_type("fp8")))
            tries.append(("4-bit weights and an fp8 cache", light))
        else:
            tries.append(("--weight-dtype q4_0", replace(case, workload=four)))
    short: list[str] = []
    for text, changed in tries:
        if fits(changed):
            found.append(f"with {text} it fits: {format_bytes(cost.cache_bytes(changed))} of cache")
        elif cost.max_context(changed) > max(longest, 0):
            reach = cost.max_context(changed)
            short.append(f"with {text} it reaches {reach:,} tokens, not {work.context:,}")
    devices = case.device.count
    for factor in (2, 4, 8, 16, 32):
        bigger = replace(case.device, count=devices * factor)
        wide = replace(work, tensor_parallel=work.tensor_parallel * factor)
        if a.n_heads % wide.tensor_parallel == 0 and fits(
            replace(case, device=bigger, workload=wide)
        ):
            found.append(f"{devices * factor} devices with --tensor-parallel "
                         f"{wide.tensor_parallel} fit")  # fmt: skip
            break
    return tuple(found + short) or (_far_too_large(case),)


def _far_too_large(case: Case) -> str:
    """What to say where no single remedy helps: how many devices hold the bytes, at least."""
    m = cost.memory(case)
    needed = m.weights_bytes + m.cache_bytes
    each = (m.capacity_bytes - m.reserve_bytes) // (case.device.count if case.device else 1)
    held = f"weights{' and cache' if m.cache_bytes else ''} take {format_bytes(needed)}"
    if each <= 0:
        return f"{held}, and one device has no room beside its reserve; take a larger device"
    return (
        f"{held}, one device has room for {format_bytes(each)}: {-(-needed // each):,} of them at "
        "least, larger ones, or fewer parameters; no other type of weights or cache is enough"
    )


def _smaller(name: str, kv: CacheType) -> bool:
    """Whether neither keys nor values grow in a cache of this type, and one of them shrinks."""
    each = dtype(name).bytes_per_element
    sizes = (kv.k.bytes_per_element, kv.v.bytes_per_element)
    return each <= min(sizes) and each < max(sizes)


def _possible(case: Case) -> bool:
    """Whether the budget leaves a feed-forward beside the attention."""
    feed_forward = case.shape.feed_forward
    return feed_forward is None or feed_forward.d_ff > 0


def _windowed(case: Case, window: int, full_every: int) -> Case:
    """Every layer anew: one in ``full_every`` keeps the whole context, the others a window."""
    group, layers = case.shape.main, case.shape.n_layers
    full = layers // full_every
    groups = (
        replace(group, count=full, scope=Scope("full")),
        replace(group, count=layers - full, scope=Scope("window", window)),
    )
    shape: ModelShape = replace(case.shape, groups=groups)
    return replace(case, shape=shape)
