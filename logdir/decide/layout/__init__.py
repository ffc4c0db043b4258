"""The change between the topic-name and the topic-id layout: what must be true, and what is next."""
