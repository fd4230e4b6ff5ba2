"""List deployment targets, search them, or show one with its sources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.cli.options import Format, Output

if TYPE_CHECKING:
    from configurator.core.case import Device
    from configurator.render.document import Document

__all__ = ["targets"]


def targets(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT",
            help="A name, an alias or a TOML file to show; or words to search for.",
        ),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """List deployment targets, search them, or show one with its sources.

    A star marks figures that were not verified at a source. 4xNAME is four of a device, host is
    this machine, and a TOML file with the same keys describes any other.
    """
    from configurator.catalog.targets import aliases, describe, devices, names
    from configurator.cli.lookup import search
    from configurator.cli.output import deliver, form

    chosen = form(format, output)
    every = {d.name: d for d in devices()}
    short: dict[str, list[str]] = {}
    for alias, full in aliases().items():
        short.setdefault(full, []).append(alias)
    if text is not None and text.strip().casefold() == "host":
        here = _host()
        deliver(here, lambda: _one(here), chosen, output)
        return
    if text is None:
        found = list(every)
    elif text in names() or text in aliases() or text.endswith(".toml"):
        found = [text]
    else:
        bodies = {
            n: " ".join((n, d.title, d.vendor, d.kind, d.architecture, *short.get(n, ())))
            for n, d in every.items()
        }
        found = _counted(text) or search("target", text, bodies)
    if len(found) == 1:
        value: Any = describe(found[0])
        deliver(value, lambda: _one(value), chosen, output)
        return
    rows = [every[n] for n in found]
    value = {"targets": [describe(d.name) for d in rows]} if chosen == "json" else None
    deliver(value, lambda: _list(rows, short), chosen, output)


def _host() -> dict[str, Any]:
    """This machine in the form of a catalog entry; measured once ``calibrate`` has run."""
    from configurator.host import host_device, load_profile
    from configurator.target import describe

    device = host_device()
    profile = load_profile()
    basis = "calibrated" if profile else "class prior or catalog"
    figures = {
        "memory_gib": (device.memory_bytes / 2**30, "GiB"),
        "bandwidth_gb_s": (device.bandwidth_bytes_per_s / 1e9, "GB/s"),
    }
    for dtype, rate in device.flops_per_s.items():
        figures[f"{dtype}_dense_tflops"] = (rate / 1e12, "10^12 operations/s, dense")
    note = device.note or ("" if profile else "run `mha-configurator calibrate` to measure it")
    return {
        **describe(device),
        "aliases": [],
        "vendor": device.vendor,
        "architecture": device.architecture,
        "note": note,
        "figures": {
            name: {
                "value": round(value, 3),
                "unit": unit,
                "basis": "detected" if name == "memory_gib" else basis,
                "verified": name == "memory_gib" or bool(profile),
            }
            for name, (value, unit) in figures.items()
        },
    }


def _counted(text: str) -> list[str]:
    """``8xh100-sxm`` and the like are shown as they stand."""
    return [text] if re.match(r"\d+x", text) else []


def _list(rows: list[Device], short: dict[str, list[str]]) -> Document:
    from configurator.core.units import format_bytes
    from configurator.render.document import Document, Section, Table

    def row(d: Device) -> tuple[str, ...]:
        rate, _ = d.rate("bf16")
        return (
            d.name + ("" if d.verified else " *"),
            ", ".join(sorted(short.get(d.name, ()))),
            format_bytes(d.memory_bytes),
            f"{d.bandwidth_bytes_per_s / 1e9:,.0f} GB/s",
            f"{rate / 1e12:,.0f}" if rate else "unknown",
            str(d.year or ""),
        )

    kinds: dict[str, list[Device]] = {}
    for device in rows:
        kinds.setdefault(device.kind, []).append(device)
    header = ("Name", "Alias", "Memory", "Bandwidth", "bf16 TFLOP/s", "Year")
    sections = tuple(
        Section(
            title=kind,
            table=Table(header=header, rows=tuple(row(d) for d in group), right=(2, 3, 4, 5)),
        )
        for kind, group in kinds.items()
    )
    note = Section(lead="* not every figure was verified at a source; `targets NAME` says which.")
    starred = any(not d.verified for d in rows)
    return Document(
        title="Targets",
        answer=f"{len(rows)} targets",
        sections=(*sections, note) if starred else sections,
    )


def _one(value: dict[str, Any]) -> Document:
    from configurator.render.document import Document, Section, Table

    about = [("Name", value["name"]), ("Aliases", ", ".join(value["aliases"]) or "none")]
    for key in ("vendor", "kind", "architecture", "year", "memory_type", "interconnect"):
        if value.get(key):
            about.append((key.replace("_", " ").capitalize(), str(value[key])))
    if value["count"] > 1:
        about.append(("Devices", f"{value['count']} on {value['nodes']} machine(s)"))
    rows = tuple(
        (key, f"{f['value']:,}", f["unit"], f["basis"] + ("" if f["verified"] else " *"))
        for key, f in value["figures"].items()
    )
    return Document(
        title=f"Target {value['name']}",
        answer=value["title"] or value["name"],
        sections=(
            Section(title="About", facts=tuple(about)),
            Section(
                title="Figures of one device",
                table=Table(header=("Figure", "Value", "Unit", "Basis"), rows=rows, right=(1,)),
            ),
            Section(title="Note", lead=value["note"]),
            Section(title="Sources", points=tuple(value["sources"])),
            Section(
                lead="* not read at a source: general knowledge, derived, or a default of its class"
                if any(not f["verified"] for f in value["figures"].values())
                else ""
            ),
        ),
    )
