//! What the server does with a request: writes it down, and waits at the gate if it is told to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use spandrel::{CompletionStatus, SystemException};

use crate::journal::Journal;
use crate::ledger::{BookAsyncServant, BookServant};

/// The first octet of data that is to wait at the gate.
pub const WAITS: u8 = 1;

/// The servant of both kinds.
#[derive(Clone)]
pub struct Keeper {
    journal: Arc<Journal>,
    gate: SocketAddr,
}

impl Keeper {
    pub fn new(journal: &Path, gate: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { journal: Arc::new(Journal::open(journal)?), gate })
    }

    fn execute(&self, number: u64, data: &[u8]) -> Result<(), SystemException> {
        let broken = |_: std::io::Error| SystemException::internal(0, CompletionStatus::Maybe);
        self.journal.begin(number).map_err(broken)?;
        if data.first() == Some(&WAITS) {
            self.wait(number).map_err(broken)?;
        }
        self.journal.end(number).map_err(broken)
    }

    /// Tells the gate, and goes on when it hangs up.
    fn wait(&self, number: u64) -> std::io::Result<()> {
        let mut gate = TcpStream::connect(self.gate)?;
        gate.write_all(&number.to_le_bytes())?;
        gate.read(&mut [0]).map(drop)
    }
}

impl BookServant for Keeper {
    fn enter(&self, number: u64, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        self.execute(number, data).map(|()| data.to_vec())
    }

    fn note(&self, number: u64, data: &[u8]) -> Result<(), SystemException> {
        self.execute(number, data)
    }
}

/// The same, which answers from another thread.
pub struct Later(pub Keeper);

impl Later {
    /// Executes it elsewhere; ready when that is done.
    fn execute(&self, number: u64, data: &[u8]) -> impl Future<Output = Result<(), SystemException>> + Send + use<> {
        let (keeper, data) = (self.0.clone(), data.to_vec());
        let (done, outcome) = crate::call::promise();
        std::thread::spawn(move || done.keep(keeper.execute(number, &data)));
        outcome
    }
}

impl BookAsyncServant for Later {
    async fn enter(&self, number: u64, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        self.execute(number, data).await.map(|()| data.to_vec())
    }

    async fn note(&self, number: u64, data: &[u8]) -> Result<(), SystemException> {
        self.execute(number, data).await
    }
}
