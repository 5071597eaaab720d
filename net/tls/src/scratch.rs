//! Memory for one system call, kept by threads rather than by streams: a stream that is silent holds none.

use std::cell::Cell;

use spandrel_sync::thread_local;

/// How many octets of ciphertext are received by one call: four records of the largest size.
const INPUT: usize = 65_536;
/// Memory for output that has grown beyond this is not kept.
const KEPT: usize = 131_072;

thread_local! {
    static FOR_INPUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static FOR_OUTPUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A buffer to receive into. Give it back.
pub(crate) fn input() -> Vec<u8> {
    // A stream over a stream takes two, and so may a thread that ends.
    let buffer = FOR_INPUT.try_with(Cell::take).unwrap_or_default();
    if buffer.is_empty() { vec![0; INPUT] } else { buffer }
}

/// Gives a buffer of [`input`] back.
pub(crate) fn give_input(buffer: Vec<u8>) {
    let _ = FOR_INPUT.try_with(|kept| kept.set(buffer));
}

/// An empty buffer to write into. Give it back.
pub(crate) fn output() -> Vec<u8> {
    FOR_OUTPUT.try_with(Cell::take).unwrap_or_default()
}

/// Gives a buffer of [`output`] back.
pub(crate) fn give_output(mut buffer: Vec<u8>) {
    if buffer.capacity() <= KEPT {
        buffer.clear();
        let _ = FOR_OUTPUT.try_with(|kept| kept.set(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_two_at_once_are_two() {
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
        assert!(out.is_empty() && out.capacity() >= 100, "what was written into it is gone, its memory is not");
        give_output(Vec::with_capacity(KEPT + 1));
        assert_eq!(output().capacity(), 0);
    }
}
