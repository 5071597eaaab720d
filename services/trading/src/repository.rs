//! The servant of `ServiceTypeRepository`.
#![expect(clippy::result_large_err, reason = "the errors are those of the generated servant")]

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel::services::cos_trading_repos::ServiceTypeRepositoryServant;
use spandrel::services::cos_trading_repos::service_type_repository::{
    AddTypeError, AlreadyMasked, DescribeTypeError, FullyDescribeTypeError, HasSubTypes, IncarnationNumber,
    MaskTypeError, NotMasked, PropStruct, RemoveTypeError, SpecifiedServiceTypes, TypeStruct, UnmaskTypeError,
};
use spandrel_daemon::require_at_most;

use crate::components::TraderServant;
use crate::state::Edit;

/// The longest name of an interface, in octets.
const MAX_INTERFACE_NAME: usize = 4_096;

impl ServiceTypeRepositoryServant for TraderServant {
    fn incarnation(&self) -> Result<IncarnationNumber, SystemException> {
        Ok(self.0.shared.read(|state| incarnation(state.incarnation)))
    }

    fn add_type(
        &self,
        name: &str,
        if_name: &str,
        props: &[PropStruct],
        super_types: &[String],
    ) -> Result<IncarnationNumber, AddTypeError> {
        let shared = &self.0.shared;
        let limits = &self.0.limits;
        let bases = || shared.read(|state| state.types.interfaces(super_types));
        require_at_most(if_name.len(), MAX_INTERFACE_NAME, "octets in the name of an interface")?;
        require_at_most(props.len().max(super_types.len()), limits.properties, "properties or supertypes of a type")?;
        let mut new = TypeStruct {
            if_name: if_name.to_owned(),
            props: props.to_vec(),
            super_types: super_types.to_vec(),
            ..TypeStruct::default()
        };
        let check = || {
            shared.read(|state| {
                state.types.check_new(name, &new)?;
                Ok::<_, AddTypeError>(require_at_most(state.types.len() + 1, limits.types, "service types")?)
            })
        };
        // The interface repository is called without the lock, and again if a supertype was replaced meanwhile.
        let _lock = loop {
            check()?;
            let compared = bases();
            self.0.require_interface(name, if_name, &compared)?;
            let lock = shared.types_change.lock();
            check()?;
            if bases() == compared {
                break lock;
            }
        };
        new.incarnation = incarnation(shared.next_incarnation());
        let added = new.incarnation;
        let new = Arc::new(new);
        shared.change::<AddTypeError>(|_| {
            Ok(vec![Edit::Type { name: name.to_owned(), expected: None, new: Some(Arc::clone(&new)) }])
        })?;
        Ok(added)
    }

    fn remove_type(&self, name: &str) -> Result<(), RemoveTypeError> {
        let _lock = self.0.shared.types_change.lock();
        self.0.shared.change::<RemoveTypeError>(|state| {
            let expected = Arc::clone(state.types.find::<RemoveTypeError>(name)?);
            if let Some(sub_type) = state.types.subtype(name) {
                let (the_type, sub_type) = (name.to_owned(), sub_type.clone());
                return Err(HasSubTypes { the_type, sub_type }.into());
            }
            Ok(vec![Edit::Type { name: name.to_owned(), expected: Some(expected), new: None }])
        })
    }

    fn list_types(&self, which_types: &SpecifiedServiceTypes) -> Result<Vec<String>, SystemException> {
        let since = match which_types {
            SpecifiedServiceTypes::Incarnation(since) => number(since),
            SpecifiedServiceTypes::Unlisted(_) => 0,
        };
        Ok(self.0.shared.read(|state| {
            let types = state.types.iter().filter(|(_, definition)| number(&definition.incarnation) >= since);
            types.map(|(name, _)| name.clone()).collect()
        }))
    }

    fn describe_type(&self, name: &str) -> Result<TypeStruct, DescribeTypeError> {
        self.0.shared.read(|state| Ok((**state.types.find::<DescribeTypeError>(name)?).clone()))
    }

    fn fully_describe_type(&self, name: &str) -> Result<TypeStruct, FullyDescribeTypeError> {
        self.0.shared.read(|state| Ok(state.types.full(state.types.find::<FullyDescribeTypeError>(name)?)))
    }

    fn mask_type(&self, name: &str) -> Result<(), MaskTypeError> {
        let _lock = self.0.shared.types_change.lock();
        self.0.shared.change::<MaskTypeError>(|state| {
            let expected = Arc::clone(state.types.find::<MaskTypeError>(name)?);
            if expected.masked {
                return Err(AlreadyMasked { name: name.to_owned() }.into());
            }
            Ok(vec![with_mask(name, expected, true)])
        })
    }

    fn unmask_type(&self, name: &str) -> Result<(), UnmaskTypeError> {
        let _lock = self.0.shared.types_change.lock();
        self.0.shared.change::<UnmaskTypeError>(|state| {
            let expected = Arc::clone(state.types.find::<UnmaskTypeError>(name)?);
            if !expected.masked {
                return Err(NotMasked { name: name.to_owned() }.into());
            }
            Ok(vec![with_mask(name, expected, false)])
        })
    }
}

fn with_mask(name: &str, expected: Arc<TypeStruct>, masked: bool) -> Edit {
    let new = Arc::new(TypeStruct { masked, ..(*expected).clone() });
    Edit::Type { name: name.to_owned(), expected: Some(expected), new: Some(new) }
}

fn incarnation(number: u64) -> IncarnationNumber {
    IncarnationNumber { high: (number >> 32) as u32, low: number as u32 }
}

fn number(incarnation: &IncarnationNumber) -> u64 {
    u64::from(incarnation.high) << 32 | u64::from(incarnation.low)
}
