"""The `twinpool` command line."""
