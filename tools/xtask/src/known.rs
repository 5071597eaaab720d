//! Cases that fail for a reason that is not ours: what omniORB 4.2 and JacORB 3.9 do otherwise than the standard says, what they have
//! not, and what a version of GIOP has not. They are run all the same, and told with the reason.

use crate::peer::Peer;

/// Between whom a case is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between<'v> {
    /// The version of GIOP that is spoken.
    pub(crate) version: &'v str,
    /// The client's ORB, unless it is ours.
    pub(crate) client: Option<Peer>,
    /// The server's ORB, unless it is ours.
    pub(crate) server: Option<Peer>,
}

impl Between<'_> {
    /// One of the two is this.
    fn has(self, peer: Peer) -> bool {
        [self.client, self.server].contains(&Some(peer))
    }
}

/// Cases that cannot pass, and why.
struct Known {
    /// Each a case, or a group with its `/`.
    cases: &'static [&'static str],
    applies: fn(Between<'_>) -> bool,
    reason: &'static str,
}

/// Where wide characters are sent.
const WIDE: &[&str] = &["wide/", "any/wchar", "dynany/wchar", "any/wstring", "dynany/wstring"];

const UNION_DEFAULT: &str =
    "what JacORB's compiler makes of a union has one discriminator for the default member, and loses any other";

const KNOWN: &[Known] = &[
    Known {
        cases: &["primitives/longdouble"],
        applies: |between| between.has(Peer::OmniOrb),
        reason: "omniORB sends the ten octets of an x87 register, not the IEEE 754 quadruple of CORBA 3.3 Part 2, 9.3.1.5",
    },
    Known {
        cases: &["any/broke", "dynany/broke"],
        applies: |between| between.has(Peer::OmniOrb),
        reason: "omniORB neither sends nor expects an exception's id before its members in an any (CORBA 3.3 Part 2, 9.3.5.5; \
                 peers/omniorb/README.md)",
    },
    Known {
        cases: WIDE,
        applies: |between| between.version == "1.0",
        reason: "GIOP 1.0 has no wide characters (CORBA 3.3 Part 2, 9.3.1.6)",
    },
    Known {
        cases: WIDE,
        applies: |between| between.version == "1.1" && between.has(Peer::OmniOrb),
        reason: "omniORB has UTF-16 for GIOP 1.2 only; its own client and server fail alike (peers/omniorb/README.md)",
    },
    Known {
        cases: &["typecode/wchar"],
        applies: |between| between.version != "1.2" && between.has(Peer::OmniOrb),
        reason: "omniORB cannot even make an any of a wchar below GIOP 1.2, from which the case takes the type",
    },
    Known {
        cases: &["primitives/longdouble"],
        applies: |between| between.has(Peer::JacOrb),
        reason: "Java has no long double; JacORB takes it for a double",
    },
    Known {
        cases: &["hub/context"],
        applies: |between| between.has(Peer::JacOrb),
        reason: "JacORB has no contexts: its stubs and skeletons pass over them, `get_default_context` raises NO_IMPLEMENT",
    },
    Known {
        cases: &[
            "structs/wish",
            "structs/kinds",
            "any/letter-default",
            "dynany/letter-default",
            "typecode/letter-default",
        ],
        applies: |between| between.has(Peer::JacOrb),
        reason: UNION_DEFAULT,
    },
    Known { cases: &["wide/union"], applies: |between| between.server == Some(Peer::JacOrb), reason: UNION_DEFAULT },
    Known {
        cases: &["any/fixed", "dynany/fixed"],
        applies: |between| between.has(Peer::JacOrb),
        reason: "JacORB writes the digits that a BigDecimal happens to have, not as many as its type (CORBA 3.3 Part 2, 9.3.2.8)",
    },
    Known {
        cases: &["dynany/value"],
        applies: |between| between.has(Peer::JacOrb),
        reason: "JacORB has no dynamic values: NO_IMPLEMENT",
    },
    Known {
        cases: &["any/value-box", "dynany/value-box"],
        applies: |between| between.has(Peer::JacOrb),
        reason: "JacORB takes a box in an any for a value of RMI",
    },
    Known {
        cases: &["dynany/parcel"],
        applies: |between| between.has(Peer::JacOrb),
        reason: "JacORB's dynamic struct gives out a union in it as one of its first member",
    },
    Known {
        cases: &["locator/moved", "locator/gone", "activator/moved", "activator/gone"],
        applies: |between| between.server == Some(Peer::JacOrb),
        reason: "a JacORB server answers nothing if a servant manager makes no servant (peers/jacorb/README.md)",
    },
    Known {
        cases: &["operations/repository-id", "operations/component"],
        applies: |between| between.server == Some(Peer::OmniOrb),
        reason: "omniORB's servers do not know `_repository_id` and `_component` (CORBA 3.3 Part 1, 8.3): BAD_OPERATION",
    },
    Known {
        cases: &["scope/"],
        applies: |between| between.client == Some(Peer::OmniOrb),
        reason: "omniORB's clients have no sync scopes; they send one-way calls and go on",
    },
    Known {
        cases: &["operations/component"],
        applies: |between| between.server == Some(Peer::JacOrb),
        reason: "JacORB's skeletons do not know `_component` (CORBA 3.3 Part 1, 8.3.12)",
    },
    Known {
        cases: &["text/beyond"],
        applies: |between| between.client == Some(Peer::JacOrb),
        reason: "JacORB sends a character that the code set does not have as its low octet (CORBA 3.3 Part 2, 7.10.2: DATA_CONVERSION)",
    },
    Known {
        cases: &["names/corbaname_escaped", "names/is_equivalent"],
        applies: |between| between.client == Some(Peer::JacOrb),
        reason: "JacORB's clients do not undo the escapes of a `corbaname:`",
    },
];

/// Why a case cannot pass there, if it cannot.
pub(crate) fn reason(case: &str, between: Between<'_>) -> Option<&'static str> {
    let names =
        |known: &&Known| known.cases.iter().any(|name| case == *name || name.ends_with('/') && case.starts_with(name));
    KNOWN.iter().find(|known| names(known) && (known.applies)(between)).map(|known| known.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_for_its_cases_there_and_for_no_others() {
        let theirs = |version| Between { version, client: None, server: Some(Peer::OmniOrb) };
        assert!(reason("wide/euro", theirs("1.1")).is_some());
        assert!(reason("wide/euro", theirs("1.2")).is_none());
        assert!(reason("wide/euro", Between { version: "1.1", client: None, server: None }).is_none());
        assert!(reason("any/wstrings", theirs("1.0")).is_none());
        assert!(reason("hub/context", Between { version: "1.2", client: Some(Peer::JacOrb), server: None }).is_some());
        assert!(reason("hub/context", theirs("1.2")).is_none());
    }
}
