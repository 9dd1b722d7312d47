"""What a person does in JupyterLab: open a notebook, run all, type into a cell, read what it shows."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

IDLE = re.compile(r"\| Idle")


class Lab:
    def __init__(self, address: str, page: Page) -> None:
        self.address, self.page = address, page

    def open(self, notebook: str) -> None:
        """Open a notebook by its path below the project and wait for its kernel."""
        self.page.goto(f"{self.address}/lab/tree/{notebook}?reset")
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text(IDLE, timeout=90_000)

    def run_all(self) -> None:
        """Menu Run, Restart Kernel and Run All Cells, and wait until the last cell has run."""
        self.menu("Run", "Restart Kernel and Run All Cells…")
        self.page.locator(".jp-Dialog button", has_text="Restart").click()
        self.page.wait_for_function(
            """() => {
                const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')];
                return prompts.length && prompts.every(p => /\\[\\d+\\]/.test(p.textContent));
            }""",
            timeout=120_000,
        )
        self.wait_until_idle()

    def menu(self, *steps: str) -> None:
        self.page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{steps[0]}$")).click()
        for step in steps[1:]:
            self.page.locator(".lm-Menu-itemLabel", has_text=step).first.click()

    def cell(self, text: str) -> Locator:
        """The one code cell whose source contains `text`."""
        found = self.page.locator(".jp-CodeCell").filter(has=self.page.locator(".jp-InputArea", has_text=text))
        expect(found).to_have_count(1)
        return found

    def replace(self, cell: Locator, line: str, by: str) -> None:
        """Select a line of a cell by clicking on it, as a person would, and type something else."""
        cell.scroll_into_view_if_needed()
        cell.locator(".cm-line", has_text=line).click()
        self.page.keyboard.press("End")
        self.page.keyboard.press("Shift+Home")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(by)

    def run(self, cell: Locator) -> None:
        """Click into the cell, Shift+Enter, and wait."""
        prompt = cell.locator(".jp-InputArea-prompt").first
        before = prompt.text_content() or ""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"))
        expect(prompt).not_to_have_text(before)
        self.wait_until_idle()
