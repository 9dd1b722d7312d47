"""What a chapter must be like. Each rule raises SourceError with the file, the line and the remedy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from autograder.build.source import Chapter, SourceCell, refuse_broken_python
from autograder.checks.exercise import Exercise
from autograder.errors import SourceError

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_NAME = 57
"""A cell id has 64 characters at most, and the builder adds `-figure`."""


def validate(chapter: Chapter) -> None:
    """Hold a chapter to every rule."""
    for rule in (
        cells_are_python,
        first_cell_names_the_chapter,
        names_are_well_formed_and_unique,
        answers_stay_in_exercises,
        exercises_match_records,
        checks_follow_exercises,
        exercises_define_their_names,
        exercises_have_answers,
        headings_match_records,
        figures_have_alternative_text,
        widgets_are_one_call,
    ):
        rule(chapter)


def fail(chapter: Chapter, line: int, message: str) -> None:
    raise SourceError(chapter.path, line, message)


def with_role(chapter: Chapter, *roles: str) -> Iterator[SourceCell]:
    return (cell for cell in chapter.cells if cell.role in roles)


def cells_are_python(chapter: Chapter) -> None:
    """The whole file compiles already: a cell that does not has its other half in the next one."""
    for cell in chapter.cells:
        if cell.role != "prose":
            refuse_broken_python(chapter.path, cell.text, cell.line)
            if not ast.parse(cell.text).body:
                fail(chapter, cell.line, "the cell holds no code: write some, or remove its mark")


def first_cell_names_the_chapter(chapter: Chapter) -> None:
    cell = next((cell for cell in chapter.cells if cell.role != "prose"), None)
    wanted = f"gradwright.chapter({chapter.number})"
    if cell is None:
        fail(chapter, 1, f"the chapter has no code cell: begin with one that calls {wanted}")
    calls = {ast.unparse(node) for node in ast.walk(ast.parse(cell.text)) if isinstance(node, ast.Call)}
    if cell.role != "demo" or wanted not in calls:
        fail(chapter, cell.line, f"the first code cell has no mark and calls {wanted}: add that cell in front")


def names_are_well_formed_and_unique(chapter: Chapter) -> None:
    seen: dict[str, int] = {}
    for cell in with_role(chapter, "exercise", "given", "figure", "widget"):
        name, line = cell.name, cell.line - 1
        if not SLUG.fullmatch(name) or len(name) > LONGEST_NAME:
            allowed = f"lower-case letters, digits and single hyphens, {LONGEST_NAME} characters at most"
            fail(chapter, line, f"{name!r} cannot be the name of a cell: use {allowed}")
        if cell.role == "exercise" and not name.startswith(f"{chapter.name}-"):
            fail(chapter, line, f"the id {name!r} does not begin with its chapter: call it '{chapter.name}-{name}'")
        for taken in reserved_ids(cell):
            if taken in seen:
                fail(chapter, line, f"the name {taken!r} is taken since line {seen[taken]}: choose another")
            seen[taken] = line


def reserved_ids(cell: SourceCell) -> tuple[str, ...]:
    """The cell ids that belong to a cell by its name. A check's is its exercise's."""
    if cell.role == "exercise":
        return cell.name, f"{cell.name}-check", f"{cell.name}-task"
    if cell.role == "widget":
        return cell.name, f"{cell.name}-figure"
    return (cell.name,) if cell.role in ("given", "figure") else ()


def answers_stay_in_exercises(chapter: Chapter) -> None:
    for cell in chapter.cells:
        if cell.role == "exercise":
            continue
        for number, line in enumerate(cell.text.splitlines(), cell.line):
            if "BEGIN SOLUTION" in line or "END SOLUTION" in line:
                fail(chapter, number, 'an answer stands outside an exercise: mark its cell `exercise="..."`')


def exercises_match_records(chapter: Chapter) -> None:
    file = f"autograder/checks/exercises/{chapter.path.name}"
    known = [record.id for record in chapter.records]
    twice = next((id for id in known if known.count(id) > 1), None)
    if twice:
        fail(chapter, 1, f"there are two records of {twice!r}: remove one from {file}")
    cells = list(with_role(chapter, "exercise"))
    for cell in cells:
        if cell.name not in known:
            fail(chapter, cell.line - 1, f"the exercise {cell.name!r} has no record: add one to {file}")
    here = [cell.name for cell in cells]
    for missing in (id for id in known if id not in here):
        fail(chapter, last_line(chapter), f"the record {missing!r} has no cell: add one, or remove it from {file}")
    for cell, wanted in zip(cells, known, strict=True):
        if cell.name != wanted:
            fail(chapter, cell.line - 1, f"{wanted!r} comes here in {file}, not {cell.name!r}: give both one order")


def last_line(chapter: Chapter) -> int:
    return chapter.cells[-1].line + chapter.cells[-1].text.count("\n")


def checks_follow_exercises(chapter: Chapter) -> None:
    """Exercise, its check, the next exercise: in this order, with anything else between."""
    waiting: SourceCell | None = None
    for cell in with_role(chapter, "exercise", "check"):
        if cell.role == "exercise":
            refuse_unchecked(chapter, waiting)
            waiting = cell
            continue
        if waiting is None or cell.name != waiting.name:
            fail(chapter, cell.line - 1, f"the check {cell.name!r} does not follow its exercise: put it below")
        wanted = f'check("{cell.name}", {chapter.record(cell.name).name})'
        if cell.text.strip() != wanted:
            fail(chapter, cell.line, f"the check {cell.name!r} is not its one line: write {wanted}")
        waiting = None
    refuse_unchecked(chapter, waiting)


def refuse_unchecked(chapter: Chapter, exercise: SourceCell | None) -> None:
    if exercise:
        wanted = f'`# %% check="{exercise.name}"`'
        fail(chapter, exercise.line - 1, f"the exercise {exercise.name!r} has no check: put a cell {wanted} below it")


def exercises_define_their_names(chapter: Chapter) -> None:
    for cell in with_role(chapter, "exercise"):
        name = chapter.record(cell.name).name
        if name not in defined(ast.parse(cell.text).body):
            fail(chapter, cell.line, f"the cell does not define {name}, which the record names: correct one of them")


def defined(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """Functions, classes and variables of these statements; methods as `Tensor.reshape`."""
    names = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(prefix + statement.name)
            if isinstance(statement, ast.ClassDef):
                names |= defined(statement.body, f"{prefix}{statement.name}.")
        elif isinstance(statement, ast.Assign):
            names |= {prefix + ast.unparse(target) for target in statement.targets}
        elif isinstance(statement, ast.AnnAssign):
            names.add(prefix + ast.unparse(statement.target))
    return names


def exercises_have_answers(chapter: Chapter) -> None:
    for cell in with_role(chapter, "exercise"):
        if not answers(chapter, cell):
            fail(chapter, cell.line, f"the exercise {cell.name!r} has no answer: put it between {BEGIN} and {END}")


def answers(chapter: Chapter, cell: SourceCell) -> list[tuple[int, int]]:
    """First and last line of each answer in the file, its marks included."""
    found: list[tuple[int, int]] = []
    begun = 0
    for number, line in enumerate(cell.text.splitlines(), cell.line):
        mark = line.strip()
        if ("BEGIN SOLUTION" in line or "END SOLUTION" in line) and mark not in (BEGIN, END):
            fail(chapter, number, f"{mark!r} is no mark of an answer: write {BEGIN} or {END}, alone on its line")
        if mark == (BEGIN if begun else END):
            fail(chapter, number, f"{mark} has no partner: marks come in pairs, {BEGIN} and then {END}")
        if mark == BEGIN:
            begun = number
        elif mark == END:
            if number == begun + 1:
                fail(chapter, number, f"nothing stands between {BEGIN} and {END}: write the answer there")
            found.append((begun, number))
            begun = 0
    if begun:
        fail(chapter, begun, f"{BEGIN} has no partner: close the answer by {END}")
    return found


def headings_match_records(chapter: Chapter) -> None:
    previous: SourceCell | None = None
    for cell in chapter.cells:
        if cell.role == "exercise":
            compare_heading(chapter, cell, previous)
        previous = cell


def compare_heading(chapter: Chapter, exercise: SourceCell, before: SourceCell | None) -> None:
    heading, terms = heading_of(chapter.record(exercise.name))
    if before is None or before.role != "prose":
        message = f"no Markdown cell stands right above the exercise {exercise.name!r}: add one with {heading!r}"
        fail(chapter, exercise.line - 1, message)
    lines = before.text.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith("### Exercise")), len(lines) - 1)
    for place, wanted in ((at, heading), (at + 1, terms)):
        if lines[place : place + 1] != [wanted]:
            line = before.line + min(place, len(lines) - 1)
            fail(chapter, line, f"the heading of {exercise.name!r} is not as its record has it: write {wanted!r} here")


def heading_of(record: Exercise) -> tuple[str, str]:
    """The two lines that the Markdown cell above an exercise holds, one below the other."""
    points = f"{record.points} point{'s' * (record.points != 1)}"
    minutes = f"{record.minutes} minute{'s' * (record.minutes != 1)}"
    return f"### Exercise {record.number}: `{record.name}`", f"{record.difficulty}, {minutes}, {points}."


def figures_have_alternative_text(chapter: Chapter) -> None:
    for cell in with_role(chapter, "figure"):
        if not (ast.get_docstring(ast.parse(cell.text)) or "").strip():
            message = f"the figure {cell.name!r} has no alternative text: say in a docstring on top what it shows"
            fail(chapter, cell.line, message)


def widgets_are_one_call(chapter: Chapter) -> None:
    for cell in with_role(chapter, "widget"):
        try:
            widget_call(cell)
        except ValueError as error:
            message = f"the widget {cell.name!r} is not one call with plain arguments: write stride_explorer()"
            raise SourceError(chapter.path, cell.line, message) from error


def widget_call(cell: SourceCell) -> tuple[str, list[object], dict[str, object]]:
    """Name, arguments and named arguments of a widget cell. Raises ValueError where it is anything else."""
    match ast.parse(cell.text).body:
        case [ast.Expr(value=ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords))]:
            named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords}
            return name, [ast.literal_eval(argument) for argument in arguments], named
    raise ValueError(cell.text)
