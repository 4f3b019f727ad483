"""Every name on the wire, as data: panels, recording rules, and the tables that document them."""
