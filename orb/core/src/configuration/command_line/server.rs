//! The options of servers.

use std::str::FromStr;

use spandrel_demux::{ObjectDemux, OperationDemux};
use spandrel_transport::Endpoint;

use super::{
    table::option_table,
    values::{milliseconds, milliseconds_or_off, named, number, number_or_off, octets, yes_or_no},
};
use crate::{Collocation, QueueOverflow, servant_side::concurrency::SYNTAX as CONCURRENCY};

/// The values of options that choose tables of adapters.
const OBJECT_DEMUX: &str = "active, dynamic-hash, perfect-hash or linear";
const USER_ID_DEMUX: &str = "dynamic-hash, perfect-hash or linear";
const OPERATION_DEMUX: &str = "perfect-hash, dynamic-hash, binary-search, linear or active";

option_table! {
    /// The `-ORB…` options of servers.
    pub static SERVER_OPTIONS;

    ["-ORBListenEndpoints", "-ORBListenEndpoint", "-ORBEndpoint", "-ORBendPoint"] {
        value: "endpoints, separated by `;`",
        default: "a port of `127.0.0.1`",
        help: "the addresses to listen at",
        page: "[transports](transports.md)",
        apply: |builder, value| {
            let endpoints = value.split(';').filter(|text| !text.is_empty());
            endpoints.map(Endpoint::from_str).try_fold(builder, |builder, endpoint| Ok(builder.listen(endpoint?)))
        },
    }

    ["-ORBPublish", "-ORBendPointPublish"] {
        value: "`host:port`, or several, separated by `,`",
        default: "the addresses of the endpoints",
        help: "the addresses in references, in place of those of the endpoints",
        page: "[transports](transports.md)",
        apply: |builder, value| Ok(builder.publish(value)),
    }

    ["-ORBServerTransportRule", "-ORBserverTransportRule"] {
        value: "`ADDRESSES TRANSPORTS`, or several, separated by `;`",
        default: "all addresses, all transports",
        help: "the transports for the clients at these addresses",
        page: "[transports](transports.md)",
        apply: |builder, value| Ok(builder.server_transport_rule(value)?),
    }

    ["-ORBInheritDeadlines"] {
        value: "`yes` or `no`",
        default: "`yes`",
        help: "whether calls of a servant inherit the deadline of its request",
        page: "[deadlines](deadlines.md)",
        apply: |builder, value| Ok(builder.inherit_deadlines(yes_or_no(value)?)),
    }

    ["-ORBExceptionDetails"] {
        value: "`yes` or `no`",
        default: "`no`",
        help: "whether clients get the whole text of system exceptions, and not only what reveals nothing",
        page: "[errors](errors.md)",
        apply: |builder, value| Ok(builder.exception_details(yes_or_no(value)?)),
    }

    ["-ORBConcurrency"] {
        value: "`adaptive:N`, `reactive`, `thread-per-connection:N`, `leader-followers[:N]` or `thread-pool:N:Q`",
        default: "`adaptive:64`",
        help: "the threads that read and run requests",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.concurrency(value.parse().map_err(|_| CONCURRENCY)?)),
    }

    ["-ORBReplyBatching"] {
        value: "`yes` or `no`",
        default: "`yes`",
        help: "whether replies of several connections are sent together",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.reply_batching(yes_or_no(value)?)),
    }

    ["-ORBQueueOverflow"] {
        value: "`wait` or `refuse`",
        default: "`wait`",
        help: "whether a full queue of a thread pool makes clients wait, or refuses their requests",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.queue_overflow(match value {
            "wait" => QueueOverflow::Wait,
            "refuse" => QueueOverflow::Refuse,
            _ => return Err("wait or refuse".into()),
        })),
    }

    ["-ORBMaxConnections"] {
        value: "a number",
        default: "32,768",
        help: "the most connections of the server",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.max_connections(number(value)?)),
    }

    ["-ORBMaxConnectionsPerClient"] {
        value: "a number, or `off`",
        default: "`off`",
        help: "the most connections from one address",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.max_connections_per_client(number_or_off(value)?)),
    }

    ["-ORBMaxConnectionRate"] {
        value: "a number, or `off`",
        default: "`off`",
        help: "the most connections that are accepted in a second",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.max_connection_rate(number_or_off(value)?)),
    }

    ["-ORBEvictIdle"] {
        value: "`yes` or `no`",
        default: "`no`",
        help: "whether the longest idle connection is closed for a new one at the limit",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.evict_idle(yes_or_no(value)?)),
    }

    ["-ORBMaxRequestsPerConnection"] {
        value: "a number",
        default: "64",
        help: "the most requests of one connection that run at once",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.max_requests_per_connection(number(value)?)),
    }

    ["-ORBMaxDeferredRequests"] {
        value: "a number",
        default: "1,024",
        help: "the most requests of one connection that are answered after their upcalls",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.max_deferred_requests(number(value)?)),
    }

    ["-ORBMaxServerThreads"] {
        value: "a number",
        default: "1,024",
        help: "the most threads that read requests and run servants",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.max_server_threads(number(value)?)),
    }

    ["-ORBMaxConnectionMemory"] {
        value: "octets",
        default: "128 MiB",
        help: "the most memory for the messages of one client",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.max_connection_memory(octets(value)?)),
    }

    ["-ORBMaxServerMemory"] {
        value: "octets",
        default: "1 GiB",
        help: "the most memory for the messages of all clients together",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.max_server_memory(octets(value)?)),
    }

    ["-ORBMaxLaneThreads"] {
        value: "a number",
        default: "4,096",
        help: "the most threads of all thread pools of Real-time CORBA together",
        page: "[Real-time CORBA](real-time.md#thread-pools)",
        apply: |builder, value| Ok(builder.max_lane_threads(number(value)?)),
    }

    ["-ORBMaxLaneMemory"] {
        value: "octets",
        default: "1 GiB",
        help: "the most memory that those pools reserve for stacks and buffered requests",
        page: "[Real-time CORBA](real-time.md#thread-pools)",
        apply: |builder, value| Ok(builder.max_lane_memory(octets(value)?)),
    }

    ["-ORBServerIdleTimeout"] {
        value: "milliseconds, or `off`",
        default: "10 minutes",
        help: "the time after which an idle connection is closed",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.server_idle_timeout(milliseconds_or_off(value)?)),
    }

    ["-ORBMessageTimeout"] {
        value: "milliseconds, or `off`",
        default: "a minute",
        help: "the time limit for the rest of a message that has begun, or its next MiB",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.message_timeout(milliseconds_or_off(value)?)),
    }

    ["-ORBSendTimeout"] {
        value: "milliseconds",
        default: "30 s",
        help: "the time limit for a client to accept a part of its reply",
        page: "[concurrency](concurrency.md)",
        apply: |builder, value| Ok(builder.send_timeout(Some(milliseconds(value)?))),
    }

    ["-ORBLongWaitWarning"] {
        value: "milliseconds, or `off`",
        default: "1 s",
        help: "the time after which a warning names what waiting requests wait for",
        page: "[adapters](adapters.md)",
        apply: |builder, value| Ok(builder.long_wait_warning(milliseconds_or_off(value)?)),
    }

    ["-ORBAdaptiveDemultiplexing"] {
        value: "`yes` or `no`",
        default: "`yes`",
        help: "whether a connection predicts the object and operation of its next request",
        page: "[adapters](adapters.md)",
        apply: |builder, value| Ok(builder.adaptive_demultiplexing(yes_or_no(value)?)),
    }

    ["-ORBSystemIdDemux"] {
        value: "`active`, `dynamic-hash`, `perfect-hash` or `linear`",
        default: "`active`",
        help: "the lookup of objects whose ids the adapter assigns",
        page: "[adapters](adapters.md)",
        apply: |builder, value| Ok(builder.system_id_demux(named(ObjectDemux::ALL, ObjectDemux::name, value).ok_or(OBJECT_DEMUX)?)),
    }

    ["-ORBUserIdDemux"] {
        value: "`dynamic-hash`, `perfect-hash` or `linear`",
        default: "`dynamic-hash`",
        help: "the lookup of objects whose ids the application assigns",
        page: "[adapters](adapters.md)",
        apply: |builder, value| {
            let [_, of_user_ids @ ..] = ObjectDemux::ALL;
            Ok(builder.user_id_demux(named(of_user_ids, ObjectDemux::name, value).ok_or(USER_ID_DEMUX)?))
        },
    }

    ["-ORBOperationDemux"] {
        value: "`perfect-hash`, `dynamic-hash`, `binary-search`, `linear` or `active`",
        default: "`perfect-hash`",
        help: "the lookup of operations",
        page: "[adapters](adapters.md)",
        apply: |builder, value| Ok(builder.operation_demux(named(OperationDemux::ALL, OperationDemux::name, value).ok_or(OPERATION_DEMUX)?)),
    }

    ["-ORBCollocation"] {
        value: "`direct`, `through-poa` or `no`",
        default: "`through-poa`",
        help: "how objects of the same ORB are called",
        page: "[the mapping](mapping.md)",
        apply: |builder, value| Ok(match value {
            "direct" => builder.collocation(Collocation::Direct),
            "through-poa" => builder.collocation(Collocation::ThroughPoa),
            "no" => builder.collocation(Collocation::No),
            _ => return Err("direct, through-poa or no".into()),
        }),
    }

    ["-ORBBidirectional"] {
        value: "`yes` or `no`",
        default: "`no`",
        help: "whether the client's connections also carry requests to its own objects",
        page: "[bidirectional connections](bidirectional.md)",
        apply: |builder, value| Ok(builder.bidirectional(yes_or_no(value)?)),
    }

    ["-ORBTrustListenPoints"] {
        value: "`yes` or `no`",
        default: "`no`",
        help: "whether every address that a client announces is trusted, not only its own",
        page: "[bidirectional connections](bidirectional.md)",
        apply: |builder, value| Ok(builder.trust_listen_points(yes_or_no(value)?)),
    }
}
