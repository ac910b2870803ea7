"""The report of a simulation: a table, JSON, Markdown and one HTML page, all of them from `Scores` alone."""
