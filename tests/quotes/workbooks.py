"""The smallest file that ECMA-376 calls a workbook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def worksheet(lines: str) -> str:
    """A sheet with these rows."""
    return f'<worksheet xmlns="{SPREADSHEET}"><sheetData>{lines}</sheetData></worksheet>'


def write_workbook(path: Path, lines: str, parts: Mapping[str, bytes] | None = None) -> Path:
    """Write a workbook of one sheet with these rows; ``parts`` replace its own of the same name."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    own = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="{kind}.sheet.main+xml"/><Override PartName="/xl/sheet.xml" '
        f'ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SPREADSHEET}" xmlns:r="{OFFICE}"><sheets><sheet name="a" sheetId="1" '
        'r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{OFFICE}/worksheet" Target="sheet.xml"/></Relationships>',
        "xl/sheet.xml": worksheet(lines),
    }
    with ZipFile(path, "w", ZIP_DEFLATED) as packed:
        for name, text in {**own, **(parts or {})}.items():
            packed.writestr(name, text)
    return path
