"""``logdirctl``: one module per command, each with its parser and its action."""
