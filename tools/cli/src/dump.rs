//! `spandrel dump`: GIOP as text, from captures or live.

mod capture;
mod connections;
mod conversation;
mod fragments;
mod framer;
#[cfg(target_os = "linux")]
mod interface;
mod omitted;
mod output;
mod packet;
mod relay;
mod stream;
mod summary;
mod text;
mod typed;

use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    path::PathBuf,
};

use anyhow::{Context as _, bail};
use spandrel::net::error::output::{has_no_reader, remark};

use crate::client_args::CallArgs;
use crate::common::whole;
use connections::Connections;
use conversation::Style;
use omitted::Omission;
use output::{LimitReached, Output};
use packet::{Packets, Segment};
use typed::Types;

const EXAMPLES: &str = "\
Examples:
  spandrel dump calls.pcap
  spandrel dump --idl bank.idl --hex calls.pcapng
  tcpdump -i any -U -w - tcp port 2809 | spandrel dump -
  spandrel dump --listen 127.0.0.1:2810 --to server.example:2809 --idl bank.idl
  spandrel dump --listen 127.0.0.1:2810 --to ssliop://server.example:2810 --ca authority.pem --json
  spandrel dump --interface lo --port 2809

With --listen it stands between clients and a server, and needs no privileges: give clients a corbaloc: with its own address. With
--interface it needs the right to open packet sockets (CAP_NET_RAW).

Exit codes: 0 done, 1 failed, or the capture is broken, 2 wrong usage.";

/// Print the GIOP messages of a capture, or of live connections.
///
/// Arguments and results are shown with their names and types where IDL declares the operation.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A capture, pcap or pcapng, or - for standard input
    #[arg(required_unless_present_any = ["listen", "interface"])]
    capture: Option<PathBuf>,
    /// Wait for more at the end of the capture
    #[arg(long, requires = "capture")]
    follow: bool,
    /// Accept connections here, forward them to --to, and show their messages
    #[arg(long, value_name = "ADDR", requires = "to", conflicts_with_all = ["capture", "interface"])]
    listen: Option<String>,
    /// The server to which accepted connections are forwarded: host:port, ssliop://host:port, uds://path or
    /// shm://path
    #[arg(long, value_name = "ADDR", requires = "listen")]
    to: Option<String>,
    /// Show the traffic of the addresses of this network interface, or of all (any)
    #[arg(long, value_name = "NAME", conflicts_with = "capture")]
    interface: Option<String>,
    /// Only connections from or to this port
    #[arg(long, value_name = "PORT", value_parser = whole(1..=u16::MAX))]
    port: Option<u16>,
    /// A file that declares interfaces; may be given more than once
    #[arg(long, value_name = "FILE")]
    idl: Vec<PathBuf>,
    /// An interface repository that describes interfaces, besides or in place of files
    #[arg(long, value_name = "URL")]
    repository: Option<String>,
    /// A folder with included files
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// The interface of all objects, as Bank::Account or by its repository id; by default found by the names
    /// of operations
    #[arg(long = "type", value_name = "INTERFACE")]
    interface_of_objects: Option<String>,
    /// Show bodies as octets, too
    #[arg(long)]
    hex: bool,
    /// Print one JSON object for each message, with arguments and results in the JSON form of their types
    #[arg(long)]
    json: bool,
    /// End after this number of messages
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    count: Option<u64>,
    #[command(flatten)]
    call: CallArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut described = Vec::new();
        for file in &self.idl {
            described.push(crate::common::read_idl(file, &self.include)?);
        }
        if let Some(url) = &self.repository {
            described.push(crate::idl::repository::describe(&self.call, url)?);
        }
        let mut types = Types::new(&described, self.interface_of_objects.as_deref(), self.json)?;
        let mut out = Output { is_json: self.json, left: self.count.unwrap_or(u64::MAX).max(1) };
        let shown = match (&self.listen, &self.to) {
            (Some(listen), Some(to)) => {
                relay::run(listen, self.call.options.server(to)?, &mut types, self.style(), &mut out)
            }
            _ => self.packets(&mut types, &mut out),
        };
        match shown {
            Err(error) if error.is::<LimitReached>() => Ok(()),
            other => other,
        }
    }

    fn style(&self) -> Style {
        Style { has_hex: self.hex }
    }

    fn packets(&self, types: &mut Types, out: &mut Output) -> anyhow::Result<()> {
        let mut connections = Connections::new(self.style());
        let is_wanted = |segment: &Segment<'_>| {
            self.port.is_none_or(|port| segment.from.port() == port || segment.to.port() == port)
        };
        // Such as `| head -1`.
        let unless_unread = || if has_no_reader() { Err(LimitReached.into()) } else { Ok(()) };
        if let Some(name) = &self.interface {
            #[cfg(target_os = "linux")]
            return interface::run(name, &mut |time, segment| match is_wanted(segment) {
                true => connections.take(time, segment, types, out).and_then(|()| unless_unread()),
                false => Ok(()),
            });
            #[cfg(not(target_os = "linux"))]
            bail!("--interface {name} works on Linux only; use a capture, or --listen");
        }
        let (mut packets, mut segments) = (Packets::default(), 0_u64);
        let mut of_packet =
            |packet: &capture::Packet<'_>| match packets.segment(packet.link, packet.octets, packet.is_cut) {
                Some(segment) if is_wanted(&segment) => {
                    segments += 1;
                    connections.take(packet.time, &segment, types, out).and_then(|()| unless_unread())
                }
                _ => Ok(()),
            };
        let read = capture::read(self.open()?, &mut of_packet);
        if !matches!(&read, Err(error) if error.is::<LimitReached>()) {
            // Also of a capture that is broken at its end.
            connections.end(types, out)?;
        }
        packets.end();
        packets.omitted.add(Omission::Discarded, connections.discarded());
        let omitted = packets.omitted;
        if read.is_ok() && connections.counted() == 0 {
            match (omitted.is_empty(), segments) {
                (false, _) => bail!("there is no GIOP in this capture; left out: {omitted}"),
                (true, 0) => bail!("there is no GIOP in this capture: it has no packet of TCP{}", self.of_port()),
                _ => bail!("there is no GIOP in this capture (encrypted connections cannot be decoded)"),
            }
        }
        if !omitted.is_empty() {
            remark(&format!("left out: {omitted}\n"));
        }
        read
    }

    fn of_port(&self) -> String {
        self.port.map(|port| format!(" with the port {port}")).unwrap_or_default()
    }

    fn open(&self) -> anyhow::Result<Box<dyn Read + Send>> {
        let path = self.capture.as_deref().context("no capture was given")?;
        let input: Box<dyn Read + Send> = if path.as_os_str() == "-" {
            if io::stdin().is_terminal() {
                bail!("a capture is expected on standard input, not a terminal");
            }
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).map_err(|error| crate::common::unreadable(path, &error))?)
        };
        Ok(if self.follow { Box::new(capture::Growing(input)) } else { input })
    }
}
