"""dag_jsonl: conversations that start others."""
