"""What the built-in prompts ask for, by kind of work."""

from __future__ import annotations

from typing import Final

COPY_CODE: Final = (
    "Return the following code exactly as it is, and nothing else.",
    "Return the following code with a short comment above each part. Change nothing else.",
    "Write the same code again, with four more spaces before every line.",
    "Repeat this code, and replace the word `found` by `result` wherever it is a name.",
    "Return the complete code below without its empty lines.",
)
COPY_RECORDS: Final = (
    "Copy the following records exactly, line by line, and nothing else.",
    "Return these records in the same format and the same order, with the word CHECKED behind each line.",
    "Write the same lines again, and leave none out.",
    "Repeat the following data, and change every 2026 to 2027.",
    "Return the data below as they are, in a block of code.",
)
CODE: Final = (
    "Write unit tests for this code.",
    "Review this code and name two problems, each with a proposal.",
    "Explain step by step what this code does.",
    "Port this code to Rust.",
    "Make this code shorter without changing what it does.",
    "Add checks of the arguments to this code, with clear messages.",
    "Write the documentation of this code for a new colleague.",
)
MATH: Final = (
    "Solve these problems one after the other and show every step.",
    "Calculate the following. Write the equation first, then the result.",
    "Solve the following as a teacher would do it at the blackboard.",
    "Solve each of these problems, and check every result at the end.",
    "Solve the following for a pupil of eleven years.",
)
TABLE: Final = "Here is a table. What is the sum of each column of numbers, and what is its mean?"
TRANSLATE: Final = (
    "Translate the following text into German:",
    "Translate the following text into French:",
    "Translate the following text into Spanish:",
    "Translate the following text into Italian and keep all numbers:",
    "Translate the following text into Dutch:",
    "Translate the following text into Polish:",
    "Translate the following text into Portuguese, politely:",
)
GROUNDED: Final = (
    "Summarize the following text in two sentences:",
    "Rewrite the following text for a local newspaper:",
    "Summarize the following text in five points, and keep all numbers:",
    "Rewrite the following text in simple words, for children:",
    "Summarize the following text for somebody who has to decide about it:",
    "Rewrite the following text as a letter to a friend:",
    "Shorten the following text to half of its length:",
)
STRUCTURED: Final = (
    "Extract all dates, names and sums of money from this text as one JSON object:",
    "Extract from this text who writes, to whom, what is asked for and until when, as a JSON object:",
    "Extract every number in this text as a JSON array of objects with `value`, `unit` and `meaning`:",
    "Extract all tasks from this text as a JSON array with `task`, `person` and `due`:",
    "Extract a title, three keywords, the language and the mood of this text as a JSON object:",
)
