//! Two connections over a link that loses, reorders and duplicates packets, on a virtual clock.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use proptest::prelude::*;
use spandrel_message::MessageBlock;

use super::*;
use crate::ip::Ipv4Header;

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

/// The faults of a link, in percent of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) loss: u8,
    pub(super) duplication: u8,
    pub(super) reordering: u8,
}

/// An application at one end of a connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) tcb: Tcb,
    /// The octets that it sends, and the number of those that it has handed over.
    to_send: Vec<u8>,
    handed: usize,
    pub(super) received: Vec<u8>,
    /// The greatest number of octets that it hands over at once.
    chunk: usize,
    /// Whether it takes received octets in every round; otherwise in every eighth.
    reads_at_once: bool,
    pub(super) saw_end: bool,
    /// Whether it closes after its data.
    closes: bool,
}

impl Peer {
    pub(super) fn new(tcb: Tcb, to_send: Vec<u8>) -> Self {
        Self {
            tcb,
            to_send,
            handed: 0,
            received: Vec::new(),
            chunk: 4000,
            reads_at_once: true,
            saw_end: false,
            closes: true,
        }
    }

    /// As [`new`](Self::new), without closing.
    pub(super) fn open(tcb: Tcb, to_send: Vec<u8>) -> Self {
        Self { closes: false, ..Self::new(tcb, to_send) }
    }

    /// Acts as an application would.
    fn act(&mut self, round: u64) {
        while self.handed < self.to_send.len() {
            let end = self.to_send.len().min(self.handed + self.chunk);
            if self.tcb.send(MessageBlock::from(&self.to_send[self.handed..end])).is_err() {
                break;
            }
            self.handed = end;
        }
        if self.closes
            && self.handed == self.to_send.len()
            && !matches!(self.tcb.state(), State::Listen | State::SynSent)
        {
            self.tcb.close();
        }
        if self.reads_at_once || round.is_multiple_of(8) {
            self.read();
        }
        self.saw_end |= self.tcb.is_at_end();
    }

    fn read(&mut self) {
        while let Some(block) = self.tcb.receive() {
            self.received.extend_from_slice(&block);
        }
        self.saw_end |= self.tcb.is_at_end();
    }
}

/// A link between two connections, with a virtual clock.
pub(super) struct Simulation {
    pub(super) now: Duration,
    pub(super) peers: [Peer; 2],
    faults: Faults,
    random: fastrand::Rng,
    delay: Duration,
    /// Packets in the network by the time of their arrival and a number; the peer that receives each.
    network: BTreeMap<(Duration, u64), (usize, Vec<u8>)>,
    packets: u64,
    rounds: u64,
}

impl Simulation {
    pub(super) fn new(peers: [Peer; 2], faults: Faults, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        let delay = Duration::from_millis(5);
        Self { now: Duration::ZERO, peers, faults, random, delay, network: BTreeMap::new(), packets: 0, rounds: 0 }
    }

    fn happens(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }

    fn send(&mut self, to: usize, packet: &[u8]) {
        if self.happens(self.faults.loss) {
            return;
        }
        for _ in 0..1 + usize::from(self.happens(self.faults.duplication)) {
            let mut at = self.now + self.delay;
            if self.happens(self.faults.reordering) {
                at += Duration::from_micros(self.random.u64(0..15_000));
            }
            self.packets += 1;
            self.network.insert((at, self.packets), (to, packet.to_vec()));
        }
    }

    /// Lets both sides act and send, then advances the clock to the next event; returns whether there is one.
    pub(super) fn step(&mut self) -> bool {
        self.rounds += 1;
        for from in 0..2 {
            self.peers[from].act(self.rounds);
            while let Some(segment) = self.peers[from].tcb.transmit(self.now) {
                let packet = segment.packet(ADDRESSES[from], ADDRESSES[1 - from]).unwrap();
                self.send(1 - from, &packet);
            }
        }
        let arrival = self.network.first_key_value().map(|((at, _), _)| *at);
        let mut times: Vec<Duration> = self.peers.iter().filter_map(|peer| peer.tcb.next_timer()).collect();
        // An application that reads late does so after some time at the latest.
        if self.peers.iter().any(|peer| !peer.reads_at_once && peer.tcb.state() != State::Closed) {
            times.push(self.now + Duration::from_millis(3));
        }
        let Some(next) = times.into_iter().chain(arrival).min() else { return false };
        self.now = self.now.max(next);
        if arrival.is_some_and(|at| at <= self.now)
            && let Some((_, (to, packet))) = self.network.pop_first()
        {
            let (ip, length) = Ipv4Header::decode(&packet).unwrap();
            let (header, data) = TcpHeader::decode(&ip, &packet[length..]).unwrap();
            let data = MessageBlock::from(&packet[length + data..]);
            self.peers[to].tcb.on_segment(Segment { header, data }, self.now);
            return true;
        }
        self.peers.iter_mut().for_each(|peer| peer.tcb.on_timer(self.now));
        true
    }

    /// Runs until both connections have ended.
    pub(super) fn run(&mut self) {
        while self.peers.iter().any(|peer| peer.tcb.state() != State::Closed) {
            let is_alive = self.step();
            let states = || self.peers.each_ref().map(|peer| peer.tcb.state());
            assert!(is_alive, "nothing will happen any more in the states {:?}", states());
            assert!(self.rounds < 2_000_000, "no end in the states {:?}: {:#?}", states(), self.peers[0].tcb);
        }
        // An application that reads late may have octets to read after the connection has ended.
        self.peers.iter_mut().for_each(Peer::read);
    }
}

pub(super) fn octets(count: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| random.u8(..)).collect()
}

/// A connection in both directions; each side closes after its data.
fn transfer(configs: [Config; 2], sizes: [usize; 2], faults: Faults, seed: u64, chunk: usize, reads_at_once: bool) {
    let data = [octets(sizes[0], seed), octets(sizes[1], !seed)];
    let client = Peer::new(Tcb::connect(1000, 2000, configs[0]), data[0].clone());
    let server = Peer::new(Tcb::listen(2000, configs[1]), data[1].clone());
    let client = Peer { chunk, ..client };
    let server = Peer { chunk, reads_at_once, ..server };
    let mut simulation = Simulation::new([client, server], faults, seed);
    simulation.run();
    let [client, server] = &simulation.peers;
    // The last acknowledgement of a FIN may be lost for so long that a side gives up, after its data has arrived.
    for (peer, expected) in [(client, &data[1]), (server, &data[0])] {
        assert_eq!(peer.received.len(), expected.len(), "{:?}", peer.tcb);
        assert!(peer.received == *expected, "the octets differ");
        assert!(peer.saw_end);
    }
}

/// A configuration for tests: short times, and sequence numbers that wrap.
pub(super) fn config() -> Config {
    Config { initial_sequence: u32::MAX - 3000, segment_lifetime: Duration::from_secs(120), ..Config::default() }
}

fn configs() -> impl Strategy<Value = Config> {
    let sizes = (64u16..3000, 1usize..200_000, 1usize..200_000);
    (sizes, any::<u32>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |((max_segment, receive_buffer, send_buffer), initial_sequence, no_delay, header_prediction, delays)| Config {
            max_segment,
            receive_buffer,
            send_buffer,
            initial_sequence,
            no_delay,
            header_prediction,
            acknowledgment_delay: Duration::from_millis(if delays { 40 } else { 0 }),
            ..config()
        },
    )
}

fn faults() -> impl Strategy<Value = Faults> {
    (0u8..20, 0u8..20, 0u8..40).prop_map(|(loss, duplication, reordering)| Faults { loss, duplication, reordering })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn all_octets_arrive_in_order_over_a_faulty_link(
        configs in [configs(), configs()],
        sizes in [0usize..60_000, 0usize..60_000],
        faults in faults(),
        seed in any::<u64>(),
        chunk in 1usize..5000,
        reads_at_once in any::<bool>(),
    ) {
        // A buffer of a few octets needs a segment for each few.
        let sizes = [0, 1].map(|from| {
            let buffer = configs[1 - from].receive_buffer.min(configs[from].send_buffer);
            sizes[from].min(buffer.saturating_mul(200)).min(chunk * 2000)
        });
        transfer(configs, sizes, faults, seed, chunk, reads_at_once);
    }
}

#[test]
fn each_kind_of_fault_alone_is_overcome() {
    let kinds = [
        Faults::default(),
        Faults { loss: 10, ..Faults::default() },
        Faults { duplication: 50, ..Faults::default() },
        Faults { reordering: 60, ..Faults::default() },
    ];
    for (faults, seed) in kinds.into_iter().zip(1..) {
        transfer([config(); 2], [1 << 20, 300_000], faults, seed, 4096, true);
    }
}

#[test]
fn both_sides_may_open_the_connection_at_the_same_time() {
    for seed in 0..20 {
        let data = [octets(5000, 1), octets(3000, 2)];
        let [first, second] = [
            Peer::new(Tcb::connect(1000, 2000, config()), data[0].clone()),
            Peer::new(Tcb::connect(2000, 1000, config()), data[1].clone()),
        ];
        let faults = Faults { loss: (seed % 4) as u8 * 5, ..Faults::default() };
        let mut simulation = Simulation::new([first, second], faults, seed);
        simulation.run();
        assert!(simulation.peers[0].received == data[1] && simulation.peers[1].received == data[0]);
    }
}
