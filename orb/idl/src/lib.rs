//! The OMG IDL compiler: front end, checked model and the Rust back end.
