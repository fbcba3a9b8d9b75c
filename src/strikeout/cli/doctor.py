"""The installation: doctor checks it, its settings and a book; completion prints a script for the shell."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from strikeout import __version__
from strikeout.cli import exit_codes
from strikeout.cli.book_commands import is_book
from strikeout.cli.configuration import PREFIX, SETTINGS, configuration, hand_down, variable_of
from strikeout.cli.options import output_options
from strikeout.errors import StrikeoutError, UsageError
from strikeout.tables import Table

if TYPE_CHECKING:
    from strikeout.cli.terminal import Output
    from strikeout.store.diagnostics import Finding

PACKAGES = ("numpy", "polars", "narwhals", "click", "rich", "matplotlib", "cryptography")
VARIABLES = {exit_codes.TRACEBACK, *map(variable_of, SETTINGS)}
SHELLS = ("bash", "zsh", "fish")
AGREE = 1e-12  # of the forward: how far the kernels may differ; measured 4e-14


@click.command("doctor")
@click.argument("book", type=click.Path(path_type=str), required=False)
@output_options
def doctor(book: str | None, output: Output) -> int:
    """Check this installation and its settings, and BOOK if one is named; change nothing in it.

    Ends with 1 if a check finds something. For a book it checks the file, the keys, every byte and the ledger;
    `strikeout verify BOOK` also calibrates again.
    """
    if book is not None and not is_book(book):
        raise UsageError(f"{book}: the name of a book ends in .book.", path=book)
    findings = [*_software(), *_settings()]
    from strikeout.store import diagnostics

    findings += diagnostics.engine()
    if book is not None:
        findings += diagnostics.book(Path(book))
    bad = [finding for finding in findings if not finding.is_well]
    looked_at = [{"name": one.name, "well": one.is_well, "seen": one.seen} for one in findings]
    rows = [(one.name, "ok" if one.is_well else "LOOK", one.seen) for one in findings]
    verdict = "All is well." if not bad else f"To look at: {', '.join(one.name for one in bad)}."
    return output.result(
        {"well": not bad, "findings": looked_at},
        Table(("check", "result", "found"), rows, whole=(0, 1)),
        "",
        verdict,
        code=exit_codes.FINDINGS if bad else exit_codes.DONE,
    )


def _software() -> list[Finding]:
    from strikeout.store.diagnostics import Finding

    found = [
        Finding("strikeout", True, __version__),
        Finding("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    ]
    for package in PACKAGES:
        try:
            found.append(Finding(package, True, version(package)))
        except PackageNotFoundError:
            found.append(Finding(package, False, f"is not installed. Install it: pip install {package}"))
    return [*found, _kernel()]


def _kernel() -> Finding:
    """Return which kernel is used, and whether it agrees with the definition in NumPy."""
    import numpy as np

    from strikeout.kernels.compiled import default_kernel, native
    from strikeout.models.heston import Heston
    from strikeout.quotes.contracts import Contracts
    from strikeout.store.diagnostics import Finding

    if native() is None:
        return Finding("kernel", True, "numpy; the compiled one is not installed, and calibrations take longer")
    contracts = Contracts(forward=100.0, strike=np.array([80.0, 100.0, 125.0]), expiry=0.5, discount=0.98, is_call=True)
    theta = Heston().parameters.starts[0]
    prices = [Heston(kernel=kernel).price(theta, contracts) for kernel in ("native", "numpy")]
    apart = float(np.max(np.abs(prices[0] - prices[1]))) / 100.0
    used = f"{default_kernel()}; compiled and NumPy agree to {apart:.1g} of the forward"
    return Finding("kernel", apart <= AGREE, used)


def _settings() -> list[Finding]:
    from strikeout.store.diagnostics import Finding

    try:
        configured = configuration()
    except StrikeoutError as error:
        return [Finding("settings", False, error.sentence)]
    hand_down(configured)  # so that a command and this check use the same key file
    values = [f"{name} = {value} ({configured.origins[name]})" for name, value in configured.values.items()]
    found = [Finding("settings", True, "; ".join(values) or "all at their defaults")]
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in VARIABLES)
    if unknown:
        found.append(Finding("variables", False, f"{', '.join(unknown)}: strikeout reads no such variable"))
    return found


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes strikeout's commands and options in SHELL.

    For example: strikeout completion bash >> ~/.bashrc
    """
    from strikeout.cli.group import COMPLETE, NAME, strikeout

    chosen = get_completion_class(shell)
    if chosen is None:
        raise click.UsageError(f"This click cannot complete in {shell}.")
    script = chosen(strikeout, {}, NAME, COMPLETE)
    click.echo(script.source_template % script.source_vars())
