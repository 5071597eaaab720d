//! What clients can do to a server.

mod bombs;
mod crowds;
mod fragments;
mod giants;
mod mutants;
mod questions;
mod replies;
mod slow;

use std::time::Duration;

use anyhow::Result;

use crate::Victim;

/// Something that is done to a server.
pub struct Attack {
    pub name: &'static str,
    /// Options of the server besides, if it is about one of its limits: of its ORB, or `--descriptors N`.
    pub options: &'static [&'static str],
    /// KiB that the server may have more meanwhile.
    pub bound_kib: u64,
    /// How long a call of the good client may take meanwhile.
    pub patience: Duration,
    /// Does it, about so many hundred times.
    pub run: fn(&Victim, u32) -> Result<()>,
}

/// How long a call of the good client may take meanwhile. On a machine with nothing else to do it is milliseconds.
const PATIENCE: Duration = Duration::from_secs(25);

/// How long a call of the good client may take where nothing but a loaded machine may delay it.
const QUICK: Duration = Duration::from_secs(5);

/// KiB beyond the memory limit where replies are not taken.
const REPLIES: u64 = 64 << 10;

/// KiB that buffers, threads and the allocator's habits come to, whatever is done.
const SLACK: u64 = 48 << 10;

/// All of them.
pub const ALL: [Attack; 20] = [
    Attack { name: "mutated requests", options: &[], bound_kib: SLACK, patience: PATIENCE, run: mutants::requests },
    Attack { name: "random octets", options: &[], bound_kib: SLACK, patience: PATIENCE, run: mutants::random },
    Attack {
        name: "slowloris",
        options: &["-ORBMessageTimeout", "1000"],
        bound_kib: SLACK + (32 << 10),
        patience: PATIENCE,
        run: slow::loris,
    },
    Attack {
        name: "answers never read",
        options: &["-ORBSendTimeout", "1000", "-ORBMaxServerMemory", "100000000"],
        bound_kib: SLACK + (200 << 10),
        patience: PATIENCE,
        run: slow::deaf,
    },
    Attack {
        name: "many connections",
        options: &[],
        bound_kib: SLACK + (48 << 10),
        patience: PATIENCE,
        run: crowds::open,
    },
    Attack {
        name: "more than are allowed",
        options: &["-ORBMaxConnections", "200"],
        bound_kib: SLACK,
        patience: PATIENCE,
        run: crowds::beyond,
    },
    Attack {
        name: "more than descriptors",
        options: crowds::FEW_DESCRIPTORS,
        bound_kib: SLACK,
        patience: PATIENCE,
        run: crowds::starved,
    },
    Attack { name: "opened and reset", options: &[], bound_kib: SLACK, patience: PATIENCE, run: crowds::reset },
    Attack { name: "gigabytes announced", options: &[], bound_kib: SLACK, patience: PATIENCE, run: giants::announced },
    Attack { name: "gigabytes sent", options: &[], bound_kib: SLACK, patience: PATIENCE, run: giants::sent },
    Attack {
        name: "endless fragments",
        options: &[],
        bound_kib: SLACK + (160 << 10),
        patience: PATIENCE,
        run: fragments::endless,
    },
    Attack { name: "fragments cut anywhere", options: &[], bound_kib: SLACK, patience: PATIENCE, run: fragments::cut },
    Attack {
        name: "type code bombs",
        options: &[],
        bound_kib: SLACK + (64 << 10),
        patience: PATIENCE,
        run: bombs::type_codes,
    },
    Attack { name: "value bombs", options: &[], bound_kib: SLACK + (64 << 10), patience: PATIENCE, run: bombs::values },
    Attack { name: "context bombs", options: &[], bound_kib: SLACK, patience: PATIENCE, run: bombs::contexts },
    Attack { name: "forged keys", options: &[], bound_kib: SLACK, patience: PATIENCE, run: questions::keys },
    Attack {
        name: "long replies not taken",
        options: &[],
        bound_kib: (128 << 10) + REPLIES,
        patience: QUICK,
        run: replies::from_one,
    },
    Attack {
        name: "replies not taken by many",
        options: &["-ORBMaxServerMemory", "104857600"],
        bound_kib: (100 << 10) + REPLIES,
        patience: QUICK,
        run: replies::from_many,
    },
    Attack {
        name: "the same, little address space",
        options: &["-ORBMaxServerMemory", "104857600", "--memory", "4000000000"],
        bound_kib: (100 << 10) + REPLIES,
        patience: QUICK,
        run: replies::from_many,
    },
    Attack {
        name: "replies and cancellations",
        options: &[],
        bound_kib: SLACK,
        patience: PATIENCE,
        run: questions::out_of_place,
    },
];

/// So many hundred connections at once, for long runs.
pub fn crowd(hundreds: u32) -> Attack {
    Attack {
        name: "a crowd",
        options: &["-ORBConcurrency", "leader-followers", "-ORBMaxConnections", "30000"],
        // Four KiB each.
        bound_kib: SLACK + 4 * u64::from(hundreds) * 100,
        patience: PATIENCE,
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
