//! A repository on an ORB of its own, and calls of its operations.

use std::path::Path;

use spandrel::generated::{Decode, Encode};
use spandrel::{Endpoint, ObjectRef, Orb, SystemException, SystemExceptionKind};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};

/// A served repository, and a reference to it from another ORB.
pub(crate) struct Served {
    pub(crate) repository: InterfaceRepository,
    pub(crate) root: ObjectRef,
    server: Orb,
    client: Orb,
}

impl Served {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::with(RepositoryOptions::new(folder))
    }

    pub(crate) fn with(options: RepositoryOptions) -> Self {
        let server = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().expect("an ORB");
        let repository = InterfaceRepository::start(&server, options).expect("a repository");
        let client = Orb::builder().build().expect("an ORB");
        let root = client.string_to_object(&repository.reference().to_string()).expect("a reference");
        Self { repository, root, server, client }
    }

    pub(crate) fn client(&self) -> &Orb {
        &self.client
    }

    pub(crate) fn stop(self) {
        self.client.shutdown().expect("the client ends");
        self.repository.stop().expect("the service ends");
        self.server.shutdown().expect("the server ends");
    }
}

/// Calls an operation.
pub(crate) fn call<T: Decode>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[&dyn Encode],
) -> Result<T, SystemException> {
    object.invoke(operation, |out| arguments.iter().try_for_each(|it| it.encode(out)), T::decode)
}

/// Calls an operation without a result.
pub(crate) fn send(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[&dyn Encode],
) -> Result<(), SystemException> {
    object.invoke(operation, |out| arguments.iter().try_for_each(|it| it.encode(out)), |_| Ok(()))
}

/// Calls an operation that returns a reference, such as one of creation.
pub(crate) fn make(object: &ObjectRef, operation: &'static str, arguments: &[&dyn Encode]) -> ObjectRef {
    call::<Option<ObjectRef>>(object, operation, arguments).expect(operation).expect("a definition")
}

pub(crate) fn lookup_id(root: &ObjectRef, id: &str) -> Option<ObjectRef> {
    call(root, "lookup_id", &[&id]).expect("lookup_id")
}

/// The minor code of the exception of a call that has to fail.
pub(crate) fn failure<T: std::fmt::Debug>(outcome: Result<T, SystemException>) -> (SystemExceptionKind, u32) {
    let error = outcome.expect_err("an exception");
    (error.kind(), error.minor())
}
