"""S3's API by a client of the guard's own: signatures of version 4, parts, conditions, streams, retries."""
