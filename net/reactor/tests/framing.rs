//! Frames: the same ones however the input is cut, and the end of peers that exceed the limits.

use crate::{for_every_place, support};

use std::io;
use std::sync::mpsc;
use std::thread;

use proptest::prelude::*;
use spandrel_ipc::inet::{Addr, Inet};
use spandrel_ipc::{Family, Receive, Shutdown, Transmit};
use spandrel_reactor::framing::{FrameBuffer, FrameHandler, Framed, Framing, LengthPrefix, Lines};
use spandrel_reactor::strategy::{Concurrency, Reactive, ThreadPerConnection};
use spandrel_reactor::{Acceptor, CloseReason, Peer, ServiceHandler};

use spandrel_test_support::{TEST_TIMEOUT, eventually};
use support::test_families::*;
use support::{Running, client, expect_end};

/// The frames of a stream that arrives in these pieces, and the kind of the error that ends it.
fn divide(framing: impl Framing, pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Option<io::ErrorKind>) {
    let mut buffer = FrameBuffer::new(framing);
    let mut frames = Vec::new();
    let mut all = || -> io::Result<()> {
        for piece in pieces {
            buffer.push(piece);
            while let Some(frame) = buffer.next_frame()? {
                frames.push(frame.to_vec());
            }
        }
        if let Some(frame) = buffer.last_frame()? {
            frames.push(frame.to_vec());
        }
        assert!(buffer.is_empty());
        Ok(())
    };
    let end = all().err().map(|error| error.kind());
    (frames, end)
}

/// Cuts the stream at every position, and into single octets.
fn expect_same_frames_however_cut(
    framing: impl Framing + Clone,
    stream: &[u8],
) -> Result<(Vec<Vec<u8>>, Option<io::ErrorKind>), TestCaseError> {
    let whole = divide(framing.clone(), &[stream]);
    for at in 0..=stream.len() {
        let (first, second) = stream.split_at(at);
        prop_assert_eq!(&divide(framing.clone(), &[first, second]), &whole, "cut at {}", at);
    }
    let octets: Vec<_> = stream.chunks(1).collect();
    prop_assert_eq!(&divide(framing, &octets), &whole);
    Ok(whole)
}

fn contents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..8)
}

/// Octets in which line ends are frequent.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"ab\r\n".to_vec()), 0..40)
}

proptest! {
    #[test]
    fn encoded_frames_are_found_however_the_stream_is_cut(contents in contents(), width in 0..4) {
        let framing = match width {
            0 => LengthPrefix::u16(11),
            1 => LengthPrefix::u32(11),
            2 => LengthPrefix::u16(11).little_endian(),
            _ => LengthPrefix::u32(11).little_endian(),
        };
        let stream: Vec<u8> = contents.iter().flat_map(|content| framing.encode(content).unwrap()).collect();
        prop_assert_eq!(expect_same_frames_however_cut(framing, &stream)?, (contents, None));
    }

    #[test]
    fn encoded_lines_are_found_however_the_stream_is_cut(contents in contents()) {
        let framing = Lines::new(11);
        let lines: Vec<_> = contents.into_iter().filter(|line| framing.encode(line).is_ok()).collect();
        let stream: Vec<u8> = lines.iter().flat_map(|line| framing.encode(line).unwrap()).collect();
        prop_assert_eq!(expect_same_frames_however_cut(framing, &stream)?, (lines, None));
    }

    #[test]
    fn any_text_has_the_same_lines_however_it_is_cut(text in text(), limit in 0_usize..6) {
        let (lines, end) = expect_same_frames_however_cut(Lines::new(limit), &text)?;
        // As the standard library divides it, up to the first line that is too long.
        let mut expected = Vec::new();
        let mut rest = &text[..];
        while !rest.is_empty() {
            let (line, next) = match rest.iter().position(|octet| *octet == b'\n') {
                Some(at) => (rest[..at].strip_suffix(b"\r").unwrap_or(&rest[..at]), &rest[at + 1..]),
                None => (rest, &rest[rest.len()..]),
            };
            if line.len() > limit {
                break;
            }
            expected.push(line.to_vec());
            rest = next;
        }
        prop_assert_eq!(lines, expected);
        prop_assert_eq!(end, (!rest.is_empty()).then_some(io::ErrorKind::QuotaExceeded));
    }

    #[test]
    fn any_octets_have_the_same_frames_however_they_are_cut(
        octets in prop::collection::vec(0_u8..4, 0..40),
        limit in 0_u16..600,
    ) {
        let (frames, end) = expect_same_frames_however_cut(LengthPrefix::u16(limit), &octets)?;
        prop_assert!(frames.iter().all(|frame| frame.len() <= usize::from(limit)));
        let framed: usize = frames.iter().map(|frame| frame.len() + 2).sum();
        prop_assert_eq!(end.is_none(), framed == octets.len());
        prop_assert!(matches!(end, None | Some(io::ErrorKind::QuotaExceeded | io::ErrorKind::UnexpectedEof)));
    }
}

#[test]
fn a_huge_length_is_refused_before_its_octets_arrive() {
    let mut buffer = FrameBuffer::new(LengthPrefix::u32(1000));
    buffer.push(&u32::MAX.to_be_bytes());
    let error = buffer.next_frame().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
    assert_eq!(error.to_string(), "the peer sent a frame of 4294967295 octets; the limit is 1000 octets");
}

#[test]
fn an_endless_line_is_refused_at_the_limit() {
    let mut buffer = FrameBuffer::new(Lines::new(1000));
    buffer.push(&[b'x'; 1000]);
    assert_eq!(buffer.next_frame().unwrap(), None);
    assert_eq!(buffer.len(), 1000);
    buffer.push(b"x");
    assert_eq!(buffer.next_frame().unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
}

#[test]
fn content_that_is_no_frame_is_not_encoded() {
    let kind = |result: io::Result<Vec<u8>>| result.unwrap_err().kind();
    for content in [&b"two\nlines"[..], b"end\r", b"too long"] {
        assert_eq!(kind(Lines::new(7).encode(content)), io::ErrorKind::InvalidInput);
    }
    assert_eq!(kind(LengthPrefix::u16(2).encode(b"abc")), io::ErrorKind::InvalidInput);
    assert_eq!(LengthPrefix::u16(u16::MAX).encode(&[1; 258]).unwrap()[..3], [1, 2, 1]);
    assert_eq!(LengthPrefix::u32(3).little_endian().encode(b"abc").unwrap(), b"\x03\0\0\0abc");
}

/// Sends back each line many times over, and tells the close reason.
struct Repeats(usize, mpsc::Sender<String>);

impl<F: Family> FrameHandler<F> for Repeats {
    fn handle_frame(&mut self, peer: &mut Peer<'_, F>, line: &[u8]) -> io::Result<()> {
        peer.put(&[line, b"\n"].concat().repeat(self.0))?;
        if line == b"quit" {
            peer.close();
        }
        Ok(())
    }

    fn close(&mut self, _: &mut Peer<'_, F>, reason: &CloseReason) {
        let _ = self.1.send(reason.to_string());
    }
}

/// A peer that sends many lines at once and reads late: the answers to few of them are queued at a time.
fn frames_wait_while_answers_do<P: TestFamily>(concurrency: impl Concurrency<P::Family, Framed<Lines, Repeats>>) {
    // All answers to the lines that are received at once exceed the limit of the queue.
    const LINES: usize = 250;
    const TIMES: usize = 3000;
    let running = Running::start(1);
    let (tell, reasons) = mpsc::channel();
    let (addr, _folder) = P::fresh();
    let server = Acceptor::new(P::family(), move || Framed::new(Lines::new(100), Repeats(TIMES, tell.clone())))
        .concurrency(concurrency)
        .open(running.reactor.registry(), &addr)
        .unwrap();
    let client = client_of::<P>(server.addr());
    let line = "a line of forty octets, which is repeated";
    thread::scope(|scope| {
        scope.spawn(|| {
            client.send_n(format!("{line}\r\n").repeat(LINES).as_bytes()).unwrap();
            client.send_n(b"quit\nnever handled\n").unwrap();
        });
        let mut answers = vec![0; (line.len() + 1) * TIMES];
        let expected = format!("{line}\n").repeat(TIMES);
        for _ in 0..LINES {
            client.recv_n(&mut answers).unwrap();
            assert!(answers == expected.as_bytes());
        }
        client.recv_n(&mut [0; 5 * TIMES]).unwrap();
        expect_end(&client);
    });
    assert_eq!(reasons.recv_timeout(TEST_TIMEOUT).unwrap(), "closed by this side");
}

fn an_endless_line_closes_its_connection<P: TestFamily>(
    concurrency: impl Concurrency<P::Family, Framed<Lines, Repeats>>,
) {
    let running = Running::start(1);
    let (tell, reasons) = mpsc::channel();
    let (addr, _folder) = P::fresh();
    let server = Acceptor::new(P::family(), move || Framed::new(Lines::new(100), Repeats(1, tell.clone())))
        .concurrency(concurrency)
        .open(running.reactor.registry(), &addr)
        .unwrap();
    let hostile = client_of::<P>(server.addr());
    hostile.send_n(b"well formed\n").unwrap();
    hostile.recv_n(&mut [0; 12]).unwrap();
    while hostile.send_n(&[b'x'; 1000]).is_ok() {}
    assert_eq!(
        reasons.recv_timeout(TEST_TIMEOUT).unwrap(),
        "limit exceeded: the peer sent a line that is too long; the limit is 100 octets"
    );
    eventually(|| server.connections() == 0);
}

macro_rules! framing {
    ($name:ident, $TestFamily:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn frames_wait_while_answers_do() {
                super::frames_wait_while_answers_do::<$TestFamily>(Reactive);
                super::frames_wait_while_answers_do::<$TestFamily>(ThreadPerConnection::new(1));
            }

            #[test]
            fn an_endless_line_closes_its_connection() {
                super::an_endless_line_closes_its_connection::<$TestFamily>(Reactive);
                super::an_endless_line_closes_its_connection::<$TestFamily>(ThreadPerConnection::new(1));
            }
        }
    };
}
for_every_place!(framing);

#[test]
fn a_last_line_needs_no_end_but_a_frame_does() {
    fn reason<H: ServiceHandler<Inet>>(
        make: impl Fn(mpsc::Sender<String>) -> H + Send + 'static,
        sent: &[u8],
    ) -> (String, Vec<u8>) {
        let running = Running::start(1);
        let (tell, reasons) = mpsc::channel();
        let server = Acceptor::new(Inet::default(), move || make(tell.clone()))
            .open(running.reactor.registry(), &Addr::loopback(0))
            .unwrap();
        let client = client(server.addr());
        client.send_n(sent).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = vec![0; 64];
        let count = client.recv(&mut answer).unwrap_or(0);
        answer.truncate(count);
        (reasons.recv_timeout(TEST_TIMEOUT).unwrap(), answer)
    }
    let lines = reason(|tell| Framed::new(Lines::new(100), Repeats(1, tell)), b"no line feed");
    assert_eq!(lines, ("closed by the peer".to_owned(), b"no line feed\n".to_vec()));
    let frames = reason(|tell| Framed::new(LengthPrefix::u16(100), Repeats(1, tell)), &[0, 3, 1]);
    let expected = "failed: the stream ended inside of a frame, after 3 of its octets";
    assert_eq!(frames, (expected.to_owned(), Vec::new()));
}
