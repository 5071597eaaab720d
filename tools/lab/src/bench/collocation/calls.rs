//! The servant, and the loops that call it.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use spandrel::{Orb, Poa, SystemException, options::Collocation};

use crate::LabError;
use crate::workload::named;

#[allow(dead_code, unreachable_pub, missing_docs, reason = "generated code offers all that the IDL says")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/direct/collocation.rs"));
}

use generated::{Desk, DeskServant, DeskSkeleton};

/// The way that a call takes to a servant in the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// As a Rust trait object: no ORB.
    Virtual,
    /// Through a stub that calls the servant's method.
    Direct,
    /// Through a request that the adapter dispatches in the calling thread.
    ThroughPoa,
    /// Through a request over a socket, as to any other server.
    Socket,
}

impl Path {
    /// All ways to call, in the order of the report.
    pub const ALL: [Self; 4] = [Self::Virtual, Self::Direct, Self::ThroughPoa, Self::Socket];

    /// Its name on command lines and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Direct => "direct",
            Self::ThroughPoa => "through-poa",
            Self::Socket => "socket",
        }
    }
}

named!(Path, "path");

struct AnsweringServant;

impl DeskServant for AnsweringServant {
    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(b))
    }

    fn sum(&self, numbers: &[f64]) -> Result<f64, SystemException> {
        Ok(numbers.iter().sum())
    }
}

/// The callee of one path.
pub(super) enum Callee {
    Virtual(Box<dyn DeskServant>),
    Object { orb: Orb, desk: Desk },
}

impl Callee {
    pub(super) fn new(path: Path) -> Result<Self, LabError> {
        let strategy = match path {
            Path::Virtual => return Ok(Self::Virtual(Box::new(AnsweringServant))),
            Path::Direct => Collocation::Direct,
            Path::ThroughPoa => Collocation::ThroughPoa,
            Path::Socket => Collocation::No,
        };
        let orb = Orb::builder().collocation(strategy).build().map_err(|cause| failed("make the ORB", cause))?;
        let object = Poa::root(&orb).and_then(|poa| poa.activate(DeskSkeleton::new(AnsweringServant)));
        let object = object.map_err(|cause| failed("activate the servant", cause))?;
        Ok(Self::Object { orb, desk: Desk::unchecked_narrow(&object) })
    }

    /// Calls one operation that many times.
    pub(super) fn call(&self, operation: usize, calls: u64) -> Result<(), LabError> {
        let called = match self {
            Self::Virtual(servant) => repeat(black_box(&**servant), operation, calls),
            Self::Object { desk, .. } => repeat(desk, operation, calls),
        };
        called.map_err(|cause| failed("call the servant", cause))
    }
}

impl Drop for Callee {
    fn drop(&mut self) {
        if let Self::Object { orb, .. } = self {
            // The rest of it ends with the process.
            let _ = orb.shutdown();
        }
    }
}

/// The operations that both a reference and a servant have.
trait Calls {
    fn ping(&self) -> Result<(), SystemException>;
    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException>;
    fn sum(&self, numbers: &[f64]) -> Result<f64, SystemException>;
}

impl Calls for Desk {
    #[inline(always)]
    fn ping(&self) -> Result<(), SystemException> {
        self.ping()
    }

    #[inline(always)]
    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        self.add(a, b)
    }

    #[inline(always)]
    fn sum(&self, numbers: &[f64]) -> Result<f64, SystemException> {
        self.sum(numbers)
    }
}

impl Calls for dyn DeskServant {
    #[inline(always)]
    fn ping(&self) -> Result<(), SystemException> {
        DeskServant::ping(self)
    }

    #[inline(always)]
    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        DeskServant::add(self, a, b)
    }

    #[inline(always)]
    fn sum(&self, numbers: &[f64]) -> Result<f64, SystemException> {
        DeskServant::sum(self, numbers)
    }
}

fn repeat<C: Calls + ?Sized>(callee: &C, operation: usize, calls: u64) -> Result<(), SystemException> {
    let numbers = [0.5; 128];
    for _ in 0..calls {
        match operation {
            0 => callee.ping()?,
            1 => drop(black_box(callee.add(black_box(1), black_box(2))?)),
            _ => drop(black_box(callee.sum(black_box(&numbers))?)),
        }
    }
    Ok(())
}

fn failed(action: &str, cause: SystemException) -> LabError {
    LabError::Call { action: action.to_owned(), cause }
}
