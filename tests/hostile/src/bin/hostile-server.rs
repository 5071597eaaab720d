//! The attacked server: prints its reference and serves until the standard input ends.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(unix)]
use anyhow::Context;
use spandrel::ssliop::Ssliop;
use spandrel::types::values::ValueRef;
use spandrel::{Orb, Poa, SystemException, types::Any};
use spandrel_hostile::attacked::{Node, Target, TargetServant, TargetSkeleton};

struct AttackedTarget;

impl TargetServant for AttackedTarget {
    fn echo(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }

    fn echo_texts(&self, data: &[String]) -> Result<Vec<String>, SystemException> {
        Ok(data.to_vec())
    }

    fn wide(&self, text: &str) -> Result<spandrel::types::WString, SystemException> {
        Ok(text.into())
    }

    fn anything(&self, value: &Any) -> Result<Any, SystemException> {
        Ok(value.clone())
    }

    fn list(&self, head: Option<&ValueRef<dyn Node>>) -> Result<Option<ValueRef<dyn Node>>, SystemException> {
        Ok(head.cloned())
    }

    fn same(&self, other: Option<&Target>) -> Result<Option<Target>, SystemException> {
        Ok(other.cloned())
    }

    fn produce(&self, count: u32) -> Result<Vec<u8>, SystemException> {
        Ok(vec![7; count as usize])
    }

    fn ignore(&self, _data: &[u8]) -> Result<(), SystemException> {
        Ok(())
    }

    /// Keeps the request for a tenth of a second.
    fn hold(&self, _data: &[u8]) -> Result<(), SystemException> {
        thread::sleep(Duration::from_millis(100));
        Ok(())
    }

    /// Keeps the values for a tenth of a second.
    fn ponder(&self, graph: &[Option<ValueRef<dyn Node>>]) -> Result<(), SystemException> {
        thread::sleep(Duration::from_millis(100));
        drop(graph.to_vec());
        Ok(())
    }

    fn note(&self, _data: &[u8]) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Limits the descriptors of this process with `--descriptors N`, and its address space in octets with
/// `--memory N`.
#[cfg(unix)]
fn limit_resources(options: &mut Vec<String>) -> anyhow::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    for (name, resource) in [("--descriptors", Resource::Nofile), ("--memory", Resource::As)] {
        let Some(at) = options.iter().position(|option| option == name) else { continue };
        let most: u64 = options.get(at + 1).context("the limit is missing")?.parse()?;
        options.drain(at..at + 2);
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

fn main() -> anyhow::Result<()> {
    // The server logs warnings.
    spandrel::diagnostics::log::init_or("warn")?;
    let mut options: Vec<String> = std::env::args().skip(1).collect();
    #[cfg(unix)]
    limit_resources(&mut options)?;
    let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()));
    let orb = Orb::builder().protocol(ssliop).take_args(&mut options)?.build()?;
    anyhow::ensure!(options.is_empty(), "not options of an ORB: {options:?}");
    let object = Poa::root(&orb)?.activate(TargetSkeleton::new(AttackedTarget))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", orb.object_to_string(&object))?;
    out.flush()?;
    drop(out);
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(orb.shutdown()?)
}
