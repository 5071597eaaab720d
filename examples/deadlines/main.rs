//! A servant that stops when its result is no longer needed: the client's deadline has passed, or the client
//! has cancelled the request.

use std::{sync::mpsc, time::Duration};

use spandrel::policy::ReferencePolicies;
use spandrel::server::{CancellationToken, remaining_time};
use spandrel::{CompletionStatus, Orb, Poa, SystemException, minor};

spandrel::include_idl!("archive");
use archive::{Index, IndexServant};

/// An archive with too many records to search them all.
struct Archive(mpsc::Sender<String>);

impl IndexServant for Archive {
    fn search(&self, pattern: &str) -> Result<u64, SystemException> {
        let token = CancellationToken::current();
        let _ = self.0.send(format!("{pattern}: begun, in a hurry: {}", remaining_time().is_some()));
        let mut found = 0;
        for record in 0..u64::MAX {
            if let Some(reason) = token.reason() {
                let _ = self.0.send(format!("{pattern}: stopped, {reason}"));
                return Err(SystemException::transient(minor::REQUEST_CANCELLED, CompletionStatus::No));
            }
            found += u64::from(record.to_string().contains(pattern));
        }
        Ok(found)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (sender, receiver) = mpsc::channel();
    let server = Orb::init(std::env::args())?;
    let reference: Index = Poa::root(&server)?.serve(Archive(sender))?;

    let client = Orb::init(std::env::args())?;
    let index: Index = client.string_to_object(&reference.to_string())?.narrow()?;

    // A client with a deadline of one second.
    let hurried = index.with_timeout(Duration::from_secs(1));
    if let Err(exception) = hurried.search("17") {
        println!("17: {}", exception.kind().name());
    }
    println!("{}\n{}", receiver.recv()?, receiver.recv()?);

    // A client that cancels its request.
    let pending = index.search_async("23");
    println!("{}", receiver.recv()?);
    drop(pending);
    println!("{}", receiver.recv()?);

    client.shutdown()?;
    server.shutdown()?;
    Ok(())
}
