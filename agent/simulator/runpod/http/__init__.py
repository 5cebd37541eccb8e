"""RunPod's HTTP APIs, as its own clients speak them: REST v2, REST v1 and GraphQL."""
