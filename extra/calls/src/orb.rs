//! Our ORB with an asynchronous servant whose requests are tasks of tokio once they wait.

use std::sync::Arc;

use anyhow::Result;
use spandrel::options::poll_once;
use spandrel::{Endpoint, Orb, Poa, SystemException};
use tokio::runtime::Runtime;

use crate::Calls;

#[allow(dead_code, missing_docs, unreachable_pub, missing_debug_implementations, reason = "generated code")]
mod latency {
    spandrel::include_idl!("latency");
}
use latency::{BinStruct, LatencyAsyncServant, LatencyAsyncSkeleton};

pub(crate) fn run(calls: Calls) -> Result<()> {
    let threads = Runtime::new()?;
    let runtime = threads.handle().clone();
    // As many as `bench inflight` keeps in flight at most.
    let builder = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).max_deferred_requests(10_000);
    // ANCHOR: spawner
    let spawner = move |task| {
        let _context = runtime.enter(); // for timers and sockets
        if let Some(task) = poll_once(task) {
            drop(runtime.spawn(task));
        }
    };
    let orb = builder.spawner(spawner).build()?;
    // ANCHOR_END: spawner
    let calls = Arc::new(calls);
    let object = Poa::root(&orb)?.activate(LatencyAsyncSkeleton::new(Object(Arc::clone(&calls))))?;
    println!("{}", orb.object_to_string(&object));
    calls.answer_parent()?;
    Ok(orb.shutdown()?)
}

struct Object(Arc<Calls>);

impl LatencyAsyncServant for Object {
    async fn ping(&self) -> Result<(), SystemException> {
        self.0.call();
        Ok(())
    }

    async fn ping_1way(&self) -> Result<(), SystemException> {
        self.ping().await
    }

    async fn send_struct_seq(&self, _: &[BinStruct]) -> Result<(), SystemException> {
        self.ping().await
    }

    async fn send_octet_seq(&self, _: &[u8]) -> Result<(), SystemException> {
        self.ping().await
    }

    async fn send_octet_seq_1way(&self, _: &[u8]) -> Result<(), SystemException> {
        self.ping().await
    }

    async fn send_struct_seq_1way(&self, _: &[BinStruct]) -> Result<(), SystemException> {
        self.ping().await
    }
}
