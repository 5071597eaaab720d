//! Whom to run against whom.

use super::side::{Habit, Native};
use super::{Pairing, Peer, Side, Suite};

const VERSIONS: [&str; 3] = ["1.0", "1.1", "1.2"];
const ORDERS: [&str; 2] = ["little", "big"];

/// Both directions between us and a foreign ORB.
fn both(ours: Side, other: Side, suite: Suite) -> [Pairing; 2] {
    [(ours, other), (other, ours)].map(|(client, server)| Pairing { client, server, suite })
}

/// `idl/interop.idl`: all versions, orders and peers, and ours against itself.
pub(super) fn types() -> Vec<Pairing> {
    let suite = Suite::Types;
    let mut all = Vec::new();
    for version in VERSIONS {
        for order in ORDERS {
            let ours = Side::ours(version, order);
            all.extend(Peer::ALL.into_iter().flat_map(|peer| both(ours, Side::of(peer, version), suite)));
            all.push(Pairing { client: ours, server: Side::ours(version, "little"), suite });
        }
    }
    let server = Side::ours("1.2", "little");
    all.extend(Habit::OTHERS.map(|habit| Pairing { client: Side::OmniOrb { version: "1.2", habit }, server, suite }));
    all
}

/// `idl/interop.idl` by way of our bridge, which knows it from its text: between ours and a foreign ORB, and between foreign ones.
pub(super) fn bridged() -> Vec<Pairing> {
    let suite = Suite::Bridged;
    let ours = Side::ours("1.2", "big");
    let mut all: Vec<_> = both(Side::ours("1.0", "big"), Side::of(Peer::OmniOrb, "1.0"), suite).into();
    for peer in Peer::ALL {
        let other = Side::of(peer, "1.2");
        all.extend(both(ours, other, suite));
        all.push(Pairing { client: other, server: other, suite });
    }
    all
}

/// Values came with GIOP 1.2.
pub(super) fn values() -> Vec<Pairing> {
    newest(Suite::Values)
}

/// Both directions in GIOP 1.2: what versions differ in is the same code for all engines. JacORB, whose machine takes its time to start,
/// is content with one order.
pub(super) fn newest(suite: Suite) -> Vec<Pairing> {
    let order = |order| both(Side::ours("1.2", order), Side::of(Peer::OmniOrb, "1.2"), suite);
    let jacorb = both(Side::ours("1.2", "little"), Side::of(Peer::JacOrb, "1.2"), suite);
    ORDERS.into_iter().flat_map(order).chain(jacorb).collect()
}

/// Names in GIOP 1.2: they are the same in all, and a reference in text form says its own.
pub(super) fn names() -> Vec<Pairing> {
    let (ours, omni) = (Side::ours("1.2", "little"), Side::of(Peer::OmniOrb, "1.2"));
    let jac = Side::of(Peer::JacOrb, "1.2");
    let pairs = [(ours, omni), (omni, ours), (omni, omni), (ours, ours), (jac, ours), (jac, omni)];
    pairs.map(|(client, server)| Pairing { client, server, suite: Suite::Names }).to_vec()
}

/// Object adapters and ways to call in GIOP 1.2, and ours against itself.
pub(super) fn features() -> Vec<Pairing> {
    let ours = Side::ours("1.2", "little");
    let itself = Pairing { client: ours, server: Side::ours("1.2", "big"), suite: Suite::Features };
    let others = Peer::ALL.into_iter().flat_map(|peer| both(ours, Side::of(peer, "1.2"), Suite::Features));
    others.chain([itself]).collect()
}

/// Anys, type codes, texts and calls that are not waited for. Without an agreement on another code set texts are in ISO 8859-1:
/// in GIOP 1.0, and where both or the server prefer it (CORBA 3.3 Part 2, 7.10.2.6).
pub(super) fn anything() -> Vec<Pairing> {
    let mut all = Vec::new();
    for version in VERSIONS {
        all.extend(both(
            Side::ours(version, "little"),
            Side::of(Peer::JacOrb, version),
            Suite::Anything { euro: false },
        ));
        for order in ORDERS {
            let ours = Side::ours(version, order);
            all.extend(both(ours, Side::of(Peer::OmniOrb, version), Suite::Anything { euro: false }));
            let suite = Suite::Anything { euro: version != "1.0" };
            all.push(Pairing { client: ours, server: Side::ours(version, "little"), suite });
        }
    }
    let [omni, omni8] = [Habit::Usual, Habit::Utf8].map(|habit| Side::OmniOrb { version: "1.2", habit });
    let ours = Side::ours("1.2", "little");
    let ours8 = Side::Ours { version: "1.2", order: "little", native: Native::Utf8 };
    let [jac, jac8] = [Native::Latin1, Native::Utf8].map(|native| Side::JacOrb { version: "1.2", native });
    let others = [
        (jac8, ours8, true),
        (ours8, jac8, true),
        (jac8, ours, true), // it prefers its own code set to the server's
        (ours8, jac, false),
        (omni8, ours8, true),
        (ours8, omni8, true),
        (omni8, ours, false),
        (ours, omni8, true),
        (omni, ours8, false),
        (ours8, omni, false),
    ];
    all.extend(others.map(|(client, server, euro)| Pairing { client, server, suite: Suite::Anything { euro } }));
    all
}
