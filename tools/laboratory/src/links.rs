//! Links of a given rate and MTU between two network namespaces of this machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spandrel_lab::LabError;
use spandrel_lab::child_command::launch;
use spandrel_lab::peer::child::{ChildKind, ChildRole};

use crate::point::Link;

/// The beginning of the names of namespaces; the process ID and the side follow.
const PREFIX: &str = "spandrel-lab-";
/// The sides of a link with their addresses.
pub(crate) const SENDER: (&str, &str) = ("sender", "10.79.0.1");
const RECEIVER: (&str, &str) = ("receiver", "10.79.0.2");

/// The rate in bits per second, and the MTU in octets.
pub(crate) fn rate_and_mtu(link: Link) -> Option<(u64, u32)> {
    match link {
        Link::Loopback => None,
        Link::Ethernet => Some((10_000_000, 1_500)),
        Link::Atm => Some((155_000_000, 9_180)),
    }
}

/// Two namespaces with a link between them; removed when dropped. A process has one pair at a time.
#[derive(Debug)]
pub(crate) struct LinkedNamespaces {
    _link: MutexGuard<'static, ()>,
}

/// Held while this process has a link, whose namespaces have its ID in their names.
static LINK: Mutex<()> = Mutex::new(());

impl LinkedNamespaces {
    /// Creates both namespaces and the link. `None` for the loopback device, which is there already.
    ///
    /// # Errors
    /// Without root, `ip` or `tc`.
    pub(crate) fn create(link: Link) -> Result<Option<Self>, LabError> {
        let Some((rate, mtu)) = rate_and_mtu(link) else { return Ok(None) };
        remove_abandoned();
        let this = Self { _link: LINK.lock().unwrap_or_else(PoisonError::into_inner) }; // removes what there is, if a step fails
        let (one, other) = (namespace(SENDER.0), namespace(RECEIVER.0));
        run("ip", &format!("netns add {one}"))?;
        run("ip", &format!("netns add {other}"))?;
        run("ip", &format!("-n {one} link add link0 type veth peer name link0 netns {other}"))?;
        // A burst holds some whole frames; more would exceed the rate noticeably within a short run.
        let burst = (mtu + 14) * 4;
        for ((name, address), namespace) in [(SENDER, &one), (RECEIVER, &other)] {
            debug_assert!(namespace.ends_with(name));
            run("ip", &format!("-n {namespace} addr add {address}/24 dev link0"))?;
            run("ip", &format!("-n {namespace} link set link0 mtu {mtu} up"))?;
            run("ip", &format!("-n {namespace} link set lo up"))?;
            run(
                "tc",
                &format!("-n {namespace} qdisc add dev link0 root tbf rate {rate}bit burst {burst} limit 1000000"),
            )?;
        }
        Ok(Some(this))
    }

    /// The command of a child on its side of the link.
    pub(crate) fn launch(role: &ChildRole) -> Command {
        let (side, role) = match &role.kind {
            ChildKind::Receive(_) => {
                let kind = ChildKind::Receive(format!("{}:0", RECEIVER.1));
                (RECEIVER.0, ChildRole { kind, core: role.core })
            }
            _ => (SENDER.0, role.clone()),
        };
        Self::inside(side, &launch(&role))
    }

    /// A command in the namespace of the side that sends.
    pub(crate) fn at_sender(inner: &Command) -> Command {
        Self::inside(SENDER.0, inner)
    }

    /// A command in the namespace of the side that receives.
    pub(crate) fn at_receiver(inner: &Command) -> Command {
        Self::inside(RECEIVER.0, inner)
    }

    fn inside(side: &str, inner: &Command) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", namespace(side))).arg("--");
        command.arg(inner.get_program()).args(inner.get_args());
        command
    }
}

impl Drop for LinkedNamespaces {
    fn drop(&mut self) {
        for (side, _) in [SENDER, RECEIVER] {
            remove(&namespace(side));
        }
    }
}

/// The namespace of this process for a side.
fn namespace(side: &str) -> String {
    format!("{PREFIX}{}-{side}", std::process::id())
}

/// Removes a namespace and its devices, if it is there. Its processes are children, which have ended or end soon.
fn remove(namespace: &str) {
    if Path::new("/run/netns").join(namespace).exists() {
        _ = run("ip", &format!("netns del {namespace}"));
    }
}

/// Removes the namespaces of runs that were killed.
fn remove_abandoned() {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists()) {
            remove(&name);
        }
    }
}

fn run(program: &str, arguments: &str) -> Result<(), LabError> {
    let failed = |detail: String| LabError::Peer {
        role: "link between network namespaces (it needs root, ip and tc)".to_owned(),
        detail: format!("{program} {arguments}: {detail}"),
    };
    let output = Command::new(program).args(arguments.split(' ')).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(failed(errors.trim_end().to_owned())) }
}
