"""One of everything that isn't an endpoint, a data set, an exporter, a metric or a grader."""
