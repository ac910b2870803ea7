"""What reports share: their parts, numbers in words, plots as SVG, and the page in HTML and Markdown."""
