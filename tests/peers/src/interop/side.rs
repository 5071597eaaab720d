//! The two programs of a pairing: the ORB of each, its settings, and the command that starts it.

use std::path::PathBuf;
use std::process::Command;

use xtask::workspace;

use super::certificates::{self, CertificateOwner, PASSWORD};
use super::{Peer, jacorb};
use crate::builds;
use crate::s390x;

/// The ORB of a program, and its settings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Ours {
        version: &'static str,
        order: &'static str,
        native: Native,
    },
    /// Ours, on a big-endian machine, in that byte order.
    OursBigEndian {
        version: &'static str,
    },
    OmniOrb {
        version: &'static str,
        settings: OmniOrbSettings,
    },
    JacOrb {
        version: &'static str,
        native: Native,
    },
}

/// The native code sets that references advertise, by omniORB's names: empty for the defaults, ISO 8859-1 and
/// UTF-16.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Native {
    pub(super) narrow: &'static str,
    pub(super) wide: &'static str,
}

/// Settings of omniORB that differ from the defaults.
#[derive(Clone, Copy, Debug)]
pub(super) enum OmniOrbSettings {
    Default,
    /// All calls share one connection.
    SharedConnection,
    /// It listens for TLS only.
    Secure,
    /// Texts are in these code sets in the program.
    Native(Native),
}

impl OmniOrbSettings {
    fn label(self) -> String {
        match self {
            Self::Default | Self::Secure => String::new(),
            Self::SharedConnection => ", one connection".into(),
            Self::Native(native) => native.label(),
        }
    }

    fn options(self) -> Vec<&'static str> {
        match self {
            Self::Default | Self::Secure => Vec::new(),
            Self::SharedConnection => vec!["-ORBoneCallPerConnection", "0", "-ORBmaxGIOPConnectionPerServer", "1"],
            Self::Native(native) => native.options(["-ORBnativeCharCodeSet", "-ORBnativeWCharCodeSet"]).concat(),
        }
    }
}

impl Native {
    pub(super) const UTF8: Self = Self::narrow("UTF-8");

    pub(super) const fn narrow(narrow: &'static str) -> Self {
        Self { narrow, wide: "" }
    }

    pub(super) const fn wide(wide: &'static str) -> Self {
        Self { narrow: "", wide }
    }

    fn label(self) -> String {
        [self.narrow, self.wide].iter().filter(|name| !name.is_empty()).map(|name| format!(" {name}")).collect()
    }

    /// The settings that differ from the defaults, each behind its option.
    fn options(self, names: [&'static str; 2]) -> Vec<[&'static str; 2]> {
        let both = names.into_iter().zip([self.narrow, self.wide]);
        both.filter(|(_, set)| !set.is_empty()).map(|(name, set)| [name, set]).collect()
    }
}

/// Both sides show certificates (60: both are authenticated), and nothing is sent in plain text. The
/// keystore's type says JKS also where Java reads it as PKCS 12.
const JACORB_TLS: [&str; 8] = [
    "jacorb.security.support_ssl=on",
    "jacorb.ssl.socket_factory=org.jacorb.security.ssl.sun_jsse.SSLSocketFactory",
    "jacorb.ssl.server_socket_factory=org.jacorb.security.ssl.sun_jsse.SSLServerSocketFactory",
    "jacorb.security.jsse.trustees_from_ks=on",
    "jacorb.security.ssl.client.supported_options=60",
    "jacorb.security.ssl.client.required_options=60",
    "jacorb.security.ssl.server.supported_options=60",
    "jacorb.security.ssl.server.required_options=60",
];

/// The name in Java.
fn java_name(set: &str) -> String {
    match set.strip_prefix("ISO-") {
        Some(rest) => format!("ISO{}", rest.replace('-', "_")),
        None => set.replace('-', ""),
    }
}

impl Side {
    /// Whether both are the same ORB, whatever its settings.
    pub(super) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    pub(super) fn ours(version: &'static str, order: &'static str) -> Self {
        Self::Ours { version, order, native: Native::default() }
    }

    /// A foreign ORB with its default settings.
    pub(super) fn of(peer: Peer, version: &'static str) -> Self {
        match peer {
            Peer::OmniOrb => Self::OmniOrb { version, settings: OmniOrbSettings::Default },
            Peer::JacOrb => Self::JacOrb { version, native: Native::default() },
        }
    }

    pub(super) fn peer(self) -> Option<Peer> {
        match self {
            Self::Ours { .. } | Self::OursBigEndian { .. } => None,
            Self::OmniOrb { .. } => Some(Peer::OmniOrb),
            Self::JacOrb { .. } => Some(Peer::JacOrb),
        }
    }

    pub(super) fn version(self) -> &'static str {
        let (Self::Ours { version, .. }
        | Self::OursBigEndian { version }
        | Self::OmniOrb { version, .. }
        | Self::JacOrb { version, .. }) = self;
        version
    }

    pub(super) fn title(self) -> String {
        match self {
            Self::Ours { version, order, native } => format!("ours {version} {order}{}", native.label()),
            Self::OursBigEndian { version } => format!("ours on s390x {version}"),
            Self::OmniOrb { version, settings } => format!("omniORB {version}{}", settings.label()),
            Self::JacOrb { version, native } => format!("JacORB {version}{}", native.label()),
        }
    }

    /// The server of `interop.idl`. It and its client are two programs, except in Java.
    pub(super) fn types_server(self) -> Command {
        match self {
            Self::JacOrb { .. } => self.serve("types"),
            _ => self.command("server"),
        }
    }

    pub(super) fn types_client(self, reference: &str) -> Command {
        match self {
            Self::JacOrb { .. } => self.call("types", reference),
            _ => {
                let mut command = self.command("client");
                command.arg(reference);
                command
            }
        }
    }

    /// A server of ours that forwards all calls to another hub.
    pub(super) fn bridge(version: &'static str, hub: &str) -> Command {
        let mut command = Command::new(ours("bridge"));
        command.args([hub, "-ORBGiopVersion", version]);
        command
    }

    /// The server of a name: our own naming service, or omniORB's beside an object of ours.
    pub(super) fn names_server(self) -> Command {
        match self {
            Self::OmniOrb { .. } => {
                let mut command = Command::new(ours("names"));
                command.arg("--beside-omninames");
                command
            }
            _ => self.serve("names"),
        }
    }

    /// The server of a program with both roles.
    pub(super) fn serve(self, program: &str) -> Command {
        let mut command = self.command(program);
        command.arg("--serve");
        command
    }

    /// The same on this loopback port, so that it can restart there.
    pub(super) fn serve_at(self, program: &str, port: u16) -> Command {
        let mut command = self.command(program);
        match self {
            Self::Ours { .. } | Self::OursBigEndian { .. } => {
                command.args(["-ORBendPoint", &format!("iiop://127.0.0.1:{port}")])
            }
            Self::OmniOrb { .. } => {
                // In place of the option that `command` gives: there would be two.
                command = Command::new(builds::omniorb().join(program));
                command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")])
            }
            Self::JacOrb { .. } => command.args(["--port", &port.to_string()]),
        };
        command.arg("--serve");
        command
    }

    pub(super) fn call(self, program: &str, reference: &str) -> Command {
        let mut command = self.command(program);
        command.args(["--call", reference]);
        command
    }

    /// A server that calls its clients over their own connections.
    pub(super) fn serve_both_ways(self, program: &str, transport: &str) -> Command {
        let mut command = self.serve(program);
        self.use_both_ways(&mut command, transport);
        command
    }

    /// The client of such a server.
    pub(super) fn call_both_ways(self, program: &str, reference: &str, transport: &str) -> Command {
        let mut command = self.call(program, reference);
        self.use_both_ways(&mut command, transport);
        command
    }

    /// Enables bidirectional GIOP in ours; the programs of the other ORBs enable it themselves.
    fn use_both_ways(self, command: &mut Command, transport: &str) {
        if let Self::OmniOrb { .. } = self {
            command.args(["-ORBofferBiDirectionalGIOP", "1", "-ORBacceptBiDirectionalGIOP", "1"]);
            let rule = format!("* bidir,{transport}");
            command.args(["-ORBclientTransportRule", &rule, "-ORBserverTransportRule", &rule]);
        }
    }

    /// Makes ours listen for TLS; the programs of the other ORBs do so themselves.
    pub(super) fn listening_for_tls(self, mut command: Command) -> Command {
        if let Self::Ours { .. } = self {
            command.args(["-ORBListenEndpoints", "ssliop://127.0.0.1:0"]);
        }
        command
    }

    /// Restricts a program to TLS with its own certificate, and with verification of the other's.
    pub(super) fn over_tls(self, mut command: Command, owner: CertificateOwner) -> Command {
        let authority = certificates::authority();
        match self {
            Self::Ours { .. } | Self::OursBigEndian { .. } => {
                command.args(["-ORBSSLCA", &authority, "-ORBSSLCertificate", &owner.file("pem")]);
                command.args(["-ORBSSLKey", &owner.file("key"), "-ORBSSLVerify", "require", "-ORBSSLPlain", "never"]);
            }
            Self::OmniOrb { .. } => {
                command.args(["-ORBsslCAFile", &authority, "-ORBsslKeyFile", &owner.file("both")]);
                // The option is required, though the key has no password.
                command.args(["-ORBsslKeyPassword", PASSWORD, "-ORBsslVerifyMode", "peer,fail"]);
            }
            Self::JacOrb { .. } => {
                for property in JACORB_TLS {
                    command.args(["--property", property]);
                }
                command.args(["--property", &format!("jacorb.security.keystore={}", owner.file("store"))]);
                command.args(["--property", &format!("jacorb.security.keystore_password={PASSWORD}")]);
            }
        }
        command
    }

    fn command(self, program: &str) -> Command {
        match self {
            Self::Ours { version, order, native } => {
                let mut command = Command::new(ours(program));
                command.args(["-ORBGiopVersion", version, "-ORBByteOrder", order]);
                command.args(native.options(["-ORBNativeCharCodeSet", "-ORBNativeWCharCodeSet"]).concat());
                command
            }
            Self::OursBigEndian { version } => {
                let [emulator, options @ ..] = s390x::EMULATOR;
                let mut command = Command::new(emulator);
                let folder = workspace::target().join(s390x::TARGET).join("debug");
                command.args(options).arg(folder.join(format!("interop-{program}")));
                command.args(["-ORBGiopVersion", version]);
                command
            }
            Self::OmniOrb { version, settings } => {
                let mut command = Command::new(builds::omniorb().join(program));
                let transport = if matches!(settings, OmniOrbSettings::Secure) { "ssl" } else { "tcp" };
                command.args(["-ORBmaxGIOPVersion", version]);
                command.args(["-ORBendPoint", &format!("giop:{transport}:127.0.0.1:0")]);
                command.args(settings.options());
                command
            }
            Self::JacOrb { version, native } => {
                let mut command = jacorb::command();
                command.args([program, "--giop", version]);
                for [option, set] in native.options(["--codeset", "--wide-codeset"]) {
                    command.args([option, &java_name(set)]);
                }
                command
            }
        }
    }
}

fn ours(program: &str) -> PathBuf {
    workspace::target().join("debug").join(format!("interop-{program}"))
}
