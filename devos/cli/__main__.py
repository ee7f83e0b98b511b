"""`python -m devos.cli` is the `devos` command."""

from devos.cli.app import main

if __name__ == "__main__":
    main()
