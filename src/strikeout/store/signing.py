"""Signatures of certificates, by the key of the book that issued them, or by a key file without a book.

Anyone with the retained quotes can recompute the claims of a certificate. The signature covers what the quotes cannot
confirm: who issued the certificate and when, how many quotes were forgotten, and in a book that the ledger had the
``head`` that the certificate names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from strikeout.assurance.canonical import canonical
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.verify import SIGNATURE, Check, Verification, read, verify_claims
from strikeout.errors import UsageError
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.objective import Weighting
from strikeout.store.entry import utc
from strikeout.store.keyring import Keyring, Signer, is_hex, is_signature
from strikeout.store.ledger import Head, Ledger, keyed_certificate

FORMAT = "strikeout certificate signature 1"


def signed(certificate: Certificate, ledger: Ledger, keyring: Keyring, *, at: datetime) -> Certificate:
    """Return the certificate with the signature of a book, as the next entry of its ledger.

    Args:
        at: the time of the signature.
    """
    signer = keyring.signer(ledger.public)
    named = {"public": signer.public, "entry": len(ledger) + 1, "head": str(ledger.head()), "at": utc(at)}
    return replace(certificate, signed={**named, "signature": signer.sign(_content(certificate, named))})


def dated(certificate: Certificate, *, at: datetime, signer: Signer | None = None) -> Certificate:
    """Return the certificate of a file with its date, and the signature of a key if one is given."""
    named = {"at": utc(at)}
    if signer is None:
        return replace(certificate, signed=named)
    named["public"] = signer.public
    return replace(certificate, signed={**named, "signature": signer.sign(_content(certificate, named))})


def is_signed(certificate: Certificate) -> bool:
    """Return whether the holder of the key that a certificate names signed it as it is."""
    if certificate.signed is None or "signature" not in certificate.signed:
        return False
    named = {name: value for name, value in certificate.signed.items() if name != "signature"}
    return is_signature(named["public"], _content(certificate, named), signature=certificate.signed["signature"])


def misplaced(certificate: Certificate, ledger: Ledger, entry: int, keyring: Keyring | None) -> str | None:
    """Return how a certificate differs from the one that an entry of a ledger issued; None if it is that one.

    Without a keyring only its signature is compared with the entry's key. Whether it is the certificate that the entry
    commits to cannot be checked then.
    """
    if keyring is not None and keyed_certificate(certificate.digest(), keyring) != ledger[entry].certificate:
        return "is not the one that was issued with it"
    if not is_signed(certificate):
        return "is not signed, or was changed since"
    found = certificate.signed or {}
    if (found["public"], found.get("entry")) != (ledger[entry].public, entry):
        place = f"as entry {found['entry']}" if "entry" in found else "outside a ledger"
        return f"is signed by the key {found['public'][:16]}... {place}"
    head = Head(entry - 1, ledger.root(entry - 1))
    return None if found["head"] == str(head) else f"names the head {found['head'][:24]}..., and the ledger had {head}"


def verify(
    certificate: Certificate | bytes,
    retained: Quotes,
    *,
    model: Model | None = None,
    weights: Weighting | None = None,
    key: str | Sequence[str] | None = None,
) -> Verification:
    """Recompute every claim of a certificate from the retained quotes alone, and check its signature.

    Forwards that are marked as derived are derived again. The state is rebuilt in whole numbers, the step is solved
    from it, the gradient is computed at the parameters, and the quotes are calibrated from cold starts. Only the
    retained quotes are needed. Never imports an operator.

    Args:
        certificate: or its bytes. The objective (weights, loss, what was fixed or bounded) is read from it, and every
            part that is not the default is in ``Verification.laid_down``.
        model: needed if the certificate names a model that is not part of this package.
        weights: needed if the calibration was given its own weights: by id, or in the order of the quotes.
        key: the public key that must have signed it, of a book or of a key file, 64 hexadecimal digits, or several of
            them. Without one, the signature is checked against the key that the certificate itself names, which anyone
            can create.

    Raises:
        UsageError: ``key`` is not a public key. The contents of the certificate or the quotes never raise: a claim that
            cannot be checked fails, with the reason.
    """
    trusted = public_keys(key)
    found = read(certificate, retained)
    if isinstance(found, Verification):
        return found
    checked = verify_claims(found, retained, model=model, weights=weights)
    return replace(checked, checks=(signature_check(found, trusted), *checked.checks))


def signature_check(certificate: Certificate, trusted: Sequence[str]) -> Check:
    """Return whether one of these keys signed a certificate; undecided if no key is given."""
    found = certificate.signed
    if found is None or "signature" not in found:
        dated = "It is not signed" if found is None else f"It is dated {found['at'][:10]} and not signed"
        said = f"{dated}, so what the quotes cannot confirm is unproven."
        return Check(SIGNATURE, False if trusted else None, said, word="" if trusted else "unsigned")
    by = f"the key {found['public'][:16]}..."
    if not is_signed(certificate):
        return Check(SIGNATURE, False, f"It was changed after {by} signed it, or never signed by it.")
    where = f"on {found['at'][:10]}"
    if "entry" in found:
        where += f" as entry {found['entry']:,} of a ledger, after the head {found['head'][:20]}..."
    if not trusted:
        said = f"Signed by {by}, {where.rstrip('.')}. To check whose key that is, give the public key (key=, --key)."
        return Check(SIGNATURE, None, said, word="whose key?")
    if found["public"] not in trusted:
        return Check(SIGNATURE, False, f"Signed by {by}, and not by {' or '.join(f'{one[:16]}...' for one in trusted)}")
    return Check(SIGNATURE, True, f"Signed by {by}, {where.rstrip('.')}.")


def public_keys(key: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the public keys that are given, none, one or several."""
    given = () if key is None else (key,) if isinstance(key, str) else tuple(key)
    for one in given:
        if not is_hex(one, 32):
            raise UsageError(
                "key: a public key has 64 hexadecimal digits in lower case, as `strikeout status` prints it."
            )
    return given


def _content(certificate: Certificate, named: Mapping[str, object]) -> bytes:
    return canonical({"format": FORMAT, "certificate": certificate.digest(), **named})
