"""The scheduler: hands out rollouts, owns the services' slots, and retries what failed."""
