//! Transfers of whole files over the bulk streams that operations hand over, for `spandrel bulk` (feature `bulk`).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use spandrel::ssliop::Ssliop;
use spandrel::types::Any;

use crate::LabError;

/// The repository id of the offers that operations return.
pub const OFFER_ID: &str = "IDL:spandrel/Bulk/Offer:1.0";

/// The direction of a transfer, as this side sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Octets of the other party become a file.
    Get,
    /// The octets of a file go to the other party.
    Put,
}

/// The file at this side and the limits of its transfer.
#[derive(Clone, Debug)]
pub struct FileTransfer {
    /// Whether the file is received or sent. The offer has to be for the same.
    pub direction: Direction,
    /// The file. A received one gets its name once it is whole, and replaces a file of that name.
    pub file: PathBuf,
    /// The time of the transfer with all its connections; without one it has no end.
    pub time_limit: Option<Duration>,
    /// The longest time without progress.
    pub idle: Duration,
    /// The most connections after the first one, each of which goes on where the one before it broke.
    pub resumptions: u32,
    /// An address `host:port` at which the other party may open the connection, if it cannot be reached itself.
    pub listen: Option<String>,
    /// Certificates and authorities for endpoints with TLS.
    pub tls: Option<Ssliop>,
    /// Ends the transfer once it is set; the other party is told of it.
    pub is_interrupted: Arc<AtomicBool>,
}

/// The result of a complete transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOutcome {
    /// The octets of the file.
    pub octets: u64,
    /// CRC-32 of the octets, as of gzip.
    pub checksum: u32,
    /// Whether both parties had a checksum and found it equal.
    pub is_verified: bool,
    /// The name of the route of the last connection.
    pub route: String,
}

impl FileTransfer {
    /// Opens the file, gets the offer by `call`, and transfers all octets, with a progress bar on a terminal. The file is
    /// opened first, so that nothing is called for one that cannot be used.
    ///
    /// # Errors
    /// [`LabError::Io`] for the file or address, those of `call`, and [`LabError::Bulk`] for the transfer;
    /// [`LabError::Unavailable`] without the feature `bulk`.
    #[cfg(feature = "bulk")]
    pub fn run<E: From<LabError>>(&self, call: impl FnOnce() -> Result<Any, E>) -> Result<FileOutcome, E> {
        transfer::run(self, call)
    }

    #[allow(missing_docs, reason = "documented with the feature")]
    #[cfg(not(feature = "bulk"))]
    pub fn run<E: From<LabError>>(&self, _call: impl FnOnce() -> Result<Any, E>) -> Result<FileOutcome, E> {
        let reason = "it was built without the feature `bulk`: `cargo build --release --features bulk`".to_owned();
        Err(LabError::Unavailable { mechanism: "bulk", reason }.into())
    }
}

#[cfg(feature = "bulk")]
mod transfer {
    use std::fs;
    use std::sync::atomic::Ordering;
    use std::sync::{Mutex, PoisonError};

    use spandrel::bulk::bulk::{Offer, UNKNOWN_LENGTH};
    use spandrel::bulk::{BulkClient, FileSink, FileSource};
    use spandrel::net::ipc::inet;

    use super::{Any, Arc, Direction, FileOutcome, FileTransfer, LabError};
    use crate::progress::Progress;

    /// The open file at this side of a transfer.
    enum Local {
        Source(FileSource, u64),
        Sink(FileSink),
    }

    pub(super) fn run<E: From<LabError>>(
        settings: &FileTransfer,
        call: impl FnOnce() -> Result<Any, E>,
    ) -> Result<FileOutcome, E> {
        let mut local = open(settings)?;
        let client = client(settings)?;
        let offer = call()?.extract::<Offer>().map_err(|error| {
            let detail = format!("its result is no offer of a bulk stream: {error}");
            LabError::Peer { role: "object".to_owned(), detail }
        })?;
        Ok(transfer(settings, client, &offer, &mut local)?)
    }

    fn open(settings: &FileTransfer) -> Result<Local, LabError> {
        let file = settings.file.display();
        match settings.direction {
            Direction::Put => {
                let length = fs::metadata(&settings.file).map_err(LabError::io(format!("read {file}")))?.len();
                let source = FileSource::open(&settings.file).map_err(LabError::io(format!("read {file}")))?;
                Ok(Local::Source(source, length))
            }
            Direction::Get if settings.file.is_dir() => {
                Err(LabError::Settings(format!("{file} is a folder: a file in it is expected")))
            }
            Direction::Get => {
                FileSink::create(&settings.file).map(Local::Sink).map_err(LabError::io(format!("write {file}")))
            }
        }
    }

    fn client(settings: &FileTransfer) -> Result<BulkClient, LabError> {
        let mut client = BulkClient::default().idle_limit(settings.idle).resumptions(settings.resumptions);
        if let Some(limit) = settings.time_limit {
            client = client.time_limit(limit);
        }
        if let Some(listen) = &settings.listen {
            let addr: inet::Addr =
                listen.parse().map_err(|error| LabError::Settings(format!("cannot listen at {listen}: {error}")))?;
            client = client.listen(addr);
        }
        let is_interrupted = Arc::clone(&settings.is_interrupted);
        let interrupted = || "it was interrupted".to_owned();
        Ok(client.stop_when(move || is_interrupted.load(Ordering::Relaxed).then(interrupted)))
    }

    fn transfer(
        settings: &FileTransfer,
        mut client: BulkClient,
        offer: &Offer,
        local: &mut Local,
    ) -> Result<FileOutcome, LabError> {
        // A party whose calls come over TLS gets no other endpoints, and its octets never go in clear.
        let is_secure = !offer.at.is_empty() && offer.at.iter().all(|endpoint| endpoint.starts_with("tls:"));
        if let Some(ssliop) = settings.tls.as_ref().filter(|_| is_secure) {
            client = client.tls(ssliop);
        }
        let length = match local {
            Local::Source(_, length) => Some(*length),
            Local::Sink(_) => (offer.length != UNKNOWN_LENGTH).then_some(offer.length),
        };
        let progress = Arc::new(Mutex::new(Some(Progress::of_octets(length))));
        let shared = Arc::clone(&progress);
        client = client.on_progress(move |octets| {
            if let Some(progress) = &mut *shared.lock().unwrap_or_else(PoisonError::into_inner) {
                progress.reach(octets);
            }
        });
        let result = match local {
            Local::Source(source, _) => client.send(offer, source),
            Local::Sink(sink) => client.receive(offer, sink),
        };
        if let Some(progress) = progress.lock().unwrap_or_else(PoisonError::into_inner).take() {
            progress.finish();
        }
        let action = match settings.direction {
            Direction::Get => format!("receive {}", settings.file.display()),
            Direction::Put => format!("send {}", settings.file.display()),
        };
        let outcome = result.map_err(|cause| LabError::Bulk { action, cause })?;
        let (octets, checksum, is_verified) = (outcome.octets, outcome.checksum, outcome.is_verified);
        Ok(FileOutcome { octets, checksum, is_verified, route: outcome.route.to_string() })
    }
}
