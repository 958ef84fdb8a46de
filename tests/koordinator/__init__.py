"""Case files of Koordinator's behaviour, run against the dialect: `python -m tests.koordinator DIR`."""
