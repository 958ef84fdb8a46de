"""The runner behind `make test`, `test-all`, `test-compat` and `test-long`: python -m tools.testing VERB [SUITE...]

suites    which suites a verb has, which of them run side by side, and what each needs and takes
lanes     runs them: stages one after the other, lanes side by side, failures a second time alone
reading   what pytest's output says: how far it is, what failed, what was left out and why
progress  one line every few seconds: stage, suites, percent, minutes left
table     the lines at the end
"""
