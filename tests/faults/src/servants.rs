//! The servants: they record each execution, and wait at the gate if the data requests it.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use spandrel::{CompletionStatus, SystemException};

use crate::journal::Journal;
use crate::ledger::{BookAsyncServant, BookServant};

/// The first octet of data that makes the servant wait at the gate.
pub const WAIT_AT_GATE: u8 = 1;

/// The synchronous servant.
#[derive(Clone)]
pub struct RecordingServant {
    journal: Arc<Journal>,
    gate: SocketAddr,
}

impl RecordingServant {
    pub fn new(journal: &Path, gate: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { journal: Arc::new(Journal::open(journal)?), gate })
    }

    fn execute(&self, number: u64, data: &[u8]) -> Result<(), SystemException> {
        let broken = |_: std::io::Error| SystemException::internal(0, CompletionStatus::Maybe);
        self.journal.begin(number).map_err(broken)?;
        if data.first() == Some(&WAIT_AT_GATE) {
            self.wait_at_gate(number).map_err(broken)?;
        }
        self.journal.end(number).map_err(broken)
    }

    /// Sends the number to the gate, and continues when the gate closes the connection.
    fn wait_at_gate(&self, number: u64) -> std::io::Result<()> {
        let mut gate = TcpStream::connect(self.gate)?;
        gate.write_all(&number.to_le_bytes())?;
        spandrel_test_support::read_some(&gate, &mut [0]).map(drop)
    }
}

impl BookServant for RecordingServant {
    fn enter(&self, number: u64, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        self.execute(number, data).map(|()| data.to_vec())
    }

    fn note(&self, number: u64, data: &[u8]) -> Result<(), SystemException> {
        self.execute(number, data)
    }
}

/// The asynchronous servant, which replies from another thread.
pub struct AsyncRecordingServant(pub RecordingServant);

impl AsyncRecordingServant {
    /// Executes the request in another thread; the future completes when that is done.
    fn execute(&self, number: u64, data: &[u8]) -> impl Future<Output = Result<(), SystemException>> + Send + use<> {
        let (servant, data) = (self.0.clone(), data.to_vec());
        let (done, outcome) = crate::call::promise();
        std::thread::spawn(move || done.set(servant.execute(number, &data)));
        outcome
    }
}

impl BookAsyncServant for AsyncRecordingServant {
    async fn enter(&self, number: u64, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        self.execute(number, data).await.map(|()| data.to_vec())
    }

    async fn note(&self, number: u64, data: &[u8]) -> Result<(), SystemException> {
        self.execute(number, data).await
    }
}
