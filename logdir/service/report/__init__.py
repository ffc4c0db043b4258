"""The items of results, their JSON form, and the reporter."""
