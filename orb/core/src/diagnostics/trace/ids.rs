//! Random ids of traces and spans: never zero, and not secret.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    process,
};

use spandrel_sync::thread_local;

thread_local! {
    /// Keys from the system's random numbers, and the number of uses. A forked process has the same, and
    /// another process id.
    static SOURCE: (RandomState, std::cell::Cell<u64>) = (RandomState::new(), std::cell::Cell::new(0));
}

pub(super) fn trace_id() -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&span_id());
    id[8..].copy_from_slice(&span_id());
    id
}

pub(super) fn span_id() -> [u8; 8] {
    let number = SOURCE.with(|(keys, uses)| {
        uses.set(uses.get().wrapping_add(1));
        let mut hasher = keys.build_hasher();
        hasher.write_u64(uses.get());
        hasher.write_u32(process::id());
        hasher.finish()
    });
    number.max(1).to_be_bytes()
}
