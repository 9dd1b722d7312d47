"""From a chapter's text, solutions/NN_name.py, to its notebook, course/NN_name/name.ipynb.

source.py     the text to cells; errors with file and line
rules.py      what a chapter must be like; errors with file and line
figures.py    figures and the still pictures of widgets, as PNG
uses.py       which cells stop as long as an answer is missing
cell_ids.py   an id for every cell
size.py       words, lines and their targets
release.py    nbgrader's own steps from the notebook with answers to the one without
notebook.py   all of it: cells to notebooks, notebooks to disk
"""
