"""The only room that speaks to Prometheus: binary, server, scrape configuration, queries."""
