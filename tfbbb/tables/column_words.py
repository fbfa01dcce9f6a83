"""What the name of a column says of its values."""

import re
from typing import Literal

_WORDS = re.compile(r"[^\W\d_]+|\d+|[#№]")
_NEXT_WORD = re.compile(r"(?<=[a-zß-ÿ])(?=[A-Z])")

Naming = Literal["identifier", "numbering", "measurement", "other"]


def words(name: str) -> list[str]:
    """Returns the words of `PassengerId` or `passenger_ID` in small letters."""
    return _WORDS.findall(_NEXT_WORD.sub(" ", name).lower())


def naming(name: str) -> Naming:
    """Says what a column of numbers holds by its name alone."""
    found = words(name)
    if not found:
        return "numbering"
    if {found[0], found[-1]} & _IDENTIFIERS or " ".join(found) in _WHOLE_IDENTIFIERS:
        return "identifier"
    if _MEASUREMENTS.intersection(found):
        return "measurement"
    if _NO_NUMBERINGS.intersection(found):
        return "other"
    # R names a column of row names X.
    if found[-1] in _NUMBERINGS or found[0] == "unnamed" or name == "X":
        return "numbering"
    return "other"


def names_a_group(name: str) -> bool:
    """Whether a name is that of an identifier, or of persons or places and no more."""
    found = words(name)
    if not found or naming(name) == "identifier":
        return bool(found)
    return found[0] in _GROUPS and _LABELS.issuperset(found[1:])


def names_follow_up(name: str, those: frozenset[str]) -> bool:
    """Whether a name is of `TIMES` or `EVENTS` alone, unlike `day_of_week`."""
    found = set(words(name))
    return bool(found & those) and found <= TIMES | EVENTS | _JOINING


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDENTIFIERS = _set(
    "id ids idx uid uuid guid identifier pid sid gid fid rowid rownames rowname rownum "
    "rownumber userid caseid subjectid patientid recordid customerid personid "
    "studentid memberid objectid respid sno seqn subjid idno idnr idnum docno caseno "
    "regno respno"
)
_WHOLE_IDENTIFIERS = frozenset(
    ("index", "unnamed 0", "row names", "row name", "row number", "row num", "#", "№")
)
_NUMBERINGS = _set(
    "no nr num number nummer numero serial seq sequence row rows record obs "
    "observation case sample subject patient participant respondent key code index "
    "unnamed entry item line ref reference lfd counter account ticket order invoice "
    "transaction customer client user # №"
)
_NO_NUMBERINGS = _set("of per total count mean average")
_MEASUREMENTS = _set(
    "year years yr jahr annee ano month week day days date time hour hours minute "
    "minutes second seconds timestamp t age ages rank ranking ranks position pos place "
    "depth distance km mile miles mileage odometer dose level step steps epoch lag "
    "temperature temp size weight length height width cycle cycles duration altitude "
    "elevation price cost salary income population area"
)
# Of columns whose numbers may be as large as 202203.
AMOUNTS = _set(
    "price prices cost costs salary income wage amount value revenue sales profit "
    "budget population pop area distance mileage odometer km miles count total zip plz "
    "postal postcode zipcode size weight volume"
)
BIRTHS = _set("birth birthdate birthday dateofbirth born dob geburt geburtsdatum")
_GROUPS = _set(
    "subject subjid subjectid patient patientid person personid participant respondent "
    "user userid customer client member employee worker student pupil child teacher "
    "school hospital doctor physician station site sensor device machine plot farm "
    "household family firm company store shop player team driver animal cow pig rat "
    "mouse mice bird fish tree plant batch speaker author individual proband"
)
_LABELS = _set("name no nr nbr num number code key")
# Of times until an event, of events, and words beside these.
TIMES = _set(
    "time times futime stime survtime ttime days weeks months years followup follow "
    "survival duration tenure lifetime os pfs rfs dfs zeit dauer"
)
EVENTS = _set(
    "event events status censor censored cens uncensored death dead died deceased "
    "fustat relapse relapsed failure failed churn churned delta arrest observed "
    "ereignis zensiert tod"
)
_JOINING = _set("to until till of up in is has was vital indicator flag code first")
