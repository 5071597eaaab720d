//! The options of servers.

use std::str::FromStr;

use spandrel_transport::Endpoint;

use super::values::{InitError, InvalidValue, Parsed, milliseconds, or_off, yes_or_no};
use crate::{Collocation, OrbBuilder, QueueOverflow, servant_side::concurrency::SYNTAX as CONCURRENCY};

/// Applies an option of servers.
pub(super) fn option(
    builder: OrbBuilder,
    option: &str,
    value: &str,
    bad: InvalidValue<'_>,
) -> Result<Parsed, InitError> {
    let builder = match option {
        "-ORBListenEndpoints" | "-ORBListenEndpoint" | "-ORBEndpoint" | "-ORBendPoint" => {
            let endpoints = value.split(';').filter(|text| !text.is_empty());
            endpoints
                .map(Endpoint::from_str)
                .try_fold(builder, |builder, endpoint| Ok::<_, InitError>(builder.listen(endpoint?)))?
        }
        "-ORBPublish" | "-ORBendPointPublish" => builder.publish(value),
        "-ORBServerTransportRule" | "-ORBserverTransportRule" => builder.server_transport_rule(value).map_err(bad)?,
        "-ORBExceptionDetails" => builder.exception_details(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBConcurrency" => builder.concurrency(value.parse().map_err(|_| bad(CONCURRENCY))?),
        "-ORBReplyBatching" => builder.reply_batching(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBMaxConnectionMemory" => {
            builder.max_connection_memory(value.parse().map_err(|_| bad("a number of octets"))?)
        }
        "-ORBMaxServerMemory" => builder.max_server_memory(value.parse().map_err(|_| bad("a number of octets"))?),
        "-ORBMaxRequestsPerConnection" => {
            builder.max_requests_per_connection(value.parse().map_err(|_| bad("a number"))?)
        }
        "-ORBMaxServerThreads" => builder.max_server_threads(value.parse().map_err(|_| bad("a number"))?),
        "-ORBMaxDeferredRequests" => builder.max_deferred_requests(value.parse().map_err(|_| bad("a number"))?),
        "-ORBMaxConnectionsPerClient" => {
            builder.max_connections_per_client(number_or_off(value).ok_or_else(|| bad("a number or off"))?)
        }
        "-ORBMaxConnectionRate" => {
            builder.max_connection_rate(number_or_off(value).ok_or_else(|| bad("a number or off"))?)
        }
        "-ORBEvictIdle" => builder.evict_idle(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBServerIdleTimeout" => {
            builder.server_idle_timeout(or_off(value).ok_or_else(|| bad("milliseconds or off"))?)
        }
        "-ORBMessageTimeout" => builder.message_timeout(or_off(value).ok_or_else(|| bad("milliseconds or off"))?),
        "-ORBQueueOverflow" => builder.queue_overflow(match value {
            "wait" => QueueOverflow::Wait,
            "refuse" => QueueOverflow::Refuse,
            _ => return Err(bad("wait or refuse")),
        }),
        "-ORBSendTimeout" => builder.send_timeout(Some(milliseconds(value).ok_or_else(|| bad("milliseconds"))?)),
        "-ORBMaxConnections" => builder.max_connections(value.parse().map_err(|_| bad("a number"))?),
        "-ORBBidirectional" => builder.bidirectional(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBTrustListenPoints" => builder.trust_listen_points(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBAdaptiveDemultiplexing" => {
            builder.adaptive_demultiplexing(yes_or_no(value).ok_or_else(|| bad("yes or no"))?)
        }
        "-ORBOperationIndex" => builder.operation_index(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBDatagrams" => builder.datagrams(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBInheritDeadlines" => builder.inherit_deadlines(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBCollocation" => match value {
            "direct" => builder.collocation(Collocation::Direct),
            "through-poa" => builder.collocation(Collocation::ThroughPoa),
            "no" => builder.collocation(Collocation::No),
            _ => return Err(bad("direct, through-poa or no")),
        },
        _ => return Ok(Parsed::Unknown(Box::new(builder))),
    };
    Ok(Parsed::Known(Box::new(builder)))
}

/// Parses a number, or `off` for none.
fn number_or_off(text: &str) -> Option<Option<usize>> {
    if text == "off" { Some(None) } else { text.parse().ok().map(Some) }
}
