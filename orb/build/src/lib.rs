//! Compiles IDL from a build script.
