"""otel_spans: requests recorded as OpenTelemetry GenAI spans; each sends its whole chat again."""
