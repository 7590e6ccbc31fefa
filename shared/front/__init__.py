"""The front of a TCP port: who may hold one of its connections, and what the others are told."""
