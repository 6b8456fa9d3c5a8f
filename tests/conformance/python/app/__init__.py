"""A small Temporal application: the workflows and activities that the tests run."""
