"""python -m agent: the same as `gpubid`."""

from agent.cli.main import main

if __name__ == "__main__":
    main()
