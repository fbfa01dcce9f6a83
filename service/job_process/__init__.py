"""The process that runs jobs: a worker, which leases, trains and publishes."""
