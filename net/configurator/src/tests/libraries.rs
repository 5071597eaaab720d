//! Services of shared libraries.
