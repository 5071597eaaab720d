//! What clients can do to a server.

mod bombs;
mod crowds;
mod fragments;
mod giants;
mod mutants;
mod questions;
mod slow;

use anyhow::Result;

use crate::Victim;

/// Something that is done to a server.
pub struct Attack {
    pub name: &'static str,
    /// Options of the server besides, if it is about one of its limits: of its ORB, or `--descriptors N`.
    pub options: &'static [&'static str],
    /// KiB that the server may have more meanwhile.
    pub bound_kib: u64,
    /// Does it, about so many hundred times.
    pub run: fn(&Victim, u32) -> Result<()>,
}

/// KiB that buffers, threads and the allocator's habits come to, whatever is done.
const SLACK: u64 = 48 << 10;

/// All of them.
pub const ALL: [Attack; 17] = [
    Attack { name: "mutated requests", options: &[], bound_kib: SLACK, run: mutants::requests },
    Attack { name: "random octets", options: &[], bound_kib: SLACK, run: mutants::random },
    Attack {
        name: "slowloris",
        options: &["-ORBMessageTimeout", "1000"],
        bound_kib: SLACK + (32 << 10),
        run: slow::loris,
    },
    Attack {
        name: "answers never read",
        options: &["-ORBSendTimeout", "1000", "-ORBMaxServerMemory", "100000000"],
        bound_kib: SLACK + (200 << 10),
        run: slow::deaf,
    },
    Attack { name: "many connections", options: &[], bound_kib: SLACK + (48 << 10), run: crowds::open },
    Attack {
        name: "more than are allowed",
        options: &["-ORBMaxConnections", "200"],
        bound_kib: SLACK,
        run: crowds::beyond,
    },
    Attack { name: "more than descriptors", options: crowds::FEW_DESCRIPTORS, bound_kib: SLACK, run: crowds::starved },
    Attack { name: "opened and reset", options: &[], bound_kib: SLACK, run: crowds::reset },
    Attack { name: "gigabytes announced", options: &[], bound_kib: SLACK, run: giants::announced },
    Attack { name: "gigabytes sent", options: &[], bound_kib: SLACK, run: giants::sent },
    Attack { name: "endless fragments", options: &[], bound_kib: SLACK + (160 << 10), run: fragments::endless },
    Attack { name: "fragments cut anywhere", options: &[], bound_kib: SLACK, run: fragments::cut },
    Attack { name: "type code bombs", options: &[], bound_kib: SLACK + (64 << 10), run: bombs::type_codes },
    Attack { name: "value bombs", options: &[], bound_kib: SLACK + (64 << 10), run: bombs::values },
    Attack { name: "context bombs", options: &[], bound_kib: SLACK, run: bombs::contexts },
    Attack { name: "forged keys", options: &[], bound_kib: SLACK, run: questions::keys },
    Attack { name: "replies and cancellations", options: &[], bound_kib: SLACK, run: questions::out_of_place },
];

/// So many hundred connections at once, for long runs.
pub fn crowd(hundreds: u32) -> Attack {
    Attack {
        name: "a crowd",
        options: &["-ORBConcurrency", "leader-followers", "-ORBMaxConnections", "30000"],
        // Four KiB each.
        bound_kib: SLACK + 4 * u64::from(hundreds) * 100,
        run: crowds::open,
    }
}

/// The size of a [`crowd`], in hundreds: 20,000, or what this process may have descriptors for, beside some of its own.
pub fn crowd_hundreds() -> u32 {
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
