//! A shared library with the modules of a stream: lines enter it by datagrams at its lowest module, and leave it for a file at
//! its highest.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::UdpSocket;
use std::sync::OnceLock;
use std::time::Duration;

// ANCHOR: export
use spandrel_configurator::plugin::{
    ForeignKind, ForeignMessage, ModuleObject, ModuleSide, ModuleThread, NextTask, RefusedMessage,
};
use spandrel_configurator::{ServiceContext, ServiceResult, SharedObject};

spandrel_configurator::export_services!(
    module make_datagrams => Datagrams::default(),
    module make_upper => Upper,
    module make_append => Append::default(),
);
// ANCHOR_END: export

// ANCHOR: entry
/// Brings datagrams into the stream, in a thread of its own.
#[derive(Default)]
struct Datagrams(OnceLock<UdpSocket>);

impl SharedObject for Datagrams {
    fn init(&self, _: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let socket = UdpSocket::bind(arguments.first().ok_or("expected ADDRESS:PORT")?)?;
        // The thread looks for the end of the stream so often.
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        tracing::info!(address = %socket.local_addr()?, "datagrams are lines of the stream");
        _ = self.0.set(socket);
        Ok(())
    }

    fn info(&self) -> String {
        "brings datagrams in".to_owned()
    }
}

impl ModuleObject for Datagrams {
    fn put(&self, _: ModuleSide, message: ForeignMessage, next: &dyn NextTask) -> Result<(), RefusedMessage> {
        _ = next.put_next(message);
        Ok(())
    }

    fn has_thread(&self) -> bool {
        true
    }

    fn svc(&self, thread: &dyn ModuleThread) {
        let Some(socket) = self.0.get() else { return };
        let mut octets = [0; 1_500];
        while thread.is_running() {
            match socket.recv(&mut octets) {
                // A message that a module above refuses is lost, as a datagram is.
                Ok(length) => _ = thread.put_next(ForeignMessage::new(ForeignKind::Data, octets[..length].to_vec())),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => tracing::warn!(%error, "cannot receive"),
            }
        }
    }
}
// ANCHOR_END: entry

/// Makes capitals of messages in either direction.
struct Upper;

impl SharedObject for Upper {
    fn init(&self, _: &ServiceContext<'_>, _: &[String]) -> ServiceResult {
        Ok(())
    }

    fn info(&self) -> String {
        "makes capitals".to_owned()
    }
}

impl ModuleObject for Upper {
    fn put(&self, _: ModuleSide, message: ForeignMessage, next: &dyn NextTask) -> Result<(), RefusedMessage> {
        let capitals = ForeignMessage::new(message.kind(), message.to_vec().to_ascii_uppercase());
        _ = next.put_next(capitals);
        Ok(())
    }
}

// ANCHOR: exit
/// Takes messages out of the stream: appends them to a file, and passes none on.
#[derive(Default)]
struct Append(OnceLock<File>);

impl SharedObject for Append {
    fn init(&self, _: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let file = OpenOptions::new().create(true).append(true).open(arguments.first().ok_or("expected FILE")?)?;
        _ = self.0.set(file);
        Ok(())
    }

    fn info(&self) -> String {
        "appends to a file".to_owned()
    }
}

impl ModuleObject for Append {
    fn put(&self, side: ModuleSide, message: ForeignMessage, next: &dyn NextTask) -> Result<(), RefusedMessage> {
        let (ModuleSide::Reader, Some(mut file)) = (side, self.0.get()) else {
            _ = next.put_next(message);
            return Ok(());
        };
        match file.write_all(&[&message.to_vec()[..], b"\n"].concat()) {
            Ok(()) => Ok(()),
            Err(_) => Err(RefusedMessage(message)),
        }
    }
}
// ANCHOR_END: exit
