//! How an ORB is configured from a command line: `-ORB…` options.

#[cfg(feature = "server")]
use std::str::FromStr;
use std::time::Duration;

use spandrel_cdr::{ByteOrder, CharSet, GiopVersion};

#[cfg(feature = "asynchronous")]
use crate::WaitStrategy;
#[cfg(feature = "server")]
use crate::{Collocation, Endpoint, EndpointError};
use crate::{Orb, OrbBuilder};

/// Why an ORB was not made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// An option that nobody knows.
    #[error("`{0}` is not an ORB option")]
    UnknownOption(String),
    /// An option that stands last and needs a value.
    #[error("`{0}` needs a value")]
    MissingValue(String),
    /// A value that the option does not take.
    #[error("`{value}` is no value for `{option}`: expected {expected}")]
    BadValue {
        /// The option.
        option: String,
        /// What was given.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// An endpoint that cannot be read.
    #[cfg(feature = "server")]
    #[error(transparent)]
    BadEndpoint(#[from] EndpointError),
}

impl OrbBuilder {
    /// Takes the `-ORB…` options, and their values, out of a command line; what is left is the program's own.
    ///
    /// | option | value |
    /// | --- | --- |
    /// | `-ORBListenEndpoints`, `-ORBendPoint` | endpoints, separated by `;` (see [`Endpoint`]) |
    /// | `-ORBInitRef` | `Name=URL` |
    /// | `-ORBDefaultInitRef` | `URL` |
    /// | `-ORBRequestTimeout`, `-ORBConnectTimeout`, `-ORBSendTimeout` | milliseconds |
    /// | `-ORBGiopVersion` | `1.0`, `1.1` or `1.2` |
    /// | `-ORBByteOrder` | `big`, `little` or `native` |
    /// | `-ORBNativeCharCodeSet` | `ISO-8859-1` or `UTF-8` |
    /// | `-ORBMaxMessageSize` | octets |
    /// | `-ORBConnectionsPerPeer`, `-ORBMaxConnections`, `-ORBThreadedConnections`, `-ORBPoolThreads`, `-ORBPendingRequests` | a number |
    /// | `-ORBWaitStrategy` | `on-read`, `on-reactor` or `on-waker` |
    /// | `-ORBCollocation` | `direct`, `through-poa` or `no` (see [`Collocation`]) |
    /// | `-ORBRequestCaching`, `-ORBAdaptiveDemultiplexing`, `-ORBOperationIndex` | `yes` or `no` |
    /// | `-ORBSocketQueue` | octets, for both directions |
    /// | `-ORBId`, `-ORBServerId` | any text |
    ///
    /// A value may also follow its option without a space where that is how an initial reference is said:
    /// `-ORBInitRefName=URL` (8.5.1).
    ///
    /// Without the features `server`, `asynchronous` and `urls` what concerns only these is unknown.
    ///
    /// # Errors
    /// [`InitError`] for an option that is unknown or a value that cannot be read.
    pub fn take_args(mut self, args: &mut Vec<String>) -> Result<Self, InitError> {
        let mut own = Vec::with_capacity(args.len());
        let mut rest = std::mem::take(args).into_iter();
        while let Some(arg) = rest.next() {
            if arg.starts_with("-ORB") {
                self = match with_value(&arg) {
                    Some((option, value)) => self.option(option, value)?,
                    None => {
                        let value = rest.next().ok_or_else(|| InitError::MissingValue(arg.clone()))?;
                        self.option(&arg, &value)?
                    }
                };
            } else {
                own.push(arg);
            }
        }
        *args = own;
        Ok(self)
    }

    /// Sets one option as a command line spells it; see [`OrbBuilder::take_args`].
    ///
    /// # Errors
    /// As [`OrbBuilder::take_args`].
    pub fn option(self, option: &str, value: &str) -> Result<Self, InitError> {
        let bad = |expected| InitError::BadValue { option: option.into(), value: value.into(), expected };
        Ok(match option {
            #[cfg(feature = "server")]
            "-ORBListenEndpoints" | "-ORBListenEndpoint" | "-ORBEndpoint" | "-ORBendPoint" => {
                let endpoints = value.split(';').filter(|text| !text.is_empty());
                endpoints
                    .map(Endpoint::from_str)
                    .try_fold(self, |builder, endpoint| Ok::<_, InitError>(builder.listen(endpoint?)))?
            }
            #[cfg(feature = "urls")]
            "-ORBInitRef" => {
                let (name, url) = value.split_once('=').ok_or_else(|| bad("Name=URL"))?;
                self.init_ref(name, url)
            }
            #[cfg(feature = "urls")]
            "-ORBDefaultInitRef" => self.default_init_ref(value),
            "-ORBRequestTimeout" => self.request_timeout(Some(milliseconds(value).ok_or_else(|| bad("milliseconds"))?)),
            "-ORBConnectTimeout" => self.connect_timeout(Some(milliseconds(value).ok_or_else(|| bad("milliseconds"))?)),
            "-ORBGiopVersion" => match value {
                "1.0" => self.giop_version(GiopVersion::V1_0),
                "1.1" => self.giop_version(GiopVersion::V1_1),
                "1.2" => self.giop_version(GiopVersion::V1_2),
                _ => return Err(bad("1.0, 1.1 or 1.2")),
            },
            "-ORBByteOrder" => match value {
                "big" => self.byte_order(ByteOrder::Big),
                "little" => self.byte_order(ByteOrder::Little),
                "native" => self.byte_order(ByteOrder::NATIVE),
                _ => return Err(bad("big, little or native")),
            },
            "-ORBNativeCharCodeSet" | "-ORBnativeCharCodeSet" => match value {
                "ISO-8859-1" => self.native_char_set(CharSet::Latin1),
                "UTF-8" => self.native_char_set(CharSet::Utf8),
                _ => return Err(bad("ISO-8859-1 or UTF-8")),
            },
            "-ORBMaxMessageSize" => self.max_message(value.parse().map_err(|_| bad("a number of octets"))?),
            "-ORBConnectionsPerPeer" => self.connections_per_peer(value.parse().map_err(|_| bad("a number"))?),
            #[cfg(feature = "asynchronous")]
            "-ORBPendingRequests" => self.pending_requests(value.parse().map_err(|_| bad("a number"))?),
            #[cfg(feature = "server")]
            "-ORBThreadedConnections" => self.threaded_connections(value.parse().map_err(|_| bad("a number"))?),
            #[cfg(feature = "server")]
            "-ORBSendTimeout" => self.send_timeout(Some(milliseconds(value).ok_or_else(|| bad("milliseconds"))?)),
            #[cfg(feature = "server")]
            "-ORBPoolThreads" => self.pool_threads(value.parse().map_err(|_| bad("a number"))?),
            #[cfg(feature = "asynchronous")]
            "-ORBWaitStrategy" => self.wait_strategy(match value {
                "on-read" => WaitStrategy::OnRead,
                #[cfg(feature = "server")]
                "on-reactor" => WaitStrategy::OnReactor,
                "on-waker" => WaitStrategy::OnWaker,
                _ => return Err(bad("on-read, on-reactor or on-waker")),
            }),
            #[cfg(feature = "server")]
            "-ORBMaxConnections" => self.max_connections(value.parse().map_err(|_| bad("a number"))?),
            "-ORBRequestCaching" => self.request_caching(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
            #[cfg(feature = "server")]
            "-ORBAdaptiveDemultiplexing" => {
                self.adaptive_demultiplexing(yes_or_no(value).ok_or_else(|| bad("yes or no"))?)
            }
            #[cfg(feature = "server")]
            "-ORBOperationIndex" => self.operation_index(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
            "-ORBSocketQueue" => {
                let octets = Some(value.parse().map_err(|_| bad("a number of octets"))?);
                self.socket_queues(octets, octets)
            }
            #[cfg(feature = "server")]
            "-ORBCollocation" => match value {
                "direct" => self.collocation(Collocation::Direct),
                "through-poa" => self.collocation(Collocation::ThroughPoa),
                "no" => self.collocation(Collocation::No),
                _ => return Err(bad("direct, through-poa or no")),
            },
            "-ORBId" | "-ORBid" => self.orb_id(value),
            "-ORBServerId" => self.server_id(value),
            _ => return Err(InitError::UnknownOption(option.to_owned())),
        })
    }
}

impl Orb {
    /// An ORB configured by the `-ORB…` options of a command line; other arguments are not looked at.
    ///
    /// # Errors
    /// [`InitError`] for an option that is unknown or whose value cannot be read.
    pub fn init(args: impl IntoIterator<Item = String>) -> Result<Self, InitError> {
        let mut args: Vec<String> = args.into_iter().collect();
        Ok(Self::builder().take_args(&mut args)?.build())
    }
}

/// An initial reference whose value follows at once: the only options for which programs of old write that.
fn with_value(arg: &str) -> Option<(&str, &str)> {
    let split = |option: &'static str| arg.strip_prefix(option).filter(|value| !value.is_empty());
    ["-ORBInitRef", "-ORBDefaultInitRef"].into_iter().find_map(|option| Some((option, split(option)?)))
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// A time-out in milliseconds; zero would refuse every call and is no time-out.
fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|count| *count > 0).map(Duration::from_millis)
}

#[cfg(all(test, feature = "server", feature = "urls"))]
mod tests {
    use super::*;

    fn take(args: &[&str]) -> Result<(OrbBuilder, Vec<String>), InitError> {
        let mut args: Vec<String> = args.iter().map(ToString::to_string).collect();
        OrbBuilder::default().take_args(&mut args).map(|builder| (builder, args))
    }

    #[test]
    fn orb_options_are_taken_and_others_left() {
        let (builder, rest) =
            take(&["prog", "-ORBGiopVersion", "1.0", "file", "-ORBendPoint", "giop:tcp:h:1;iiop://:2", "-v"]).unwrap();
        assert_eq!(rest, ["prog", "file", "-v"]);
        assert_eq!(builder.settings.wire.version, GiopVersion::V1_0);
        assert_eq!(builder.settings.serving.endpoints, [Endpoint::new("h", 1), Endpoint::new("", 2)]);
    }

    #[test]
    fn what_is_remembered_is_switched_on_and_off() {
        let wire = |args: &[&str]| take(args).unwrap().0.settings.wire;
        assert!(wire(&[]).caches_requests && !wire(&[]).sends_operation_index);
        assert!(!wire(&["-ORBRequestCaching", "no"]).caches_requests);
        assert!(wire(&["-ORBOperationIndex", "yes"]).sends_operation_index);
        assert!(take(&["-ORBAdaptiveDemultiplexing", "no"]).is_ok());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(take(&["-ORBNoSuch", "1"]).unwrap_err(), InitError::UnknownOption("-ORBNoSuch".into()));
        assert_eq!(take(&["-ORBInitRef"]).unwrap_err(), InitError::MissingValue("-ORBInitRef".into()));
        for (option, value) in [
            ("-ORBInitRef", "x"),
            ("-ORBRequestTimeout", "0"),
            ("-ORBGiopVersion", "2.0"),
            ("-ORBByteOrder", "middle"),
            ("-ORBCollocation", "yes"),
            ("-ORBNativeCharCodeSet", "EBCDIC"),
            ("-ORBRequestCaching", "perhaps"),
            ("-ORBAdaptiveDemultiplexing", "1"),
            ("-ORBOperationIndex", ""),
            ("-ORBMaxMessageSize", "-1"),
        ] {
            assert!(matches!(take(&[option, value]).unwrap_err(), InitError::BadValue { .. }), "{option} {value}");
        }
        assert!(matches!(take(&["-ORBendPoint", "x"]).unwrap_err(), InitError::BadEndpoint(_)));
    }
}
