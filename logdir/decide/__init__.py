"""Pure decisions: facts in, ordered actions out. Nothing here touches a disk or reads a clock."""
