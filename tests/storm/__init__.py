"""A storm over real processes and HTTP: kill -9 after kill -9 while transport and single fields lie."""
