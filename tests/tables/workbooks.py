"""Writes small workbooks by hand, also ones that no spreadsheet program would write."""

import zipfile
from xml.sax.saxutils import escape, quoteattr

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OPEN = "urn:oasis:names:tc:opendocument:xmlns"
# The style of dates, and the style of dates with times.
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="22"/></cellXfs></styleSheet>'
)


class Days(float):
    """A date as Excel stores it: the days since 1899-12-30."""


def write_xlsx(path, sheets, **more):
    """Writes sheets, each a list of rows; `more` are further files of the archive."""
    names = enumerate(sheets, start=1)
    book = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="r{i}"/>'
        for i, name in names
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{_LINKS}/worksheet" '
        f'Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{_LINKS}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}">'
        f"<sheets>{book}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/'
        f'relationships">{links}<Relationship Id="s" Type="{_LINKS}/styles" '
        'Target="styles.xml"/></Relationships>',
        "xl/styles.xml": _STYLES,
    }
    for i, rows in enumerate(sheets.values(), start=1):
        lines = "".join(
            f'<row r="{row}">{"".join(_xlsx_cells(row, cells))}</row>'
            for row, cells in enumerate(rows, start=1)
        )
        files[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, **more}.items():
            archive.writestr(name, content)
    return path


def _xlsx_cells(row, cells):
    for place, value in enumerate(cells):
        at = f'r="{chr(ord("A") + place)}{row}"'
        if value is None:
            continue
        if isinstance(value, bool):
            yield f'<c {at} t="b"><v>{int(value)}</v></c>'
        elif isinstance(value, Days):
            style = 1 if value.is_integer() else 2
            yield f'<c {at} s="{style}"><v>{float(value)!r}</v></c>'
        elif isinstance(value, str):
            text = f'<t xml:space="preserve">{escape(value)}</t>'
            yield f'<c {at} t="inlineStr"><is>{text}</is></c>'
        else:
            yield f"<c {at}><v>{value!r}</v></c>"


def write_ods(path, sheets):
    """Writes sheets, each a list of rows."""
    tables = "".join(
        f"<table:table table:name={quoteattr(name)}>"
        + "".join(
            f"<table:table-row>{''.join(map(_ods_cell, cells))}</table:table-row>"
            for cells in rows
        )
        + "</table:table>"
        for name, rows in sheets.items()
    )
    spaces = " ".join(
        f'xmlns:{name}="{_OPEN}:{name}:1.0"' for name in ("office", "table", "text")
    )
    files = {
        "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{_OPEN}:'
        'manifest:1.0"/>',
        "content.xml": f"<office:document-content {spaces}><office:body>"
        f"<office:spreadsheet>{tables}</office:spreadsheet></office:body>"
        "</office:document-content>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        media_type = "application/vnd.oasis.opendocument.spreadsheet"
        archive.writestr(zipfile.ZipInfo("mimetype"), media_type)
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _ods_cell(value):
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, bool):
        text = str(value).lower()
        kind = f'office:value-type="boolean" office:boolean-value="{text}"'
    elif isinstance(value, str):
        text = escape(value)
        kind = 'office:value-type="string"'
    else:
        text = repr(value)
        kind = f'office:value-type="float" office:value="{text}"'
    return f"<table:table-cell {kind}><text:p>{text}</text:p></table:table-cell>"
