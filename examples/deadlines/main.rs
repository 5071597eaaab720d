//! A servant that stops working when nobody waits for it any more: its client's time is up, or its client has changed its mind.

use std::{sync::mpsc, time::Duration};

use spandrel::{CancellationToken, CompletionStatus, Orb, Poa, SystemException, minor, remaining_time};

spandrel::include_idl!("archive");
use archive::{Index, IndexServant, IndexSkeleton};

/// An archive without end.
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
    let (tell, told) = mpsc::channel();
    let server = Orb::init(std::env::args())?;
    let reference = Poa::root(&server)?.activate(IndexSkeleton::new(Archive(tell)))?;

    let client = Orb::init(std::env::args())?;
    let object = client.string_to_object(&reference.to_string())?;

    // One who does not wait longer than that.
    let hurried = Index::unchecked_narrow(&object.with_timeout(Some(Duration::from_secs(1))));
    if let Err(exception) = hurried.search("17") {
        println!("17: {}", exception.kind().name());
    }
    println!("{}\n{}", told.recv()?, told.recv()?);

    // One who has asked, and then does not want to know.
    let asked = Index::unchecked_narrow(&object).search_async("23");
    println!("{}", told.recv()?);
    drop(asked);
    println!("{}", told.recv()?);

    client.shutdown(true)?;
    server.shutdown(true)?;
    Ok(())
}
