"""The command line. Each command calls one function, imported when it is wanted, so that help is there at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from autograder.errors import GradwrightError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns 0 if all is well, 2 after an error, which is one sentence on stderr."""
    options = parser().parse_args(arguments)
    try:
        code = options.run(options)
        sys.stdout.flush()
        return code
    except GradwrightError as error:
        print(f"autograder: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read the output has seen enough: `autograder status | head -3`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more as it ends
        return 1


def parser() -> argparse.ArgumentParser:
    """The commands in the order in which a reader meets them: learner, instructor, author."""
    top = argparse.ArgumentParser(prog="autograder", description="Gradwright's commands.", allow_abbrev=False)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        added.set_defaults(run=run)
        return added

    one = command("learn", learn, "copy what is missing to work/ and open JupyterLab on the first chapter")
    one.add_argument("--port", type=int, metavar="N", help="the port to listen on (default: a free one)")
    one.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    command("status", status, "list chapters, exercises and points, and what to do next")
    one = command("check", check, "check a chapter's notebook, with the verdicts that the notebook shows")
    one.add_argument("chapter", metavar="NN", help="the chapter, by number or by name")
    one = command("fresh", fresh, "put an untouched copy of a chapter beside yours in work/")
    one.add_argument("chapter", metavar="NN", help="the chapter, by number or by name")
    one = command("grade", grade, "grade a class: gradebook, feedback and grades.csv from its submissions")
    one.add_argument("folder", nargs="?", metavar="CLASS", help="the class folder (default: autograder/class)")
    text = "run submissions with your rights where they cannot be kept apart from your files"
    one.add_argument("--allow-weak-isolation", action="store_true", help=text)
    command("build", build, "build the notebooks in course/ from solutions/")
    command("references", references, "rebuild the reference values with PyTorch and compare them with the stored ones")
    one = command("mistakes", mistakes, "check that known mistakes are caught and named, and alternatives accepted")
    one.add_argument("--json", action="store_true", help="print JSON in place of the table")
    one = command("bench", bench, "time the framework beside NumPy, in one run: a table, and a picture in .bench/")
    one.add_argument("names", nargs="*", metavar="NAME", help="a benchmark (default: all)")
    return top


def learn(options: argparse.Namespace) -> int:
    from autograder.learn import learn

    return learn(options.port, not options.no_browser)


def status(options: argparse.Namespace) -> int:
    from autograder.shell import status

    return status()


def check(options: argparse.Namespace) -> int:
    from autograder.course import chapter
    from autograder.shell import check_chapter

    return check_chapter(chapter(options.chapter).number)


def fresh(options: argparse.Namespace) -> int:
    from autograder.course import chapter
    from autograder.learn import fresh

    fresh(chapter(options.chapter))
    return 0


def grade(options: argparse.Namespace) -> int:
    from autograder.teach import grade

    return grade(options.folder, options.allow_weak_isolation)


def build(options: argparse.Namespace) -> int:
    from autograder.build.notebook import build_all

    build_all()
    return 0


def references(options: argparse.Namespace) -> int:
    from autograder.build.references import rebuild

    return rebuild()


def mistakes(options: argparse.Namespace) -> int:
    from autograder.build.mistakes import report

    return report(as_json=options.json)


def bench(options: argparse.Namespace) -> int:
    from autograder.bench import bench

    return bench(options.names)


if __name__ == "__main__":
    sys.exit(main())
