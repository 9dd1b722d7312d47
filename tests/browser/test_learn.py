"""The Lab as `make learn` starts it: nothing of the instructor's in it, and the commands in its terminal."""

from __future__ import annotations

import asyncio
import json
import urllib.request

import pytest
from playwright.sync_api import expect
from tornado.websocket import websocket_connect

pytestmark = pytest.mark.browser


def test_a_learner_sees_nothing_of_nbgrader(lab):
    lab.open("work/00_start/start.ipynb")
    menus = [name.strip() for name in lab.page.locator(".lm-MenuBar-itemLabel").all_text_contents()]
    assert {"File", "Run", "Kernel"} <= set(menus)
    assert "Nbgrader" not in menus
    expect(lab.page.locator(".jp-NotebookPanel-toolbar").get_by_text("Validate")).to_have_count(0)
    expect(lab.page.get_by_title("Create Assignment")).to_have_count(0)


def test_the_terminal_finds_the_commands(server):
    said = asyncio.run(typed_in_terminal(server, "command -v autograder; echo the-$((40 + 2))-end"))
    assert "/autograder" in said


async def typed_in_terminal(server: str, line: str) -> str:
    """What a new terminal shows for a line, up to the end that the line itself prints."""
    with urllib.request.urlopen(urllib.request.Request(f"{server}/api/terminals", method="POST")) as answer:
        name = json.loads(answer.read())["name"]
    socket = await websocket_connect(f"ws{server.removeprefix('http')}/terminals/websocket/{name}")
    await socket.write_message(json.dumps(["stdin", line + "\r"]))
    shown = ""
    while "the-42-end" not in shown:
        kind, *rest = json.loads(await asyncio.wait_for(socket.read_message(), 60))
        shown += rest[0] if kind == "stdout" else ""
    socket.close()
    while await socket.read_message() is not None:
        pass  # until the server has closed its end too
    return shown
