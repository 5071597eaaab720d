//! The attacks of clients on a server.

mod connection_floods;
mod expansion;
mod fragments;
mod idle_after_long_messages;
mod mutations;
mod oversized_messages;
mod slow_clients;
mod unexpected_messages;
mod unread_replies;

use std::time::Duration;

use anyhow::Result;

use crate::AttackedServer;

/// An attack on a server.
pub struct Attack {
    pub name: &'static str,
    /// Additional options of the server, for attacks on one of its limits: ORB options or `--descriptors N`.
    pub options: &'static [&'static str],
    /// The limit of the server's additional memory, in KiB.
    pub bound_kib: u64,
    /// The limit for the duration of a good client's call during the attack.
    pub max_call_time: Duration,
    /// Runs the attack; the second argument scales the number of repetitions.
    pub run: fn(&AttackedServer, u32) -> Result<()>,
}

/// The usual limit for a call of the good client. On an idle machine a call takes milliseconds.
const CALL_TIME: Duration = Duration::from_secs(25);

/// The limit for a call of the good client where the attack must not delay it, only a loaded machine.
const SHORT_CALL_TIME: Duration = Duration::from_secs(5);

/// Memory in KiB above the memory limit, for attacks with unread replies.
const REPLIES: u64 = 64 << 10;

/// Memory in KiB of buffers, threads and the allocator, for every attack.
const SLACK: u64 = 48 << 10;

/// The attacks that tests and the program run.
pub const ALL: [Attack; 25] = [
    Attack {
        name: "mutated requests",
        options: &[],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: mutations::requests,
    },
    Attack { name: "random octets", options: &[], bound_kib: SLACK, max_call_time: CALL_TIME, run: mutations::random },
    Attack {
        name: "slowloris",
        options: &["-ORBMessageTimeout", "1000"],
        bound_kib: SLACK + (32 << 10),
        max_call_time: CALL_TIME,
        run: slow_clients::slowloris,
    },
    Attack {
        name: "replies never read",
        options: &["-ORBSendTimeout", "1000", "-ORBMaxServerMemory", "100000000"],
        bound_kib: SLACK + (200 << 10),
        max_call_time: CALL_TIME,
        run: slow_clients::never_reading,
    },
    Attack {
        name: "many connections",
        options: &[],
        bound_kib: SLACK + (48 << 10),
        max_call_time: CALL_TIME,
        run: connection_floods::open,
    },
    Attack {
        name: "connections beyond the limit",
        options: &["-ORBMaxConnections", "200"],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: connection_floods::beyond_limit,
    },
    Attack {
        name: "connections beyond descriptors",
        options: connection_floods::FEW_DESCRIPTORS,
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: connection_floods::beyond_descriptors,
    },
    Attack {
        name: "connections reset",
        options: &[],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: connection_floods::reset,
    },
    Attack {
        name: "sizes of gigabytes announced",
        options: &[],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: oversized_messages::announced,
    },
    Attack {
        name: "gigabytes sent",
        options: &[],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: oversized_messages::sent,
    },
    Attack {
        name: "endless fragments",
        options: &[],
        bound_kib: SLACK + (160 << 10),
        max_call_time: CALL_TIME,
        run: fragments::endless,
    },
    Attack {
        name: "fragments cut anywhere",
        options: &[],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: fragments::truncated,
    },
    Attack {
        name: "expanding type codes",
        options: &[],
        bound_kib: SLACK + (64 << 10),
        max_call_time: CALL_TIME,
        run: expansion::type_codes,
    },
    Attack {
        name: "expanding values",
        options: &[],
        bound_kib: SLACK + (64 << 10),
        max_call_time: CALL_TIME,
        run: expansion::values,
    },
    Attack {
        name: "many graphs of values",
        options: &["-ORBMaxServerMemory", "104857600"],
        // The limit, and one request beyond it.
        bound_kib: SLACK + (200 << 10),
        max_call_time: CALL_TIME,
        run: expansion::graphs,
    },
    Attack {
        name: "many graphs of values, small address space",
        options: &["-ORBMaxServerMemory", "104857600", "--memory", "2000000000"],
        // The limit, and one request beyond it.
        bound_kib: SLACK + (200 << 10),
        max_call_time: CALL_TIME,
        run: expansion::graphs,
    },
    Attack {
        name: "long requests in slow servants",
        options: &["-ORBMaxServerMemory", "104857600"],
        // The limit, and one request beyond it.
        bound_kib: SLACK + (112 << 10),
        max_call_time: CALL_TIME,
        run: expansion::long_requests,
    },
    Attack {
        name: "expanding service contexts",
        options: &[],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: expansion::contexts,
    },
    Attack {
        name: "forged object keys",
        options: &[],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: unexpected_messages::forged_keys,
    },
    Attack {
        name: "unread long replies",
        options: &[],
        bound_kib: (128 << 10) + REPLIES,
        max_call_time: SHORT_CALL_TIME,
        run: unread_replies::from_one,
    },
    Attack {
        name: "unread replies, many clients",
        options: &["-ORBMaxServerMemory", "104857600"],
        bound_kib: (100 << 10) + REPLIES,
        max_call_time: SHORT_CALL_TIME,
        run: unread_replies::from_many,
    },
    Attack {
        name: "the same, small address space",
        options: &["-ORBMaxServerMemory", "104857600", "--memory", "4000000000"],
        bound_kib: (100 << 10) + REPLIES,
        max_call_time: SHORT_CALL_TIME,
        run: unread_replies::from_many,
    },
    Attack {
        name: "idle after very long messages",
        options: &["-ORBMaxServerMemory", "104857600"],
        bound_kib: SLACK + (100 << 10),
        max_call_time: CALL_TIME,
        run: idle_after_long_messages::very_long,
    },
    Attack {
        name: "idle after long messages",
        options: &[],
        bound_kib: SLACK + (160 << 10),
        max_call_time: CALL_TIME,
        run: idle_after_long_messages::long,
    },
    Attack {
        name: "messages out of place",
        options: &[],
        bound_kib: SLACK,
        max_call_time: CALL_TIME,
        run: unexpected_messages::out_of_place,
    },
];

/// Hundreds of concurrent connections, for long runs.
pub fn many_connections(hundreds: u32) -> Attack {
    Attack {
        name: "thousands of connections",
        options: &["-ORBConcurrency", "leader-followers", "-ORBMaxConnections", "30000"],
        // 4 KiB each.
        bound_kib: SLACK + 4 * u64::from(hundreds) * 100,
        max_call_time: CALL_TIME,
        run: connection_floods::open,
    }
}

/// The size of [`many_connections`], in hundreds: 200, or fewer if this process may not have as many
/// descriptors.
pub fn max_hundreds() -> u32 {
    const MOST: u32 = 200;
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        const OWN: u64 = 100;
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        u32::try_from(descriptors.saturating_sub(OWN) / 100).unwrap_or(MOST).min(MOST)
    }
    #[cfg(not(unix))]
    MOST
}
