//! How an ORB is configured: in code through [`OrbBuilder`], or from a command line with `-ORB…` options.

#[cfg(feature = "server")]
use std::str::FromStr;
use std::time::Duration;

use spandrel_cdr::{ByteOrder, CharSet, GiopVersion, Limits};
#[cfg(feature = "server")]
use spandrel_sync::Arc;

#[cfg(feature = "urls")]
use crate::initial::InitialReferences;
#[cfg(feature = "server")]
use crate::{
    Endpoint, EndpointError, Spawn,
    orb::{Serving, Spawner},
    server::ServerSettings,
};
use crate::{Orb, client::ClientSettings, destination::WireSettings, orb::Settings};

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

/// Sets up an [`Orb`]. Every setting has a default that is right for most.
#[derive(Clone, Debug)]
pub struct OrbBuilder {
    settings: Settings,
    client: ClientSettings,
    #[cfg(feature = "server")]
    server: ServerSettings,
}

impl Default for OrbBuilder {
    fn default() -> Self {
        const MAX_MESSAGE: usize = 64 << 20;
        const MAX_UNFINISHED: usize = 16;
        let (order, limits) = (ByteOrder::NATIVE, Limits::default());
        Self {
            settings: Settings {
                wire: WireSettings { version: GiopVersion::V1_2, order, char_set: CharSet::Latin1, limits },
                request_timeout: None,
                #[cfg(feature = "urls")]
                initial: InitialReferences::default(),
                #[cfg(feature = "server")]
                serving: Serving { endpoints: Vec::new(), shutdown_timeout: Duration::from_secs(30), spawner: None },
            },
            client: ClientSettings {
                connections_per_peer: 5,
                #[cfg(feature = "asynchronous")]
                max_pending: 1024,
                connect_timeout: None,
                max_message: MAX_MESSAGE,
                max_unfinished: MAX_UNFINISHED,
                send_queue: None,
                recv_queue: None,
            },
            #[cfg(feature = "server")]
            server: ServerSettings {
                order,
                limits,
                max_message: MAX_MESSAGE,
                max_unfinished: MAX_UNFINISHED,
                max_in_flight: 64,
                max_connections: 16_384,
                max_threaded: 64,
                send_queue: None,
                recv_queue: None,
            },
        }
    }
}

impl OrbBuilder {
    /// Listens on this endpoint, besides those given before. Without any, on a port of this machine's loopback address.
    /// Listening begins when the first reference is made.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn listen(mut self, endpoint: Endpoint) -> Self {
        self.settings.serving.endpoints.push(endpoint);
        self
    }

    /// How long a two-way call may take; references can override it. Without it a call waits for ever.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.settings.request_timeout = timeout;
        self
    }

    /// How long connecting may take; without it, as long as the system tries.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.client.connect_timeout = timeout;
        self
    }

    /// The newest protocol version that requests are written in (default 1.2).
    #[must_use]
    pub fn giop_version(mut self, version: GiopVersion) -> Self {
        self.settings.wire.version = version;
        self
    }

    /// The order in which numbers are written (default: this machine's). What is read may have either.
    #[must_use]
    pub fn byte_order(mut self, order: ByteOrder) -> Self {
        self.settings.wire.order = order;
        #[cfg(feature = "server")]
        {
            self.server.order = order;
        }
        self
    }

    /// The code set that is preferred for narrow text with ORBs of others (default ISO 8859-1, which keeps every octet of a
    /// `char`). Both are always understood, and ORBs of our kind say everything to each other, in UTF-8.
    #[must_use]
    pub fn native_char_set(mut self, char_set: CharSet) -> Self {
        self.settings.wire.char_set = char_set;
        self
    }

    /// The largest message that is accepted, in octets (default 64 MiB).
    #[must_use]
    pub fn max_message(mut self, octets: usize) -> Self {
        self.client.max_message = octets;
        #[cfg(feature = "server")]
        {
            self.server.max_message = octets;
        }
        self
    }

    /// How deep received values may nest (default 64).
    #[must_use]
    pub fn max_nesting(mut self, depth: u16) -> Self {
        self.settings.wire.limits.nesting = depth;
        #[cfg(feature = "server")]
        {
            self.server.limits.nesting = depth;
        }
        self
    }

    /// How deep values may nest in each other's state, sent or received (default 256). A list of values is as deep as it is long,
    /// and each level takes one to four KiB of a thread's stack.
    #[must_use]
    pub fn max_value_nesting(mut self, depth: u16) -> Self {
        self.settings.wire.limits.value_nesting = depth;
        #[cfg(feature = "server")]
        {
            self.server.limits.value_nesting = depth;
        }
        self
    }

    /// How many values a received message may have (default 262,144).
    #[must_use]
    pub fn max_values(mut self, count: u32) -> Self {
        self.settings.wire.limits.values = count;
        #[cfg(feature = "server")]
        {
            self.server.limits.values = count;
        }
        self
    }

    /// How many connections to one peer are opened before calls share them (default 5, at least 1).
    #[must_use]
    pub fn connections_per_peer(mut self, connections: usize) -> Self {
        self.client.connections_per_peer = connections.max(1);
        self
    }

    /// How many requests may wait for their replies on one connection before further asynchronous ones are refused with TRANSIENT
    /// (default 1,024, at least 1).
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn pending_requests(mut self, requests: usize) -> Self {
        self.client.max_pending = requests.max(1);
        self
    }

    /// How many connections have a thread of their own (default 64); the others are served by a few threads together, at the price
    /// of one more system call for each request. Zero is none.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn threaded_connections(mut self, connections: usize) -> Self {
        self.server.max_threaded = connections;
        self
    }

    /// How many connections are accepted at a time (default 16,384; the system's limit of open files may be lower).
    #[must_use]
    #[cfg(feature = "server")]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.server.max_connections = connections;
        self
    }

    /// How many requests of one connection may run at once when servants are slow (default 64, at least 1).
    #[must_use]
    #[cfg(feature = "server")]
    pub fn max_requests_per_connection(mut self, requests: u32) -> Self {
        self.server.max_in_flight = requests.max(1);
        self
    }

    /// The sizes of the sockets' queues in octets (default: the system's).
    #[must_use]
    pub fn socket_queues(mut self, send: Option<usize>, recv: Option<usize>) -> Self {
        (self.client.send_queue, self.client.recv_queue) = (send, recv);
        #[cfg(feature = "server")]
        {
            (self.server.send_queue, self.server.recv_queue) = (send, recv);
        }
        self
    }

    /// Makes a reference known by a name (`-ORBInitRef Name=URL`).
    #[must_use]
    #[cfg(feature = "urls")]
    pub fn init_ref(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.settings.initial.set(name.into(), url.into());
        self
    }

    /// Where names that are not known otherwise are looked for (`-ORBDefaultInitRef URL`).
    #[must_use]
    #[cfg(feature = "urls")]
    pub fn default_init_ref(mut self, url: impl Into<String>) -> Self {
        self.settings.initial.set_default(url.into());
        self
    }

    /// Who runs asynchronous servants (default: the threads that serve connections without a thread of their own). A closure will
    /// do, such as `|task| drop(tokio::spawn(task))`.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn spawner(mut self, spawner: impl Spawn + 'static) -> Self {
        self.settings.serving.spawner = Some(Spawner(Arc::new(spawner)));
        self
    }

    /// How long requests that run may take once the ORB shuts down (default 30 s).
    #[must_use]
    #[cfg(feature = "server")]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.settings.serving.shutdown_timeout = timeout;
        self
    }

    /// Takes the `-ORB…` options, and their values, out of a command line; what is left is the program's own.
    ///
    /// | option | value |
    /// | --- | --- |
    /// | `-ORBListenEndpoints`, `-ORBendPoint` | endpoints, separated by `;` (see [`Endpoint`]) |
    /// | `-ORBInitRef` | `Name=URL` |
    /// | `-ORBDefaultInitRef` | `URL` |
    /// | `-ORBRequestTimeout`, `-ORBConnectTimeout` | milliseconds |
    /// | `-ORBGiopVersion` | `1.0`, `1.1` or `1.2` |
    /// | `-ORBByteOrder` | `big`, `little` or `native` |
    /// | `-ORBNativeCharCodeSet` | `ISO-8859-1` or `UTF-8` |
    /// | `-ORBMaxMessageSize` | octets |
    /// | `-ORBConnectionsPerPeer`, `-ORBMaxConnections`, `-ORBThreadedConnections`, `-ORBPendingRequests` | a number |
    /// | `-ORBSocketQueue` | octets, for both directions |
    /// | `-ORBId` | any; accepted because the standard has it |
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
                let value = rest.next().ok_or_else(|| InitError::MissingValue(arg.clone()))?;
                self = self.option(&arg, &value)?;
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
            "-ORBMaxConnections" => self.max_connections(value.parse().map_err(|_| bad("a number"))?),
            "-ORBSocketQueue" => {
                let octets = Some(value.parse().map_err(|_| bad("a number of octets"))?);
                self.socket_queues(octets, octets)
            }
            "-ORBId" => self,
            _ => return Err(InitError::UnknownOption(option.to_owned())),
        })
    }

    /// Makes the ORB.
    #[must_use]
    pub fn build(self) -> Orb {
        Orb::new(
            self.settings,
            self.client,
            #[cfg(feature = "server")]
            self.server,
        )
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
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(take(&["-ORBNoSuch", "1"]).unwrap_err(), InitError::UnknownOption("-ORBNoSuch".into()));
        assert_eq!(take(&["-ORBInitRef"]).unwrap_err(), InitError::MissingValue("-ORBInitRef".into()));
        for (option, value) in [
            ("-ORBInitRef", "x"),
            ("-ORBRequestTimeout", "0"),
            ("-ORBGiopVersion", "2.0"),
            ("-ORBByteOrder", "middle"),
            ("-ORBNativeCharCodeSet", "EBCDIC"),
            ("-ORBMaxMessageSize", "-1"),
        ] {
            assert!(matches!(take(&[option, value]).unwrap_err(), InitError::BadValue { .. }), "{option} {value}");
        }
        assert!(matches!(take(&["-ORBendPoint", "x"]).unwrap_err(), InitError::BadEndpoint(_)));
    }
}
