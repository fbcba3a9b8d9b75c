"""Bodies of requests and answers, as the description of the interface (OpenAPI) has them.

An answer may have more members than are listed: those that are listed are always there.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Numbers = dict[str, float | None]
Approval = Literal["one-person", "two-person"]
EVENT = {  # of a stream of server-sent events about a job
    "type": "object",
    "properties": {"event": {"enum": ["progress", "over"]}, "data": {"type": "string"}},
    "required": ["event", "data"],
}
Outcome = Literal["open", "approved", "rejected", "withdrawn", "done", "lapsed", "expired"]


class Answer(BaseModel):
    """An answer; it may have more members."""

    model_config = ConfigDict(extra="allow")


class ProblemDetails(Answer):
    """Why a request was not answered (RFC 9457). Other members are the facts of the error."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class Glance(Answer):
    """A book of a list. One that cannot be opened has its ``problem`` and no other member but ``name``."""

    name: str
    problem: ProblemDetails | None = None


class Books(BaseModel):
    """The books of the folder."""

    books: list[Glance]


class BookStatus(Answer):
    """A book: how many quotes it has in which state, its calibration, and the head of its ledger."""

    name: str
    held: int
    set_aside: int
    quarantined: int
    erased: int
    entries: int
    head: str
    key: str
    current: bool
    approval: Approval
    open_requests: int
    calibration: dict[str, Any] | None


class Stage(Answer):
    """A calibration in the history of a book."""

    entry: int
    when: str
    who: str
    what: str
    count: int
    converged: bool
    parameters: dict[str, float]
    standard_errors: Numbers
    rmse: float


class Versions(BaseModel):
    """The calibrations of a book, the first first."""

    stages: list[Stage]


class Version(Answer):
    """A calibration: parameters with standard errors, fit, and how it ended."""

    entry: int
    model: str
    parameters: dict[str, float]
    standard_errors: Numbers
    rmse: float
    count: int
    converged: bool
    termination: str


class QuoteList(BaseModel):
    """A page of quotes, how many match in all, and the cursor of the next page."""

    total: int
    cursor: str | None
    quotes: list[dict[str, Any]]


class Influence(Answer):
    """Influence by group, as columns; ``conditions`` select the groups."""

    columns: dict[str, list[Any]]
    conditions: list[str | None]
    count: int
    rmse: float
    head: str


class Chart(Answer):
    """The numbers of a picture."""

    kind: str
    head: str


class PlanShown(Answer):
    """What striking quotes out will do; ``plan`` can be applied with forget."""

    count: int
    retained: int
    before: dict[str, float]
    parameters: dict[str, float]
    moved: Numbers
    claims: dict[str, bool]
    plan: str
    head: str


class LedgerEntry(Answer):
    """An entry of the ledger."""

    number: int
    at: str
    who: str
    what: str
    counts: dict[str, int]
    reading: dict[str, str]
    hash: str
    needed_approval: bool
    approved_by_entry: int | None


class Log(BaseModel):
    """The ledger, the first entry first."""

    entries: list[LedgerEntry]


class RequestShown(Answer):
    """A request for a removal and its outcome."""

    request: int
    what: Literal["forget", "erase", "one-person"]
    who: str
    at: str
    count: int
    state: Outcome
    by: str
    done: int | None
    until: str


class Requests(BaseModel):
    """Every request, the first first."""

    requests: list[RequestShown]


class Verification(Answer):
    """The check of a whole book."""

    verdict: str
    holds: bool
    checks: list[dict[str, Any]]
    head: str


class Comparison(Answer):
    """Two books: whether states and parameters are the same bit for bit, and how far they are apart."""

    same_state: bool
    same_parameters: bool
    parameters: dict[str, list[float | None]]
    apart: Numbers
    counts: list[int]
    head: str


class ChangeDone(Answer):
    """A calibration that was made by a change, and the move of its parameters in standard errors."""

    entry: int
    what: str
    touched: int
    parameters: dict[str, float]
    moved: Numbers
    certificate: str | None
    claims: dict[str, bool] | None


class ErasureDone(Answer):
    """What an erasure removed and what it cannot; ``entry`` is null for a rehearsal."""

    entry: int | None
    count: int
    gone: list[str]
    stays: list[str]
    beyond: list[str]
    warnings: list[str]


class ImportDone(Answer):
    """How a file was read and what was imported; the first bad rows are in ``quarantine``, as CSV."""

    rows: int
    count: int
    rejected: int
    quarantine: str


class JobShown(BaseModel):
    """A job: how far it is, then its result or its problem."""

    job: str
    verb: str
    book: str
    who: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: dict[str, Any]
    seconds: float | None
    head: str | None
    result: dict[str, Any] | None
    problem: ProblemDetails | None


class Why(BaseModel):
    """The reason for the ledger. Name no quote in it: it stays when quotes are erased."""

    model_config = ConfigDict(extra="forbid")
    code: Literal["bad-feed", "licence", "subject-request", "error", "test", "other"]
    text: str = Field("", max_length=1000)
    ticket: str = Field("", max_length=200)


class Choice(BaseModel):
    """Quotes, chosen in one way: by a condition in SQL on columns and labels, or by their ids."""

    model_config = ConfigDict(extra="forbid")
    where: str | None = Field(None, min_length=1, max_length=20_000, examples=["source = 'b' and date = '2024-03-05'"])
    ids: list[str] | None = Field(None, min_length=1, max_length=200_000)
    reason: Why | None = None


class PlanBody(Choice):
    """What to strike out, and within how many standard errors of the optimum one step may end."""

    tolerance: float | None = Field(None, gt=0.0)


class ForgetBody(BaseModel):
    """Quotes to strike out, or the ``plan`` of an earlier answer, which is then done exactly as it was shown."""

    model_config = ConfigDict(extra="forbid")
    where: str | None = Field(None, min_length=1, max_length=20_000)
    ids: list[str] | None = Field(None, min_length=1, max_length=200_000)
    tolerance: float | None = Field(None, gt=0.0)
    reason: Why | None = None
    plan: str | None = None


class RestoreBody(BaseModel):
    """The entry of a forget; the latest one if it is not given."""

    model_config = ConfigDict(extra="forbid")
    entry: int | None = Field(None, ge=1)
    reason: Why | None = None


class EraseBody(Choice):
    """Quotes to erase. Without ``confirm`` it is a rehearsal; to erase, repeat the name of the book in it."""

    confirm: str | None = Field(None, max_length=200)
    all_quotes: bool = False


class CalibrateBody(BaseModel):
    """Settings of a calibration; what is not given is as the last time, or with ``fresh`` at its default."""

    model_config = ConfigDict(extra="forbid")
    model: str | None = Field(None, max_length=100, examples=["heston"])
    weights: Literal["given", "none", "relative", "vega", "spread", "vol-spread"] | None = None
    residual: Literal["price", "implied_vol"] | None = None
    loss: str | None = Field(None, max_length=100, examples=["huber", "huber:0.02"])
    panel: str | None = Field(None, max_length=100, description='"auto", a label such as "date", or null for none.')
    latent: str | None = Field(None, max_length=100, description="free, smoothed or filtered; smoothed:2 by strength.")
    select: Literal["all", "otm"] | None = None
    feller: Literal["warn", "enforce", "ignore"] | None = None
    starts: int | None = Field(None, ge=1, le=100)
    errors: str | None = Field(None, max_length=200, examples=["auto", "cluster:date", "jackknife:date"])
    fixed: dict[str, float] | None = None
    bounds: dict[str, tuple[float, float]] | None = None
    pool: bool | None = None
    through: Literal["auto", "quotes", "moments"] | None = None
    perturb: float | None = Field(None, ge=0.0, description="A share of noise on the footprints that are kept.")
    fresh: bool = False
    reason: Why | None = None


class RequestBody(Choice):
    """A removal that another person approves, or ``one-person``: that one person be enough."""

    what: Literal["forget", "erase", "one-person"]
    all_quotes: bool = False


class DecisionBody(BaseModel):
    """The reason for a decision."""

    model_config = ConfigDict(extra="forbid")
    reason: Why | None = None
