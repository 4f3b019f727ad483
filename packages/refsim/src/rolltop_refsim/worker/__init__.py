"""The worker: drives rollouts, several at once on one event loop."""
