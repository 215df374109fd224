"""The fault campaign: what is promised to a user, with the faults injected that it is about."""
