"""What the house needs to keep itself in order; nothing here is shipped."""
