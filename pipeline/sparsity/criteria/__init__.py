"""Published criteria for which two of four weights to keep, each on a layer as a matrix (see `layout`)."""
