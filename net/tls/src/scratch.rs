//! Buffers for one system call, kept by threads rather than by streams: an idle stream holds none.

use std::cell::Cell;

use spandrel_sync::thread_local;

/// The maximum of ciphertext received by one call: four records of the largest size.
const INPUT: usize = 65_536;
/// The largest output buffer that is kept.
const MAX_KEPT_OCTETS: usize = 131_072;

thread_local! {
    static FOR_INPUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static FOR_OUTPUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A buffer to receive into, to be returned.
pub(crate) fn input() -> Vec<u8> {
    // A TLS stream over a TLS stream takes two, and a thread may be ending.
    let buffer = FOR_INPUT.try_with(Cell::take).unwrap_or_default();
    if buffer.is_empty() { vec![0; INPUT] } else { buffer }
}

/// Returns a buffer of [`input`].
pub(crate) fn give_input(buffer: Vec<u8>) {
    let _ = FOR_INPUT.try_with(|kept| kept.set(buffer));
}

/// An empty buffer to write into, to be returned.
pub(crate) fn output() -> Vec<u8> {
    FOR_OUTPUT.try_with(Cell::take).unwrap_or_default()
}

/// Returns a buffer of [`output`].
pub(crate) fn give_output(mut buffer: Vec<u8>) {
    if buffer.capacity() <= MAX_KEPT_OCTETS {
        buffer.clear();
        let _ = FOR_OUTPUT.try_with(|kept| kept.set(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_and_nested_uses_are_separate() {
        let one = input();
        let other = input();
        assert_eq!((one.len(), other.len()), (INPUT, INPUT));
        let place = one.as_ptr();
        give_input(one);
        let again = input();
        assert_eq!(again.as_ptr(), place);

        let mut out = output();
        out.extend_from_slice(&[7; 100]);
        give_output(out);
        let out = output();
        assert!(out.is_empty() && out.capacity() >= 100, "its contents are cleared, its memory is kept");
        give_output(Vec::with_capacity(MAX_KEPT_OCTETS + 1));
        assert_eq!(output().capacity(), 0);
    }
}
