"""A page to look at: what is integer, what is float and why, ranges, errors, histograms."""
