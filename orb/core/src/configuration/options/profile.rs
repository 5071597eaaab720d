//! Profiles: named presets of the settings that depend on the size of a program.

use std::{fmt, str::FromStr, time::Duration};

use spandrel_transport::KeepAlive;

use crate::{
    Concurrency, OrbBuilder,
    client::{CacheSettings, WriteLimits},
    servant_side::server_settings::ServerSettings,
};

/// A preset of the settings that depend on the size of a program (`-ORBProfile`). `docs/options.md` has the
/// settings of each and their effect.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum OrbProfile {
    /// The defaults, which suit most programs: a thread for each of the first 64 connections while few
    /// are busy. Written `default`.
    #[default]
    Default,
    /// For small machines and containers: few threads and connections, 64 MiB for requests. Written `small`.
    Small,
    /// For servers of thousands of clients: a few threads serve all connections, and a full server closes idle
    /// connections in favour of new ones. Written `high-concurrency`.
    HighConcurrency,
}

/// The spellings of the profiles.
pub(crate) const PROFILES: &str = "default, small or high-concurrency";

impl fmt::Display for OrbProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::Small => "small",
            Self::HighConcurrency => "high-concurrency",
        })
    }
}

/// The error of a text that names no profile.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no profile: expected {PROFILES}")]
pub struct UnknownProfile(String);
spandrel_error::debug_as_report!(UnknownProfile);

impl FromStr for OrbProfile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let all = [Self::Default, Self::Small, Self::HighConcurrency];
        all.into_iter().find(|profile| profile.to_string() == text).ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

impl OrbBuilder {
    /// Sets all settings of a profile. Methods that are called after it change single ones.
    ///
    /// ```
    /// use spandrel_orb::{OrbBuilder, OrbProfile};
    ///
    /// let builder = OrbBuilder::default().profile(OrbProfile::HighConcurrency).max_connections(100_000);
    /// ```
    #[must_use]
    pub fn profile(mut self, profile: OrbProfile) -> Self {
        let (defaults, cache) = (ServerSettings::default(), CacheSettings::default());
        let server = self.server_mut();
        server.concurrency = match profile {
            OrbProfile::Default => defaults.concurrency,
            OrbProfile::Small | OrbProfile::HighConcurrency => Concurrency::LeaderFollowers { threads: None },
        };
        (server.max_threads, server.max_in_flight, server.max_deferred) = match profile {
            OrbProfile::Default => (defaults.max_threads, defaults.max_in_flight, defaults.max_deferred),
            OrbProfile::Small => (16, 8, 64),
            OrbProfile::HighConcurrency => (4_096, 256, 4_096),
        };
        (server.max_connections, server.evicts_idle) = match profile {
            OrbProfile::Default => (defaults.max_connections, defaults.evicts_idle),
            OrbProfile::Small => (256, true),
            OrbProfile::HighConcurrency => (262_144, true),
        };
        (server.max_connection_memory, server.max_server_memory) = match profile {
            OrbProfile::Default => (defaults.max_connection_memory, defaults.max_server_memory),
            OrbProfile::Small => (16 * MIB, 64 * MIB),
            OrbProfile::HighConcurrency => (64 * MIB, 4_096 * MIB),
        };
        (server.idle_timeout, server.message_timeout, server.send_timeout) = match profile {
            OrbProfile::Default => (defaults.idle_timeout, defaults.message_timeout, defaults.send_timeout),
            OrbProfile::Small | OrbProfile::HighConcurrency => {
                (Some(Duration::from_secs(120)), Some(Duration::from_secs(20)), Some(Duration::from_secs(10)))
            }
        };
        let keep_alive = match profile {
            OrbProfile::Default | OrbProfile::Small => KeepAlive::System,
            // A vanished client is found after two minutes.
            OrbProfile::HighConcurrency => KeepAlive::after(Duration::from_secs(60)),
        };
        let this = self.keep_alive(keep_alive).max_message(match profile {
            OrbProfile::Default | OrbProfile::HighConcurrency => defaults.max_message,
            OrbProfile::Small => 8 * MIB,
        });
        this.client_profile(profile, &cache)
    }

    fn client_profile(mut self, profile: OrbProfile, defaults: &CacheSettings) -> Self {
        let client = &mut self.client;
        let WriteLimits { requests, octets } = WriteLimits::default();
        (client.write_limits.requests, client.write_limits.octets) = match profile {
            OrbProfile::Default => (requests, octets),
            OrbProfile::Small => (128, MIB),
            OrbProfile::HighConcurrency => (16_384, octets),
        };
        // An ORB without the part has no limit.
        if client.limits.is_some() {
            client.cache.limit = match profile {
                OrbProfile::Default => defaults.limit,
                OrbProfile::Small => 64,
                OrbProfile::HighConcurrency => 16_384,
            };
        }
        self
    }
}

const MIB: usize = 1 << 20;
