"""Writes small workbooks, also ones that no spreadsheet program would write."""

import zipfile
from xml.sax.saxutils import escape, quoteattr

import xlsxwriter

_OPEN = "urn:oasis:names:tc:opendocument:xmlns"


class Days(float):
    """A date as Excel stores it: the days since 1899-12-30."""


def write_xlsx(path, sheets, **more):
    """Writes sheets, each a list of rows; `more` are further files of the archive."""
    with xlsxwriter.Workbook(path) as book:
        dates, times = (
            book.add_format({"num_format": form})
            for form in ("d.m.yyyy", "d.m.yyyy h:mm")
        )
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for row, cells in enumerate(rows):
                for column, value in enumerate(cells):
                    if isinstance(value, Days):
                        form = dates if value.is_integer() else times
                        sheet.write_number(row, column, value, form)
                    elif isinstance(value, str):
                        sheet.write_string(row, column, value)
                    elif value is not None:
                        sheet.write(row, column, value)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in more.items():
            archive.writestr(name, content)
    return path


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
