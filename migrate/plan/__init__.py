"""What a plan rests on, and the plan."""
