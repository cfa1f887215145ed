"""Administration: topics, configs, ACLs, replicas, and what the brokers and services of a cluster can do."""
