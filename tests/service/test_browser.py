"""Stories in a real browser: Chromium, driven by Playwright. Skipped if there is no Chromium on the machine."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from strikeout.cli.serve import make_demo_book
from tests.service.conftest import NUMBERS, Served, copied
from tests.service.test_changes import WHERE, rows_of

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
PICTURES = os.environ.get("STRIKEOUT_PICTURES")  # the folder in which the pictures of the tutorial are written again
PATIENCE = 60_000  # milliseconds: on a machine that is busy with other things a page takes many seconds
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def demo_shelf(tmp_path_factory) -> Path:
    """The book with three bad days, to be copied."""
    folder = tmp_path_factory.mktemp("demo")
    made = make_demo_book(folder)
    for file in folder.iterdir():
        file.rename(file.with_name(file.name.replace(made.stem, "small", 1)))
    return folder


@pytest.fixture
def demo(server, demo_shelf) -> Served:
    """The server with the book of the demo, for one test."""
    name = f"demo{next(NUMBERS)}"
    copied(demo_shelf, server.folder, name)
    return replace(server, name=name)


class Person:
    """A person at a browser of their own. Any request to another host, script error or refused content is noted."""

    def __init__(self, chromium, served, role, **how):
        self.served, self.wrong = served, []
        self.context = chromium.new_context(base_url=served.address, **{"viewport": WIDE, **how})
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self._other(request.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda message: self.wrong.append(message.text) if message.type == "error" else None)
        self.go(f"/books/{served.name}")
        self.page.get_by_label("Token").fill(served.tokens[role])
        self.page.get_by_role("button", name="Sign in").click()

    def _other(self, address):
        if not address.startswith((self.served.address, "data:")):
            self.wrong.append(address)

    def go(self, path):
        self.page.goto(path)

    def book(self, path="", query=""):
        self.go(f"/books/{self.served.name}{path}{query}")

    def click(self, name, kind="button"):
        self.page.get_by_role(kind, name=name, exact=True).first.click()

    def sees(self, text):
        playwright.expect(self.page.locator("body")).to_contain_text(text)

    def keep(self, name):
        """Write what is seen as a picture of the tutorial, if that is asked for."""
        if PICTURES is None:
            return
        import io

        from PIL import Image

        self.page.set_viewport_size({"width": 1280, "height": 800})
        seen = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        seen.quantize(160).save(Path(PICTURES) / f"desk-{name}.png", optimize=True)

    def close(self):
        self.context.close()
        assert self.wrong == []


@pytest.fixture
def at_browser(chromium):
    people = []

    def sit_down(served, role, **how):
        people.append(Person(chromium, served, role, **how))
        return people[-1]

    yield sit_down
    for person in people:
        person.close()


def test_the_story_of_three_bad_days_can_be_clicked_through(demo, at_browser):
    quant = at_browser(demo, "operator")
    quant.sees("Not identified")
    quant.keep("book")
    quant.click("all of these", "link")
    quant.sees("NEVER_SEEN")
    quant.sees("23 quotes struck out")
    quant.page.get_by_label("Ticket").fill("T-17")
    quant.keep("what-if")
    quant.click("Do it")
    quant.sees("23 quotes struck out in entry 4")
    quant.keep("done")
    quant.click("Verify the book", "link")
    quant.sees("The book holds.")
    quant.keep("audit")
    quant.click("Book", "link")
    quant.sees("Converged")
    quant.page.get_by_text("Bring quotes back").click()
    quant.click("Restore")
    quant.sees("23 quotes brought back in entry 5")
    with demo.book() as book:
        assert [entry.what for entry in book.log()][3:] == ["forget", "restore"]
        assert str(book.log()[3].why) == "bad-feed (T-17)"


def test_every_picture_of_the_tutorial_is_made_by_a_story():
    root = Path(__file__).resolve().parents[2]
    shown = set(
        re.findall(r"pictures/(desk-[\w-]+)\.png", (root / "docs/tutorial/the-desk-in-a-browser.md").read_text())
    )
    made = {f"desk-{name}" for name in re.findall(r'\.keep\("([\w-]+)"\)', Path(__file__).read_text())}
    assert shown == made == {path.stem for path in (root / "docs/pictures").glob("desk-*.png")}


def test_cells_are_chosen_by_a_box_and_lead_to_the_plan_of_just_these_quotes(demo, at_browser):
    quant = at_browser(demo, "operator")
    cell = quant.page.locator('#influence .so-cells rect[data-c="45"]')
    low, high = cell.first.bounding_box(), cell.last.bounding_box()
    quant.page.mouse.move(low["x"] - 2, high["y"] - 2)
    quant.page.mouse.down()
    quant.page.mouse.move(low["x"] + 2, low["y"], steps=3)
    quant.page.mouse.move(low["x"] + low["width"] + 1, low["y"] + low["height"] + 2, steps=3)
    quant.page.mouse.up()
    chosen = quant.page.locator(".picked code")
    playwright.expect(chosen).to_have_text("3 cells, 15 quotes: date = '2024-03-05'")
    quant.click("What if they are struck out?", "link")
    quant.sees("15 quotes struck out")
    assert "where=date" in quant.page.url
    quant.page.go_back()
    quant.sees("Most influential")
    quant.page.go_forward()
    quant.sees("15 quotes struck out")


def test_the_map_works_with_the_keyboard_alone(demo, at_browser):
    quant = at_browser(demo, "operator")
    quant.page.locator("#influence .so-map").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "Enter", "ArrowRight", "Enter"):
        quant.page.keyboard.press(key)
    chosen = quant.page.locator(".picked code")
    playwright.expect(chosen).to_contain_text(
        "2 cells, 10 quotes: date in ('2024-01-03', '2024-01-04') and maturity >= 65"
    )
    quant.page.keyboard.press("Escape")
    playwright.expect(quant.page.locator(".picked.on")).to_have_count(0)


def test_every_cell_of_a_map_selects_the_quotes_it_counts(demo):
    """The conditions that the map carries, against the quotes of the book."""
    from strikeout.plots.maps import map_for_page
    from strikeout.quotes.selection import select

    with demo.book() as book:
        calibration = book.calibration()
    for by in (None, "moneyness", "source", "month"):
        found = map_for_page(calibration, by)
        for row in range(len(found.expiries)):
            for column in range(0, len(found.columns), 17):
                where = f"({found.across.conditions[column]}) and ({found.down.conditions[row]})"
                assert len(select(calibration.used, where)) == found.count[row, column]


def test_two_persons_are_needed_and_the_second_sees_the_plan(served, at_browser):
    with served.book() as book:
        book.set_approval("two-person")
    quant, risk = at_browser(served, "operator"), at_browser(served, "approver")
    quant.book("/what-if", f"?where={WHERE}")
    assert quant.page.get_by_role("button", name="Do it").count() == 0
    quant.click("Request")
    quant.sees("Request 5 waits for another person")
    risk.book()
    risk.click("Requests 1", "link")
    risk.sees("NEVER_SEEN")
    risk.keep("request")
    risk.click("Approve")
    risk.sees("Request 5 of operator is approved")
    quant.click("To the request", "link")
    quant.click("Do it now")
    quant.sees("struck out in entry 7")
    with served.book() as book:
        assert (book.requests()[0].state, book.verify().holds) == ("done", True)


def test_an_erasure_is_rehearsed_and_needs_the_name_of_the_book(served, at_browser):
    officer = at_browser(served, "operator")
    officer.click("Erase", "link")
    officer.page.get_by_label("Condition: quotes held or struck out").fill(WHERE)
    officer.page.get_by_label("Reason").select_option("licence")
    officer.click("Rehearse")
    officer.sees("What will not be removed")
    officer.page.get_by_label("To erase, type the name of the book").fill(served.name)
    officer.click("Erase 6 quotes for good")
    officer.sees("6 quotes erased")
    officer.click("Evidence to print", "link")
    officer.sees("search for residue")
    with served.book() as book:
        assert book.status().erased == 6


def test_a_file_with_bad_rows_is_looked_at_then_imported(served, at_browser, tmp_path):
    file = tmp_path / "new.csv"
    file.write_bytes(rows_of(served))
    quant = at_browser(served, "operator")
    quant.click("Import", "link")
    quant.page.locator("input[type=file]").set_input_files(file)
    quant.click("Look at it")
    quant.sees("Quarantine")
    quant.click("Import 38 quotes")
    quant.sees("quarantined rows")
    with quant.page.expect_download() as download:
        quant.click("The 2 bad rows as CSV", "link")
    assert len(Path(download.value.path()).read_text().strip().splitlines()) == 3
    quant.click("Book", "link")
    assert quant.page.locator(".counts dd").nth(2).inner_text() == "2"


def test_back_and_deep_links_show_the_same_again(demo, at_browser):
    quant = at_browser(demo, "reader")
    quant.click("moneyness", "link")
    playwright.expect(quant.page).to_have_url(re.compile("by=moneyness"))
    quant.click("vol_of_vol", "link")
    playwright.expect(quant.page).to_have_url(re.compile("by=moneyness&parameter=vol_of_vol"))
    deep = quant.page.url
    quant.page.go_back()
    playwright.expect(quant.page.locator("#influence strong")).to_have_text(["moneyness", "all parameters"])
    quant.go(deep)
    playwright.expect(quant.page.locator("#influence strong")).to_have_text(["moneyness", "vol_of_vol"])
    quant.book("", "?date=2024-05-07")
    quant.page.locator("#smiles circle").first.click()
    quant.sees("1 quote with id large-")
    assert quant.page.locator("tr.at").count() == 1


def test_everything_works_without_script(served, at_browser):
    quant = at_browser(served, "operator", java_script_enabled=False)
    quant.click("What if", "link")
    quant.page.get_by_label("Condition").fill(WHERE)
    quant.click("Show the effect")
    quant.sees("6 quotes struck out")
    quant.click("Do it")
    quant.sees("struck out in entry 4")
    quant.click("Book", "link")
    quant.page.get_by_text("Calibrate", exact=True).first.click()
    quant.page.locator("form[action$='/do/calibrate'] button").click()
    quant.sees("Calibrated in entry 5")
    quant.click("Verify the book", "link")
    quant.sees("The book holds.")


def test_a_narrow_screen_shows_everything_without_scrolling_sideways(demo, at_browser):
    quant = at_browser(demo, "operator", viewport=NARROW, has_touch=True)
    for path in (
        "",
        "/what-if?where=strike=90",
        "/requests",
        "/quotes",
        "/audit",
        "/compare",
        "/drift",
        "/erase",
        "/import",
    ):
        quant.book(path)
        assert quant.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path
    quant.book()
    quant.page.locator('#influence .so-cells rect[data-c="20"]').first.tap()
    playwright.expect(quant.page.locator(".picked.on code")).to_contain_text("1 cell,")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(demo, at_browser, scheme):
    from axe_playwright_python.sync_playwright import Axe

    with demo.book("quant") as book:
        book.forget(where=WHERE, reason="bad-feed")
        book.request("forget", where="date = '2024-07-09'")
    person = at_browser(demo, "admin", color_scheme=scheme)
    found = {}
    for path in ("", "/what-if?where=strike=90", "/requests", "/quotes", "/audit?verify=true", "/compare", "/drift",
                 f"/erase?where={WHERE}&code=licence", "/import", "/evidence"):  # fmt: skip
        person.book(path)
        serious = [
            (each["id"], each["nodes"][0]["html"][:200])
            for each in Axe().run(person.page).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        if serious:
            found[path] = serious
    assert found == {}
