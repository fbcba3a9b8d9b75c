"""Errors are checked by class, mentioned arguments and facts: codes are stable, sentences may be reworded."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from strikeout.errors import StrikeoutError


@contextmanager
def raises(
    kind: type[StrikeoutError], /, *, mentions: Collection[str] = (), **facts: Any
) -> Iterator[pytest.ExceptionInfo[StrikeoutError]]:
    """Check that the block raises this error, that its message mentions these arguments, and that it has these facts.

    Args:
        mentions: all arguments that the message mentions; not checked if there are none.
        facts: some of the facts of the error.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert not mentions or error.arguments == set(mentions), error.arguments
    found = {name: error.facts.get(name) for name in facts}
    assert found == facts
