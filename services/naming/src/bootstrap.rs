//! The bootstrap protocol of Java's ORBs (`-ORBInitialHost`, `-ORBInitialPort`): an object with the key `INIT` tells
//! initial references by name.

#[allow(clippy::all, missing_docs, unreachable_pub)]
mod generated {
    spandrel::include_idl!("Bootstrap");
}

use spandrel::{ObjectRef, SystemException};

use generated::BootstrapServant;
pub(crate) use generated::BootstrapSkeleton;

/// The references that are told, by name.
#[derive(Debug)]
pub(crate) struct InitialReferences {
    pub(crate) own: Vec<(&'static str, ObjectRef)>,
}

impl BootstrapServant for InitialReferences {
    fn get(&self, name: &str) -> Result<Option<ObjectRef>, SystemException> {
        Ok(self.own.iter().find(|(own, _)| *own == name).map(|(_, object)| object.clone()))
    }

    fn list(&self) -> Result<Vec<String>, SystemException> {
        Ok(self.own.iter().map(|(name, _)| (*name).to_owned()).collect())
    }
}
