"""The report of a measurement: one page that answers first and then shows what the answer rests on."""
