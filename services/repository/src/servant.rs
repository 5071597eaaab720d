//! The servant of all definitions. An object's id is its definition's number.
//!
//! For each request, [`Definitions`] makes an [`Object`] of the definition, and the skeleton of its kind around it. The
//! modules implement the servant traits of the IDL for objects.

mod contained;
mod container;
mod features;
mod interface;
mod object;
mod parts;
mod repository;
mod types;
mod value;

use spandrel::net::sync::Arc;
use spandrel::poa::OperationDemux;
use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::types::Interface as _;
use spandrel::{SystemException, SystemExceptionKind};

use self::object::Object;
use crate::core::{Core, parse, primary_interface};
use crate::errors::not_exist;
use crate::generated::corba;
use crate::generated::interface_repository::DocumentedSkeleton;
use crate::model::{NONE, Number};
use crate::records::records::{Body, Definition, InterfaceFlavor, Kind};

/// The default servant of the adapter.
#[derive(Debug)]
pub(crate) struct Definitions(pub(crate) Arc<Core>);

impl Servant for Definitions {
    fn repository_id(&self) -> &str {
        corba::IrObject::REPOSITORY_ID
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let core = &*self.0;
        let number = call.target().and_then(|target| parse(target.object_id()));
        let Some((number, definition)) = number.and_then(|number| Some((number, self.definition(number)?))) else {
            return call.implicit(&Absent).map_err(|error| if is_unknown(&error) { not_exist() } else { error });
        };
        let object = Object { core, number, definition: &definition };
        object.with_skeletons(|skeletons| {
            for skeleton in skeletons {
                if let Some(index) = skeleton.operations().find(operation, OperationDemux::default()) {
                    core.check_path(operation, number)?;
                    return skeleton.upcall(index, call);
                }
            }
            let identity = Identity { repository_id: primary_interface(&definition.content), skeletons };
            // A peer without permission does not learn which operations exist.
            let refused = |error| match is_unknown(&error) {
                true => core.check_path(operation, number).err().unwrap_or(error),
                false => error,
            };
            call.implicit(&identity).map_err(refused)
        })
    }
}

impl Definitions {
    fn definition(&self, number: Number) -> Option<Arc<Definition>> {
        self.0.model.read().get(number).filter(|_| number != NONE).cloned()
    }
}

/// Whether the exception is that of an unknown operation.
fn is_unknown(error: &SystemException) -> bool {
    error.kind() == SystemExceptionKind::BadOperation
}

impl Object<'_> {
    /// Calls `run` with the skeletons of the definition: that of its kind, and for a definition with a name that of its
    /// documentation.
    fn with_skeletons<T, R: FnOnce(&[&dyn Servant]) -> T>(self, run: R) -> T {
        let documented = DocumentedSkeleton::new(self);
        let named = |run: R, skeleton: &dyn Servant| run(&[skeleton, &documented]);
        match &self.definition.content {
            Body::Unlisted(Kind::KindModule) => named(run, &corba::ModuleDefSkeleton::new(self)),
            Body::Unlisted(Kind::KindNative) => named(run, &corba::NativeDefSkeleton::new(self)),
            Body::Unlisted(_) => run(&[&corba::RepositorySkeleton::new(self)]),
            Body::Constant(_) => named(run, &corba::ConstantDefSkeleton::new(self)),
            Body::Structure(_) => named(run, &corba::StructDefSkeleton::new(self)),
            Body::AnException(_) => named(run, &corba::ExceptionDefSkeleton::new(self)),
            Body::AUnion(_) => named(run, &corba::UnionDefSkeleton::new(self)),
            Body::Enumeration(_) => named(run, &corba::EnumDefSkeleton::new(self)),
            Body::Alias(_) => named(run, &corba::AliasDefSkeleton::new(self)),
            Body::ValueBox(_) => named(run, &corba::ValueBoxDefSkeleton::new(self)),
            Body::AnAttribute(_) => named(run, &corba::ExtAttributeDefSkeleton::new(self)),
            Body::Operation(_) => named(run, &corba::OperationDefSkeleton::new(self)),
            Body::AnInterface(body) => match body.flavor {
                InterfaceFlavor::FlavorRemote => named(run, &corba::ExtInterfaceDefSkeleton::new(self)),
                InterfaceFlavor::FlavorAbstract => named(run, &corba::ExtAbstractInterfaceDefSkeleton::new(self)),
                InterfaceFlavor::FlavorLocal => named(run, &corba::ExtLocalInterfaceDefSkeleton::new(self)),
            },
            Body::Value(_) => named(run, &corba::ExtValueDefSkeleton::new(self)),
            Body::ValueMember(_) => named(run, &corba::ValueMemberDefSkeleton::new(self)),
            Body::Primitive(_) => run(&[&corba::PrimitiveDefSkeleton::new(self)]),
            Body::Text(_) => run(&[&corba::StringDefSkeleton::new(self)]),
            Body::WideText(_) => run(&[&corba::WstringDefSkeleton::new(self)]),
            Body::Decimal(_) => run(&[&corba::FixedDefSkeleton::new(self)]),
            Body::ASequence(_) => run(&[&corba::SequenceDefSkeleton::new(self)]),
            Body::AnArray(_) => run(&[&corba::ArrayDefSkeleton::new(self)]),
        }
    }
}

/// A definition in the operations of every object, such as `_is_a`.
struct Identity<'r> {
    /// That of the definition's references.
    repository_id: &'static str,
    skeletons: &'r [&'r dyn Servant],
}

impl Servant for Identity<'_> {
    fn repository_id(&self) -> &str {
        self.repository_id
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.skeletons.iter().any(|skeleton| skeleton.is_a(repository_id))
    }
}

/// A definition that was destroyed, or never was, in the operations of every object.
struct Absent;

impl Servant for Absent {
    fn repository_id(&self) -> &str {
        corba::IrObject::REPOSITORY_ID
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn non_existent(&self) -> bool {
        true
    }
}
