# On Windows, where there is no make: py autograder\bootstrap.py learn (or test, grade, build, references).
PYTHON ?= python3
SET_UP := $(PYTHON) autograder/bootstrap.py
.PHONY: help learn test grade build references bench clean

help:        ## this list
	@sed -n 's/^\([a-z]*\): *## /  make \1: /p' Makefile
learn:       ## set up, copy what is missing to work/ and open JupyterLab: make learn ARGS="--port 9000 --no-browser"
	@$(SET_UP) learn $(ARGS)
test:        ## set up and run all tests but those that need a browser
	@$(SET_UP) test
grade:       ## set up and grade a class: make grade CLASS=folder (without one, a sample class)
	@$(SET_UP) grade $(if $(CLASS),"$(CLASS)")
build:       ## set up and build the notebooks in course/ from solutions/
	@$(SET_UP) build
references:  ## set up, install PyTorch and rebuild the reference values, comparing them with the stored ones
	@$(SET_UP) references
bench:       ## set up and time the framework beside NumPy; pictures and numbers go to .bench/
	@$(SET_UP) bench
clean:       ## remove what set-up and tools made; work/ and classes stay
	@rm -rf .venv .venv.lock .pytest_cache .ruff_cache .hypothesis .bench dist
