//! The programs that meet: which ORB one is made with, how it is to speak, and the command that starts it.

use std::path::PathBuf;
use std::process::Command;

use super::{Peer, jacorb};
use crate::place;

/// Which ORB a program is made with, and how it is to speak.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Ours { version: &'static str, order: &'static str, native: Native },
    OmniOrb { version: &'static str, habit: Habit },
    JacOrb { version: &'static str, native: Native },
}

/// The code set that references name as native for narrow texts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Native {
    Latin1,
    Utf8,
}

/// In what way omniORB differs from the usual.
#[derive(Clone, Copy, Debug)]
pub(super) enum Habit {
    Usual,
    /// All calls share one connection.
    Shares,
    /// Targets are given as a profile.
    Profiles,
    /// Targets are given as a whole reference.
    References,
    /// Narrow texts are in UTF-8 in the program.
    Utf8,
}

impl Habit {
    pub(super) const OTHERS: [Self; 3] = [Self::Shares, Self::Profiles, Self::References];

    fn label(self) -> &'static str {
        match self {
            Self::Usual => "",
            Self::Shares => ", one connection",
            Self::Profiles => ", by profile",
            Self::References => ", by reference",
            Self::Utf8 => " UTF-8",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Shares => &["-ORBoneCallPerConnection", "0", "-ORBmaxGIOPConnectionPerServer", "1"],
            Self::Profiles => &["-ORBgiopTargetAddressMode", "1"],
            Self::References => &["-ORBgiopTargetAddressMode", "2"],
            Self::Utf8 => &["-ORBnativeCharCodeSet", "UTF-8"],
        }
    }
}

impl Native {
    fn label(self) -> &'static str {
        match self {
            Self::Latin1 => "",
            Self::Utf8 => " UTF-8",
        }
    }
}

impl Side {
    pub(super) fn ours(version: &'static str, order: &'static str) -> Self {
        Self::Ours { version, order, native: Native::Latin1 }
    }

    /// A foreign ORB as it comes.
    pub(super) fn of(peer: Peer, version: &'static str) -> Self {
        match peer {
            Peer::OmniOrb => Self::OmniOrb { version, habit: Habit::Usual },
            Peer::JacOrb => Self::JacOrb { version, native: Native::Latin1 },
        }
    }

    pub(super) fn peer(self) -> Option<Peer> {
        match self {
            Self::Ours { .. } => None,
            Self::OmniOrb { .. } => Some(Peer::OmniOrb),
            Self::JacOrb { .. } => Some(Peer::JacOrb),
        }
    }

    pub(super) fn version(self) -> &'static str {
        let (Self::Ours { version, .. } | Self::OmniOrb { version, .. } | Self::JacOrb { version, .. }) = self;
        version
    }

    pub(super) fn title(self) -> String {
        match self {
            Self::Ours { version, order, native } => format!("ours {version} {order}{}", native.label()),
            Self::OmniOrb { version, habit } => format!("omniORB {version}{}", habit.label()),
            Self::JacOrb { version, native } => format!("JacORB {version}{}", native.label()),
        }
    }

    /// The server of `interop.idl` and its client are two programs, but in Java.
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

    /// A server of ours that hands all on to another hub.
    pub(super) fn bridge(version: &'static str, hub: &str) -> Command {
        let mut command = Command::new(ours("bridge"));
        command.args([hub, "-ORBGiopVersion", version]);
        command
    }

    /// Who serves a name: our own naming service, or omniORB's beside an object of ours.
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

    /// The server of a program that is client and server.
    pub(super) fn serve(self, program: &str) -> Command {
        let mut command = self.command(program);
        command.arg("--serve");
        command
    }

    /// The same at this port of the machine's own, at which it can begin anew.
    pub(super) fn serve_at(self, program: &str, port: u16) -> Command {
        let mut command = self.command(program);
        match self {
            Self::Ours { .. } => command.args(["-ORBendPoint", &format!("iiop://127.0.0.1:{port}")]),
            Self::OmniOrb { .. } => {
                // In place of the one that `command` gives: there would be two.
                command = Command::new(place::omniorb().join(program));
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

    fn command(self, program: &str) -> Command {
        match self {
            Self::Ours { version, order, native } => {
                let mut command = Command::new(ours(program));
                command.args(["-ORBGiopVersion", version, "-ORBByteOrder", order]);
                if let Native::Utf8 = native {
                    command.args(["-ORBNativeCharCodeSet", "UTF-8"]);
                }
                command
            }
            Self::OmniOrb { version, habit } => {
                let mut command = Command::new(place::omniorb().join(program));
                command.args(["-ORBmaxGIOPVersion", version, "-ORBendPoint", "giop:tcp:127.0.0.1:0"]);
                command.args(habit.options());
                command
            }
            Self::JacOrb { version, native } => {
                let mut command = jacorb::command();
                command.args([program, "--giop", version]);
                if let Native::Utf8 = native {
                    command.args(["--codeset", "UTF8"]);
                }
                command
            }
        }
    }
}

fn ours(program: &str) -> PathBuf {
    place::target().join("debug").join(format!("interop-{program}"))
}
