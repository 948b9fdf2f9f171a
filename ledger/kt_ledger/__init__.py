"""What was used, what it cost, and whether that is still allowed.

The pure half (everything but `store`) imports the standard library only, so that the gateway, the keeper and the
engine can share its values and records; `store` is the one place that knows SQLAlchemy.
"""
