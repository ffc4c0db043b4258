"""The change between topic-name and topic-id layout: its preconditions and its steps."""
