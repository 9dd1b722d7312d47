"""From a folder of submissions to a gradebook, feedback and a table of grades.

classroom.py  a class folder: what lies where, and what is put there first
intake.py     submissions found and read, whatever they are called
restore.py    a submission's answers in the official notebook's cells
execute.py    one submission to points: the only file that starts a learner's code
schedule.py   many submissions on many cores
gradebook.py  the one writer of nbgrader's database
outputs.py    what a run leaves in a notebook, made safe to look at
feedback.py   a graded notebook to a page
export.py     gradebook and submissions to grades.csv
run.py        all of it, in order
steps.py      the same repairs for nbgrader's own commands
"""
