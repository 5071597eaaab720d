//! The options of every ORB.

use std::time::Duration;

use spandrel_cdr::{ByteOrder, CharSet, GiopVersion, WcharSet};
use spandrel_giop::AddressingDisposition;

use super::{
    table::{ValueError, option_table},
    values::{milliseconds, milliseconds_or_off, number, octets, yes_or_no},
};
use crate::{
    ConnectionSharing, OrbBuilder, Purging, client::code_set_agreement::parse_list, configuration::options::PROFILES,
    diagnostics::TracePropagation, policy::DeadlineContext,
};

const CODE_SET: &str = "the name of a code set, or its number in the OSF registry";
const CODE_SETS: &str = "code sets by their names or numbers, separated by commas, `all` or `none`";

option_table! {
    /// The `-ORB…` options of every ORB.
    pub static GENERAL_OPTIONS;

    ["-ORBSite"] {
        value: "the name of a site, or `FILE#NAME`",
        default: "none",
        help: "a site of `spandrel.toml`, whose settings all other options replace (feature `site`)",
        page: "[configuration](configuration.md)",
        apply: site,
    }

    ["-ORBProfile"] {
        value: "`default`, `small` or `high-concurrency`",
        default: "`default`",
        help: "a preset of other options, which is applied first",
        page: "[profiles](#profiles)",
        apply: |builder, value| Ok(builder.profile(value.parse().map_err(|_| PROFILES)?)),
    }

    ["-ORBTransports"] {
        value: "names, separated by `,`",
        default: "all",
        help: "the transports that may be used, the preferred one first",
        page: "[transports](transports.md)",
        apply: |builder, value| Ok(builder.transports(value.split(',').filter(|name| !name.is_empty()))),
    }

    ["-ORBClientTransportRule", "-ORBclientTransportRule"] {
        value: "`ADDRESSES TRANSPORTS`, or several, separated by `;`",
        default: "all addresses, all transports",
        help: "the transports for the servers at these addresses",
        page: "[transports](transports.md)",
        apply: |builder, value| Ok(builder.client_transport_rule(value)?),
    }

    ["-ORBDatagrams"] {
        value: "`yes` or `no`",
        default: "`no`",
        help: "whether one-ways are sent as datagrams to servers that read them",
        page: "[transports](transports.md)",
        apply: |builder, value| Ok(builder.datagrams(yes_or_no(value)?)),
    }

    ["-ORBSocketQueue"] {
        value: "octets",
        default: "the system's",
        help: "the sizes of a socket's queues, for both directions",
        page: "[transports](transports.md)",
        apply: |builder, value| {
            let len = Some(octets(value)?);
            Ok(builder.socket_queues(len, len))
        },
    }

    ["-ORBKeepAlive"] {
        value: "`off`, `system`, or seconds: `idle[:interval[:count]]`",
        default: "`system`",
        help: "the probes of idle TCP connections",
        page: "[connections](connections.md)",
        apply: |builder, value| {
            let expected = |()| "off, system, or seconds: idle[:interval[:count]]";
            Ok(builder.keep_alive(value.parse().map_err(expected)?))
        },
    }

    ["-ORBBusyPoll"] {
        value: "microseconds, or `off`",
        default: "the system's",
        help: "the time for which a read of a TCP connection polls the network card before it sleeps (Linux)",
        page: "[real-time](real-time.md)",
        apply: |builder, value| {
            let micros = || value.parse::<u32>().ok().filter(|micros| *micros <= 1_000_000);
            let time = if value == "off" { 0 } else { micros().ok_or("microseconds up to 1000000, or off")? };
            Ok(builder.busy_poll(Some(Duration::from_micros(time.into()))))
        },
    }

    ["-ORBConnectTimeout"] {
        value: "milliseconds",
        default: "the system's",
        help: "the time limit for opening a connection",
        page: "[deadlines](deadlines.md)",
        apply: |builder, value| Ok(builder.connect_timeout(Some(milliseconds(value)?))),
    }

    ["-ORBConnectionsPerPeer"] {
        value: "a number",
        default: "5",
        help: "the most connections to one server",
        page: "[connections](connections.md)",
        apply: |builder, value| Ok(builder.connections_per_peer(number(value)?)),
    }

    ["-ORBMaxClientConnections"] {
        value: "a number",
        default: "1,024",
        help: "the most connections to all servers; beyond it an idle one is closed",
        page: "[connections](connections.md)",
        apply: |builder, value| Ok(builder.max_client_connections(number(value)?)),
    }

    ["-ORBConnectionPurging"] {
        value: "`lru`, `lfu`, `fifo` or `null`",
        default: "`lru`",
        help: "which unused connections are closed first",
        page: "[connections](connections.md)",
        apply: |builder, value| Ok(builder.purging(match value {
            "lru" => Purging::LeastRecentlyUsed,
            "lfu" => Purging::LeastFrequentlyUsed,
            "fifo" => Purging::Fifo,
            "null" => Purging::Null,
            _ => return Err("lru, lfu, fifo or null".into()),
        })),
    }

    ["-ORBConnectionSharing"] {
        value: "`exclusive`, `mixed` or `multiplexed`",
        default: "`mixed`",
        help: "whether calls of several threads share a connection",
        page: "[connections](connections.md)",
        apply: |builder, value| Ok(builder.connection_sharing(match value {
            "exclusive" => ConnectionSharing::Exclusive,
            "mixed" => ConnectionSharing::Mixed,
            "multiplexed" => ConnectionSharing::Multiplexed,
            _ => return Err("exclusive, mixed or multiplexed".into()),
        })),
    }

    ["-ORBIdleTimeout"] {
        value: "milliseconds, or `off`",
        default: "180 s, checked when a connection is opened",
        help: "the time after which an idle connection to a server is closed",
        page: "[connections](connections.md)",
        apply: |builder, value| Ok(builder.idle_timeout(milliseconds_or_off(value)?)),
    }

    ["-ORBReconnectBackoff"] {
        value: "milliseconds, or two of them: `first:longest`",
        default: "none",
        help: "the wait before an address that could not be reached is tried again",
        page: "[connections](connections.md)",
        apply: |builder, value| {
            let (first, longest) = value.split_once(':').unwrap_or((value, value));
            let expected = |_| "milliseconds, or two of them: first:longest";
            let (first, longest) = (milliseconds(first).map_err(expected)?, milliseconds(longest).map_err(expected)?);
            Ok(builder.reconnect_backoff(first, longest))
        },
    }

    ["-ORBRequestCaching"] {
        value: "`yes` or `no`",
        default: "`yes`",
        help: "whether references cache the headers of their requests",
        page: "",
        apply: |builder, value| Ok(builder.request_caching(yes_or_no(value)?)),
    }

    ["-ORBOperationIndex"] {
        value: "`yes` or `no`",
        default: "`no`",
        help: "whether cached headers carry the index of their operation",
        page: "[adapters](adapters.md)",
        apply: |builder, value| Ok(builder.operation_index(yes_or_no(value)?)),
    }

    ["-ORBRequestTimeout"] {
        value: "milliseconds",
        default: "none",
        help: "the time limit of a call, from its start to its reply",
        page: "[deadlines](deadlines.md)",
        apply: |builder, value| Ok(builder.request_timeout(Some(milliseconds(value)?))),
    }

    ["-ORBDeadlineContext"] {
        value: "`remaining`, `absolute`, `both` or `none`",
        default: "`remaining`",
        help: "the form in which a request tells the server its deadline",
        page: "[deadlines](deadlines.md)",
        apply: |builder, value| Ok(builder.deadline_context(match value {
            "remaining" => DeadlineContext::Remaining,
            "absolute" => DeadlineContext::Absolute,
            "both" => DeadlineContext::Both,
            "none" => DeadlineContext::None,
            _ => return Err("remaining, absolute, both or none".into()),
        })),
    }

    ["-ORBGiopVersion"] {
        value: "`1.0`, `1.1` or `1.2`",
        default: "`1.2`",
        help: "the version of requests and of new references",
        page: "[GIOP](giop.md)",
        apply: |builder, value| Ok(match value {
            "1.0" => builder.giop_version(GiopVersion::V1_0),
            "1.1" => builder.giop_version(GiopVersion::V1_1),
            "1.2" => builder.giop_version(GiopVersion::V1_2),
            _ => return Err("1.0, 1.1 or 1.2".into()),
        }),
    }

    ["-ORBByteOrder"] {
        value: "`big`, `little` or `native`",
        default: "`native`",
        help: "the byte order of messages that are sent",
        page: "[GIOP](giop.md)",
        apply: |builder, value| Ok(match value {
            "big" => builder.byte_order(ByteOrder::Big),
            "little" => builder.byte_order(ByteOrder::Little),
            "native" => builder.byte_order(ByteOrder::NATIVE),
            _ => return Err("big, little or native".into()),
        }),
    }

    ["-ORBTargetAddressing"] {
        value: "`key`, `profile` or `reference`",
        default: "`key`",
        help: "the form in which requests of GIOP 1.2 name their object",
        page: "[GIOP](giop.md)",
        apply: |builder, value| Ok(builder.target_addressing(match value {
            "key" => AddressingDisposition::Key,
            "profile" => AddressingDisposition::Profile,
            "reference" => AddressingDisposition::Reference,
            _ => return Err("key, profile or reference".into()),
        })),
    }

    ["-ORBFragmentSize"] {
        value: "octets, or `off`; with `PEER=` before it, for that peer",
        default: "`off`",
        help: "the length beyond which messages are sent in fragments of at most this length",
        page: "[GIOP](giop.md)",
        apply: |builder, value| {
            let (peer, size) = value.rsplit_once('=').map_or((None, value), |(peer, size)| (Some(peer), size));
            let octets = match size {
                "off" => None,
                octets => Some(octets.parse().map_err(|_| "octets or off, or PEER= and either")?),
            };
            Ok(match peer {
                None => builder.fragment_size(octets),
                Some(peer) => builder.fragment_size_for(peer, octets),
            })
        },
    }

    ["-ORBMaxMessageSize"] {
        value: "octets",
        default: "64 MiB",
        help: "the longest message that is received",
        page: "[GIOP](giop.md)",
        apply: |builder, value| Ok(builder.max_message(octets(value)?)),
    }

    ["-ORBMaxServiceContexts"] {
        value: "a number",
        default: "256",
        help: "the most service contexts of a message",
        page: "[GIOP](giop.md)",
        apply: |builder, value| Ok(builder.max_service_contexts(number(value)?)),
    }

    ["-ORBMaxServiceContextOctets"] {
        value: "octets",
        default: "1 MiB",
        help: "the most octets of a message's service contexts",
        page: "[GIOP](giop.md)",
        apply: |builder, value| Ok(builder.max_service_context_octets(octets(value)?)),
    }

    ["-ORBMaxDecodedFactor"] {
        value: "a number",
        default: "32",
        help: "the memory of decoded values, as a multiple of their message's length",
        page: "[concurrency](concurrency.md#limits)",
        apply: |builder, value| Ok(builder.max_decoded_factor(number(value)?)),
    }

    ["-ORBNativeCharCodeSet", "-ORBnativeCharCodeSet"] {
        value: "a code set by its name, or its number in the OSF registry",
        default: "ISO 8859-1",
        help: "the code set for narrow text that is preferred, and named in references",
        page: "[code sets](code-sets.md)",
        apply: |builder, value| Ok(builder.native_char_set(value.parse().map_err(|_| CODE_SET)?)),
    }

    ["-ORBNativeWCharCodeSet", "-ORBnativeWCharCodeSet"] {
        value: "a code set, or `none`",
        default: "UTF-16",
        help: "the code set for wide text that is preferred, and named in references",
        page: "[code sets](code-sets.md)",
        apply: |builder, value| Ok(builder.native_wchar_set(value.parse().map_err(|_| CODE_SET)?)),
    }

    ["-ORBDefaultCharCodeSet", "-ORBdefaultCharCodeSet"] {
        value: "a code set",
        default: "the standard's",
        help: "the code set for references that name none",
        page: "[code sets](code-sets.md)",
        apply: |builder, value| Ok(builder.default_char_set(value.parse().map_err(|_| CODE_SET)?)),
    }

    ["-ORBDefaultWCharCodeSet", "-ORBdefaultWCharCodeSet"] {
        value: "a code set",
        default: "none",
        help: "the wide code set for references that name none",
        page: "[code sets](code-sets.md)",
        apply: |builder, value| Ok(builder.default_wchar_set(value.parse().map_err(|_| CODE_SET)?)),
    }

    ["-ORBConversionCodeSets"] {
        value: "code sets, separated by `,`; `all` or `none`",
        default: "UTF-8, and others",
        help: "the further code sets for narrow text, in order of preference",
        page: "[code sets](code-sets.md)",
        apply: |builder, value| Ok(builder.conversion_char_sets(parse_list(value, CharSet::all()).map_err(|_| CODE_SETS)?)),
    }

    ["-ORBConversionWCharCodeSets"] {
        value: "code sets, separated by `,`; `all` or `none`",
        default: "UTF-16",
        help: "the further code sets for wide text, in order of preference",
        page: "[code sets](code-sets.md)",
        apply: |builder, value| Ok(builder.conversion_wchar_sets(parse_list(value, WcharSet::all()).map_err(|_| CODE_SETS)?)),
    }

    ["-ORBMetrics"] {
        value: "`yes` or `no`",
        default: "`no`",
        help: "whether calls and requests are measured",
        page: "[diagnostics](diagnostics.md)",
        apply: |builder, value| Ok(builder.metrics(yes_or_no(value)?)),
    }

    ["-ORBTraceContext"] {
        value: "`yes`, `no` or `propagate`",
        default: "`propagate`",
        help: "whether requests carry trace contexts",
        page: "[diagnostics](diagnostics.md)",
        apply: |builder, value| Ok(builder.trace_context(match value {
            "yes" => TracePropagation::Yes,
            "no" => TracePropagation::No,
            "propagate" => TracePropagation::Propagate,
            _ => return Err("yes, no or propagate".into()),
        })),
    }

    ["-ORBInitRef"] {
        value: "`Name=URL`",
        default: "none",
        help: "an initial reference; a URL that cannot be read is an error at the start",
        page: "",
        apply: |builder, value| {
            let (name, url) = value.split_once('=').ok_or("Name=URL")?;
            Ok(builder.init_ref(name, url))
        },
    }

    ["-ORBDefaultInitRef"] {
        value: "`URL`",
        default: "none",
        help: "the URL below which other initial references are looked up",
        page: "",
        apply: |builder, value| Ok(builder.default_init_ref(value)),
    }

    ["-ORBId", "-ORBid"] {
        value: "any text",
        default: "none",
        help: "the name of an ORB in a program with several",
        page: "",
        apply: |builder, value| Ok(builder.orb_id(value)),
    }

    ["-ORBServerId"] {
        value: "any text",
        default: "none",
        help: "the name of this server for programs that start servers",
        page: "[implementation repository](implementation-repository.md)",
        apply: |builder, value| Ok(builder.server_id(value)),
    }

    ["-ORBUseImR"] {
        value: "`1` or `0` (`yes`, `no`)",
        default: "0",
        help: "whether persistent references denote the implementation repository, in programs with `Orb::builder().activation()?`",
        page: "[implementation repository](implementation-repository.md)",
        apply: |builder, value| Ok(builder.use_implementation_repository(match value {
            "1" | "yes" => true,
            "0" | "no" => false,
            _ => return Err("1, 0, yes or no".into()),
        })),
    }
}

/// Sets the options of a site.
#[cfg(feature = "site")]
fn site(builder: OrbBuilder, value: &str) -> Result<OrbBuilder, ValueError> {
    let configured = crate::Site::of_option(value).and_then(|site| builder.site(&site));
    configured.map_err(|error| ValueError::Other(Box::new(error.into())))
}

/// Refuses the option: this program cannot read files of sites.
#[cfg(not(feature = "site"))]
fn site(_: OrbBuilder, value: &str) -> Result<OrbBuilder, ValueError> {
    let expected = "nothing: the program was built without the feature `site`";
    let error = crate::InitError::BadValue { option: "-ORBSite".to_owned(), value: value.to_owned(), expected };
    Err(ValueError::Other(Box::new(error)))
}
