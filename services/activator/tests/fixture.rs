//! An activator in this process, with servers of this test program.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spandrel::services::activation;
use spandrel::services::implementation_repository::{
    ActivationMode, Administration, ServerInformation, ServerObject, ServerState, StartupOptions,
};
use spandrel::{CompletionStatus, Endpoint, Orb, SystemExceptionKind};
use spandrel_activator::{Activator, ActivatorOptions, Commands, Limits};
use spandrel_test_support::wait_until;
use tempfile::TempDir;

/// Limits with which tests need not wait.
pub(crate) fn quick_limits() -> Limits {
    Limits {
        first_backoff: Duration::from_millis(1),
        kill_grace: Duration::from_millis(200),
        // On a loaded machine, a second of processor time may take a minute.
        start_timeout: Duration::from_secs(600),
        ..Limits::default()
    }
}

pub(crate) struct Fixture {
    pub(crate) activator: Option<Activator>,
    pub(crate) orb: Orb,
    pub(crate) client: Orb,
    pub(crate) folder: Arc<TempDir>,
}

impl Fixture {
    /// An activator with the command `bank`, whose server behaves so.
    pub(crate) fn new(behaviour: &str, limits: Limits) -> Self {
        Self::with_commands(limits, |folder| format!("[commands.bank]\n{}", crate::server::command(folder, behaviour)))
    }

    pub(crate) fn with_commands(limits: Limits, commands: impl FnOnce(&Path) -> String) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let file = folder.path().join("commands.toml");
        std::fs::write(&file, commands(folder.path())).unwrap();
        Self::open(folder, limits)
    }

    /// An activator over the state of an earlier one.
    pub(crate) fn open(folder: Arc<TempDir>, limits: Limits) -> Self {
        let commands = Commands::read(&folder.path().join("commands.toml")).unwrap();
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let options = ActivatorOptions { limits, ..ActivatorOptions::new(folder.path(), commands) };
        let activator = Activator::start(&orb, options).unwrap();
        let (host, port) = orb.listen().unwrap().remove(0);
        let url = format!("corbaloc::{host}:{port}/ImplRepoService");
        let client = Orb::builder().init_ref("ImplRepoService", url).build().unwrap();
        Self { activator: Some(activator), orb, client, folder }
    }

    pub(crate) fn repository(&self) -> Administration {
        Administration::unchecked_narrow(&self.client.resolve_initial_references("ImplRepoService").unwrap())
    }

    /// Registers a server with the command `bank`.
    pub(crate) fn register(&self, server: &str, activation: ActivationMode) {
        let options = StartupOptions { command: "bank".into(), activation, ..StartupOptions::default() };
        self.repository().register_server(server, &options).unwrap();
    }

    /// The object `grace` of a server, by a client of its own.
    pub(crate) fn object(&self, server: &str) -> ServerObject {
        activation::bind(&self.client, server, "grace").unwrap().unchecked_narrow()
    }

    pub(crate) fn find(&self, server: &str) -> ServerInformation {
        self.repository().find(server).unwrap()
    }

    pub(crate) fn wait_for(&self, server: &str, state: ServerState) {
        wait_until("the state of a server", || self.find(server).state == state);
    }

    /// The servers that were started, with their process ids.
    pub(crate) fn starts(&self) -> Vec<(String, u32)> {
        starts(self.folder.path())
    }
}

pub(crate) fn starts(folder: &Path) -> Vec<(String, u32)> {
    let text = std::fs::read_to_string(folder.join("starts")).unwrap_or_default();
    let parse = |line: &str| {
        let (server, pid) = line.split_once(' ').unwrap();
        (server.to_owned(), pid.parse().unwrap())
    };
    text.lines().map(parse).collect()
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(activator) = self.activator.take() {
            for server in self.repository().list().unwrap() {
                _ = self.repository().enable_server(&server.server, false);
                _ = self.repository().shutdown_server(&server.server, false);
            }
            wait_until("the end of all servers", || {
                self.repository().list().unwrap().iter().all(|server| server.pid == 0)
            });
            drop(activator);
        }
        _ = self.orb.shutdown();
    }
}

/// Ends a process at once, and waits until the system has closed its connections.
pub(crate) fn kill(pid: u32) {
    assert_ne!(pid, 0, "no process of its own");
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    wait_until("the end of the process", || {
        // A zombie whose other threads have ended, too, has no files any more. The state is behind the name.
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        threads <= 1 && stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    });
}

/// Kills a server, and calls it by a client that was connected to it. That call may have been running when the server
/// ended: then it fails as the standard requires, and the next one comes back to the activator.
pub(crate) fn call_after_kill(pid: u32, object: &ServerObject) {
    kill(pid);
    match object.ping() {
        Err(lost) if lost.kind() == SystemExceptionKind::CommFailure => {
            assert_eq!(lost.completed(), CompletionStatus::Maybe, "{lost}");
            object.ping().unwrap();
        }
        outcome => outcome.unwrap(),
    }
}
