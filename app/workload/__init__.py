"""What kind of work a request is, and what drafts will give for it."""
