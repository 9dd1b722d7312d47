"""The Lab as `make learn` starts it: nothing of the instructor's in it, and the commands in its terminal."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# What a new terminal shows for a line, up to the end that the line itself prints.
TYPED_IN_TERMINAL = """async line => {
    const terminal = await (await fetch('/api/terminals', {method: 'POST'})).json();
    const socket = new WebSocket(`ws://${location.host}/terminals/websocket/${terminal.name}`);
    let shown = '';
    return new Promise((resolve, reject) => {
        socket.onerror = reject;
        socket.onopen = () => socket.send(JSON.stringify(['stdin', line]));
        socket.onmessage = event => {
            const [kind, text] = JSON.parse(event.data);
            shown += kind === 'stdout' ? text : '';
            if (shown.includes('the-42-end')) { socket.close(); resolve(shown); }
        };
    });
}"""


def test_a_learner_sees_nothing_of_nbgrader(lab):
    lab.open("work/00_start/start.ipynb")
    menus = [name.strip() for name in lab.page.locator(".lm-MenuBar-itemLabel").all_text_contents()]
    assert {"File", "Run", "Kernel"} <= set(menus)
    assert "Nbgrader" not in menus
    expect(lab.page.locator(".jp-NotebookPanel-toolbar").get_by_text("Validate")).to_have_count(0)
    expect(lab.page.get_by_title("Create Assignment")).to_have_count(0)


def test_the_terminal_finds_the_commands(lab):
    lab.page.goto(f"{lab.address}/lab")
    said = lab.page.evaluate(TYPED_IN_TERMINAL, "command -v autograder; echo the-$((40 + 2))-end\r")
    assert "/autograder" in said
