//! Tests of whole stacks.

mod smoltcp;

use crate::architecture::{Architecture, Locks, Protocol, Queues, Settings, run};
use crate::bench::{self, Plan};
use crate::device::Faults;
use crate::measurement::Outcome;
use crate::ttcp;

const FAULTS: [Faults; 5] = [
    Faults { loss: 0, duplication: 0, reordering: 0 },
    Faults { loss: 5, duplication: 0, reordering: 0 },
    Faults { loss: 0, duplication: 20, reordering: 0 },
    Faults { loss: 0, duplication: 0, reordering: 20 },
    Faults { loss: 8, duplication: 10, reordering: 10 },
];

fn each(protocol: Protocol, connections: usize, check: impl Fn(&Settings, &Outcome)) {
    let task = Queues::ALL.iter().map(|queues| (Architecture::Task, *queues, &[2, 4][..]));
    let message = (Architecture::Message, Queues::Locked, &[1, 2, 3, 4][..]);
    for (architecture, queues, threads) in task.chain([message]) {
        for locks in Locks::ALL.iter().copied() {
            for threads in threads.iter().copied() {
                for (faults, seed) in FAULTS.into_iter().zip(1..) {
                    let settings = Settings {
                        architecture,
                        protocol,
                        locks,
                        queues,
                        threads,
                        connections,
                        messages: 240,
                        faults,
                        seed,
                        ..Settings::default()
                    };
                    let outcome = run(&settings).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
                    check(&settings, &outcome);
                }
            }
        }
    }
}

#[test]
fn tcp_delivers_every_octet_in_order_under_every_architecture_and_fault() {
    for connections in [1, 2, 5] {
        each(Protocol::Tcp, connections, check_tcp);
    }
}

fn check_tcp(settings: &Settings, outcome: &Outcome) {
    assert_eq!((outcome.received, outcome.distinct, outcome.in_order), (240, 240, 240), "{settings:?}");
    assert_eq!(outcome.octets, 240 * 4096);
    let streams = if settings.architecture == Architecture::Task { settings.threads / 2 } else { 1 };
    let connections = settings.connections.div_ceil(streams) * streams;
    assert_eq!((outcome.connections.len(), outcome.senders.len()), (connections, connections), "{settings:?}");
    assert!(outcome.senders.iter().all(|sender| sender.delivered >= 240 / connections as u64), "{outcome:?}");
    let losses: u64 = outcome.senders.iter().map(|sender| sender.lost).sum();
    assert_eq!(losses > 0, settings.faults.loss > 0, "{settings:?}");
    let duplicates: u64 = outcome.connections.iter().map(|connection| connection.outside_window).sum();
    assert!(duplicates > 0 || settings.faults.duplication == 0, "{settings:?} {outcome:?}");
}

#[test]
fn udp_delivers_the_datagrams_of_the_device_and_no_others() {
    each(Protocol::Udp, 1, |settings, outcome| {
        // That each came as often as the device delivered it is checked by the run itself.
        assert_eq!(outcome.dropped, 0, "{settings:?}");
        match settings.faults {
            Faults { loss: 0, duplication: 0, .. } => {
                assert_eq!((outcome.received, outcome.distinct), (240, 240), "{settings:?}");
            }
            Faults { loss: 0, .. } => assert!(outcome.received > 240 && outcome.distinct == 240),
            _ => assert!(outcome.distinct < 240),
        }
    });
}

#[test]
fn segments_of_any_size_become_messages() {
    for segment in [536, 1460, 4096, 9000] {
        for architecture in [Architecture::Message, Architecture::Task] {
            let settings = Settings {
                architecture,
                protocol: Protocol::Tcp,
                threads: 2,
                messages: 100,
                segment,
                window: 40_000,
                ..Settings::default()
            };
            let outcome = run(&settings).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
            assert_eq!(outcome.in_order, 100);
        }
    }
}

#[test]
fn the_task_based_architecture_refuses_an_odd_number_of_threads() {
    let settings = Settings { architecture: Architecture::Task, threads: 3, ..Settings::default() };
    assert!(run(&settings).is_err());
    assert!(run(&Settings { threads: 0, ..Settings::default() }).is_err());
}

#[test]
fn each_connection_has_a_message() {
    for protocol in Protocol::ALL.iter().copied() {
        let settings = Settings { protocol, messages: 3, connections: 4, threads: 8, ..Settings::default() };
        let error = run(&Settings { architecture: Architecture::Task, ..settings }).unwrap_err();
        assert_eq!(error.to_string(), "3 messages are too few for 4 streams or connections");
    }
}

#[test]
fn smoltcp_receives_what_the_device_sends() {
    for (faults, seed) in FAULTS.into_iter().zip(1..) {
        let settings = Settings { protocol: Protocol::Tcp, messages: 200, faults, seed, ..Settings::default() };
        let outcome = crate::smoltcp_peer::run(&settings).unwrap_or_else(|error| panic!("{faults:?}: {error}"));
        assert_eq!((outcome.received, outcome.distinct), (200, 200), "{faults:?}");
    }
}

#[test]
fn ttcp_transfers_all_messages_with_any_architecture_window_and_number_of_applications() {
    let architectures = [
        (Architecture::Message, Queues::Locked, [1, 2]),
        (Architecture::Task, Queues::Locked, [2, 4]),
        (Architecture::Task, Queues::LockFree, [2, 4]),
    ];
    for (architecture, queues, [few, more]) in architectures {
        for locks in Locks::ALL.iter().copied() {
            // A link of four frames loses some of a window of sixteen.
            for (applications, window, threads, link) in
                [(1, 8192, few, 100), (3, 65_536, more, 100), (2, 1 << 20, few, 1000), (2, 65_536, more, 4)]
            {
                let settings = ttcp::Settings {
                    architecture,
                    applications,
                    window,
                    messages: 60,
                    octets: 4096,
                    segment: 4096,
                    threads,
                    locks,
                    queues,
                    link,
                };
                let outcome = ttcp::transfer(&settings).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
                assert_eq!(outcome.in_order, 60 * applications as u64);
                assert_eq!(outcome.connections.len(), applications);
                let again: u64 = outcome.connections.iter().map(|connection| connection.retransmitted).sum();
                assert!(again > 0 || link > 4, "{outcome:?}");
            }
        }
    }
}

#[test]
fn ttcp_refuses_stacks_without_applications_and_half_stacks() {
    let settings = ttcp::Settings {
        architecture: Architecture::Task,
        applications: 1,
        window: 8192,
        messages: 1,
        octets: 4096,
        segment: 4096,
        threads: 4,
        locks: Locks::Sleeping,
        queues: Queues::Locked,
        link: 10,
    };
    let refusal = |settings| ttcp::transfer(&settings).unwrap_err().to_string();
    assert_eq!(refusal(settings), "each of the 2 stacks needs an application, and there are 1");
    let odd = refusal(ttcp::Settings { threads: 3, ..settings });
    assert_eq!(odd, "the task-based architecture has threads in multiples of two");
}

#[test]
fn lock_free_queues_are_measured_where_threads_have_queues() {
    let plan = Plan {
        base: Settings { messages: 40, ..Settings::default() },
        architectures: Architecture::ALL.to_vec(),
        protocols: vec![Protocol::Tcp, Protocol::Udp],
        locks: Locks::ALL.to_vec(),
        queues: Queues::ALL.to_vec(),
        threads: vec![2],
        rounds: 1,
        with_smoltcp: false,
    };
    let rows = bench::measure(&plan, |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let of_protocol = [
        (Architecture::Task, Locks::Sleeping, Queues::Locked),
        (Architecture::Task, Locks::Adaptive, Queues::Locked),
        (Architecture::Task, Locks::Adaptive, Queues::LockFree),
        (Architecture::Message, Locks::Sleeping, Queues::Locked),
        (Architecture::Message, Locks::Adaptive, Queues::Locked),
    ];
    let measured: Vec<_> = rows.iter().map(|row| (row.architecture, row.locks, row.queues)).collect();
    assert_eq!(measured, [of_protocol, of_protocol].concat());
    assert!(rows.iter().all(|row| row.messages == [40]), "{rows:?}");
}
