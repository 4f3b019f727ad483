"""From configuration to running processes: plan, ports, guard, supervisor, deployments."""
