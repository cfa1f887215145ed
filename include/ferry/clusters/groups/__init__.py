"""Consumer groups and the requests to coordinators, also those of transactions."""
