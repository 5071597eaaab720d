//! The lists of pairings for each suite.

use super::side::{Native, OmniOrbSettings};
use super::{Pairing, Peer, Side, Suite};

const VERSIONS: [&str; 3] = ["1.0", "1.1", "1.2"];
const ORDERS: [&str; 2] = ["little", "big"];

/// Both directions between us and a foreign ORB.
fn both(ours: Side, other: Side, suite: Suite) -> [Pairing; 2] {
    [(ours, other), (other, ours)].map(|(client, server)| Pairing { client, server, suite })
}

/// The first and the last pairing of each client with each server.
pub(super) fn first_and_last(pairings: &[Pairing]) -> Vec<Pairing> {
    let same = |one: &Pairing, other: &Pairing| {
        one.client.is_like(other.client) && one.server.is_like(other.server) && one.suite.name() == other.suite.name()
    };
    let is_first = |at: usize| !pairings[..at].iter().any(|before| same(before, &pairings[at]));
    let is_last = |at: usize| !pairings[at + 1..].iter().any(|behind| same(behind, &pairings[at]));
    (0..pairings.len()).filter(|&at| is_first(at) || is_last(at)).map(|at| pairings[at]).collect()
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
    all.push(Pairing {
        client: Side::OmniOrb { version: "1.2", settings: OmniOrbSettings::SharedConnection },
        server,
        suite,
    });
    all
}

/// `idl/interop.idl` through our bridge, which reads the interface from the IDL text: between ours and a
/// foreign ORB, and between foreign ones.
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

/// Ours on this machine and on a big-endian one, both ways: all types in all versions, then everything in
/// GIOP 1.2.
pub(super) fn between_orders() -> [Vec<Pairing>; 4] {
    let pairs = |version, suite| both(Side::ours(version, "native"), Side::OursBigEndian { version }, suite);
    let newest = |suite| pairs("1.2", suite).into_iter().collect();
    let types = VERSIONS.into_iter().flat_map(|version| pairs(version, Suite::Types)).collect();
    [types, newest(Suite::Values), newest(Suite::Anything { euro: true }), newest(Suite::Features)]
}

/// Values came with GIOP 1.2.
pub(super) fn values() -> Vec<Pairing> {
    newest(Suite::Values)
}

/// Both directions in GIOP 1.2: the code that depends on the version is the same for all engines. JacORB
/// runs with one byte order, since its VM starts slowly.
pub(super) fn newest(suite: Suite) -> Vec<Pairing> {
    let order = |order| both(Side::ours("1.2", order), Side::of(Peer::OmniOrb, "1.2"), suite);
    let jacorb = both(Side::ours("1.2", "little"), Side::of(Peer::JacOrb, "1.2"), suite);
    ORDERS.into_iter().flat_map(order).chain(jacorb).collect()
}

/// Names in GIOP 1.2: they are the same in all versions, and a reference in text form has its own version.
pub(super) fn names() -> Vec<Pairing> {
    let (ours, omni) = (Side::ours("1.2", "little"), Side::of(Peer::OmniOrb, "1.2"));
    let jac = Side::of(Peer::JacOrb, "1.2");
    let pairs = [(ours, omni), (omni, ours), (omni, omni), (ours, ours), (jac, ours), (jac, omni)];
    pairs.map(|(client, server)| Pairing { client, server, suite: Suite::Names }).to_vec()
}

/// The types in JSON through our tools, in GIOP 1.2.
pub(super) fn json(tool: &'static str) -> Vec<Pairing> {
    let client = Side::ours("1.2", "little");
    let servers = Peer::ALL.into_iter().map(|peer| Side::of(peer, "1.2")).chain([Side::ours("1.2", "big")]);
    servers.map(|server| Pairing { client, server, suite: Suite::Json(tool) }).collect()
}

/// Object adapters and ways to call in GIOP 1.2, and ours against itself.
pub(super) fn features() -> Vec<Pairing> {
    let ours = Side::ours("1.2", "little");
    let itself = Pairing { client: ours, server: Side::ours("1.2", "big"), suite: Suite::Features };
    let others = Peer::ALL.into_iter().flat_map(|peer| both(ours, Side::of(peer, "1.2"), Suite::Features));
    others.chain([itself]).collect()
}

/// Servers that call their clients back over the clients' connections, which came with GIOP 1.2; and ours
/// against itself.
pub(super) fn callbacks() -> Vec<Pairing> {
    let ours = Side::ours("1.2", "little");
    let itself = Pairing { client: ours, server: Side::ours("1.2", "big"), suite: Suite::Callbacks };
    let others = Peer::ALL.into_iter().flat_map(|peer| both(ours, Side::of(peer, "1.2"), Suite::Callbacks));
    others.chain([itself]).collect()
}

/// Over TLS, both sides with certificates: all types, and calls back over the clients' connections.
pub(super) fn secure() -> (Vec<Pairing>, Vec<Pairing>) {
    let ours = Side::ours("1.2", "little");
    let others = [Side::OmniOrb { version: "1.2", settings: OmniOrbSettings::Secure }, Side::of(Peer::JacOrb, "1.2")];
    let of = |suite| others.into_iter().flat_map(|other| both(ours, other, suite)).collect();
    (of(Suite::Secure), of(Suite::SecureCallbacks))
}

/// Anys, type codes, texts and deferred calls. Without negotiation of another code set texts are in ISO
/// 8859-1: in GIOP 1.0, and where both or the server prefer it (CORBA 3.3 Part 2, 7.10.2.6).
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
    let [omni, omni8] = [OmniOrbSettings::Default, OmniOrbSettings::Native(Native::UTF8)]
        .map(|settings| Side::OmniOrb { version: "1.2", settings });
    let ours = Side::ours("1.2", "little");
    let ours8 = Side::Ours { version: "1.2", order: "little", native: Native::UTF8 };
    let [jac, jac8] = [Native::default(), Native::UTF8].map(|native| Side::JacOrb { version: "1.2", native });
    let others = [
        (jac8, ours8, true),
        (ours8, jac8, true),
        (jac8, ours, true), // the client prefers its own code set to the server's
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

/// Code sets by omniORB's names, and texts that they can encode, as code points.
const TEXTS: [(&str, &str); 11] = [
    ("ISO-8859-2", "141,f3,64,17a"),
    ("ISO-8859-5", "416,443,43a"),
    ("ISO-8859-7", "3b1,3c9,2019"),
    ("ISO-8859-9", "11f,130,131"),
    ("ISO-8859-13", "105,17e,201d"),
    ("ISO-8859-15", "160,20ac,178"),
    ("windows-1250", "141,f3,64,20ac"),
    ("windows-1251", "416,443,43a,20ac"),
    ("windows-1252", "201c,20ac,201d"),
    ("windows-1256", "627,644,200f"),
    ("GBK", "4e2d,6587,3002"),
];

/// A text that no code set of octets can encode, except UTF-8 and GB 18030.
const UNENCODABLE: &str = "1234";

/// Texts in many code sets (CORBA 3.3 Part 2, 7.10.2.6). The server's native code set is chosen wherever its
/// client can convert to it. A client in UTF-8 therefore converts by the tables of its own ORB.
pub(super) fn texts() -> Vec<Pairing> {
    let version = "1.2";
    let ours = |native| Side::Ours { version, order: "little", native };
    let omni = |native| Side::OmniOrb { version, settings: OmniOrbSettings::Native(native) };
    let jac = |native| Side::JacOrb { version, native };
    let pairing =
        |client, server, sample| Pairing { client, server, suite: Suite::Texts { sample, unencodable: UNENCODABLE } };
    let mut all = Vec::new();
    for (set, sample) in TEXTS {
        let native = Native::narrow(set);
        // omniORB's GBK has the registry number of EUC-CN.
        let same = Native::narrow(if set == "GBK" { "EUC-CN" } else { set });
        all.push(pairing(omni(Native::UTF8), ours(same), sample));
        all.push(pairing(ours(Native::default()), omni(native), sample));
        all.push(pairing(omni(native), ours(same), sample));
    }
    let latin9 = Native::narrow("ISO-8859-15");
    all.push(pairing(jac(latin9), ours(latin9), "160,20ac,178"));
    all.push(pairing(ours(Native::default()), jac(latin9), "160,20ac,178"));
    let (ucs4, ucs2, usual) = (Native::wide("UCS-4"), Native::wide("UCS-2"), Native::default());
    let wide = [
        (omni(ucs4), ours(usual)),
        (omni(ucs4), ours(ucs4)),
        (ours(usual), omni(ucs4)),
        (jac(ucs2), ours(usual)),
        (jac(ucs2), ours(ucs2)),
        (ours(usual), jac(ucs2)),
    ];
    all.extend(wide.map(|(client, server)| pairing(client, server, "e9,ff")));
    all
}
