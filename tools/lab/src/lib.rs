//! The laboratory: the papers' experiments, measured against raw sockets.
