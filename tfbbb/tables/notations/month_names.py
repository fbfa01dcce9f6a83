"""Names of months and weekdays in seven languages, as dates have them."""

# English, German, French, Spanish, Italian, Portuguese and Dutch, with short forms.
_NAMES_BY_MONTH = (
    "january jan januar jänner jän janvier janv enero ene gennaio gen janeiro januari",
    "february feb februar feber février fevrier févr fevr fév febrero febbraio "
    "fevereiro fev februari",
    "march mar märz maerz mär mrz mars marzo março marco maart mrt",
    "april apr avril avr abril abr aprile",
    "may mai mayo maggio mag maio mei",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juil julio luglio lug julho",
    "august aug août aout agosto ago augustus",
    "september sept sep septembre septiembre setiembre settembre set setembro",
    "october oct oktober okt octobre octubre ottobre ott outubro out",
    "november nov novembre noviembre novembro",
    "december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro",
)
_WEEKDAYS = (
    "monday mon tuesday tues tue wednesday wed thursday thurs thur thu friday fri "
    "saturday sat sunday sun "
    "montag mo dienstag di mittwoch mi donnerstag do freitag fr samstag sonnabend sa "
    "sonntag so "
    "lundi lun mardi mar mercredi mer jeudi jeu vendredi ven samedi sam dimanche dim "
    "lunes martes miércoles miercoles mié mie jueves jue viernes vie sábado sabado sáb "
    "sab domingo dom "
    "lunedì lunedi martedì martedi mercoledì mercoledi giovedì giovedi gio venerdì "
    "venerdi sabato domenica "
    "segunda-feira segunda seg terça-feira terça ter quarta-feira quarta qua "
    "quinta-feira quinta qui sexta-feira sexta sex "
    "maandag ma dinsdag woensdag wo donderdag vrijdag vr zaterdag za zondag zo"
)

MONTHS = {
    name: month
    for month, names in enumerate(_NAMES_BY_MONTH, start=1)
    for name in names.split()
}
"""The number of each month by its names in small letters."""

# Words that may stand before the day: weekdays, and articles as in "le 3 mai 2020".
DAY_NAMES = frozenset(f"{_WEEKDAYS} le el il am den op".split())

# Any words match, which `MONTHS` and `DAY_NAMES` then check: a regular expression of
# all names is several times as slow.
_LETTERS = "[A-Za-zÀ-ÿ]+"
MONTH_NAME = rf"(?P<name>{_LETTERS})\.?"
DAY_NAME = rf"(?:(?P<day_name>{_LETTERS}(?:-feira)?)\.?,? )?"
