//! Configuration of an ORB by the `-ORB…` options of a command line.

#[cfg(feature = "asynchronous")]
mod asynchronous;
mod server;
mod values;

use spandrel_cdr::{ByteOrder, GiopVersion};
use spandrel_cdr::{CharSet, WcharSet};
use spandrel_giop::AddressingDisposition;

#[cfg(feature = "asynchronous")]
use asynchronous::option as asynchronous_option;
#[cfg(not(feature = "asynchronous"))]
use no_option as asynchronous_option;
use server::option as server_option;
pub use values::InitError;
use values::{InvalidValue, Parsed, milliseconds, or_off, yes_or_no};

use crate::OrbBuilder;
use crate::client::code_set_agreement::parse_list;
use crate::configuration::options::PROFILES;
use crate::diagnostics::TracePropagation;
use crate::policy::DeadlineContext;
use crate::{ConnectionSharing, Purging};

const CODE_SET: &str = "the name of a code set, or its number in the OSF registry";
const CODE_SETS: &str = "code sets by their names or numbers, separated by commas, `all` or `none`";

impl OrbBuilder {
    /// Removes the `-ORB…` options and their values from a command line; the other arguments belong to the
    /// program.
    ///
    /// | option | value |
    /// | --- | --- |
    /// | `-ORBProfile` | `default`, `small` or `high-concurrency` (see [`OrbProfile`](crate::OrbProfile)); applied before all other options |
    /// | `-ORBListenEndpoints`, `-ORBendPoint` | endpoints, separated by `;` (see [`Endpoint`](crate::Endpoint)) |
    /// | `-ORBPublish`, `-ORBendPointPublish` | `host:port`, or several, separated by commas (see [`OrbBuilder::publish`]) |
    /// | `-ORBTransports` | names, separated by commas, the preferred one first (see [`OrbBuilder::transports`]) |
    /// | `-ORBClientTransportRule`, `-ORBServerTransportRule` | `ADDRESSES TRANSPORTS`, or several, separated by `;` (see [`OrbBuilder::client_transport_rule`]) |
    /// | `-ORBInitRef` | `Name=URL` |
    /// | `-ORBDefaultInitRef` | `URL` |
    /// | `-ORBRequestTimeout`, `-ORBConnectTimeout`, `-ORBSendTimeout` | milliseconds |
    /// | `-ORBGiopVersion` | `1.0`, `1.1` or `1.2` |
    /// | `-ORBTargetAddressing` | `key`, `profile` or `reference` |
    /// | `-ORBByteOrder` | `big`, `little` or `native` |
    /// | `-ORBNativeCharCodeSet`, `-ORBNativeWCharCodeSet` | a code set by its name or its number in the OSF registry: `UTF-8`, `ISO-8859-5`, `0x00010001` |
    /// | `-ORBDefaultCharCodeSet`, `-ORBDefaultWCharCodeSet` | a code set, for references that name none |
    /// | `-ORBConversionCodeSets`, `-ORBConversionWCharCodeSets` | code sets, separated by `,`; `all` or `none` |
    /// | `-ORBMaxMessageSize`, `-ORBBufferLimit` | octets |
    /// | `-ORBMaxServiceContexts`, `-ORBMaxServiceContextOctets`, `-ORBMaxDecodedFactor` | a number |
    /// | `-ORBExceptionDetails` | `yes` or `no` |
    /// | `-ORBFragmentSize` | octets, or `off`; with `PEER=` before it, for that peer |
    /// | `-ORBConnectionsPerPeer`, `-ORBMaxConnections`, `-ORBPendingRequests` | a number |
    /// | `-ORBConcurrency` | `reactive`, `thread-per-connection:64`, `leader-followers`, `leader-followers:4`, `thread-pool:8:1024` (see [`Concurrency`](crate::Concurrency)) |
    /// | `-ORBReplyBatching` | `yes` or `no` |
    /// | `-ORBQueueOverflow` | `wait` or `refuse` |
    /// | `-ORBMaxConnectionMemory`, `-ORBMaxServerMemory` | octets |
    /// | `-ORBMaxServerThreads` | a number |
    /// | `-ORBMaxConnectionsPerClient`, `-ORBMaxConnectionRate` | a number, or `off` |
    /// | `-ORBEvictIdle` | `yes` or `no` |
    /// | `-ORBMaxRequestsPerConnection`, `-ORBMaxDeferredRequests` | a number |
    /// | `-ORBServerIdleTimeout`, `-ORBMessageTimeout` | milliseconds, or `off` |
    /// | `-ORBMaxClientConnections` | a number |
    /// | `-ORBConnectionPurging` | `lru`, `lfu`, `fifo` or `null` (see [`Purging`](crate::Purging)) |
    /// | `-ORBConnectionSharing` | `exclusive`, `mixed` or `multiplexed` (see [`ConnectionSharing`](crate::ConnectionSharing)) |
    /// | `-ORBIdleTimeout` | milliseconds, or `off` |
    /// | `-ORBReconnectBackoff` | milliseconds, or two of them: `first:longest` |
    /// | `-ORBWaitStrategy` | `on-read`, `on-reactor` or `on-waker` |
    /// | `-ORBCollocation` | `direct`, `through-poa` or `no` (see [`Collocation`](crate::Collocation)) |
    /// | `-ORBRequestCaching`, `-ORBAdaptiveDemultiplexing`, `-ORBOperationIndex` | `yes` or `no` |
    /// | `-ORBDeadlineContext` | `remaining`, `absolute`, `both` or `none` (see [`DeadlineContext`](crate::policy::DeadlineContext)) |
    /// | `-ORBInheritDeadlines`, `-ORBCancelNested` | `yes` or `no` |
    /// | `-ORBBidirectional`, `-ORBTrustListenPoints` | `yes` or `no` |
    /// | `-ORBKeepAlive` | `off`, `system`, or seconds: `idle[:interval[:count]]` (see [`KeepAlive`](spandrel_transport::KeepAlive)) |
    /// | `-ORBSocketQueue` | octets, for both directions |
    /// | `-ORBMetrics` | `yes` or `no`: whether calls and requests are measured |
    /// | `-ORBMetricsEndpoint` | `host:port`, both numbers; the port alone means a loopback address |
    /// | `-ORBTraceContext` | `yes`, `no` or `propagate` (see [`TracePropagation`](crate::diagnostics::TracePropagation)) |
    /// | `-ORBDatagrams` | `yes` or `no`: whether one-ways are sent as datagrams to servers that read them |
    /// | `-ORBId`, `-ORBServerId` | any text |
    /// | `-ORBUseImR` | `1` or `0`: whether persistent references denote the implementation repository |
    ///
    /// [Protocols](Self::protocol) that were registered before have options of their own.
    ///
    /// An initial reference may also follow its option without a space: `-ORBInitRefName=URL` (8.5.1).
    ///
    /// Without the feature `asynchronous`, its options are unknown.
    ///
    /// # Errors
    /// [`InitError`] for an unknown option or an invalid value.
    pub fn take_args(mut self, args: &mut Vec<String>) -> Result<Self, InitError> {
        let mut own = Vec::with_capacity(args.len());
        let mut options = Vec::new();
        let mut rest = std::mem::take(args).into_iter();
        while let Some(arg) = rest.next() {
            if arg.starts_with("-ORB") {
                options.push(match with_value(&arg) {
                    Some((option, value)) => (option.to_owned(), value.to_owned()),
                    None => match rest.next() {
                        Some(value) => (arg, value),
                        None => return Err(InitError::MissingValue(arg)),
                    },
                });
            } else {
                own.push(arg);
            }
        }
        *args = own;
        // A profile sets many settings, and each of the other options one of them.
        options.sort_by_key(|(option, _)| option != "-ORBProfile");
        for (option, value) in options {
            self = self.option(&option, &value)?;
        }
        Ok(self)
    }

    /// Sets one option as a command line spells it; see [`OrbBuilder::take_args`].
    ///
    /// # Errors
    /// As [`OrbBuilder::take_args`].
    pub fn option(self, option: &str, value: &str) -> Result<Self, InitError> {
        let bad = |expected| InitError::BadValue { option: option.into(), value: value.into(), expected };
        match client_option(self, option, value, &bad)?
            .or_else(|this| server_option(this, option, value, &bad))?
            .or_else(|this| asynchronous_option(this, option, value, &bad))?
        {
            Parsed::Known(this) => Ok(*this),
            Parsed::Unknown(this) => match this.protocols.option(option, value) {
                Ok(true) => Ok(*this),
                Ok(false) => Err(InitError::UnknownOption(option.to_owned())),
                Err(reason) => {
                    let (option, value) = (option.to_owned(), value.to_owned());
                    Err(InitError::RefusedValue { option, value, reason })
                }
            },
        }
    }
}

/// Knows no option: the program lacks that side of the ORB.
#[allow(dead_code, reason = "unused with all features")]
fn no_option(builder: OrbBuilder, _: &str, _: &str, _: InvalidValue<'_>) -> Result<Parsed, InitError> {
    Ok(Parsed::Unknown(Box::new(builder)))
}

/// The options of every ORB.
fn client_option(builder: OrbBuilder, option: &str, value: &str, bad: InvalidValue<'_>) -> Result<Parsed, InitError> {
    let builder = match option {
        "-ORBProfile" => builder.profile(value.parse().map_err(|_| bad(PROFILES))?),
        "-ORBTransports" => builder.transports(value.split(',').filter(|name| !name.is_empty())),
        "-ORBClientTransportRule" | "-ORBclientTransportRule" => builder.client_transport_rule(value).map_err(bad)?,
        "-ORBInitRef" => {
            let (name, url) = value.split_once('=').ok_or_else(|| bad("Name=URL"))?;
            builder.init_ref(name, url)
        }
        "-ORBDefaultInitRef" => builder.default_init_ref(value),
        "-ORBRequestTimeout" => builder.request_timeout(Some(milliseconds(value).ok_or_else(|| bad("milliseconds"))?)),
        "-ORBConnectTimeout" => builder.connect_timeout(Some(milliseconds(value).ok_or_else(|| bad("milliseconds"))?)),
        "-ORBGiopVersion" => match value {
            "1.0" => builder.giop_version(GiopVersion::V1_0),
            "1.1" => builder.giop_version(GiopVersion::V1_1),
            "1.2" => builder.giop_version(GiopVersion::V1_2),
            _ => return Err(bad("1.0, 1.1 or 1.2")),
        },
        "-ORBTargetAddressing" => builder.target_addressing(match value {
            "key" => AddressingDisposition::Key,
            "profile" => AddressingDisposition::Profile,
            "reference" => AddressingDisposition::Reference,
            _ => return Err(bad("key, profile or reference")),
        }),
        "-ORBByteOrder" => match value {
            "big" => builder.byte_order(ByteOrder::Big),
            "little" => builder.byte_order(ByteOrder::Little),
            "native" => builder.byte_order(ByteOrder::NATIVE),
            _ => return Err(bad("big, little or native")),
        },
        "-ORBNativeCharCodeSet" | "-ORBnativeCharCodeSet" => {
            builder.native_char_set(value.parse().map_err(|_| bad(CODE_SET))?)
        }
        "-ORBNativeWCharCodeSet" | "-ORBnativeWCharCodeSet" => {
            builder.native_wchar_set(value.parse().map_err(|_| bad(CODE_SET))?)
        }
        "-ORBDefaultCharCodeSet" | "-ORBdefaultCharCodeSet" => {
            builder.default_char_set(value.parse().map_err(|_| bad(CODE_SET))?)
        }
        "-ORBDefaultWCharCodeSet" | "-ORBdefaultWCharCodeSet" => {
            builder.default_wchar_set(value.parse().map_err(|_| bad(CODE_SET))?)
        }
        "-ORBConversionCodeSets" => {
            builder.conversion_char_sets(parse_list(value, CharSet::all()).map_err(|_| bad(CODE_SETS))?)
        }
        "-ORBConversionWCharCodeSets" => {
            builder.conversion_wchar_sets(parse_list(value, WcharSet::all()).map_err(|_| bad(CODE_SETS))?)
        }
        "-ORBMaxDecodedFactor" => builder.max_decoded_factor(value.parse().map_err(|_| bad("a number"))?),
        "-ORBMaxMessageSize" => builder.max_message(value.parse().map_err(|_| bad("a number of octets"))?),
        "-ORBFragmentSize" => {
            let (peer, size) = value.rsplit_once('=').map_or((None, value), |(peer, size)| (Some(peer), size));
            let octets = match size {
                "off" => None,
                octets => Some(octets.parse().map_err(|_| bad("octets or off, or PEER= and either"))?),
            };
            match peer {
                None => builder.fragment_size(octets),
                Some(peer) => builder.fragment_size_for(peer, octets),
            }
        }
        "-ORBConnectionsPerPeer" => builder.connections_per_peer(value.parse().map_err(|_| bad("a number"))?),
        "-ORBMaxClientConnections" => builder.max_client_connections(value.parse().map_err(|_| bad("a number"))?),
        "-ORBConnectionPurging" => builder.purging(match value {
            "lru" => Purging::LeastRecentlyUsed,
            "lfu" => Purging::LeastFrequentlyUsed,
            "fifo" => Purging::Fifo,
            "null" => Purging::Null,
            _ => return Err(bad("lru, lfu, fifo or null")),
        }),
        "-ORBConnectionSharing" => builder.connection_sharing(match value {
            "exclusive" => ConnectionSharing::Exclusive,
            "mixed" => ConnectionSharing::Mixed,
            "multiplexed" => ConnectionSharing::Multiplexed,
            _ => return Err(bad("exclusive, mixed or multiplexed")),
        }),
        "-ORBIdleTimeout" => builder.idle_timeout(or_off(value).ok_or_else(|| bad("milliseconds, or off"))?),
        "-ORBReconnectBackoff" => {
            let (first, longest) = value.split_once(':').unwrap_or((value, value));
            let spans = milliseconds(first).zip(milliseconds(longest));
            let (first, longest) = spans.ok_or_else(|| bad("milliseconds, or two of them: first:longest"))?;
            builder.reconnect_backoff(first, longest)
        }
        "-ORBRequestCaching" => builder.request_caching(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBDeadlineContext" => builder.deadline_context(match value {
            "remaining" => DeadlineContext::Remaining,
            "absolute" => DeadlineContext::Absolute,
            "both" => DeadlineContext::Both,
            "none" => DeadlineContext::None,
            _ => return Err(bad("remaining, absolute, both or none")),
        }),
        "-ORBKeepAlive" => {
            builder.keep_alive(value.parse().map_err(|()| bad("off, system, or seconds: idle[:interval[:count]]"))?)
        }
        "-ORBSocketQueue" => {
            let octets = Some(value.parse().map_err(|_| bad("a number of octets"))?);
            builder.socket_queues(octets, octets)
        }
        "-ORBMetrics" => builder.metrics(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBTraceContext" => builder.trace_context(match value {
            "yes" => TracePropagation::Yes,
            "no" => TracePropagation::No,
            "propagate" => TracePropagation::Propagate,
            _ => return Err(bad("yes, no or propagate")),
        }),
        "-ORBId" | "-ORBid" => builder.orb_id(value),
        "-ORBServerId" => builder.server_id(value),
        // TAO's spelling of its values comes first.
        "-ORBUseImR" => builder.use_implementation_repository(match value {
            "1" | "yes" => true,
            "0" | "no" => false,
            _ => return Err(bad("1, 0, yes or no")),
        }),
        "-ORBMaxServiceContexts" => builder.max_service_contexts(value.parse().map_err(|_| bad("a number"))?),
        "-ORBMaxServiceContextOctets" => {
            builder.max_service_context_octets(value.parse().map_err(|_| bad("a number of octets"))?)
        }
        _ => return Ok(Parsed::Unknown(Box::new(builder))),
    };
    Ok(Parsed::Known(Box::new(builder)))
}

/// Splits an initial reference option from a value without a space in between, the form of older programs.
fn with_value(arg: &str) -> Option<(&str, &str)> {
    let split = |option: &'static str| arg.strip_prefix(option).filter(|value| !value.is_empty());
    ["-ORBInitRef", "-ORBDefaultInitRef"].into_iter().find_map(|option| Some((option, split(option)?)))
}

#[cfg(test)]
mod tests {
    use spandrel_transport::Endpoint;

    use super::*;
    use crate::OrbProfile;

    fn take(args: &[&str]) -> Result<(OrbBuilder, Vec<String>), InitError> {
        let mut args: Vec<String> = args.iter().map(ToString::to_string).collect();
        OrbBuilder::default().take_args(&mut args).map(|builder| (builder, args))
    }

    #[test]
    fn orb_options_are_removed_from_the_command_line() {
        let (builder, rest) =
            take(&["prog", "-ORBGiopVersion", "1.0", "file", "-ORBendPoint", "giop:tcp:h:1;iiop://:2", "-v"]).unwrap();
        assert_eq!(rest, ["prog", "file", "-v"]);
        assert_eq!(builder.settings.wire.version, GiopVersion::V1_0);
        assert_eq!(builder.server.settings().endpoints, [Endpoint::new("h", 1), Endpoint::new("", 2)]);
    }

    #[test]
    fn caching_options_switch_on_and_off() {
        let wire = |args: &[&str]| take(args).unwrap().0.settings.wire;
        assert!(wire(&[]).caches_requests && wire(&[]).operation_index.is_none());
        assert!(!wire(&["-ORBRequestCaching", "no"]).caches_requests);
        assert!(wire(&["-ORBOperationIndex", "yes"]).operation_index.is_some());
        assert!(take(&["-ORBAdaptiveDemultiplexing", "no"]).is_ok());
    }

    #[test]
    fn a_profile_is_applied_before_the_other_options() {
        let small = take(&["-ORBMaxConnections", "7", "-ORBProfile", "small"]).unwrap().0.server.settings();
        assert_eq!((small.max_connections, small.max_threads, small.evicts_idle), (7, 16, true));
        let builder = OrbBuilder::default().max_connections(7).profile(OrbProfile::Small);
        assert_eq!(builder.server.settings().max_connections, 256, "a method is applied when it is called");
        // The default profile takes back each setting of another one.
        let settings = |builder: OrbBuilder| format!("{builder:?}");
        let default = settings(OrbBuilder::default().profile(OrbProfile::Default));
        for profile in [OrbProfile::Small, OrbProfile::HighConcurrency] {
            let changed = OrbBuilder::default().profile(profile);
            assert_ne!(settings(changed.clone()), default);
            assert_eq!(settings(changed.profile(OrbProfile::Default)), default);
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        assert_eq!(take(&["-ORBNoSuch", "1"]).unwrap_err(), InitError::UnknownOption("-ORBNoSuch".into()));
        let of_tls = take(&["-ORBSSLCA", "authority.pem"]).unwrap_err().to_string();
        assert!(of_tls.contains("`OrbBuilder::protocol` with `Ssliop`"), "{of_tls}");
        assert_eq!(take(&["-ORBInitRef"]).unwrap_err(), InitError::MissingValue("-ORBInitRef".into()));
        for (option, value) in [
            ("-ORBInitRef", "x"),
            ("-ORBRequestTimeout", "0"),
            ("-ORBGiopVersion", "2.0"),
            ("-ORBByteOrder", "middle"),
            ("-ORBCollocation", "yes"),
            ("-ORBConcurrency", "thread-pool:0"),
            ("-ORBQueueOverflow", "drop"),
            ("-ORBServerIdleTimeout", "0"),
            ("-ORBUseImR", "maybe"),
            ("-ORBMessageTimeout", "never"),
            ("-ORBMaxConnectionRate", "fast"),
            ("-ORBMaxServerMemory", "1G"),
            ("-ORBNativeCharCodeSet", "EBCDIC"),
            ("-ORBRequestCaching", "perhaps"),
            ("-ORBAdaptiveDemultiplexing", "1"),
            ("-ORBOperationIndex", ""),
            ("-ORBMaxMessageSize", "-1"),
            ("-ORBFragmentSize", "on"),
            ("-ORBMaxServiceContexts", "-1"),
            ("-ORBExceptionDetails", "some"),
            ("-ORBTargetAddressing", "name"),
            ("-ORBProfile", "large"),
        ] {
            assert!(matches!(take(&[option, value]).unwrap_err(), InitError::BadValue { .. }), "{option} {value}");
        }
        assert!(matches!(take(&["-ORBendPoint", "x"]).unwrap_err(), InitError::BadEndpoint(_)));
    }

    /// The options that a text names between backquotes or quotation marks.
    fn named(text: &str) -> Vec<&str> {
        text.split(['`', '"']).filter(|word| word.starts_with("-ORB") && !word.contains(' ')).collect()
    }

    /// The options in the first column of a table, row by row.
    fn rows<'t>(text: &'t str, begin: &str) -> Vec<Vec<&'t str>> {
        let rows = text.lines().filter_map(|line| line.trim_start().strip_prefix(begin));
        rows.filter_map(|row| row.split('|').next()).map(named).filter(|row| !row.is_empty()).collect()
    }

    #[test]
    fn documented_options_are_the_existing_ones() {
        let source = include_str!("command_line.rs");
        let sides = [include_str!("command_line/asynchronous.rs"), include_str!("command_line/server.rs")];
        let arms: Vec<Vec<&str>> = sides
            .iter()
            .chain([&source])
            .flat_map(|source| source.lines())
            .filter(|line| line.trim_start().starts_with("\"-ORB"))
            .filter_map(|line| line.split_once(" =>"))
            .map(|(patterns, _)| named(patterns.split(" if ").next().unwrap_or_default()))
            .collect();
        assert!(arms.len() > 50, "{arms:?}");
        let table = rows(source, "/// | ").concat();
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        let page = std::fs::read_to_string(page).unwrap();
        let page = rows(&page, "| ");
        for arm in &arms {
            assert!(arm.iter().any(|option| table.contains(option)), "{arm:?} is not in the table of `take_args`");
            assert!(page.contains(arm), "{arm:?} has no row of its own in docs/options.md");
        }
        let known = arms.concat();
        for option in table.iter().chain(page.iter().flatten()) {
            assert!(known.contains(option), "{option} is documented but unknown");
        }
    }
}
