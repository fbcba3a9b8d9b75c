"""The command ``strikeout`` itself: its subcommands, imported on demand, and the one place that handles errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click

from strikeout import __version__
from strikeout.cli.exit_codes import EXIT_CODES, conclude

NAME = "strikeout"
COMPLETE = "_STRIKEOUT_COMPLETE"

# Command -> its module and function, and the line shown in the help, which must not import the module.
COMMANDS = {
    "demo": ("demo:demo", "Show three bad days that spoil a calibration, found, struck out and checked."),
    "sample": ("inspect:sample", "Write a file of synthetic quotes to try things on."),
    "inspect": ("inspect:inspect", "Show how a file of quotes is read: columns, units, bad rows."),
    "profiles": ("inspect:profiles", "List the supported layouts of vendors' files, or show one."),
    "rules": ("rules:rules", "List the rules for quotes, or count what each finds in a file."),
    "rule": ("rules:rule", "Explain one rule by its code."),
    "calibrate": ("calibrate:calibrate", "Calibrate a model to a file of quotes, or to a book."),
    "plot": ("report:plot", "Draw smiles, residuals, total variance or influence; or their numbers as JSON."),
    "filter": ("paths:filter_path", "Filter and smooth the variance of a panel from date to date."),
    "regimes": ("paths:regimes", "Find regimes in the dates of a panel: parameters that switch between values."),
    "influence": ("influence:influence", "List the quotes or groups of quotes with the largest influence."),
    "outliers": ("influence:outliers", "List the quotes that fit the smile of their neighbours least."),
    "robustness": ("influence:robustness", "Find the few quotes whose removal changes a conclusion most."),
    "compare-models": ("calibrate:compare_models", "Compare several models on the same quotes."),
    "fleet": ("fleet:fleet", "Remove quotes from every book of a folder: plans, approval and evidence."),
    "scale": ("scale:scale", "Compute on quotes in many files: states, calibrations, removals, on any engine."),
    "forget": ("forget:forget", "Strike quotes out of a calibration, as if they had never been seen."),
    "verify": ("verify:verify", "Check a book, or a certificate against the retained quotes."),
    "paper": ("paper:paper", "Run the paper's experiments and write a report."),
    "init": ("book:init", "Make a new book: a file of quotes, calibrations and a ledger of changes."),
    "import": ("imports:import_quotes", "Append a file of quotes to a book."),
    "status": ("book:status", "Show what a book holds and whether its calibration is current."),
    "apply": ("forget:apply", "Do what a plan of forget contains."),
    "restore": ("forget:restore", "Bring back the quotes of a forget."),
    "learn": ("imports:learn", "Append quotes to a book and calibrate it with them, in one step."),
    "roll": ("imports:roll", "Learn new quotes and forget old ones, in one step."),
    "erase": ("erase:erase", "Make quotes of a book unrecoverable; a rehearsal without --yes."),
    "residue": ("erase:residue", "Search a book for what its erasures should have removed."),
    "log": ("book:log", "List the entries of a book's ledger: who, what, when, why."),
    "history": ("book:history", "Show parameters, standard errors and fit of a book over its entries."),
    "certificate": ("book:certificate", "Show the certificate of an entry of the log."),
    "compare": ("book:compare", "Compare the states and parameters of two books."),
    "export": ("book:export", "Write a book's quotes or results for other programs."),
    "summary": ("book:summary", "Show a book, its calibration and its quotes in a few lines."),
    "report": ("report:report", "Write one page on a book: fit, influence, log and certificate."),
    "evidence": ("erase:evidence", "Write a printable page on removals: who asked, who approved, what is proved."),
    "request": ("requests:request", "Ask for a strike-out or an erasure that a second person approves."),
    "requests": ("requests:requests", "List the requests of a book and who decided."),
    "approve": ("requests:approve", "Approve the request of another person."),
    "reject": ("requests:reject", "Reject the request of another person."),
    "withdraw": ("requests:withdraw", "Withdraw a request of your own."),
    "approval": ("book:approval", "Show or set whether removals from a book need a second person."),
    "serve": ("serve:serve", "Serve the books of a folder to browsers and programs."),
    "token": ("serve:token", "Make a token with which a person signs in to strikeout serve."),
    "keygen": ("book:keygen", "Make a key with which forget signs the certificates of files."),
    "rotate-key": ("book:rotate_key", "Give a book a new key to sign its ledger with."),
    "doctor": ("doctor:doctor", "Check this installation, its settings and a book."),
    "completion": ("doctor:completion", "Print the script that completes commands in your shell."),
}
UNCONFIGURED = ("completion", "demo", "doctor")  # these run without the settings of strikeout.toml


class Commands(click.Group):
    """A group that imports each command only when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(f"strikeout.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; options that are not given have the values of variables and strikeout.toml."""
        near = get_close_matches(args[0], COMMANDS, n=1) if args and args[0] not in COMMANDS else []
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name not in UNCONFIGURED:
            from strikeout.cli.configuration import configuration, hand_down

            configured = configuration()
            hand_down(configured)
            values = dict(configured.values)
            below = dict.fromkeys(command.commands, values) if isinstance(command, click.Group) else {}
            ctx.default_map = {name: {**values, **below}}
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Run a command and end the process with its exit code, or with an error in a sentence.

        It replaces click's own, which ends a broken pipe with 1 and prints interruptions and errors differently.
        """
        words = list(sys.argv[1:] if args is None else args)
        try:
            _complete_if_asked(self)
            with self.make_context(NAME, words) as context:
                code = self.invoke(context)
            sys.stdout.flush()
        except BaseException as error:
            code = conclude(error, as_json="--json" in words or "json" in _formats(words))
        sys.exit(code if isinstance(code, int) else 0)


def _formats(words: Sequence[str]) -> list[str]:
    """Return the values of --format among the words of a command line."""
    after = [words[place + 1] for place, word in enumerate(words[:-1]) if word == "--format"]
    return after + [word.partition("=")[2] for word in words if word.startswith("--format=")]


def _complete_if_asked(group: click.Group) -> None:
    """Answer the shell and end, if it asks for completions through an environment variable."""
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(group, {}, NAME, COMPLETE, instruction))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
)
@click.version_option(__version__, prog_name=NAME, message="%(prog)s %(version)s")
def strikeout() -> None:
    """Calibrate option models to quotes, and strike quotes out as if they had never been seen."""
