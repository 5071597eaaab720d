//! The commands that start the servers of a series, without a core; or the reasons why there are none.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Settings;
use crate::bench::driver::exchange::{Exchange, REPLY_OCTETS};
use crate::interop;
use crate::peer::child::{ChildKind, ChildRole};
use crate::peer::pair::Launch;
use crate::peer_programs;

/// The program of other ORBs' servers.
const SERVER: &str = "latency-server";

impl<C> Settings<C> {
    /// A server of plain C: `epoll` or `threads`.
    pub(in crate::bench) fn plain_c(&self, mode: &str, plain: &Exchange) -> Result<Command, String> {
        let mut command = Command::new(peer_programs::find("calls-c", self.peers.as_deref())?);
        command.args([mode, &plain.message_octets().to_string(), &REPLY_OCTETS.to_string()]).arg(self.work());
        Ok(command)
    }

    /// A server of our ORB with these options.
    pub(in crate::bench) fn spandrel(
        &self,
        launch: Launch<'_>,
        options: Vec<String>,
        is_asynchronous: bool,
    ) -> Command {
        let kind = ChildKind::CallsServer { options, work_micros: self.work_micros, is_asynchronous };
        launch(&ChildRole { kind, core: None })
    }

    /// omniORB's server with these options. The folder also has the programs `others`.
    pub(in crate::bench) fn omniorb(&self, options: &[&str], others: &[&str]) -> Result<Command, String> {
        let folder = interop::find("omniorb", &[&[SERVER], others].concat(), self.omniorb.as_deref())?;
        let mut command = Command::new(folder.join(SERVER));
        command.arg("--work").arg(self.work()).args(["-ORBendPoint", "giop:tcp:127.0.0.1:"]).args(options);
        Ok(command)
    }

    /// JacORB's server. The folder also has the programs `others`.
    pub(in crate::bench) fn jacorb(&self, others: &[&str]) -> Result<Command, String> {
        let folder = interop::find("jacorb", &[&[SERVER], others].concat(), self.jacorb.as_deref())?;
        let mut command = Command::new(folder.join(SERVER));
        command.arg("--work").arg(self.work());
        Ok(command)
    }

    /// A server over tokio.
    pub(in crate::bench) fn tokio_server(&self, role: &str) -> Result<Command, String> {
        let mut command = Command::new(self.over_tokio()?);
        command.arg(role).arg(self.work());
        Ok(command)
    }

    /// A client over tokio of the server at this port.
    pub(in crate::bench) fn tokio_client(&self, role: &str, port: &str) -> Result<Command, String> {
        let mut command = Command::new(self.over_tokio()?);
        command.args([role, port]);
        Ok(command)
    }

    /// The program over tokio, from the given folder or the workspace of packages with heavy dependencies.
    fn over_tokio(&self) -> Result<PathBuf, String> {
        let folder = self.peers.as_deref();
        let program = folder.unwrap_or(Path::new("target/extra/release")).join("calls-tokio");
        match (program.is_file(), folder) {
            (true, _) => Ok(program),
            (false, Some(folder)) => Err(format!("{} has no calls-tokio", folder.display())),
            (false, None) => Err("not built: run `cargo xtask peers` in the source tree".to_owned()),
        }
    }

    fn work(&self) -> String {
        self.work_micros.to_string()
    }
}
