"""The types of what public calls return, for annotations and ``isinstance``."""

from strikeout.assurance.certificate import Certificate as Certificate
from strikeout.assurance.certificate import Claim as Claim
from strikeout.assurance.comparison import ModelComparison as ModelComparison
from strikeout.assurance.influence import Influence as Influence
from strikeout.assurance.outliers import Outliers as Outliers
from strikeout.assurance.robustness import Removal as Removal
from strikeout.assurance.robustness import Robustness as Robustness
from strikeout.assurance.verify import Verification as Verification
from strikeout.book.approvals import Request as Request
from strikeout.book.forget import Plan as Plan
from strikeout.book.results import Audit as Audit
from strikeout.book.results import Change as Change
from strikeout.book.results import Comparison as Comparison
from strikeout.book.results import Erasure as Erasure
from strikeout.book.results import Imported as Imported
from strikeout.book.results import Rotation as Rotation
from strikeout.book.results import Status as Status
from strikeout.book.status import History as History
from strikeout.book.status import Stage as Stage
from strikeout.calibration.calibration import Calibration as Calibration
from strikeout.calibration.diagnostics import Diagnostics as Diagnostics
from strikeout.calibration.diagnostics import ProfileInterval as ProfileInterval
from strikeout.calibration.latent_filter import VariancePath as VariancePath
from strikeout.calibration.regime_path import RegimePath as RegimePath
from strikeout.calibration.standard_errors import StandardErrors as StandardErrors
from strikeout.calibration.termination import Termination as Termination
from strikeout.forgetting.forgetting import Forgetting as Forgetting
from strikeout.forgetting.online import Update as Update
from strikeout.forgetting.preview import Preview as Preview
from strikeout.models.check import ModelCheck as ModelCheck
from strikeout.quotes.contracts import Features as Features
from strikeout.quotes.forwards import Refit as Refit
from strikeout.quotes.reading import Reading as Reading
from strikeout.scale.fleet import Fit as Fit
from strikeout.scale.fleet import Fleet as Fleet
from strikeout.store.entry import Entry as Entry
from strikeout.store.entry import Reason as Reason
from strikeout.store.ledger import Head as Head

__all__ = [
    "Audit",
    "Calibration",
    "Certificate",
    "Change",
    "Claim",
    "Comparison",
    "Diagnostics",
    "Entry",
    "Erasure",
    "Features",
    "Fit",
    "Fleet",
    "Forgetting",
    "Head",
    "History",
    "Imported",
    "Influence",
    "ModelCheck",
    "ModelComparison",
    "Outliers",
    "Plan",
    "Preview",
    "ProfileInterval",
    "Reading",
    "Reason",
    "Refit",
    "RegimePath",
    "Removal",
    "Request",
    "Robustness",
    "Rotation",
    "Stage",
    "StandardErrors",
    "Status",
    "Termination",
    "Update",
    "VariancePath",
    "Verification",
]
