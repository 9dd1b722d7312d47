"""From a folder of submissions to a gradebook, feedback and a table of grades.

classroom.py  a class folder: what lies where, and what is put there first
intake.py     submissions found and read, whatever they are called
restore.py    a submission's answers in the official notebook's cells
job.py        what goes to the judge and what comes back
judge.py      one submission to points
budget.py     what a submission may use of the machine in all
hidden.py     the hidden cases, what is right on them, and what that is worth
findings.py   what was found on an exercise, and what the learner reads of it
hearing.py    a conversation with a run: what may come at each step
protocol.py   what passes between the judge and a learner's process
sandbox.py    the outside of the wall: the only file that starts a learner's code
worker.py     the inside: runs it
isolate.py    what the inside does to itself first
journal.py    what has been judged, before it is in the gradebook
schedule.py   many submissions on many cores
gradebook.py  the one writer of nbgrader's database
outputs.py    what a run leaves in a notebook, made safe to look at
feedback.py   a graded notebook to a page
export.py     gradebook and submissions to grades.csv
run.py        all of it, in order
steps.py      the same repairs for nbgrader's own commands
"""

import sys

# Half the time that nbgrader takes to import goes to a grammar of international addresses: jsonschema compiles it for a
# format that no notebook's schema asks for, and does without where it is not installed.
sys.modules.setdefault("rfc3987_syntax", None)
