"""Makes the files of a release: `make dist`."""
