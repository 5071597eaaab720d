//! Received data: reference counted, aligned, chainable blocks.
