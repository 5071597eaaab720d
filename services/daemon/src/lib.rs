//! Common parts of service executables: command line, data folder, readiness, exit codes.
#![forbid(unsafe_code)]
