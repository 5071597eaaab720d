//! The test server: prints its reference and serves until the standard input ends.
//! `faults-server JOURNAL GATE synchronous|asynchronous [-ORB…]`

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Context, ensure};
use spandrel::poa::{IdAssignmentPolicy, LifespanPolicy, ObjectId};
use spandrel::{Orb, Poa, server::Servant};
use spandrel_faults::ledger::{BookAsyncSkeleton, BookSkeleton};
use spandrel_faults::secure;
use spandrel_faults::servants::{AsyncRecordingServant, RecordingServant};

fn main() -> anyhow::Result<()> {
    let mut options: Vec<String> = std::env::args().skip(1).collect();
    let orb = Orb::builder().protocol(secure::protocol()).take_args(&mut options)?.build()?;
    let [journal, gate, kind] = &options[..] else { anyhow::bail!("invalid arguments: {options:?}") };
    let recording = RecordingServant::new(journal.as_ref(), gate.parse().context("GATE is not an address")?)?;
    ensure!(["synchronous", "asynchronous"].contains(&&**kind), "unknown kind: {kind}");
    let servant: Arc<dyn Servant> = match &**kind {
        "asynchronous" => Arc::new(BookAsyncSkeleton::new(AsyncRecordingServant(recording))),
        _ => Arc::new(BookSkeleton::new(recording)),
    };
    // The object id is the journal's path: the successor has the same object, and a server of another test
    // that reuses the port does not.
    let root = Poa::root(&orb)?;
    let policies = [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()];
    let poa = root.create_poa("ledger", Some(&root.the_poa_manager()), policies)?;
    let id = ObjectId::from(journal.as_str());
    poa.activate_object_with_id(&id, servant)?;
    root.the_poa_manager().activate()?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", orb.object_to_string(&poa.id_to_reference(&id)?))?;
    out.flush()?;
    drop(out);
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(orb.shutdown()?)
}
