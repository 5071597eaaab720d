//! A server over our ORB that counts the calls of its one object.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use spandrel::{Endpoint, Orb, Poa, SystemException};

use crate::LabError;
use crate::mechanism::generated::growth::{LateAsyncServant, LateAsyncSkeleton};
use crate::mechanism::generated::latency::{BinStruct, LatencyServant, LatencySkeleton};

/// More connections than any load has.
const MAX_CONNECTIONS: usize = 30_000;

/// Prints the object's reference, and serves until standard input ends; answers each line of input with the
/// number of calls so far. The servant's upcalls take that processor time.
///
/// # Errors
/// If it cannot be served, or the options are refused.
pub(crate) fn serve(options: &[String], work: Duration, is_asynchronous: bool) -> Result<(), LabError> {
    let mut options = options.to_vec();
    let builder = Orb::builder().max_connections(MAX_CONNECTIONS).listen(Endpoint::new("127.0.0.1", 0));
    let builder = builder.take_args(&mut options).map_err(|error| LabError::Settings(error.to_string()))?;
    let orb = builder.build().map_err(LabError::call("make the ORB"))?;
    let servant = Arc::new(CallsServant { calls: AtomicU64::new(0), work });
    let activate = || {
        let poa = Poa::root(&orb)?;
        if is_asynchronous {
            poa.activate(LateAsyncSkeleton::new(Arc::clone(&servant)))
        } else {
            poa.activate(LatencySkeleton::new(Arc::clone(&servant)))
        }
    };
    let reference = activate().map_err(LabError::call("activate the servant"))?;
    print_line(&orb.object_to_string(&reference))?;
    // A reactive ORB has no thread but those that run it.
    let runner = orb.clone();
    let run = std::thread::Builder::new().name("orb".to_owned()).spawn(move || runner.run());
    let run = run.map_err(LabError::io("start a thread"))?;
    for line in io::stdin().lock().lines() {
        line.map_err(LabError::io("listen to the parent"))?;
        print_line(&servant.calls.load(Ordering::Relaxed).to_string())?;
    }
    orb.shutdown().map_err(LabError::call("shut the server down"))?;
    _ = run.join();
    Ok(())
}

fn print_line(line: &str) -> Result<(), LabError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(LabError::io("speak to the parent"))
}

/// A servant that counts its calls, and computes for a time before it answers.
#[derive(Debug, Default)]
pub(crate) struct CallsServant {
    calls: AtomicU64,
    /// Processor time of each call; zero for none.
    work: Duration,
}

impl CallsServant {
    fn call(&self) -> Result<(), SystemException> {
        if !self.work.is_zero() {
            compute(self.work);
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Uses that much processor time of the calling thread.
pub(in crate::bench) fn compute(work: Duration) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let end = now() + work;
    while now() < end {
        std::hint::spin_loop();
    }
}

impl LateAsyncServant for Arc<CallsServant> {
    async fn ping(&self) -> Result<(), SystemException> {
        self.call()
    }
}

impl LatencyServant for CallsServant {
    fn ping(&self) -> Result<(), SystemException> {
        self.call()
    }

    fn ping_1way(&self) -> Result<(), SystemException> {
        self.call()
    }

    fn send_struct_seq(&self, _: &[BinStruct]) -> Result<(), SystemException> {
        self.call()
    }

    fn send_octet_seq(&self, _: &[u8]) -> Result<(), SystemException> {
        self.call()
    }

    fn send_struct_seq_1way(&self, _: &[BinStruct]) -> Result<(), SystemException> {
        self.call()
    }

    fn send_octet_seq_1way(&self, _: &[u8]) -> Result<(), SystemException> {
        self.call()
    }
}
