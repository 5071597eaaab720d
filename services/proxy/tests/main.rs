//! Tests of the HTTP proxy.
