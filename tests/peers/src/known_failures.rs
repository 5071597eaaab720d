//! Cases that fail for a reason outside of our ORB: deviations of omniORB 4.2 and JacORB 3.9 from the
//! standard, features that they lack, and features that a version of GIOP lacks. They run all the same, and
//! are reported with the reason.

use crate::peer::Peer;

/// The combination of client, server and version that a case runs in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination<'v> {
    /// The GIOP version.
    pub(crate) version: &'v str,
    /// The client's ORB, unless it is ours.
    pub(crate) client: Option<Peer>,
    /// The server's ORB, unless it is ours.
    pub(crate) server: Option<Peer>,
}

impl Combination<'_> {
    /// Whether one of the two is this peer.
    fn has(self, peer: Peer) -> bool {
        [self.client, self.server].contains(&Some(peer))
    }
}

/// Cases that cannot pass, and the reason.
struct KnownFailure {
    /// Cases, and groups with a trailing `/`.
    cases: &'static [&'static str],
    applies: fn(Combination<'_>) -> bool,
    reason: &'static str,
}

/// Cases that send wide characters.
const WIDE: &[&str] = &["wide/", "any/wchar", "dynany/wchar", "any/wstring", "dynany/wstring"];

const UNION_DEFAULT: &str = "the code that JacORB's compiler generates for a union has one discriminator for the default member, and loses any other";

const KNOWN_FAILURES: &[KnownFailure] = &[
    KnownFailure {
        cases: &["primitives/longdouble"],
        applies: |combination| combination.has(Peer::OmniOrb),
        reason: "omniORB sends the ten octets of an x87 register, not the IEEE 754 quadruple of CORBA 3.3 Part 2, 9.3.1.5",
    },
    KnownFailure {
        cases: &["any/broke", "dynany/broke"],
        applies: |combination| combination.has(Peer::OmniOrb),
        reason: "omniORB neither sends nor expects an exception's id before its members in an any (CORBA 3.3 Part 2, 9.3.5.5; \
                 peers/omniorb/README.md)",
    },
    KnownFailure {
        cases: WIDE,
        applies: |combination| combination.version == "1.0",
        reason: "GIOP 1.0 has no wide characters (CORBA 3.3 Part 2, 9.3.1.6)",
    },
    KnownFailure {
        cases: WIDE,
        applies: |combination| combination.version == "1.1" && combination.has(Peer::OmniOrb),
        reason: "omniORB supports UTF-16 in GIOP 1.2 only; its own client and server fail alike (peers/omniorb/README.md)",
    },
    KnownFailure {
        cases: &["typecode/wchar"],
        applies: |combination| combination.version != "1.2" && combination.has(Peer::OmniOrb),
        reason: "omniORB cannot make an any of a wchar below GIOP 1.2, and the case takes its type from one",
    },
    KnownFailure {
        cases: &["primitives/longdouble"],
        applies: |combination| combination.has(Peer::JacOrb),
        reason: "Java has no long double; JacORB takes it for a double",
    },
    KnownFailure {
        cases: &["hub/context"],
        applies: |combination| combination.has(Peer::JacOrb),
        reason: "JacORB has no contexts: its stubs and skeletons ignore them, `get_default_context` raises NO_IMPLEMENT",
    },
    KnownFailure {
        cases: &[
            "structs/wish",
            "structs/kinds",
            "any/letter-default",
            "dynany/letter-default",
            "typecode/letter-default",
        ],
        applies: |combination| combination.has(Peer::JacOrb),
        reason: UNION_DEFAULT,
    },
    KnownFailure {
        cases: &["wide/union"],
        applies: |combination| combination.server == Some(Peer::JacOrb),
        reason: UNION_DEFAULT,
    },
    KnownFailure {
        cases: &["any/fixed", "dynany/fixed"],
        applies: |combination| combination.has(Peer::JacOrb),
        reason: "JacORB writes as many digits as the BigDecimal has, not as many as its type (CORBA 3.3 Part 2, 9.3.2.8)",
    },
    KnownFailure {
        cases: &["dynany/value"],
        applies: |combination| combination.has(Peer::JacOrb),
        reason: "JacORB has no dynamic values: NO_IMPLEMENT",
    },
    KnownFailure {
        cases: &["any/value-box", "dynany/value-box"],
        applies: |combination| combination.has(Peer::JacOrb),
        reason: "JacORB takes a box in an any for a value of RMI",
    },
    KnownFailure {
        cases: &["dynany/parcel"],
        applies: |combination| combination.has(Peer::JacOrb),
        reason: "JacORB's dynamic struct returns a union in it as one with its first member",
    },
    KnownFailure {
        cases: &["locator/moved", "locator/gone", "activator/moved", "activator/gone"],
        applies: |combination| combination.server == Some(Peer::JacOrb),
        reason: "a JacORB server sends no reply if a servant manager makes no servant (peers/jacorb/README.md)",
    },
    KnownFailure {
        cases: &["operations/repository-id", "operations/component"],
        applies: |combination| combination.server == Some(Peer::OmniOrb),
        reason: "omniORB's servers do not know `_repository_id` and `_component` (CORBA 3.3 Part 1, 8.3): BAD_OPERATION",
    },
    KnownFailure {
        cases: &["scope/"],
        applies: |combination| combination.client == Some(Peer::OmniOrb),
        reason: "omniORB's clients have no sync scopes; they send one-way calls and go on",
    },
    KnownFailure {
        cases: &["operations/component"],
        applies: |combination| combination.server == Some(Peer::JacOrb),
        reason: "JacORB's skeletons do not know `_component` (CORBA 3.3 Part 1, 8.3.12)",
    },
    KnownFailure {
        cases: &["text/beyond"],
        applies: |combination| combination.client == Some(Peer::JacOrb),
        reason: "JacORB sends a character outside of the code set as its low octet (CORBA 3.3 Part 2, 7.10.2: DATA_CONVERSION)",
    },
    KnownFailure {
        cases: &["names/corbaname_escaped", "names/is_equivalent"],
        applies: |combination| combination.client == Some(Peer::JacOrb),
        reason: "JacORB's clients do not undo the escapes of a `corbaname:`",
    },
];

/// The reason for which a case cannot pass in this combination, if there is one.
pub(crate) fn reason(case: &str, combination: Combination<'_>) -> Option<&'static str> {
    let names = |known: &&KnownFailure| {
        known.cases.iter().any(|name| case == *name || name.ends_with('/') && case.starts_with(name))
    };
    KNOWN_FAILURES.iter().find(|known| names(known) && (known.applies)(combination)).map(|known| known.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_applies_only_to_its_cases_and_combinations() {
        let theirs = |version| Combination { version, client: None, server: Some(Peer::OmniOrb) };
        assert!(reason("wide/euro", theirs("1.1")).is_some());
        assert!(reason("wide/euro", theirs("1.2")).is_none());
        assert!(reason("wide/euro", Combination { version: "1.1", client: None, server: None }).is_none());
        assert!(reason("any/wstrings", theirs("1.0")).is_none());
        assert!(
            reason("hub/context", Combination { version: "1.2", client: Some(Peer::JacOrb), server: None }).is_some()
        );
        assert!(reason("hub/context", theirs("1.2")).is_none());
    }
}
