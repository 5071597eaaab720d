//! The paper's service without sockets.

use spandrel_architectures::transfer::{GREETING, Transfer};
use spandrel_architectures::{Phase, Protocol as _, Session as _};

use crate::support::{exchange, take_output};

const SILENT: Transfer = Transfer { has_greeting: false };

#[test]
fn a_request_is_answered_with_as_many_octets() {
    for length in [0, 1, 600, 4_000, 9_999] {
        let (output, is_closing) = exchange(&SILENT, &[format!("{length:04}").as_bytes()]);
        assert_eq!(output, vec![b'A'; length]);
        assert!(!is_closing, "the client closes first");
    }
}

#[test]
fn the_greeting_precedes_the_request() {
    let mut session = Transfer { has_greeting: true }.open();
    assert_eq!(take_output(&mut session), GREETING);
    assert_eq!(session.phase(), Phase::Idle);
}

#[test]
fn a_request_may_arrive_in_any_parts() {
    let parts: [&[&[u8]]; 3] = [&[b"4", b"0", b"0", b"0"], &[b"40", b"00"], &[b"400", b"0"]];
    for parts in parts {
        assert_eq!(exchange(&SILENT, parts), (vec![b'A'; 4_000], false));
    }
    let mut session = SILENT.open();
    session.receive(b"40");
    assert_eq!(session.phase(), Phase::InRequest);
}

#[test]
fn anything_else_closes_the_connection() {
    let wrong: [&[&[u8]]; 6] =
        [&[b"40x0"], &[b"-100"], &[b"    "], &[b"40000"], &[b"4000", b"4000"], &[b"\xff\xff\xff\xff"]];
    for parts in wrong {
        let (_, is_closing) = exchange(&SILENT, parts);
        assert!(is_closing, "{parts:?}");
    }
    let mut session = SILENT.open();
    session.receive(b"4000");
    take_output(&mut session);
    session.end_input();
    assert_eq!(session.phase(), Phase::Closing);
}
