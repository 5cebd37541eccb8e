"""The program inside a rented instance. Standard library only, Python 3.8, imports nothing else of ours."""
