"""Pure decisions: facts in, ordered actions out. No module here touches a disk or reads a clock."""
