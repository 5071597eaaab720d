//! Control groups on systems that have none.

use std::convert::Infallible;
use std::path::Path;

use crate::idl::orchestra::CpuTime;

/// No script: systems without control groups need none.
pub(crate) const ENTER: &str = "";

/// No place where groups can be made.
#[derive(Clone, Debug)]
pub(crate) struct Groups(Infallible);

/// A control group, which does not exist on this system.
#[derive(Debug)]
pub(crate) struct Group(Infallible);

impl Groups {
    pub(crate) fn find() -> Result<Self, String> {
        Err("only Linux has control groups".to_owned())
    }

    pub(crate) fn description(&self) -> &'static str {
        match self.0 {}
    }

    pub(crate) fn make(&self) -> Result<Group, String> {
        match self.0 {}
    }
}

impl Group {
    pub(crate) fn path(&self) -> &Path {
        match self.0 {}
    }

    pub(crate) fn time(&self) -> Result<CpuTime, String> {
        match self.0 {}
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        match self.0 {}
    }
}
