"""Forms: the one place that turns the fields of a form into the arguments of a verb. The verbs are those of the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite, nan
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData, UploadFile

from strikeout.errors import RoleError, SignInError, UsageError
from strikeout.service.changes import check_confirmation
from strikeout.service.desk import Desk
from strikeout.service.oidc import Oidc
from strikeout.service.pages.site import address, desk_of, page, see, set_session
from strikeout.service.people import Action, Role, proof_of
from strikeout.service.sessions import COOKIE, named_for
from strikeout.service.uploads import Upload, receive

router = APIRouter(include_in_schema=False)
Fields = Mapping[str, str]
PATIENCE = 4.0  # seconds that a browser waits for a change; then it is shown how far it is
FIELDS = 60
LARGEST_PART = 1 << 20


async def own_form(request: Request) -> tuple[Desk, FormData]:
    """Return the fields of a form that is of the session of its sender.

    Raises:
        SignInError: it is not.
    """
    desk = desk_of(request)
    session = desk.session(request)
    if session is None:  # before the body, which may be a large file
        desk.sessions.check_form(None, "")
    form = await request.form(max_files=1, max_fields=FIELDS, max_part_size=LARGEST_PART)
    desk.sessions.check_form(session, str(form.get("form_token", "")))
    request.state.is_own_form = True
    return desk, form


def fields_of(form: FormData) -> Fields:
    """Return the fields of a form that are texts, without white space around them."""
    return {name: value.strip() for name, value in form.items() if isinstance(value, str)}


def reason_in(fields: Fields) -> dict[str, str] | None:
    """Return the reason of a form; None if no code was chosen."""
    if not fields.get("code"):
        return None
    return {"code": fields["code"], "text": fields.get("text", ""), "ticket": fields.get("ticket", "")}


def chosen_in(fields: Fields) -> dict[str, Any]:
    """Return the quotes of a form: a condition, or ids, one per line."""
    if fields.get("ids"):
        return {"ids": fields["ids"].split()}
    return {"where": fields.get("where") or None}


def number_in(fields: Fields, name: str) -> int:
    """Return a whole number of a form.

    Raises:
        UsageError: it is not one.
    """
    text = fields.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{name}: expected a number, got {text!r}.")
    return int(text)


def _erase(fields: Fields, book: str) -> dict[str, Any]:
    check_confirmation(fields.get("confirm", ""), book)
    return {**chosen_in(fields), "all_quotes": "all_quotes" in fields, "reason": reason_in(fields)}


TEXTS = ("model", "weights", "residual", "loss", "latent", "select", "feller", "errors", "through")


def _calibrate(fields: Fields, book: str) -> dict[str, Any]:  # noqa: ARG001
    given: dict[str, Any] = {name: fields[name] for name in TEXTS if fields.get(name)}
    if fields.get("panel"):
        given["panel"] = None if fields["panel"] == "none" else fields["panel"]
    if fields.get("starts"):
        given["starts"] = number_in(fields, "starts")
    if fields.get("perturb"):
        given["perturb"] = _number("perturb", fields["perturb"])
    for name in ("fixed", "bounds"):
        if fields.get(name):
            given[name] = dict(_named(name, word) for word in fields[name].split())
    return {**given, "fresh": "fresh" in fields, "reason": reason_in(fields)}


def _named(field: str, word: str) -> tuple[str, float | list[float]]:
    """Return the name and value of a word such as rho=-0.7, or kappa=0.1:10 of a range.

    Raises:
        UsageError: it is not of that form.
    """
    name, _, value = word.partition("=")
    ends = [_number(field, end) for end in value.split(":")]
    if len(ends) != (2 if field == "bounds" else 1):
        raise UsageError(f"{field}: expected {'NAME=LOW:HIGH' if field == 'bounds' else 'NAME=VALUE'}, got {word!r}.")
    return name, ends if field == "bounds" else ends[0]


def _number(field: str, text: str) -> float:
    """Return a number of a form.

    Raises:
        UsageError: it is not one.
    """
    try:
        found = float(text)
    except ValueError:
        found = nan
    if not isfinite(found):
        raise UsageError(f"{field}: expected a number, got {text!r}.")
    return found


def _decision(fields: Fields, book: str) -> dict[str, Any]:  # noqa: ARG001
    return {"number": number_in(fields, "number"), "reason": reason_in(fields)}


# The arguments of each verb from the fields of its form and the name of the book.
FORMS: Mapping[str, Callable[[Fields, str], dict[str, Any]]] = {
    "forget": lambda fields, _: {**chosen_in(fields), "reason": reason_in(fields)},
    "request": lambda fields, _: {
        "what": fields.get("what", "forget"),
        **({} if fields.get("what") == "one-person" else chosen_in(fields)),
        "all_quotes": "all_quotes" in fields,
        "reason": reason_in(fields),
    },
    "restore": lambda fields, _: {"entry": number_in(fields, "entry"), "reason": reason_in(fields)},
    "erase": _erase,
    "calibrate": _calibrate,
    "approve": _decision,
    "reject": _decision,
    "withdraw": _decision,
    "carry-out": lambda fields, _: {"number": number_in(fields, "number")},
}


@router.post("/books/{name}/do/{verb}")
async def do(request: Request, name: str, verb: str) -> Response:
    """Start a change as a job, and send the browser to the page of the job."""
    desk, form = await own_form(request)
    fields = fields_of(form)
    if verb not in FORMS:
        raise UsageError(f"There is no form for {verb!r}.")
    book = desk.library.path(name).stem
    arguments = FORMS[verb](fields, book)
    return await begin(request, desk, book, verb.replace("-", " "), fields, **arguments)


async def begin(
    request: Request,
    desk: Desk,
    book: str,
    verb: str,
    fields: Fields,
    *,
    upload: Upload | None = None,
    **arguments: Any,
) -> Response:
    """Start a verb for the head of a form, wait a little, and send the browser to the page of the job."""
    then = None if upload is None else upload.remove
    head, key = fields.get("head") or None, fields.get("key") or None
    job, _ = desk.change(request, book, verb, head=head, key=key, then=then, **arguments)
    await desk.jobs.wait(job, PATIENCE)
    return see(address("books", book, "jobs", job.number))


@router.post("/books/{name}/jobs/{job}/cancel")
async def cancel(request: Request, name: str, job: str) -> Response:
    """Cancel a job that is not over."""
    desk, _ = await own_form(request)
    found, person = desk.jobs.get(job), desk.person(request)
    if person.name != found.task.who and person.role is not Role.ADMIN:
        raise RoleError(f"The job is of {found.task.who}: only that person or an admin cancels it.")
    desk.jobs.cancel(found)
    await desk.jobs.wait(found, PATIENCE)
    return see(address("books", name, "jobs", job))


@router.post("/books/{name}/import")
async def import_file(request: Request, name: str) -> Response:
    """Look at an uploaded file, show how it is read, and keep it for a while; or import the file that was kept."""
    desk, form = await own_form(request)
    person = desk.person(request)
    person.check(Action.CHANGE)
    fields = fields_of(form)
    book = desk.library.path(name).stem
    how = {name: fields.get(name) or None for name in ("source", "profile")}
    how["max_reject"] = _share(fields.get("max_reject", ""))  # type: ignore[assignment]
    if fields.get("held"):
        upload = desk.held.take(fields["held"], book=book, who=person.name)
        more: dict[str, Any] = {**how, "file": str(upload.path), "digest": upload.digest, "reason": reason_in(fields)}
        try:
            return await begin(request, desk, book, "import", fields, upload=upload, **more)
        except BaseException:
            upload.remove()
            raise
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise UsageError("Choose a file of quotes first: .csv, .csv.gz, .parquet or .xlsx.")
    upload = await receive(file.filename, _parts(file), desk.library.folder)
    try:
        found = await desk.ask(request, book, "inspect", file=str(upload.path), **how)
        number = desk.held.hold(upload, book=book, who=person.name)
    except BaseException:
        upload.remove()
        raise
    return page(
        request, "import.html", name=book, tab="import", head=found["head"], found=found, held=number,
        file=file.filename, fields=fields,
    )  # fmt: skip


async def _parts(file: UploadFile) -> Any:
    while part := await file.read(1 << 16):
        yield part


def _share(text: str) -> float | None:
    """Return the share of bad rows that is allowed, given in percent; None for the default.

    Raises:
        UsageError: it is not a number from 0 to 100.
    """
    if not text:
        return None
    share = _number("The share of bad rows", text) / 100.0
    if not 0.0 <= share <= 1.0:
        raise UsageError(f"The share of bad rows: expected a number from 0 to 100, got {text!r}.")
    return share


@router.get("/sign-in")
async def sign_in_page(request: Request, then: str = "/") -> Response:
    """Show the form to sign in, or go to the provider that signs people in."""
    if isinstance(desk_of(request).people, Oidc):
        return see(address("sign-in", "provider", then=own_address(then)))
    return page(request, "sign_in.html", then=own_address(then), problem="")


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Begin the session of a person who has a token."""
    desk = desk_of(request)
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise SignInError("Sign in from a page of this site.")
    client = "" if request.client is None else request.client.host
    desk.sign_ins.check(client)
    fields = fields_of(await request.form(max_files=0, max_fields=5))
    token, then = fields.get("token", ""), own_address(fields.get("then", "/"))
    if desk.people.of_token(token) is None:
        desk.sign_ins.failed(client)
        return page(request, "sign_in.html", code=401, then=then, problem="No person has this token.")
    answer = see(then)
    set_session(request, answer, desk.sessions.begin(proof_of(token)))
    return answer


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the session of a browser."""
    desk, _ = await own_form(request)
    session = desk.session(request)
    if session is not None and isinstance(desk.people, Oidc):
        desk.people.end(session.proof)
        answer = page(request, "signed_out.html")
    else:
        answer = see("/sign-in")
    answer.delete_cookie(named_for(COOKIE, request.scope.get("server")), path="/")
    return answer


def own_address(then: str) -> str:
    """Return an address of this site; the first page if it is one of another site."""
    is_own = then.startswith("/") and not then.startswith(("//", "/\\")) and "\\" not in then and then.isprintable()
    return then if is_own else "/"
