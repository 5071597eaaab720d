//! Single mechanisms, by exact sequences of segments.

use std::time::Duration;

use spandrel_message::MessageBlock;

use super::simulation::{Faults, Peer, Simulation, config, octets};
use super::*;

const MS: Duration = Duration::from_millis(1);

/// A connection that a peer has opened by hand; the peer's sequence numbers begin at 100, and its window is 60,000.
fn established(config: Config) -> Tcb {
    let mut tcb = Tcb::listen(2000, config);
    let mut syn = peer_segment(100, 0, b"");
    syn.header.flags = Flags::SYN;
    syn.header.max_segment = Some(1000);
    tcb.on_segment(syn, Duration::ZERO);
    let answer = tcb.transmit(Duration::ZERO).unwrap();
    assert_eq!(answer.header.flags, Flags::SYN | Flags::ACK);
    assert_eq!((answer.header.sequence, answer.header.acknowledgment), (0, 101));
    tcb.on_segment(peer_segment(101, 1, b""), MS);
    assert_eq!(tcb.state(), State::Established);
    tcb
}

fn peer_segment(sequence: u32, acknowledgment: u32, data: &[u8]) -> Segment {
    let header = TcpHeader {
        source: 1000,
        destination: 2000,
        sequence,
        acknowledgment,
        flags: Flags::ACK,
        window: 60_000,
        ..TcpHeader::default()
    };
    Segment { header, data: data.into() }
}

fn from_zero() -> Config {
    Config { initial_sequence: 0, acknowledgment_delay: Duration::ZERO, ..Config::default() }
}

/// The sequence numbers and octets of all segments that are due.
fn transmitted(tcb: &mut Tcb, now: Duration) -> Vec<(u32, usize)> {
    std::iter::from_fn(|| tcb.transmit(now))
        .map(|segment| (segment.header.sequence, segment.data.total_len()))
        .collect()
}

#[test]
fn slow_start_doubles_the_window_in_each_round_trip() {
    let mut tcb = established(from_zero());
    tcb.send(octets(40_000, 1)[..].into()).unwrap();
    assert_eq!(tcb.congestion().window(), 4 * 1000);
    assert_eq!(transmitted(&mut tcb, MS).len(), 4);
    for sequence in [1001, 2001, 3001, 4001] {
        tcb.on_segment(peer_segment(101, sequence, b""), MS * 2);
    }
    assert_eq!(tcb.congestion().window(), 8 * 1000);
    assert_eq!(transmitted(&mut tcb, MS * 2).len(), 8);
}

#[test]
fn three_duplicate_acknowledgements_send_the_first_segment_again() {
    let mut tcb = established(from_zero());
    tcb.send(octets(40_000, 1)[..].into()).unwrap();
    transmitted(&mut tcb, MS);
    for sequence in [1001, 2001, 3001, 4001] {
        tcb.on_segment(peer_segment(101, sequence, b""), MS * 2);
    }
    transmitted(&mut tcb, MS * 2); // 4001 to 12000 are outstanding
    tcb.on_segment(peer_segment(101, 4001, b""), MS * 3);
    tcb.on_segment(peer_segment(101, 4001, b""), MS * 3);
    assert_eq!(transmitted(&mut tcb, MS * 3), []);
    tcb.on_segment(peer_segment(101, 4001, b""), MS * 3);
    assert_eq!(tcb.congestion().threshold(), 4000);
    assert_eq!(transmitted(&mut tcb, MS * 3), [(4001, 1000)]);
    // A partial acknowledgement sends the next lost one at once (RFC 6582).
    tcb.on_segment(peer_segment(101, 6001, b""), MS * 4);
    assert_eq!(transmitted(&mut tcb, MS * 4)[0], (6001, 1000));
    assert!(tcb.congestion().is_recovering());
    tcb.on_segment(peer_segment(101, 12_001, b""), MS * 5);
    assert!(!tcb.congestion().is_recovering());
    assert_eq!(tcb.congestion().window(), 4000);
    assert_eq!(tcb.statistics().fast_retransmissions, 1);
    assert_eq!(tcb.statistics().timeouts, 0);
    // Congestion avoidance: one segment a window.
    transmitted(&mut tcb, MS * 5);
    for sequence in [13_001, 14_001, 15_001, 16_001] {
        tcb.on_segment(peer_segment(101, sequence, b""), MS * 6);
    }
    assert!((4900..=5000).contains(&tcb.congestion().window()), "{}", tcb.congestion().window());
}

#[test]
fn a_time_out_goes_back_to_the_first_segment_and_doubles() {
    let mut tcb = established(from_zero());
    tcb.send(octets(3000, 1)[..].into()).unwrap();
    assert_eq!(transmitted(&mut tcb, MS).len(), 3);
    let first = tcb.next_timer().unwrap();
    tcb.on_timer(first);
    assert_eq!(transmitted(&mut tcb, first), [(1, 1000)]);
    assert_eq!(tcb.congestion().window(), 1000);
    let second = tcb.next_timer().unwrap();
    assert_eq!(second - first, (first - MS) * 2);
    tcb.on_segment(peer_segment(101, 1001, b""), first + MS);
    assert_eq!(transmitted(&mut tcb, first + MS), [(1001, 1000), (2001, 1000)]);
    assert_eq!(tcb.statistics().timeouts, 1);
}

#[test]
fn a_peer_that_is_silent_ends_the_connection() {
    let mut tcb = established(from_zero());
    tcb.send(octets(10, 1)[..].into()).unwrap();
    transmitted(&mut tcb, MS);
    while let Some(at) = tcb.next_timer() {
        tcb.on_timer(at);
        transmitted(&mut tcb, at);
    }
    assert_eq!((tcb.state(), tcb.end_reason()), (State::Closed, Some(EndReason::TimedOut)));
}

#[test]
fn the_round_trip_time_is_estimated_as_rfc_6298_says() {
    let mut estimate = RoundTrip::new(Duration::ZERO);
    assert_eq!(estimate.timeout(), MS * 1000);
    estimate.sample(MS * 100);
    assert_eq!((estimate.smoothed(), estimate.timeout()), (Some(MS * 100), MS * 300));
    estimate.sample(MS * 180);
    // The variation is 3/4 of 50 and 1/4 of 80, the mean 7/8 of 100 and 1/8 of 180.
    assert_eq!(
        (estimate.smoothed(), estimate.timeout()),
        (Some(MS * 110), MS * 110 + Duration::from_micros(57_500) * 4)
    );
    estimate.back_off();
    assert_eq!(estimate.timeout(), MS * 680);
    assert_eq!(RoundTrip::new(MS * 2000).timeout(), MS * 2000);
}

#[test]
fn a_one_way_transfer_without_loss_takes_the_predicted_paths() {
    let data = octets(1 << 20, 3);
    let sender = Peer::open(Tcb::connect(1000, 2000, config()), data.clone());
    let receiver = Peer::open(Tcb::listen(2000, config()), Vec::new());
    let mut simulation = Simulation::new([sender, receiver], Faults::default(), 1);
    while simulation.peers[1].received.len() < data.len() {
        assert!(simulation.step());
    }
    let [sender, receiver] = simulation.peers.each_ref().map(|peer| peer.tcb.statistics());
    assert!(simulation.peers[1].received == data);
    assert_eq!((sender.retransmitted, sender.timeouts), (0, 0));
    assert_eq!(receiver.early, 0);
    // All but those of the handshake, and those after which the window is another one.
    assert!(receiver.predicted_data + 3 >= receiver.received, "{receiver:?}");
    assert!(sender.predicted_acknowledgments * 10 >= sender.received * 9, "{sender:?}");
}

#[test]
fn expected_segments_take_the_predicted_path_and_others_do_not() {
    let mut tcb = established(from_zero());
    tcb.on_segment(peer_segment(101, 1, b"first"), MS);
    tcb.on_segment(peer_segment(106, 1, b"second"), MS);
    assert_eq!(tcb.statistics().predicted_data, 2);
    tcb.on_segment(peer_segment(117, 1, b"behind a gap"), MS);
    tcb.on_segment(peer_segment(112, 1, b"-gap-"), MS);
    assert_eq!((tcb.statistics().predicted_data, tcb.statistics().early), (2, 1));
    let received: Vec<u8> = std::iter::from_fn(|| tcb.receive()).flat_map(|block| block.to_vec()).collect();
    assert_eq!(received, b"firstsecond-gap-behind a gap");
    tcb.send(b"data".into()).unwrap();
    assert_eq!(transmitted(&mut tcb, MS), [(1, 4)]);
    tcb.on_segment(peer_segment(129, 5, b""), MS);
    assert_eq!(tcb.statistics().predicted_acknowledgments, 1);
    assert_eq!(tcb.send_queue(), 0);
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut tcb = established(from_zero());
    let mut closed = peer_segment(101, 1, b"");
    closed.header.window = 0;
    tcb.on_segment(closed.clone(), MS);
    tcb.send(octets(500, 1)[..].into()).unwrap();
    assert_eq!(transmitted(&mut tcb, MS), []);
    for _ in 0..3 {
        let at = tcb.next_timer().unwrap();
        tcb.on_timer(at);
        assert_eq!(transmitted(&mut tcb, at), [(1, 1)]);
        tcb.on_segment(closed.clone(), at + MS);
    }
    assert_eq!(tcb.statistics().window_probes, 3);
    let now = tcb.next_timer().unwrap();
    tcb.on_segment(peer_segment(101, 1, b""), now);
    assert_eq!(transmitted(&mut tcb, now), [(1, 500)]);
}

#[test]
fn a_window_that_the_application_opens_is_announced() {
    let mut tcb = established(Config { receive_buffer: 4000, max_segment: 1000, ..from_zero() });
    for number in 0..4 {
        tcb.on_segment(peer_segment(101 + number * 1000, 1, &[7; 1000]), MS);
    }
    let windows = |tcb: &mut Tcb| std::iter::from_fn(|| tcb.transmit(MS)).map(|s| s.header.window).collect::<Vec<_>>();
    assert_eq!(windows(&mut tcb), [0]);
    tcb.on_segment(peer_segment(4101, 1, b"more"), MS);
    assert_eq!(windows(&mut tcb), [0], "the segment is outside of the window, and answered");
    assert_eq!(tcb.receive().unwrap().len(), 1000);
    assert_eq!(windows(&mut tcb), [0u16; 0], "too little to tell");
    assert_eq!(tcb.receive().unwrap().len(), 1000);
    assert_eq!(windows(&mut tcb), [2000]);
}

#[test]
fn acknowledgements_are_delayed_for_one_segment_only() {
    let delay = MS * 40;
    let mut tcb = established(Config { acknowledgment_delay: delay, ..from_zero() });
    tcb.on_segment(peer_segment(101, 1, b"one"), MS);
    assert!(tcb.transmit(MS).is_none());
    assert_eq!(tcb.next_timer(), Some(MS + delay));
    tcb.on_segment(peer_segment(104, 1, b"two"), MS * 2);
    assert_eq!(tcb.transmit(MS * 2).unwrap().header.acknowledgment, 107);
    tcb.on_segment(peer_segment(107, 1, b"three"), MS * 3);
    tcb.on_timer(MS * 3 + delay);
    assert_eq!(tcb.transmit(MS * 3 + delay).unwrap().header.acknowledgment, 112);
}

#[test]
fn a_reset_must_have_the_expected_sequence_number() {
    let reset = |sequence| {
        let mut segment = peer_segment(sequence, 1, b"");
        segment.header.flags = Flags::RST;
        segment
    };
    let mut tcb = established(from_zero());
    tcb.on_segment(reset(102), MS);
    assert_eq!(tcb.state(), State::Established);
    assert_eq!(tcb.transmit(MS).unwrap().header.flags, Flags::ACK, "RFC 5961: it is challenged");
    tcb.on_segment(reset(50), MS);
    assert!(tcb.transmit(MS).is_none());
    tcb.on_segment(reset(101), MS);
    assert_eq!((tcb.state(), tcb.end_reason()), (State::Closed, Some(EndReason::Reset)));
}

#[test]
fn a_refused_connection_ends() {
    let mut tcb = Tcb::connect(2000, 1000, from_zero());
    let syn = tcb.transmit(MS).unwrap();
    let header = reset_for(&syn);
    assert_eq!((header.acknowledgment, header.flags), (1, Flags::RST | Flags::ACK));
    tcb.on_segment(Segment { header, data: MessageBlock::default() }, MS);
    assert_eq!((tcb.state(), tcb.end_reason()), (State::Closed, Some(EndReason::Refused)));
    assert!(matches!(tcb.send(b"x".into()), Err(SendError::Closed)));
}

#[test]
fn an_abort_resets_the_peer() {
    let mut tcb = established(from_zero());
    tcb.send(b"lost".into()).unwrap();
    tcb.abort();
    let reset = tcb.transmit(MS).unwrap();
    assert_eq!((reset.header.sequence, reset.header.flags), (1, Flags::RST | Flags::ACK));
    assert!(tcb.transmit(MS).is_none());
    assert_eq!(tcb.end_reason(), Some(EndReason::Aborted));
}

#[test]
fn a_full_send_buffer_gives_the_octets_back() {
    let mut tcb = established(Config { send_buffer: 10, ..from_zero() });
    tcb.send(octets(10, 1)[..].into()).unwrap();
    match tcb.send(b"rest".into()) {
        Err(SendError::Full(block)) => assert_eq!(&*block, b"rest"),
        other => panic!("{other:?}"),
    }
    transmitted(&mut tcb, MS);
    tcb.on_segment(peer_segment(101, 11, b""), MS);
    tcb.send(b"rest".into()).unwrap();
    assert_eq!(transmitted(&mut tcb, MS), [(11, 4)]);
}
