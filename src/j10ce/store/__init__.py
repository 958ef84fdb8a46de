"""Where objects live. Every store passes one conformance suite (`j10ce.testing`)."""
