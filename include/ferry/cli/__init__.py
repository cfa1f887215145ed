"""The command line: thin commands over the pipeline, tables by rich, one exit code per outcome."""
