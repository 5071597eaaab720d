//! One client against one server.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use spandrel_test_support::free_port;

use super::certificates::CertificateOwner;
use super::{Outcome, Peer, Side};
use crate::bounded::Bounded;
use crate::known_failures::{self, Combination};

const START_LIMIT: Duration = Duration::from_secs(20);
const RUN_LIMIT: Duration = Duration::from_secs(180);

#[derive(Clone, Copy, Debug)]
pub(super) struct Pairing {
    pub(super) client: Side,
    pub(super) server: Side,
    pub(super) suite: Suite,
}

/// A suite of calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum Suite {
    /// `idl/interop.idl`
    Types,
    /// The same through a bridge of ours between client and server: dynamic servants in front, dynamic
    /// requests behind.
    Bridged,
    /// `idl/values.idl`
    Values,
    /// `idl/anything.idl`, with or without a code set for narrow texts that has a euro sign.
    Anything { euro: bool },
    /// A text, and another that no code set can encode and that is to be rejected, by `idl/anything.idl`.
    Texts { sample: &'static str, unencodable: &'static str },
    /// `corbaname:`, plain object keys, and the operations of every object.
    Names,
    /// `idl/interop.idl` in JSON through one of our tools: `call`, `proxy` or `console`.
    Json(&'static str),
    /// `idl/features.idl`
    Features,
    /// `idl/callbacks.idl`: servers call their clients over the clients' connections.
    Callbacks,
    /// `idl/interop.idl` over TLS.
    Secure,
    /// `idl/callbacks.idl` over TLS.
    SecureCallbacks,
}

impl Suite {
    /// The name in `--suite`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Types => "types",
            Self::Bridged => "bridged",
            Self::Values => "values",
            Self::Anything { .. } => "anything",
            Self::Texts { .. } => "texts",
            Self::Names => "names",
            Self::Json(tool) => tool,
            Self::Features => "features",
            Self::Callbacks => "callbacks",
            Self::Secure | Self::SecureCallbacks => "tls",
        }
    }

    /// Whether its traffic is GIOP without encryption. HTTP is none, which tshark is told to take for GIOP at any port.
    pub(super) fn is_plain_giop(self) -> bool {
        !matches!(self, Self::Secure | Self::SecureCallbacks | Self::Json("proxy" | "console"))
    }

    fn server(self, side: Side) -> Result<Command> {
        Ok(match self {
            Self::Types | Self::Bridged | Self::Json(_) => side.types_server(),
            Self::Values => side.serve("valuetypes"),
            Self::Anything { .. } | Self::Texts { .. } => side.serve("anything"),
            Self::Names => side.names_server(),
            Self::Features => side.serve_at("features", free_port()),
            Self::Callbacks => side.serve_both_ways("callbacks", "tcp"),
            Self::Secure => side.listening_for_tls(side.over_tls(side.types_server(), CertificateOwner::Server)),
            Self::SecureCallbacks => side
                .listening_for_tls(side.over_tls(side.serve_both_ways("callbacks", "ssl"), CertificateOwner::Server)),
        })
    }

    fn client(self, side: Side, reference: &str) -> Command {
        match self {
            Self::Types | Self::Bridged => side.types_client(reference),
            Self::Values => side.call("valuetypes", reference),
            Self::Names => side.call("names", reference),
            Self::Json(tool) => {
                let mut command = side.call("json", reference);
                command.args(["--through", tool]);
                command
            }
            Self::Features => side.call("features", reference),
            Self::Callbacks => side.call_both_ways("callbacks", reference, "tcp"),
            // It has objects that are called back over connections of the server's.
            Self::Secure => {
                side.listening_for_tls(side.over_tls(side.types_client(reference), CertificateOwner::Client))
            }
            Self::SecureCallbacks => {
                side.over_tls(side.call_both_ways("callbacks", reference, "ssl"), CertificateOwner::Client)
            }
            Self::Texts { sample, unencodable } => {
                let mut command = side.call("anything", reference);
                command.args(["--texts", sample]);
                if !unencodable.is_empty() {
                    command.args(["--beyond", unencodable]);
                }
                command
            }
            Self::Anything { euro } => {
                let mut command = side.call("anything", reference);
                if !euro {
                    command.arg("--no-euro");
                }
                command
            }
        }
    }
}

impl Pairing {
    pub(super) fn title(self) -> String {
        let suite = match self.suite {
            Suite::Types => String::new(),
            Suite::Bridged => ", through our bridge".into(),
            Suite::SecureCallbacks => ", callbacks over TLS".into(),
            Suite::Json(tool) => format!(", by {}", if tool == "console" { "the console" } else { tool }),
            other => format!(", {}", other.name()),
        };
        format!("{} -> {}{suite}", self.client.title(), self.server.title())
    }

    pub(super) fn involves(self, peer: Peer) -> bool {
        [self.client, self.server].iter().any(|side| side.peer() == Some(peer))
    }

    pub(super) fn run(self, only: &str) -> Vec<Outcome> {
        self.try_run(only).unwrap_or_else(|error| vec![Outcome::failed("run", format!("{error:#}"))])
    }

    fn try_run(self, only: &str) -> Result<Vec<Outcome>> {
        let server = Bounded::start("the server", &mut self.suite.server(self.server)?)?;
        let Some(reference) = server.line(Instant::now() + START_LIMIT)? else {
            bail!("the server exited at once: {}", server.stderr());
        };
        let bridge = match self.suite {
            Suite::Bridged => Some(Bounded::start("the bridge", &mut Side::bridge(self.client.version(), &reference))?),
            _ => None,
        };
        let reference = match &bridge {
            Some(bridge) => bridge.line(Instant::now() + START_LIMIT)?.context("the bridge exited at once")?,
            None => reference,
        };
        let mut command = self.suite.client(self.client, &reference);
        if !only.is_empty() {
            command.args(["--only", only]);
        }
        let mut client = Bounded::start("the client", &mut command)?;
        let outcomes = self.listen(&client)?;
        let stderr = client.stderr();
        let status = client.finish(START_LIMIT)?;
        let failed = outcomes.iter().any(|outcome| outcome.failure.is_some() && outcome.excuse.is_none());
        if outcomes.is_empty() || (!status.success() && !failed && outcomes.iter().all(|o| o.failure.is_none())) {
            bail!("the client exited with {status} after {} cases: {stderr}", outcomes.len());
        }
        for (mut program, name) in bridge.into_iter().map(|bridge| (bridge, "bridge")).chain([(server, "server")]) {
            let status = program.finish(START_LIMIT).context("after the client was done")?;
            if !status.success() {
                bail!("the {name} exited with {status}: {}", program.stderr());
            }
        }
        Ok(outcomes)
    }

    /// Reads the client's lines until its output ends.
    fn listen(self, client: &Bounded) -> Result<Vec<Outcome>> {
        let deadline = Instant::now() + RUN_LIMIT;
        let mut outcomes = Vec::new();
        while let Some(line) = client.line(deadline)? {
            if let Some(name) = line.strip_prefix("ok ") {
                outcomes.push(Outcome { excuse: self.excuse(name), ..Outcome::passed(name) });
            } else if let Some(rest) = line.strip_prefix("FAIL ") {
                let (name, what) = rest.split_once(": ").unwrap_or((rest, "no reason given"));
                outcomes.push(Outcome { excuse: self.excuse(name), ..Outcome::failed(name, what.to_owned()) });
            }
        }
        Ok(outcomes)
    }

    fn excuse(self, case: &str) -> Option<&'static str> {
        let [client, server] = [self.client, self.server].map(Side::peer);
        known_failures::reason(case, Combination { version: self.client.version(), client, server })
    }
}
